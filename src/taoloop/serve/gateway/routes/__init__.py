"""The HTTP routes of the gateway."""
