"""A stream of a run: its id, its events, the text of its answer, its result, and its end when it is left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from taoloop import Agent, Limits, MemoryJournal, Result, RunStream, ScriptedModel, tool
from taoloop.core.events import Event
from taoloop.core.message import Delta
from taoloop.errors import ConfigError, RunNotFound

T = TypeVar("T")
CALL = {"tool_calls": [{"name": "look", "args": {}}]}
CALL_SEND = {"tool_calls": [{"name": "send", "args": {"amount": 5}}]}


@tool(tier="read")
def look() -> str:
    """Look around."""
    return "a window"


def agent(*script: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(model=ScriptedModel(list(script)), tools=[look], **options)


def drive(work: Callable[[], Awaitable[T]]) -> T:
    async def main() -> T:
        return await work()

    return asyncio.run(main())


def test_the_id_is_known_before_the_run_begins_and_is_the_one_of_the_result() -> None:
    async def work() -> tuple[str, Result]:
        stream = agent("Rome.").stream("Where?")
        return stream.run_id, await stream.result()

    run_id, result = drive(work)
    assert (result.run_id, result.answer) == (run_id, "Rome.")


def test_events_come_first_and_then_the_result_of_the_same_run() -> None:
    async def work() -> tuple[list[Event], Result]:
        async with agent(CALL, "Rome.").stream("Where?", run_id="r1") as stream:
            return [event async for event in stream], await stream.result()

    events, result = drive(work)
    assert events == result.trace.events
    assert result.run_id == "r1"


def test_the_text_is_the_answer_in_pieces() -> None:
    async def work() -> tuple[list[str], Result]:
        async with agent(CALL, "It is in Rome, near the river.").stream("Where?") as stream:
            return [piece async for piece in stream.text], await stream.result()

    pieces, result = drive(work)
    assert "".join(pieces) == result.answer == "It is in Rome, near the river."
    assert len(pieces) > 1


def test_text_of_a_text_dialect_has_no_thought_in_it() -> None:
    script = ["Thought: I look.\nAction: look\nAction Input: {}", "Thought: I saw it.\nFinal Answer: It is in Rome."]

    async def work() -> list[str]:
        return [piece async for piece in agent(*script, dialect="text").stream("Where?").text]

    assert "".join(drive(work)) == "It is in Rome."


def test_an_answer_with_an_output_type_comes_in_one_piece() -> None:
    async def work() -> tuple[list[str], Any]:
        stream = agent(CALL, '{"city": "Rome"}', output_type=dict[str, str]).stream("Where?")
        return [piece async for piece in stream.text], (await stream.result()).output

    pieces, output = drive(work)
    assert (len(pieces), output) == (1, {"city": "Rome"})


def test_a_run_that_waits_gives_no_text_and_a_result_that_says_so() -> None:
    @tool(tier="write")
    def send(amount: int) -> str:
        """Send some."""
        return "sent"

    async def work() -> tuple[list[str], Result]:
        own = Agent(model=ScriptedModel([CALL_SEND, "unused"]), tools=[send])
        stream = own.stream("Send it.", limits=Limits(max_steps=3))
        return [piece async for piece in stream.text], await stream.result()

    pieces, result = drive(work)
    assert (pieces, result.status, result.answer) == ([], "waiting", None)


class Hanging:
    """A tool that hangs in its first call, and the agents that have it."""

    def __init__(self) -> None:
        self.began, self.calls = asyncio.Event(), 0
        self.journal = MemoryJournal()

    def agent(self, *script: Any) -> Agent[Any, Any]:
        @tool(tier="read")
        async def hang() -> str:
            """Hang."""
            self.calls += 1
            if self.calls == 1:
                self.began.set()
                await asyncio.Event().wait()
            return "awake"

        return Agent(model=ScriptedModel(list(script), strict=False), tools=[hang], journal=self.journal)


HANG = {"tool_calls": [{"name": "hang", "args": {}}], "text": "I hang about here."}


@pytest.mark.parametrize("how", ["events", "text"])
def test_a_run_that_was_left_is_stopped_and_goes_on_as_a_stream(how: str) -> None:
    async def work() -> tuple[str, str]:
        hanging = Hanging()
        own = hanging.agent(HANG, "It is in Rome.")
        async with own.stream("Where?", run_id="r1") as first:
            async for _ in first if how == "events" else first.text:
                break
            await hanging.began.wait()
        stopped = await first.result()
        stream = own.stream_resume("r1")
        if how == "text":
            return stopped.status, "".join([piece async for piece in stream.text])
        async with stream:
            kinds = [event.kind async for event in stream]
        assert (kinds[0], kinds[-1]) == ("resumed", "finished")
        return stopped.status, (await stream.result()).answer or ""

    assert drive(work) == ("stopped", "It is in Rome.")


def test_an_iteration_that_nobody_holds_any_more_stops_the_run() -> None:
    async def work() -> str:
        hanging = Hanging()
        async for event in hanging.agent(HANG).stream("Where?", run_id="r1"):
            if event.kind == "model_replied":
                await hanging.began.wait()
                break
        attached = await hanging.agent().attach("r1")
        return (await attached.result()).status

    assert drive(work) == "stopped"


def test_deltas_go_to_the_stream_and_to_a_listener() -> None:
    heard: list[Delta] = []

    async def work() -> list[Any]:
        stream = agent("It is in Rome.").stream("Where?", deltas=True, on_delta=heard.append)
        return [item async for item in stream]

    assert [item for item in drive(work) if isinstance(item, Delta)] == heard != []


@pytest.mark.parametrize("second", ["events", "text"])
def test_a_stream_is_read_once(second: str) -> None:
    async def work() -> None:
        stream = agent("Rome.").stream("Where?", run_id="r1")
        _ = [event async for event in stream]
        _ = stream.text if second == "text" else [event async for event in stream]

    with pytest.raises(ConfigError, match="The stream of run r1 is read already, or was read") as caught:
        drive(work)
    assert "trace of its result" in caught.value.hint


def test_a_stream_that_was_closed_starts_no_run() -> None:
    journal = MemoryJournal()

    async def work() -> None:
        stream: RunStream[Any, Any] = agent("Rome.", journal=journal).stream("Where?", run_id="r1")
        await stream.aclose()
        assert repr(stream) == "<RunStream r1: closed>"
        with pytest.raises(ConfigError, match=r"was closed\..*never began"):
            await stream.result()
        with pytest.raises(ConfigError, match="was closed"):
            await anext(stream)
        with pytest.raises(RunNotFound):
            await journal.load("r1")

    drive(work)


def test_what_is_wrong_with_the_agent_is_raised_where_it_is_read() -> None:
    async def work() -> None:
        own = agent("Rome.")
        with pytest.raises(ConfigError, match="The task is"):
            _ = [event async for event in own.stream(" ")]
        with pytest.raises(ConfigError, match="The task is"):
            await own.stream(" ").result()
        with pytest.raises(RunNotFound):
            _ = [piece async for piece in own.stream_resume("none").text]

    drive(work)


def test_a_cancelled_reader_of_the_result_stops_the_run() -> None:
    async def work() -> str:
        hanging = Hanging()
        stream = hanging.agent(HANG).stream("Wait.")
        reader = asyncio.ensure_future(stream.result())
        await hanging.began.wait()
        reader.cancel()
        await asyncio.wait((reader,))
        assert reader.cancelled()
        return (await stream.result()).status

    assert drive(work) == "stopped"


def test_a_turn_of_a_session_is_a_stream_whose_run_has_an_id_once_it_begins() -> None:
    agent = Agent(model=["4"], journal=MemoryJournal())

    async def work() -> tuple[list[str], list[int]]:
        ids, told = [""], [0]
        for _ in range(2):
            async with agent.stream("2 + 2?", session="sums", user="ann") as stream:
                assert stream.run_id == ""
                assert "".join([piece async for piece in stream.text]) == "4"
                result = await stream.result()
            assert result.run_id == stream.run_id
            ids.append(result.run_id)
            assert result.trace.started is not None
            told.append(len(result.trace.started.history))
        return ids, told

    ids, told = drive(work)
    assert len(set(ids)) == 3
    assert told == [0, 0, 2]


def test_a_stream_of_a_session_that_was_left_is_stopped_and_can_be_resumed() -> None:
    is_over = asyncio.Event()

    @tool(tier="read")
    async def look() -> str:
        """Look once somebody lets it."""
        await is_over.wait()
        return "seen"

    agent = Agent(model=[CALL, "4"], tools=[look], journal=MemoryJournal())

    async def work() -> tuple[str, str | None]:
        async with agent.stream("2 + 2?", session="sums") as stream:
            await anext(stream)
        is_over.set()
        stopped = await stream.result()
        return stopped.status, (await agent.chat(session="sums").resume()).answer

    assert drive(work) == ("stopped", "4")


@pytest.mark.parametrize("options", [{"session": 5}, {"session": "sums", "user": 5}, {"session": "s", "run_id": "r"}])
def test_a_stream_of_a_session_refuses_what_is_no_name_or_not_its_own_id(options: Any) -> None:
    with pytest.raises(ConfigError):
        drive(Agent(model=["4"]).stream("2 + 2?", **options).result)


def test_a_run_of_a_session_has_no_handle_because_the_session_gives_its_id() -> None:
    async def work() -> None:
        Agent(model=["4"]).start("2 + 2?", session="sums")

    with pytest.raises(ConfigError, match="has no id before it begins"):
        drive(work)
