"""What a dead process left behind is found and taken up; what is alive is left alone."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from taoloop import Agent, ScriptedModel, SqliteJournal, Trace, tool
from taoloop.core.events import ActionStarted, Event
from taoloop.runtime.recovery import MARGIN_S, PERSON_S, Recovered, orphans, recover, silence_s


@tool(tier="draft", idempotent=True, timeout_s=100)
async def put(n: int) -> str:
    """Put."""
    return f"put {n}"


@tool(tier="draft")
async def send(n: int) -> str:
    """Send."""
    return f"sent {n}"


def script(name: str) -> ScriptedModel:
    return ScriptedModel([{"tool_calls": [{"name": name, "args": {"n": 1}}]}, "done"])


def agent_of(journal: SqliteJournal, name: str) -> Agent:
    return Agent(model=script(name), tools=[put, send], journal=journal)


async def left_behind(journal: SqliteJournal, run_id: str, name: str, ago_s: float) -> None:
    """A run whose process died in the middle of its call, so many seconds ago."""
    whole = await agent_of(journal, name).run(f"do {run_id}", run_id=f"whole-{run_id}")
    events = whole.trace.events
    cut = next(number for number, event in enumerate(events) if isinstance(event.fact, ActionStarted)) + 1
    at = time.time() - ago_s
    lease = await journal.create(run_id)
    await journal.append(lease, [Event(event.seq, at, event.fact) for event in events[:cut]])


def test_every_lost_run_goes_on_and_the_others_are_left_alone(tmp_path: Path) -> None:
    async def play() -> tuple[list[str], list[Recovered], list[str], list[Any]]:
        async with SqliteJournal(tmp_path / "r.db", synchronous="NORMAL") as journal:
            await left_behind(journal, "old", "put", 3600)
            await left_behind(journal, "fresh", "put", 90)
            await left_behind(journal, "alive", "put", 1)
            await left_behind(journal, "doubtful", "send", 3600)
            found = [trace.run_id for trace in await orphans(journal)]
            told: list[Recovered] = []

            def agent_for(trace: Trace) -> Agent:
                return agent_of(journal, "send" if trace.run_id == "doubtful" else "put")

            done = await recover(journal, agent_for, on_recovered=told.append)
            assert told == done
            left = [trace.run_id for trace in await orphans(journal, silent_s=0)]
            return found, done, left, [row.status for row in await journal.runs(status="waiting")]

    found, done, left, waiting = asyncio.run(play())
    assert found == ["old", "doubtful"]
    assert [one.result and one.result.status for one in done] == ["completed", "waiting"]
    assert left == ["fresh", "alive"]
    assert waiting == ["waiting"]


def test_one_that_cannot_be_taken_up_is_told_and_the_next_one_goes_on(tmp_path: Path) -> None:
    async def play() -> list[Recovered]:
        async with SqliteJournal(tmp_path / "r.db", synchronous="NORMAL") as journal:
            await left_behind(journal, "one", "put", 3600)
            await left_behind(journal, "two", "put", 3600)

            def agent_for(trace: Trace) -> Agent:
                tools = [send] if trace.run_id == "one" else [put, send]
                return Agent(model=script("put"), tools=tools, journal=journal)

            return await recover(journal, agent_for)

    one, two = asyncio.run(play())
    assert one.error is not None
    assert two.result is not None
    assert two.result.status == "completed"


def test_how_long_a_process_may_be_silent_follows_from_what_is_under_way(tmp_path: Path) -> None:
    async def play() -> list[float]:
        async with SqliteJournal(tmp_path / "r.db", synchronous="NORMAL") as journal:
            await left_behind(journal, "put", "put", 10)
            await left_behind(journal, "send", "send", 10)
            putting = Trace("put", await journal.load("put"))
            sending = Trace("send", await journal.load("send"))
            return [silence_s(putting), silence_s(sending), silence_s(Trace("t", putting.events[:1]))]

    limits = asyncio.run(play())
    assert limits == [MARGIN_S + 100, MARGIN_S + 30, MARGIN_S + 120]
    assert max(limits) < PERSON_S
