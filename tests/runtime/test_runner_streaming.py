"""Replies in pieces while a model writes them: for people to watch; a run believes only the whole reply."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from taoloop import Agent, Event, MemoryJournal, ScriptedModel, tool
from taoloop.core.effects import ModelRequest
from taoloop.core.message import Delta, ModelReply
from taoloop.runtime.after.replay import replay
from taoloop.tools.tool import ToolContext


@tool(tier="read")
async def look(place: str) -> str:
    """Look at a place."""
    return f"seen {place}"


SCRIPT: list[Any] = [
    {"text": "I look around.", "tool_calls": [{"name": "look", "args": {"place": "the far end"}}]},
    ModelReply(text="It is all there, I saw it.", thinking="hm, let me think"),
]


def agent(script: list[Any] = SCRIPT, **options: Any) -> Agent:
    return Agent(model=ScriptedModel(script), tools=[look], **options)


def joined(deltas: list[Delta], kind: str) -> str:
    return "".join(delta.text for delta in deltas if delta.kind == kind)


def test_a_listener_hears_text_thinking_and_calls_as_they_come() -> None:
    heard: list[Delta] = []
    result = asyncio.run(agent().run("Look.", on_delta=heard.append))
    assert result.status == "completed"
    assert joined(heard, "text") == "I look around.It is all there, I saw it."
    assert joined(heard, "thinking") == "hm, let me think"
    assert joined(heard, "call") == '{"place": "the far end"}'
    done = [delta for delta in heard if delta.done]
    assert [(delta.index, delta.name) for delta in done] == [(0, "look")]
    assert len(heard) > 8


def test_nothing_of_a_stream_changes_the_trace() -> None:
    plain = asyncio.run(agent().run("Look."))
    heard = asyncio.run(agent().run("Look.", on_delta=lambda _: None))

    def facts(result: Any) -> list[Any]:
        return [(event.kind, getattr(event.fact, "text", "")) for event in result.trace.events]

    assert facts(plain) == facts(heard)
    assert all(decided.same for decided in replay(heard.trace))


def test_deltas_stand_between_the_events_of_a_stream() -> None:
    async def work() -> list[Event | Delta]:
        return [one async for one in agent().stream("Look.", deltas=True)]

    seen = asyncio.run(work())
    kinds = [one.kind for one in seen]
    events = [one for one in seen if isinstance(one, Event)]
    assert [event.seq for event in events] == list(range(len(events)))
    assert kinds[0] == "run_started"
    assert kinds[-1] == "finished"
    assert kinds.index("text") < kinds.index("model_replied"), "while it is written, and not after"
    assert isinstance(seen[1], Delta)


def test_without_deltas_a_stream_has_events_only() -> None:
    class Deaf(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            assert request.on_delta is None, "a model need not stream where nobody listens"
            return await super().complete(request)

    async def work() -> list[Event]:
        return [one async for one in Agent(model=Deaf(SCRIPT), tools=[look]).stream("Look.")]

    assert all(isinstance(one, Event) for one in asyncio.run(work()))


def test_a_listener_that_raises_is_logged_once_and_the_run_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Delta] = []

    def broken(delta: Delta) -> None:
        heard.append(delta)
        raise ValueError("no")

    with caplog.at_level(logging.ERROR, "taoloop"):
        result = asyncio.run(agent().run("Look.", on_delta=broken))
    assert result.status == "completed"
    assert len(heard) == len(caplog.records) == 2, "once for each reply"


def test_a_listener_that_ends_the_process_leaves_a_run_that_was_stopped() -> None:
    journal = MemoryJournal()

    def leave(event: Event) -> None:
        if event.kind == "model_replied":
            raise SystemExit(3)

    with pytest.raises(SystemExit):
        asyncio.run(agent(journal=journal).run("Look.", run_id="r", on_event=leave))
    assert [row.status for row in asyncio.run(journal.runs())] == ["stopped"]
    assert asyncio.run(agent(journal=journal).resume("r")).status == "completed"


def test_a_model_that_goes_on_talking_after_its_time_is_not_heard() -> None:
    class Stubborn(ScriptedModel):
        hears: Any = None

        async def complete(self, request: ModelRequest) -> ModelReply:
            self.hears = request.on_delta
            self.hears(Delta(kind="text", text="early"))
            await asyncio.Event().wait()
            raise AssertionError

    heard: list[Delta] = []
    model = Stubborn(SCRIPT)
    result = asyncio.run(Agent(model=model, tools=[look], model_timeout_s=0.01).run("Look.", on_delta=heard.append))
    assert result.status == "model_failed"
    model.hears(Delta(kind="text", text="late"))
    assert [delta.text for delta in heard] == ["early"]


def test_a_summary_is_not_streamed() -> None:
    from tests.strategies.speaking import Speaking, page, save  # noqa: PLC0415  # one use

    class Heard(Speaking):
        async def complete(self, request: ModelRequest) -> ModelReply:
            assert (request.on_delta is None) == (request.purpose == "compact")
            return await super().complete(request)

    model = Heard(20)
    one = Agent(model=model, tools=[page, save], max_steps=30, context_tokens=6_000)
    assert asyncio.run(one.run("Read.", on_delta=lambda _: None)).status == "completed"
    assert "compact" in [purpose for purpose, _ in model.seen]


def test_a_resumed_run_is_heard_too() -> None:
    one = agent(max_steps=1, closing_turn=False)
    first = asyncio.run(one.run("Look."))
    heard: list[Delta] = []
    asyncio.run(one.resume(first.run_id, max_steps=3, on_delta=heard.append))
    assert joined(heard, "text") == "It is all there, I saw it."


@tool(tier="read")
async def dig(depth: int, context: ToolContext) -> str:
    """Dig, and say how far it is."""
    for metre in range(depth):
        context.progress(f"{metre + 1} of {depth} m, password=hunter2hunter2")
    return "dug"


def test_a_tool_says_how_far_it_is_and_nothing_of_it_is_kept() -> None:
    heard: list[Delta] = []
    script: list[Any] = [{"tool_calls": [{"name": "dig", "args": {"depth": 2}}]}, "done"]
    digger = Agent(model=ScriptedModel(script), tools=[dig])
    result = asyncio.run(digger.run("Dig.", on_delta=heard.append))
    told = [(one.name, one.text[:8]) for one in heard if one.kind == "progress"]
    assert told == [("dig", "1 of 2 m"), ("dig", "2 of 2 m")]
    assert not any("hunter2" in one.text for one in heard)
    assert "of 2 m" not in str(result.trace.events)
    assert asyncio.run(digger.run("Dig.")).status == "completed"  # where nobody watches


def test_who_watches_and_fails_does_not_harm_the_tool(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Delta) -> None:
        raise ValueError("no more")

    script: list[Any] = [{"tool_calls": [{"name": "dig", "args": {"depth": 1}}]}, "done"]
    with caplog.at_level(logging.CRITICAL, logger="taoloop"):
        result = asyncio.run(Agent(model=ScriptedModel(script), tools=[dig]).run("Dig.", on_delta=fail))
    assert result.status == "completed"
    assert result.trace.steps[0].calls[0].observed is not None
    assert result.trace.steps[0].calls[0].observed.ok
