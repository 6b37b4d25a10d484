"""What the tests of models share: a request, and a model that does as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from taoloop import Trace
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.effects import ModelRequest
from taoloop.core.events import Event, RunStarted
from taoloop.core.message import Delta, Message, ModelReply, Usage

HANG = "hang"


def asking(text: str = "say hello", **fields: Any) -> ModelRequest:
    """A request of a run that has just begun."""
    trace = Trace("r", [Event(0, 0.0, RunStarted(task=text, agent=AgentSpec(dialect="text"), nonce="n"))])
    request = ModelRequest(task=text, trace=trace, messages=(Message(role="user", content=text),), dialect="text")
    return replace(request, **fields)


class Told:
    """Gives or raises what it was told, in order; the last one again and again. Keeps the requests."""

    def __init__(self, *answers: ModelReply | Exception | str, spec: str = "told", dialect: str = "native") -> None:
        self.spec, self.dialect = spec, dialect
        self._answers = answers
        self.requests: list[ModelRequest] = []
        self.asked = asyncio.Event()
        self.closed = 0
        self.checked: list[int] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        self.asked.set()
        answer = self._answers[min(len(self.requests), len(self._answers)) - 1]
        if request.on_delta is not None:
            request.on_delta(Delta(kind="text", text=f"{self.spec} {len(self.requests)}"))
        if answer == HANG:
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, ModelReply) else ModelReply(text=str(answer), model=self.spec)

    def check_used(self, replies: int) -> None:
        self.checked.append(replies)

    async def close(self) -> None:
        self.closed += 1


def used(tokens: int) -> ModelReply:
    """A reply that used so many tokens."""
    return ModelReply(text="ok", usage=Usage(input_tokens=tokens))


def kinds(deltas: Sequence[Delta]) -> list[str]:
    return [delta.kind for delta in deltas]
