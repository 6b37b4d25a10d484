"""Reads that begin while the reply that asks for them is still being written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from taoloop import Agent, Limits, MemoryJournal, Tool, ToolContext, tool
from taoloop.core.effects import ModelRequest
from taoloop.core.events import Event, Observed, ReadDropped
from taoloop.core.message import Delta, ModelReply, ToolCallText
from taoloop.core.views.transcript import Result
from taoloop.errors import JournalError
from taoloop.journals.base import Artifact, Lease
from taoloop.runtime.after.replay import replay
from taoloop.testing import HttpDouble

Step = Delta | Callable[[], Awaitable[Any]] | ModelReply


class Writing:
    """Writes replies piece by piece: hands over deltas, waits for what it is given, returns the reply."""

    spec = "writing"
    dialect = "native"

    def __init__(self, *replies: list[Step]) -> None:
        self.replies = replies

    async def complete(self, request: ModelRequest) -> ModelReply:
        for step in self.replies[request.turn]:
            if isinstance(step, ModelReply):
                return step
            if isinstance(step, Delta):
                assert request.on_delta is not None
                request.on_delta(step)
            else:
                await step()
        raise AssertionError("a script of pieces ends with a reply")

    def check_used(self, replies: int) -> None:
        """Nothing to check."""

    async def close(self) -> None:
        """Nothing to let go of."""


class World:
    """Tools that tell when they begin, and go on when they are let."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, Any]] = []
        self.keys: list[str] = []
        self.cancelled = 0
        self.has_begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.may_end.set()

        @tool(tier="read")
        async def look(place: str, *, context: ToolContext) -> str:
            """Look at a place."""
            self.keys.append(context.idempotency_key)
            return await self._act("look", place)

        @tool(tier="draft")
        async def save(place: str) -> str:
            """Save something."""
            return await self._act("save", place)

        @tool(tier="read", parallel=False)
        async def alone(place: str) -> str:
            """Look, but beside no other."""
            return await self._act("alone", place)

        self.tools: list[Tool] = [look, save, alone]

    async def _act(self, name: str, place: str) -> str:
        self.begun.append((name, place))
        self.has_begun.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return f"{name} {place}"

    async def begins(self) -> None:
        """Let what was started run."""
        for _ in range(5):
            await asyncio.sleep(0)


def pieces(index: int, name: str, **args: Any) -> list[Step]:
    text = json.dumps(args)
    half = len(text) // 2
    return [
        Delta(kind="call", text=text[:half], index=index, name=name),
        Delta(kind="call", text=text[half:], index=index, name=name),
        Delta(kind="call", index=index, name=name, done=True),
    ]


def reply(*calls: tuple[str, dict[str, Any]], text: str = "") -> ModelReply:
    made = tuple(ToolCallText(name=name, arguments=json.dumps(args), id="x") for name, args in calls)
    return ModelReply(text=text, tool_calls=made, cost_usd=0.0)


HERE = ("look", {"place": "here"})
DONE: list[Step] = [ModelReply(text="done", cost_usd=0.0)]


def run(make: Callable[[World], list[list[Step]]], **options: Any) -> tuple[Result, World]:
    async def work() -> tuple[Result, World]:
        world = World()
        model = Writing(*make(world), DONE, DONE)
        agent = Agent(model=model, tools=world.tools, **{"early_reads": True, **options})
        return await agent.run("Look.", on_delta=lambda _: None), world

    return asyncio.run(work())


def dropped(result: Result) -> list[ReadDropped]:
    return [event.fact for event in result.trace.events if isinstance(event.fact, ReadDropped)]


def outputs(result: Result) -> list[str]:
    return [event.fact.output for event in result.trace.events if isinstance(event.fact, Observed)]


def test_a_read_begins_before_the_reply_ends_and_runs_once() -> None:
    seen: list[int] = []

    def script(world: World) -> list[list[Step]]:
        async def look_on() -> None:
            await world.has_begun.wait()
            seen.append(len(world.begun))

        return [[*pieces(0, *HERE[:1], **HERE[1]), look_on, reply(HERE)]]

    result, world = run(script)
    assert seen == [1], "while the model was still writing"
    assert (world.begun, outputs(result), dropped(result)) == ([("look", "here")], ["look here"], [])
    assert all(decided.same for decided in replay(result.trace))


def test_several_reads_begin_in_their_order_under_the_ids_that_they_get() -> None:
    two = [("look", {"place": "a"}), ("look", {"place": "b"})]

    def script(world: World) -> list[list[Step]]:
        return [[*pieces(0, "look", place="a"), *pieces(1, "look", place="b"), world.begins, reply(*two)]]

    result, world = run(script)
    assert world.begun == [("look", "a"), ("look", "b")]
    assert [key.split(":")[1] for key in world.keys] == ["call_1", "call_2"]
    assert outputs(result) == ["look a", "look b"]


@pytest.mark.parametrize(
    ("first", "args"),
    [("save", {"place": "x"}), ("alone", {"place": "x"}), ("nobody", {}), ("look", {"plaice": "x"})],
)
def test_nothing_but_a_fitting_read_begins_early_and_nothing_behind_it(first: str, args: dict[str, Any]) -> None:
    """What comes after a write must see what the write did."""
    early: list[int] = []

    def script(world: World) -> list[list[Step]]:
        async def count() -> None:
            await world.begins()
            early.append(len(world.begun))

        return [
            [
                *pieces(0, first, **args),
                *pieces(1, "look", place="b"),
                count,
                reply((first, args), ("look", {"place": "b"})),
            ]
        ]

    result, _ = run(script, limits=Limits(max_consecutive_errors=None))
    assert early == [0]
    assert dropped(result) == []
    assert outputs(result)[-1] == "look b"


@pytest.mark.parametrize("text", ['{"place": "he', "[1]", '{"place": NaN}'])
def test_broken_arguments_never_begin(text: str) -> None:
    def script(world: World) -> list[list[Step]]:
        call = Delta(kind="call", text=text, name="look", done=True)
        made = ModelReply(tool_calls=(ToolCallText(name="look", arguments=text),))
        return [[call, world.begins, made]]

    result, world = run(script)
    assert world.begun == []
    assert dropped(result) == []


@pytest.mark.parametrize(
    ("whole", "reason"),
    [
        (reply(("look", {"place": "there"})), "not_asked"),
        (ModelReply(text="never mind", cost_usd=0.0), "not_asked"),
        (ModelReply(tool_calls=reply(HERE).tool_calls, finish_reason="length"), "rejected"),
    ],
)
def test_a_read_that_the_whole_reply_does_not_ask_for_is_dropped_and_told(whole: ModelReply, reason: str) -> None:
    """Its result is never seen, and the trace says that it was begun."""

    def script(world: World) -> list[list[Step]]:
        world.may_end.clear()

        async def let() -> None:
            await world.begins()
            world.may_end.set()

        return [[*pieces(0, "look", place="here"), let, whole]]

    result, world = run(script)
    (fact,) = dropped(result)
    assert (fact.tool, fact.args, fact.reason, fact.step) == ("look", {"place": "here"}, reason, 1)
    assert "look here" not in outputs(result)
    assert world.begun[0] == ("look", "here")
    assert result.trace.tool_calls == len(world.begun), "it counts"
    assert all(decided.same for decided in replay(result.trace))


def test_a_dropped_read_that_still_runs_is_cancelled() -> None:
    def script(world: World) -> list[list[Step]]:
        world.may_end.clear()
        return [[*pieces(0, "look", place="here"), world.begins, *DONE]]

    async def work() -> World:
        world = World()
        await Agent(model=Writing(*script(world)), tools=world.tools, early_reads=True).run("Look.")
        await world.begins()
        return world

    assert asyncio.run(work()).cancelled == 1


def test_a_reply_that_begins_anew_voids_what_was_begun() -> None:
    def script(world: World) -> list[list[Step]]:
        again = pieces(0, "look", place="there")
        return [[*pieces(0, "look", place="here"), world.begins, Delta(kind="restart"), *again, world.begins,
                 reply(("look", {"place": "there"}))]]  # fmt: skip

    result, world = run(script)
    assert [fact.args["place"] for fact in dropped(result)] == ["here"]
    assert outputs(result) == ["look there"]
    assert len(set(world.keys)) == 2, "two calls, two keys"


def test_a_model_that_fails_or_a_run_that_stops_leaves_no_read_behind() -> None:
    def script(world: World) -> list[list[Step]]:
        async def fail() -> None:
            await world.begins()
            raise ConnectionError("gone")

        world.may_end.clear()
        return [[*pieces(0, "look", place="here"), fail]]

    result, _ = run(script)
    assert (result.status, [fact.reason for fact in dropped(result)]) == ("model_failed", ["no_reply"])

    async def stop() -> Any:
        world = World()
        world.may_end.clear()
        model = Writing([*pieces(0, "look", place="here"), asyncio.Event().wait])
        events: list[Any] = []
        agent = Agent(model=model, tools=world.tools, early_reads=True)
        task = asyncio.create_task(agent.run("Look.", on_event=lambda event: events.append(event.fact)))
        await world.has_begun.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return events

    *_, read, finished = asyncio.run(stop())
    assert (read.reason, finished.status) == ("stopped", "stopped")


def test_a_journal_that_fails_leaves_no_read_behind() -> None:
    class Full(MemoryJournal):
        async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
            if any(event.kind == "action_requested" for event in events):
                raise JournalError("The disk is full.")
            await super().append(lease, events, artifacts)

    async def work() -> int:
        world = World()
        world.may_end.clear()
        model = Writing([*pieces(0, "look", place="here"), world.begins, reply(HERE)])
        with pytest.raises(JournalError):
            await Agent(model=model, tools=world.tools, early_reads=True, journal=Full()).run("Look.")
        await world.begins()
        return world.cancelled

    assert asyncio.run(work()) == 1


def test_the_limit_of_tool_calls_holds() -> None:
    def script(world: World) -> list[list[Step]]:
        two = [("look", {"place": "a"}), ("look", {"place": "b"})]
        return [[*pieces(0, "look", place="a"), *pieces(1, "look", place="b"), world.begins, reply(*two)]]

    result, world = run(script, limits=Limits(max_tool_calls=1))
    assert world.begun == [("look", "a")]
    assert result.trace.tool_calls == 1


def test_the_same_call_twice_in_a_reply_runs_once() -> None:
    def script(world: World) -> list[list[Step]]:
        return [[*pieces(0, *HERE[:1], **HERE[1]), *pieces(1, *HERE[:1], **HERE[1]), world.begins, reply(HERE, HERE)]]

    result, world = run(script)
    assert world.begun == [("look", "here")]
    assert dropped(result) == []


@pytest.mark.parametrize("options", [{"early_reads": False}, {"early_reads": True, "dialect": "text"}])
def test_it_is_off_unless_it_is_switched_on_and_the_dialect_is_native(options: dict[str, Any]) -> None:
    early: list[int] = []

    def script(world: World) -> list[list[Step]]:
        async def count() -> None:
            await world.begins()
            early.append(len(world.begun))

        return [[*pieces(0, "look", place="here"), count, reply(HERE, text="Final Answer: x")]]

    run(script, **options)
    assert early == [0]


def test_over_a_real_stream_each_read_runs_once() -> None:
    from tests.models.provider_answers import events  # noqa: PLC0415  # needs the extra
    from tests.models.test_openai_stream import STOP, TEXT, USAGE, call, chunk, model  # noqa: PLC0415  # likewise

    calls = [
        call(0, name="look", call_id="x1"),
        call(0, arguments='{"place": "a"}'),
        call(1, name="look", call_id="x2", arguments='{"place": "b"}'),
        chunk({}, "tool_calls"),
    ]

    async def work() -> tuple[Result, World]:
        world = World()
        with HttpDouble([events([*calls, USAGE]), events([*TEXT, STOP, USAGE])]) as server:
            asked = model(server)
            try:
                return await Agent(model=asked, tools=world.tools, early_reads=True).run("Look."), world
            finally:
                await asked.close()

    result, world = asyncio.run(work())
    assert (result.status, result.answer) == ("completed", "five")
    assert world.begun == [("look", "a"), ("look", "b")]
    assert all(":early-" in key for key in world.keys)
    assert dropped(result) == []
