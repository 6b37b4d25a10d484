"""Anthropic's Messages API at the gateway: agents for clients of that API."""
