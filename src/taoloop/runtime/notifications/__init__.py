"""Tells other programs what waits for a person: by a signed webhook, or by a command."""
