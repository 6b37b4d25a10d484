"""Replay needs no world: from the trace alone, to the same decisions."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.scripting import call

from taoloop import Agent, Limits, ScriptedModel, Trace, tool
from taoloop.core.decision import Answer
from taoloop.core.events import Event, Finished, ModelReplied, Observed
from taoloop.core.stored_events import event_line, fact_of_record
from taoloop.errors import ReplayDiverged
from taoloop.models.replay import ReplayModel
from taoloop.runtime.after.replay import replay
from taoloop.runtime.bound_agent import bind

CALLS: list[int] = []


@tool(tier="read")
def count(n: int) -> int:
    """Count how often it is called."""
    CALLS.append(n)
    return n


@tool(tier="write")
def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


SCRIPTS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "plain": ([call("count", n=1), "done"], {}),
    "errors": (
        [call("count"), call("nothing"), "", call("count", n="2"), "done"],
        {"limits": Limits(max_consecutive_errors=9)},
    ),
    "limit": ([call("count", n=1), "so far"], {"limits": Limits(max_steps=1)}),
    "repeated": ([call("count", n=1)] * 5, {"limits": Limits(max_steps=None)}),
    "unreadable": (["", "", ""], {}),
    "approved": ([call("pay", amount=1), call("count", n=1), "done"], {"approve": lambda _question: True}),
    "refused": ([call("pay", amount=1), "done"], {"approve": lambda _question: False}),
    "waiting": ([call("pay", amount=1), "done"], {}),
    "call limit": (
        [{"tool_calls": [{"name": "count", "args": {"n": n}} for n in range(3)]}, "done"],
        {"limits": Limits(max_tool_calls=2)},
    ),
    "surplus": ([call("count", n=1)], {}),
}


def recorded(name: str) -> Trace:
    script, options = SCRIPTS[name]
    return Agent(model=ScriptedModel(script), tools=[count, pay], **options).run_sync("x").trace


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_replay_decides_the_same_and_calls_nothing(name: str) -> None:
    """S3-1, promise 8."""
    trace = recorded(name)
    CALLS.clear()
    decided = list(replay(trace))
    assert [one.recorded for one in decided] == trace.events
    assert all(one.same for one in decided)
    assert CALLS == []


def test_a_replay_survives_storage_as_json_lines() -> None:
    trace = recorded("errors")
    lines = [event_line(trace.run_id, event) for event in trace.events]
    stored = [json.loads(line) for line in lines]
    again = Trace(trace.run_id, [Event(one["seq"], one["at"], fact_of_record(one)) for one in stored])
    assert [event.fact for event in again.events] == [event.fact for event in trace.events]
    assert all(one.same for one in replay(again))


def test_a_trace_that_was_changed_shows_where_it_differs() -> None:
    trace = recorded("plain")
    events = list(trace.events)
    last = events[-1].fact
    assert isinstance(last, Finished)
    events[-1] = events[-1]._replace(fact=replace(last, answer="forged"))
    differing = [one.recorded.seq for one in replay(Trace(trace.run_id, events)) if not one.same]
    assert differing == [events[-1].seq]


def test_a_decision_that_its_reply_does_not_hold_is_seen() -> None:
    trace = recorded("plain")
    events = list(trace.events)
    reply = events[4].fact
    assert isinstance(reply, ModelReplied)
    events[4] = events[4]._replace(fact=replace(reply, decision=Answer(text="other")))
    decided = list(replay(Trace(trace.run_id, events)))
    assert [one.same for one in decided].index(False) == 4


def test_a_trace_that_no_run_could_have_made_diverges() -> None:
    trace = recorded("plain")
    events = [event for event in trace.events if not isinstance(event.fact, Observed)][:3]
    finished = Finished(status="completed", answer="x", reason="r")
    broken = Trace(trace.run_id, [*events, Event(3, 0.0, finished)])
    with pytest.raises(ReplayDiverged, match="event 3"):
        list(replay(broken))


def test_a_resumed_run_replays_too() -> None:
    agent = Agent(
        model=ScriptedModel([call("count", n=1), "so far", call("count", n=2), "done"]),
        tools=[count],
        limits=Limits(max_steps=1),
    )
    first = agent.run_sync("x")
    trace = agent.resume_sync(first.run_id, max_steps=5).trace
    assert all(one.same for one in replay(trace))


def test_a_stopped_run_replays_too() -> None:
    started = asyncio.Event()

    @tool(tier="read")
    async def hang() -> str:
        """Hang."""
        started.set()
        await asyncio.Event().wait()
        return ""

    agent = Agent(model=ScriptedModel([call("hang")]), tools=[hang])

    async def stop() -> Trace:
        running = asyncio.create_task(agent.run("x", run_id="r"))
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return Trace("r", await bind(agent).memory_journal.load("r"))

    assert all(one.same for one in replay(asyncio.run(stop())))


def test_a_recorded_model_answers_again_with_real_tools() -> None:
    trace = recorded("plain")
    CALLS.clear()
    model = ReplayModel([event.fact for event in trace.events])
    result = Agent(model=model, tools=[count, pay]).run_sync("x")
    assert (result.status, result.answer, CALLS) == ("completed", "done", [1])


def test_several_calls_that_were_allowed_ahead_at_a_resume_replay_too() -> None:
    """Their approvals are facts of one decision."""
    two = {"tool_calls": [{"name": "pay", "args": {"amount": amount}} for amount in (1, 2)]}
    agent = Agent(model=ScriptedModel([two, "Paid."]), tools=[pay])
    waiting = agent.run_sync("Pay.")
    assert waiting.status == "waiting"
    paid = agent.resume_sync(waiting.run_id, approved_tiers=("write",))
    assert paid.status == "completed"
    assert [event.kind for event in paid.trace.events].count("approval_given") == 2
    assert all(decided.same for decided in replay(paid.trace))
