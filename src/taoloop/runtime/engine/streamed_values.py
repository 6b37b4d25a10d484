"""Results that a function gives one by one: each is shown as progress, and together they are the result."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing
from typing import Any

import pydantic_core

from taoloop.errors import InvalidOutput
from taoloop.tools.result_values import write_json
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import Tool

MAX_STREAMED = 100_000
"""How many values are taken; a function that gives more is stopped."""

_MAX_PROGRESS_CHARS = 2_000


class StreamedValues:
    """Takes the values of one call's generator, sync or async, and reports each as progress.

    The result is what a generator returns. One that returns nothing (an async one cannot) has given its result: texts
    are joined as they are, other values are a list; texts are a list too where the card declares one, and where they
    come from no generator: the items of a `map` or `zip` are no pieces of a text.

    Args:
        tool: The tool that was called.
        report: Called with the tool's name and each value as text, in the thread of the generator.
    """

    def __init__(self, tool: Tool, report: Callable[[str, str], None]) -> None:
        self._tool, self._report = tool, report
        self._values: list[Any] = []
        self._is_list = (tool.card.output_schema or {}).get("type") == "array"
        self._is_stopped = False  # set by another thread, at most once, and only read here

    def stop(self) -> None:
        """Take no more: nobody waits for the call. A sync generator is closed after the value that it is making."""
        self._is_stopped = True

    def take(self, result: Any) -> Any:
        """The result behind `result`, if it is a sync iterator; anything else as it is.

        Raises:
            InvalidOutput: it gives too many values.
        """
        if not isinstance(result, Iterator):
            return result
        if not hasattr(result, "close"):  # `map` and others, which are no generators
            result, self._is_list = _generator_of(result), True
        with closing(result):
            while not self._is_stopped:
                try:
                    value = next(result)
                except StopIteration as end:
                    return self._result(end.value)
                self._add(value)
        return None  # nobody looks at it

    async def take_later(self, result: Any) -> Any:
        """The result behind `result`, if it is an async iterator; anything else as it is.

        Raises:
            InvalidOutput: it gives too many values.
        """
        if not isinstance(result, AsyncIterator):
            return result
        if not hasattr(result, "aclose"):
            result = _async_generator_of(result)
        async with aclosing(result):
            async for value in result:
                self._add(value)
        return self._result(None)

    def _add(self, value: Any) -> None:
        if len(self._values) >= MAX_STREAMED:
            values: dict[str, Any] = {"tool": self._tool.name, "limit": MAX_STREAMED}
            raise TEXTS.error("result_endless", error_type=InvalidOutput, **values)
        self._values.append(value)
        try:
            text = value if isinstance(value, str) else write_json(value)
        except (pydantic_core.PydanticSerializationError, ValueError, RecursionError):
            text = type(value).__name__  # the result will say what is wrong with it
        if text := text.strip():
            self._report(self._tool.name, text[:_MAX_PROGRESS_CHARS])

    def _result(self, returned: Any) -> Any:
        if returned is not None:
            return returned
        if self._values and not self._is_list and all(isinstance(value, str) for value in self._values):
            return "".join(self._values)
        return self._values


def _generator_of(values: Iterator[Any]) -> Iterator[Any]:
    yield from values


async def _async_generator_of(values: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for value in values:
        yield value
