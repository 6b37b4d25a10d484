"""Who may use the gateway: API keys, and the web pages that may call it from a browser."""
