from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from taoloop.errors import InvalidArguments, InvalidOutput, ToolDefinitionError
from taoloop.tools.base import Tool, ToolContext
from taoloop.tools.function import tool


class Point(BaseModel):
    x: int
    y: int = 0


@tool(tier="read")
def add(a: int, b: int) -> int:
    """Add two integers, not floats.

    Args:
        a: The first summand.
        b: The second summand.
    """
    return a + b


@pytest.mark.parametrize(
    "args", [{"a": 1}, {"a": 1, "b": "two"}, {"a": 1, "b": 2, "c": 3}, {"a": 1.5, "b": 2}, [1, 2], "1", None]
)
def test_anything_but_two_integers_is_refused_with_the_expected_form(args: Any) -> None:
    """S0-11, S3-61."""
    with pytest.raises(InvalidArguments) as caught:
        add.prepare(args)
    assert caught.value.hint == 'Expected: {"a": integer, "b": integer}'


def test_card_schema_and_validation_come_from_the_function() -> None:
    assert (add.name, add.card.purpose, add.card.tier) == ("add", "Add two integers, not floats.", "read")
    assert add.card.parameters["a"] == {"type": "integer", "description": "The first summand."}
    assert add.card.required == ("a", "b")
    assert add.prepare({"a": "8", "b": 2}).values == {"a": 8, "b": 2}
    assert add.render(add.invoke({"a": 8, "b": 2}, ToolContext())).text == "10"
    assert add(1, 2) == 3


def test_a_result_against_its_type_is_told() -> None:
    with pytest.raises(InvalidOutput, match="add"):
        add.render("ten")


def test_an_async_function_gets_its_context_and_does_not_show_it() -> None:
    @tool
    async def whoami(unit: Literal["C", "F"] = "C", *, context: ToolContext) -> str:
        """Say which call this is."""
        return f"{context.call_id} {unit}"

    assert whoami.is_async
    assert set(whoami.card.parameters) == {"unit"}
    assert whoami.card.tier is None
    assert asyncio.run(whoami.invoke(whoami.prepare({"unit": "f"}).values, ToolContext(call_id="c7"))) == "c7 F"


def test_models_lists_and_bounds_are_described_and_checked() -> None:
    @tool
    def move(points: list[Point], factor: Annotated[int, Field(ge=1)] = 1) -> list[Point]:
        """Move points."""
        return [Point(x=one.x * factor, y=one.y) for one in points]

    values = move.prepare({"points": [{"x": 1}], "factor": 3}).values
    assert move.render(move.invoke(values, ToolContext())).text == '[{"x":3,"y":0}]'
    with pytest.raises(InvalidArguments, match=r"points\.0\.x"):
        move.prepare({"points": [{"x": "one"}]})
    with pytest.raises(InvalidArguments, match="factor"):
        move.prepare({"points": [], "factor": 0})


def test_arguments_are_bounded_in_size() -> None:
    """S0-18: the first demo takes 1,024 bytes."""
    small: Tool = add.with_card(max_input_bytes=1_024)
    with pytest.raises(InvalidArguments, match="at most 1,024"):
        small.prepare({"a": 1, "b": "x" * 1_024})


def test_a_function_that_no_model_can_call_is_refused() -> None:
    def untyped(a):  # type: ignore[no-untyped-def]
        return a

    def variadic(*args: int) -> int:
        return sum(args)

    def callback(then: Tool) -> None: ...

    for function in (untyped, variadic, callback):
        with pytest.raises(ToolDefinitionError, match=function.__name__):
            tool(function)


@pytest.mark.parametrize(("size", "taken"), [(1024, True), (1025, False)])
def test_a_single_text_is_measured_by_itself(size: int, taken: bool) -> None:
    """S0-18: an input of exactly the limit is taken, a longer one is refused."""

    @tool(tier="read", max_input_bytes=1024)
    def echo(text: str) -> str:
        """Give the text back."""
        return text

    if taken:
        assert echo.prepare({"text": "x" * size}).values == {"text": "x" * size}
    else:
        with pytest.raises(InvalidArguments, match="1,025 bytes; it takes at most 1,024"):
            echo.prepare({"text": "x" * size})
