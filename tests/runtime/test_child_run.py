"""A run inside another one is not forgotten when its process dies: its progress counts, and it is asked about."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.shell import Shell

from taoloop import Agent, MemoryJournal, ScriptedModel, SqliteJournal, Trace, tool
from taoloop.core.events import ActionStarted, Event, Fact, Observed, Resumed
from taoloop.core.views.transcript import Result
from taoloop.journals.base import Journal
from taoloop.runtime import stuck_runs
from taoloop.runtime.after.recovery import MAX_DEATHS, require_alive
from taoloop.runtime.approvals.inbox import pending_approvals, settle_doubt
from taoloop.runtime.child_run import deaths_in_a_row
from taoloop.strategies.in_doubt import MAX_ATTEMPTS

PAID: list[int] = []


@pytest.fixture(autouse=True)
def _new_world() -> None:
    PAID.clear()


@tool(tier="draft")
def pay(amount: int) -> str:
    """Pay."""
    PAID.append(amount)
    return f"paid {amount}"


@tool(tier="read")
def look(at: int) -> str:
    """Look."""
    return f"seen {at}"


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "args": args}]}


def agents(journal: Journal) -> Agent:
    inner = Agent(model=ScriptedModel([call("look", at=1), call("pay", amount=5), "paid"]), tools=[look, pay])
    outer = ScriptedModel([call("payer", task="Pay 5."), "done"])
    return Agent(model=outer, tools=[inner.as_tool(name="payer", purpose="Pay.", tier="draft")], journal=journal)


async def left_in_the_payment(journal: Journal, *, end: Event | None = None) -> tuple[Trace, Trace]:
    """The runs `r` and `r.1` of a process that died in the payment inside; `end` is what the outer one has besides."""
    whole = await agents(MemoryJournal()).run("x", run_id="r")
    inner = await whole_inner(whole)
    outer_events = whole.trace.events[: 1 + started(whole.trace.events, "call_1")]
    for run_id, kept in (("r", outer_events), ("r.1", inner[: 1 + started(inner, "call_2")])):
        lease = await journal.create(run_id)
        await journal.append(lease, kept if end is None or run_id != "r" else [*kept, end])
    PAID.clear()
    return Trace("r", await journal.load("r")), Trace("r.1", await journal.load("r.1"))


async def whole_inner(whole: Result) -> list[Event]:
    journal = MemoryJournal()
    await agents(journal).run("x", run_id=whole.run_id)
    return await journal.load(f"{whole.run_id}.1")


def started(events: list[Event], call_id: str) -> int:
    return next(e.seq for e in events if isinstance(e.fact, ActionStarted) and e.fact.call_id == call_id)


def test_deaths_are_counted_since_the_last_progress_inside() -> None:
    async def play(*, moves: bool) -> int:
        journal = MemoryJournal()
        outer, inner = await left_in_the_payment(journal)
        at = inner.events[-1].at
        lease = await journal.acquire("r")
        deaths = [Event(len(outer) + n, at + 1 + n, Resumed()) for n in range(MAX_DEATHS)]
        await journal.append(lease, deaths)
        if moves:
            moved = Event(len(inner), at + MAX_DEATHS, Observed(call_id="call_2", ok=True, output="paid 5"))
            await journal.append(await journal.acquire("r.1"), [moved])
        return await deaths_in_a_row(journal, Trace("r", await journal.load("r")))

    assert asyncio.run(play(moves=False)) == MAX_DEATHS
    assert asyncio.run(play(moves=True)) == 1


@pytest.mark.parametrize("moves", [True, False])
def test_a_call_of_an_agent_is_not_given_up_while_the_run_inside_goes_on(*, moves: bool) -> None:
    async def play() -> tuple[str, int]:
        journal = MemoryJournal()
        outer, _ = await left_in_the_payment(journal)
        first = outer.events[-1]
        assert isinstance(first.fact, ActionStarted)
        again: list[Fact] = []
        for attempt in range(2, MAX_ATTEMPTS + 2):
            fact = replace(first.fact, attempt=attempt, progress=attempt if moves else 0)
            again += [Resumed(), fact]
        events = [Event(len(outer) + n, first.at, fact) for n, fact in enumerate(again)]
        await journal.append(await journal.acquire("r"), events)
        await settle_doubt(journal, "r.1", "call_2", "happened", by="ann")
        result = await agents(journal).resume("r")
        return str(result.trace.calls["call_1"].observed), result.trace.calls["call_1"].attempts

    observed, attempts = asyncio.run(play())
    assert ("'paid'" in observed) is moves, observed
    assert ("in_doubt" in observed) is not moves
    assert (attempts, PAID) == (MAX_ATTEMPTS + 2 if moves else MAX_ATTEMPTS + 1, [])


def test_a_repeated_call_of_an_agent_records_how_far_the_run_inside_has_come() -> None:
    async def play() -> list[int]:
        journal = MemoryJournal()
        await left_in_the_payment(journal)
        await settle_doubt(journal, "r.1", "call_2", "happened", by="ann")
        result = await agents(journal).resume("r")
        return [event.fact.progress for event in result.trace.events if isinstance(event.fact, ActionStarted)]

    first, second = asyncio.run(play())
    assert first == 0
    assert second > 0


async def given_up(journal: Journal) -> None:
    """The outer run ended without knowing what became of the call; the payment inside was begun."""
    whole = await agents(MemoryJournal()).run("x", run_id="r")
    at = started(whole.trace.events, "call_1") + 1
    await left_in_the_payment(
        journal, end=Event(at, 0.0, Observed(call_id="call_1", ok=False, output="", size_chars=0))
    )


def test_what_no_recovery_resumes_is_put_before_a_person() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        await given_up(journal)
        await require_alive(journal, Trace("r.1", await journal.load("r.1")))
        assert [trace.run_id for trace in await stuck_runs(journal)] == ["r.1"]
        [question] = await pending_approvals(journal, in_doubt=True)
        assert (question.request.run_id, question.request.call_id, question.outer) == ("r.1", "call_2", "r.1")
        assert "may have happened" in question.request.doubt
        assert await pending_approvals(journal) == []
        await settle_doubt(journal, "r.1", "call_2", "happened", by="ann")
        assert await pending_approvals(journal, in_doubt=True) == []

    asyncio.run(play())


def test_the_command_line_lists_it(tmp_path: Path) -> None:
    tao = Shell(tmp_path)

    async def make(path: Path) -> None:
        async with SqliteJournal(path, synchronous="NORMAL") as journal:
            await given_up(journal)

    asyncio.run(make(tao.folder / "runs.db"))
    listed = tao("runs", code=0)
    [row] = [line for line in listed.out.splitlines() if line.startswith("r.1 ")]
    assert "stuck" in row
    assert "tao approvals" in listed.err
    assert "call_2" in tao("approvals", code=0).out
    recovered = tao("recover", "--dry-run", "--json", code=1)
    assert {event["run_id"]: event["status"] for event in recovered.events}["r.1"] == "stuck"
