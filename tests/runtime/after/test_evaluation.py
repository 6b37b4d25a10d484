"""A mark is a fact of its run after the end; nothing else of the run follows from it."""

from __future__ import annotations

import asyncio

import pytest
from tests.scripting import Asked, call

from taoloop import Agent, MemoryJournal, ScriptedModel, tool
from taoloop.core.events import Event, Paused
from taoloop.core.human_input import Marked
from taoloop.core.stored_events import decode_fact, encode_fact
from taoloop.core.trace import Trace
from taoloop.core.views.run_figures import run_figures
from taoloop.errors import ConfigError, IllegalEvent
from taoloop.runtime import make_fork, mark_run, replay
from taoloop.testing import FakeClock


def test_a_mark_is_kept_after_the_end_and_changes_nothing_of_the_run() -> None:
    journal = MemoryJournal()
    before = Agent(model=ScriptedModel(["Five."]), journal=journal).run_sync("How many?").trace
    clock = FakeClock(before.events[-1].at + 3600)
    recorded = asyncio.run(
        mark_run(journal, before.run_id, "wrong", by=" ann ", note=" It is six. ", authenticated="os_user", clock=clock)
    )
    trace = Trace(before.run_id, asyncio.run(journal.load(before.run_id)))
    fact = Marked(verdict="wrong", by="ann", note="It is six.", authenticated="os_user")
    assert [event.fact for event in recorded.events] == [fact]
    assert decode_fact("marked", encode_fact(fact)) == fact
    assert trace.status == "completed"
    assert trace.is_over
    assert run_figures(trace) == run_figures(before)  # no time passed in the run
    assert all(event.same for event in replay(trace))


@tool(tier="read")
def count(what: str) -> int:
    """Count something."""
    return 5


def test_no_model_reads_a_mark_and_a_fork_does_not_inherit_it() -> None:
    journal = MemoryJournal()
    model = Asked([call("count", what="tea"), "Perhaps five.", call("count", what="cups"), "Five."])
    agent = Agent(model=model, tools=[count], journal=journal)
    stopped = agent.run_sync("How many?", max_steps=1)
    assert stopped.status == "max_steps_exceeded"
    asyncio.run(mark_run(journal, stopped.run_id, "wrong", note="It is a dozen."))
    resumed = asyncio.run(agent.resume(stopped.run_id, max_steps=4)).trace
    assert "marked" in [event.kind for event in resumed]
    assert not any("dozen" in message.content for request in model.requests for message in request.messages)
    last = len(resumed.steps)
    fork = make_fork(resumed, last, run_id="fork", now=resumed.events[-1].at)
    assert "marked" not in [event.kind for event in fork.trace]
    assert fork.trace.calls.keys() == resumed.calls.keys()


def test_a_run_that_goes_on_cannot_be_marked() -> None:
    journal = MemoryJournal()
    begun = Agent(model=ScriptedModel(["Five."])).run_sync("How many?").trace.events[0]
    paused = Event(1, begun.at, Paused(reason="Somebody must decide."))

    async def mark_waiting() -> None:
        await journal.append(await journal.create("r1"), [begun, paused])
        await mark_run(journal, "r1", "right")

    with pytest.raises(ConfigError, match="has not ended"):
        asyncio.run(mark_waiting())
    with pytest.raises(IllegalEvent, match="has not finished"):
        Trace("r1", [begun, Event(1, begun.at, Marked(verdict="right", by="ann"))])
