"""Schemas of OpenAPI documents as JSON Schema."""
