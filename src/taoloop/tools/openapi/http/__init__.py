"""Requests and responses of OpenAPI operations."""
