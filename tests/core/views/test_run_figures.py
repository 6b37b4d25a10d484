"""What a run took, with and without the time in which it waited."""

from __future__ import annotations

import asyncio
from typing import Any

from taoloop import Agent, MemoryJournal, ScriptedModel, Trace, tool
from taoloop.core.events import ApprovalGiven, Event, Finished
from taoloop.core.views.run_figures import run_figures
from taoloop.runtime.after.fork import store_fork


@tool(tier="write")
def buy(item: str) -> str:
    """Buy an item."""
    return f"bought {item}"


SCRIPT: list[Any] = [{"tool_calls": [{"name": "buy", "args": {"item": "tea"}}]}, "done"]


def timed(trace: Trace, *times: float) -> Trace:
    """The same events, each so many seconds after the one before; the last of the times holds for all others."""
    at, events = 1000.0, []
    for index, event in enumerate(trace.events):
        at += times[min(index, len(times) - 1)] if index else 0.0
        events.append(Event(event.seq, at, event.fact))
    return Trace(trace.run_id, events)


def test_the_answer_of_a_person_is_waited_for() -> None:
    trace = Agent(model=ScriptedModel(SCRIPT), tools=[buy], approve=lambda _: True).run_sync("Do it.").trace
    figures = run_figures(timed(trace, 1.0))
    count = len(trace.events) - 1
    assert any(isinstance(event.fact, ApprovalGiven) for event in trace.events)
    assert (figures.elapsed_s, figures.active_s) == (count, count - 1)
    assert (figures.steps, figures.tool_calls, figures.status) == (2, 1, "completed")


def test_a_run_that_was_paused_did_nothing_meanwhile() -> None:
    agent = Agent(model=ScriptedModel(SCRIPT), tools=[buy], journal=MemoryJournal())
    paused = agent.run_sync("Do it.")
    assert paused.status == "waiting"
    ended = agent.resume_sync(paused.run_id).trace  # asks again and waits again
    figures = run_figures(timed(ended, 1.0))
    waits = sum(event.kind == "resumed" for event in ended.events)
    assert waits == 1
    assert figures.active_s == figures.elapsed_s - waits


def test_what_undid_a_run_later_and_what_came_before_a_fork_does_not_count() -> None:
    async def forked() -> Trace:
        journal = MemoryJournal()
        agent = Agent(model=ScriptedModel(SCRIPT), tools=[buy], journal=journal, approved_tiers=("write",))
        ran = await agent.run("Do it.")
        return await store_fork(journal, ran.run_id, at=2, now=ran.trace.events[-1].at + 90_000)

    trace = asyncio.run(forked())
    assert run_figures(trace).elapsed_s < 80_000
    assert not any(isinstance(event.fact, Finished) for event in trace.events)
