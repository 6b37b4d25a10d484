"""Models around models: retries, rate limits, fallbacks."""
