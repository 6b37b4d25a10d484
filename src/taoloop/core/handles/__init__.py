"""Opaque handles for observations that a planning model must not read."""
