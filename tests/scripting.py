"""Replies for a scripted model, and one that keeps what it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taoloop import ScriptedModel
from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply


class Asked(ScriptedModel):
    """A script that keeps what it was asked."""

    def __init__(self, replies: Sequence[Any]) -> None:
        super().__init__(replies)
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The next reply."""
        self.requests.append(request)
        return await super().complete(request)


def call(name: str, /, **args: Any) -> dict[str, Any]:
    """A reply that calls one tool."""
    return calls((name, args))


def calls(*wanted: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A reply that calls several tools at once."""
    return {"tool_calls": [{"name": name, "args": args} for name, args in wanted]}
