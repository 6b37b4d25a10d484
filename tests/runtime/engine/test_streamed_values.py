"""Generators as tools: what they yield is shown while they run, and becomes the observation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from typing import Any

import pytest

from taoloop import Agent, MemoryJournal, ScriptedModel, ToolError, tool
from taoloop.core.events import Observed
from taoloop.core.message import Delta
from taoloop.runtime.engine import streamed_values
from taoloop.tools.tool import Tool, ToolContext


def run(made: Tool) -> tuple[Observed, list[str]]:
    """The observation of one call, and what those who watch were shown."""
    heard: list[Delta] = []
    script = ScriptedModel([{"tool_calls": [{"name": made.name, "args": {}}]}, "done"])
    agent = Agent(model=script, tools=[made], journal=MemoryJournal())
    result = asyncio.run(agent.run("Do it.", on_delta=heard.append))
    [observed] = [event.fact for event in result.trace.events if isinstance(event.fact, Observed)]
    return observed, [delta.text for delta in heard if delta.kind == "progress" and delta.name == made.name]


def texts() -> Iterator[str]:
    """Give lines."""
    yield "first\n"
    yield "second\n"


async def later_texts() -> AsyncIterator[str]:
    """Give lines."""
    yield "first\n"
    await asyncio.sleep(0)
    yield "second\n"


def numbers() -> Iterator[int]:
    """Give numbers."""
    yield from (1, 2)


def rows() -> Iterator[dict[str, Any]]:
    """Give rows."""
    yield {"a": 1}
    yield {"a": b"\xff"}


def returned() -> Generator[str, None, dict[str, int]]:
    """Give lines, then the result."""
    yield "half"
    return {"total": 3}


def mapped() -> Iterable[int]:
    """Give what is no generator."""
    return map(int, "12")


def mapped_texts() -> Iterable[str]:
    """Give texts from what is no generator."""
    return map(str, (1, 2))


def listed() -> list[int]:
    """Declare a list and give a generator."""
    return (int(digit) for digit in "12")  # type: ignore[return-value]  # what is tested


def nothing() -> Iterator[int]:
    """Give nothing."""
    yield from ()


async def coroutine() -> AsyncIterator[str]:
    """Give an async generator from a coroutine."""
    return later_texts()


@pytest.mark.parametrize(
    ("function", "output", "shown"),
    [
        (texts, "first\nsecond\n", ["first", "second"]),
        (later_texts, "first\nsecond\n", ["first", "second"]),
        (coroutine, "first\nsecond\n", ["first", "second"]),
        (numbers, "[1,2]", ["1", "2"]),
        (rows, '[{"a":1},{"a":{"base64":"/w=="}}]', ['{"a":1}', '{"a":{"base64":"/w=="}}']),
        (returned, '{"total":3}', ["half"]),
        (mapped, "[1,2]", ["1", "2"]),
        (mapped_texts, '["1","2"]', ["1", "2"]),
        (listed, "[1,2]", ["1", "2"]),
        (nothing, "[]", []),
    ],
)
@pytest.mark.parametrize("tier", ["read", "draft"])
def test_what_is_yielded_is_shown_and_observed(
    function: Callable[[], Any], output: str, shown: list[str], tier: Any
) -> None:
    observed, progress = run(tool(tier=tier)(function))
    assert observed.ok, observed.error
    assert (observed.output, progress) == (output, shown)


@pytest.mark.parametrize("function", [texts, later_texts, listed])
def test_an_inline_generator_is_taken_too(function: Callable[[], Any]) -> None:
    observed, progress = run(tool(tier="read", inline=True)(function))
    assert observed.ok
    assert len(progress) == 2


def test_the_schema_says_what_the_values_make_together() -> None:
    assert tool(texts).card.output_schema is None
    assert tool(later_texts).card.output_schema is None
    assert tool(numbers).card.output_schema == {"type": "array", "items": {"type": "integer"}}
    assert tool(returned).card.output_schema == {"type": "object", "additionalProperties": {"type": "integer"}}


def test_a_value_against_its_type_is_told() -> None:
    @tool(tier="read")
    def wrong() -> Iterator[int]:
        """Give a text."""
        yield "one"  # type: ignore[misc]  # what is tested

    observed, _ = run(wrong)
    assert observed.error is not None
    assert observed.error.code == "invalid_output"


def test_an_error_after_a_value_is_the_observation() -> None:
    @tool(tier="read")
    def breaks(context: ToolContext) -> Iterator[str]:
        """Break half way."""
        context.progress("own words")
        yield "half"
        raise ToolError("The disk is full.", code="full")

    observed, progress = run(breaks)
    assert observed.error is not None
    assert observed.error.code == "full"
    assert progress == ["own words", "half"]


def test_a_generator_without_an_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_values, "MAX_STREAMED", 10)
    closed = threading.Event()

    @tool(tier="read")
    def endless() -> Iterator[int]:
        """Never end."""
        try:
            while True:
                yield 1
        finally:
            closed.set()

    observed, progress = run(endless)
    assert observed.error is not None
    assert "more than 10 values" in observed.error.message
    assert len(progress) == 10
    assert closed.is_set()


def test_a_generator_that_is_late_is_closed_after_its_value() -> None:
    released, closed = threading.Event(), threading.Event()

    @tool(tier="read", timeout_s=0.05)
    def slow() -> Iterator[str]:
        """Hang once."""
        try:
            yield "begun"
            released.wait(20)
            yield "late"
            raise AssertionError("it went on")
        finally:
            closed.set()

    observed, progress = run(slow)
    released.set()
    assert closed.wait(20)
    assert observed.error is not None
    assert observed.error.code == "timeout"
    assert progress[0] == "begun"
