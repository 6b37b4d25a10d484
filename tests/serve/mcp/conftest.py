"""Served tools and a client in the same process, in either era of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
import pytest
from mcp import Client

from taoloop import Agent, MemoryJournal
from taoloop.core.cards.tool_card import Tier
from taoloop.core.policy import Policy
from taoloop.core.trace import Trace
from taoloop.runtime.tool_call_run import ToolCallRuns
from taoloop.serve.mcp.dispatcher import CallDispatcher
from taoloop.serve.mcp.server import AgentAsTool, CardTool, ExposedTool, make_server
from taoloop.tools.toolbox import Toolbox

ERAS = ("legacy", "auto")


@dataclass
class Served:
    """A server with its journal, and how to speak to it."""

    server: Any
    journal: MemoryJournal
    desk: CallDispatcher
    questions: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def client(self, era: str = "auto", answer: Any = None, **options: Any) -> AsyncIterator[Client]:
        """A client; `answer` is what its person says to every question (None: it cannot ask)."""

        async def elicit(context: Any, params: Any) -> types.ElicitResult:
            self.questions.append(params.message)
            found: Any = answer(params) if callable(answer) else answer
            given: types.ElicitResult = await found if isinstance(found, Awaitable) else found
            return given

        callback = None if answer is None else elicit
        async with Client(self.server, mode=era, elicitation_callback=callback, cache=None, **options) as client:
            yield client

    async def traces(self) -> list[Trace]:
        """The runs in the journal, the oldest first."""
        rows = await self.journal.runs(limit=1_000)
        return [Trace(row.run_id, await self.journal.load(row.run_id)) for row in reversed(rows)]


def serve(
    tools: Sequence[Any] = (),
    agents: Sequence[Agent] = (),
    *,
    policy: Policy | None = None,
    tiers: tuple[Tier, ...] = (),
    at_once: int = 64,
    question_s: float = 600.0,
    more: Callable[[MemoryJournal, CallDispatcher], list[ExposedTool]] = lambda _journal, _desk: [],
    **options: Any,
) -> Served:
    """These tools and agents behind a server. Call it in a running loop."""
    journal, desk = MemoryJournal(), CallDispatcher(at_once=at_once, question_s=question_s)
    box = list(Toolbox(tools))
    calls = ToolCallRuns(
        journal=journal,
        policy=policy or Policy(),
        approved_tiers=tiers,
        cards=[one.card for one in box],
        **options,
    )
    offers: list[ExposedTool] = [CardTool(tool=one, calls=calls, desk=desk) for one in box]
    offers += [AgentAsTool(agent=agent, journal=journal, desk=desk) for agent in agents]
    return Served(make_server([*offers, *more(journal, desk)], question_s=question_s), journal, desk)


def said(result: types.CallToolResult) -> str:
    """The text of a result."""
    first = result.content[0]
    assert isinstance(first, types.TextContent)
    return first.text


YES = types.ElicitResult(action="accept", content={"allow": True})
NO = types.ElicitResult(action="accept", content={"allow": False})
DECLINED = types.ElicitResult(action="decline")
CANCELLED = types.ElicitResult(action="cancel")


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    """Each era of the protocol."""
    return str(request.param)


async def until_statuses(served: Served, *statuses: str) -> None:
    """Let others work until the runs in the journal have these statuses."""
    async with asyncio.timeout(10):
        while tuple(trace.status for trace in await served.traces()) != statuses:  # noqa: ASYNC110  # a journal rings no bell
            await asyncio.sleep(0)
