"""Replies for a scripted model."""

from __future__ import annotations

from typing import Any


def call(name: str, /, **args: Any) -> dict[str, Any]:
    """A reply that calls one tool."""
    return calls((name, args))


def calls(*wanted: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A reply that calls several tools at once."""
    return {"tool_calls": [{"name": name, "args": args} for name, args in wanted]}
