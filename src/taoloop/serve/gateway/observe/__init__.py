"""Logs, metrics and traces of the gateway."""
