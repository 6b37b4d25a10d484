"""Requests that clients send again: which run they belong to."""
