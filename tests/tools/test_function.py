from __future__ import annotations

import asyncio
import json
import pickle
import sys
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial, update_wrapper, wraps
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import Base64Bytes, BaseModel, Field
from typing_extensions import TypedDict

from taoloop.core.cards.tool_card import ExampleCard, ToolCard
from taoloop.errors import InvalidArguments, InvalidOutput, ToolDefinitionError, ToolError
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.function import is_context, tool
from taoloop.tools.tool import RunContext, Tool, ToolContext, handler_is_async
from taoloop.tools.toolbox import Toolbox


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


def test_what_a_call_does_to_the_world_is_said_beside_the_tier() -> None:
    @tool(tier="write", egress=["to"], roles={"to": "target", "text": "content"}, reversible=False)
    def send(to: str, text: str = "") -> str:
        """Send a text to somebody."""
        return f"{to} {text}"

    card = send.card
    assert (card.egress, card.can_be_undone) == (("to",), False)
    assert (card.role("to"), card.role("text")) == ("target", "content")
    assert card.sends_out({"to": "ann", "text": ""})
    assert not card.sends_out({"text": "x"})
    options: dict[str, Any]
    for options in ({"egress": ["who"]}, {"egress": "to"}, {"roles": {"who": "target"}}, {"roles": {"to": "goal"}}):
        with pytest.raises(ToolDefinitionError, match="send"):
            tool(tier="write", **options)(send.handler)


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


class Colour(Enum):
    RED = "red"
    GREEN = "green"


class Numbers(TypedDict):
    value: float


@dataclass
class Money:
    amount: Decimal
    tags: set[int]


def scale(factor: int, value: int, unit: str = "m") -> int:
    """Scale a value.

    Args:
        factor: How much.
        value: What.
    """
    return factor * value if unit else 0


class Shop:
    def price(self, item: str) -> int:
        """Say the price."""
        return len(item)

    async def __call__(self, item: str) -> int:
        """Buy it."""
        return len(item)


def call(made: Tool, args: dict[str, Any]) -> Any:
    return made.invoke(made.prepare(args).values, ToolContext(call_id="c7"))


def test_a_pydantic_field_as_default_is_understood() -> None:
    @tool
    def f(
        x: int = Field(default=5, ge=1, description="How many."),
        y: int = Field(ge=0),
        z: list[int] = Field(default_factory=lambda: [1]),  # noqa: B008  # what is tested
    ) -> list[Any]:
        """Do it.

        Args:
            x: The docstring's words.
            y: Needed.
        """
        return [x, y, z]

    assert f.card.parameters["x"] == {"type": "integer", "default": 5, "minimum": 1, "description": "How many."}
    assert f.card.parameters["y"] == {"type": "integer", "minimum": 0, "description": "Needed."}
    assert f.card.required == ("y",)
    assert call(f, {"y": 2}) == [5, 2, [1]]
    assert f(1, 2) == [1, 2, [1]], "a call by hand gets the defaults too"
    assert f(y=2) == [5, 2, [1]]
    for wrong in ({"x": 0, "y": 1}, {"x": 1}, {"y": -1}):
        with pytest.raises(InvalidArguments):
            f.prepare(wrong)


def test_an_async_function_with_a_field_stays_async() -> None:
    @tool
    async def f(x: int = Field(default=5)) -> int:
        """Do it."""
        return x

    assert f.is_async
    assert asyncio.run(call(f, {})) == 5


def test_a_default_that_json_has_no_number_for_stays_out_of_the_schema() -> None:
    @tool
    def f(x: float = float("inf"), y: float = Field(default=float("nan"))) -> float:
        """Do it."""
        return x + y

    assert all("default" not in rule for rule in f.card.parameters.values())


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (partial(scale, 3), {"value", "unit"}),
        (partial(scale, factor=3), {"value", "unit"}),
        (partial(partial(scale, 3), unit="km"), {"value"}),
        (update_wrapper(partial(scale, 3), scale), {"value", "unit"}),
    ],
)
def test_a_partial_is_its_function_without_what_is_bound(function: Any, shown: set[str]) -> None:
    made = tool(function)
    assert (made.name, made.card.purpose) == ("scale", "Scale a value.")
    assert set(made.card.parameters) == shown
    assert made.card.parameters["value"] == {"type": "integer", "description": "What."}
    assert call(made, {"value": 2}) == 6
    with pytest.raises(InvalidArguments, match="factor"):
        made.prepare({"value": 2, "factor": 9})


def test_methods_and_callable_objects_are_tools() -> None:
    shop = Shop()
    for function in (shop.price, partial(Shop.price, shop)):
        made = tool(function)
        assert (made.name, made.card.purpose, set(made.card.parameters)) == ("price", "Say the price.", {"item"})
    callables: tuple[Callable[..., Any], ...] = (shop, partial(shop))
    for bought in callables:
        made = tool(bought)
        assert (made.name, made.card.purpose, made.is_async) == ("Shop", "Buy it.", True)
        assert asyncio.run(call(made, {"item": "tea"})) == 3


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        (dict, "class 'dict' is no tool", "typed function"),
        (Point, "class 'Point' is no tool", "typed function"),
        (partial(Point, x=1), "class 'Point' is no tool", "typed function"),
        (Shop, "class 'Shop' is no tool", "instance"),
        (Shop.price, "method without its object", "instance.price"),
        (str.upper, "method without its object", "instance.upper"),
        (max, "parameters of the tool 'max' cannot be found", "typed function"),
    ],
)
def test_what_is_no_function_says_what_to_give_instead(given: Any, message: str, hint: str) -> None:
    for make in (tool, lambda one: Toolbox([one])):
        with pytest.raises(ToolDefinitionError, match=message) as caught:
            make(given)
        assert hint in caught.value.hint


@pytest.mark.parametrize(
    "hint",
    [
        ToolContext,
        RunContext[int],
        RunContext[dict[str, int]] | None,
        Annotated[RunContext[int], "the call"],
        "RunContext[Unknown]",
        "RunContext[dict[str, list[int]]] | None",
        "Optional[taoloop.RunContext[Unknown]]",
        ToolContext | None,
        Optional[ToolContext],  # noqa: UP045  # the older way to write it
        Annotated[ToolContext, "the call"],
        Annotated[ToolContext | None, "the call"],
        "ToolContext | None",
        "base.ToolContext",
        "typing.Optional[base.ToolContext]",
        "Annotated[ToolContext, 'x']",
    ],
)
def test_the_context_is_known_in_every_way_to_write_it(hint: Any) -> None:
    def f(x: int, ctx: Any = None) -> str:
        """Do it."""
        return f"{ctx.call_id} {x}"

    f.__annotations__["ctx"] = hint
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    made = [tool_from_card(ToolCard(name="f", purpose="p", input_schema=schema), f)]
    if not isinstance(hint, str):
        made.append(tool(f))
    for one in made:
        assert one.context_parameter == "ctx"
        assert set(one.card.parameters) == {"x"}
        assert call(one, {"x": 1}) == "c7 1"


@pytest.mark.parametrize(
    "hint",
    [
        "dict[str, ToolContext]",
        "RunContext[int] | dict[str, int]",
        "MyToolContext",
        dict[str, ToolContext],
        int | None,
        "x",
    ],
)
def test_other_types_are_no_context(hint: Any) -> None:
    assert not is_context(hint)


def test_the_type_of_the_deps_need_not_be_known_at_run_time() -> None:
    def f(x: int, ctx: RunContext[Any]) -> int:
        """Do it."""
        return x + len(ctx.deps)

    f.__annotations__.update(ctx="RunContext[ImportedForCheckersOnly]", x="int")
    made = tool(f)
    assert (made.context_parameter, set(made.card.parameters)) == ("ctx", {"x"})
    f.__annotations__["x"] = "ImportedForCheckersOnly"
    with pytest.raises(ToolDefinitionError, match="cannot be resolved: name 'ImportedForCheckersOnly'"):
        tool(f)


def test_an_unknown_option_is_refused_with_the_one_that_may_be_meant() -> None:
    def f() -> str:
        """Do it."""
        return ""

    options: dict[str, Any] = {"purpos": "Do it."}
    with pytest.raises(ToolDefinitionError, match=r"was given 'purpos'.*Did you mean 'purpose'\?"):
        tool(**options)(f)


def test_a_variadic_context_is_refused() -> None:
    def f(*ctx: ToolContext) -> None: ...

    with pytest.raises(ToolDefinitionError, match="no model can fill"):
        tool(f)


def test_a_sync_wrapper_of_an_async_function_does_not_run_on_the_loop() -> None:
    async def inner(x: int) -> int:
        """Do it."""
        return x

    @wraps(inner)
    def outer(x: int) -> Any:
        return inner(x)

    @wraps(scale)
    async def made_async(*args: Any, **kwargs: Any) -> int:
        return scale(*args, **kwargs)

    assert not handler_is_async(outer)
    assert tool(outer).card.parameters == {"x": {"type": "integer"}}
    for is_async in (inner, made_async, partial(inner, 1), partial(partial(Shop())), Shop(), staticmethod(inner)):
        assert handler_is_async(is_async)
    for is_sync in (scale, partial(scale, 1), Shop().price, staticmethod(scale)):
        assert not handler_is_async(is_sync)


def test_enum_values_in_another_case_are_corrected() -> None:
    @tool
    def paint(colour: Colour, others: list[Colour] | None = None) -> str:
        """Paint."""
        return f"{colour.name} {[one.name for one in others or ()]}"

    assert call(paint, {"colour": "Red", "others": ["GREEN"]}) == "RED ['GREEN']"
    assert paint.prepare({"colour": "Red"}).args == {"colour": "red"}
    with pytest.raises(InvalidArguments) as caught:
        paint.prepare({"colour": "blue"})
    assert caught.value.hint == 'Expected: {"colour": string, "others": array (optional)}'


def test_bytes_that_pydantic_decodes_itself_are_decoded_once() -> None:
    @tool
    def keep(data: Base64Bytes, more: list[Base64Bytes | None], short: Annotated[bytes, Field(max_length=3)]) -> int:
        """Keep it."""
        return len(data) + len(more) + len(short)

    assert keep.prepare({"data": "YWJj", "more": ["YQ==", None], "short": "YWJj"}).values == {
        "data": b"abc",
        "more": [b"a", None],
        "short": b"abc",
    }
    assert keep.card.parameters["short"] == {"type": "string", "contentEncoding": "base64", "maxLength": 4}
    with pytest.raises(InvalidArguments, match=r"'data'.*valid base64.*'short'.*at most 3 bytes"):
        keep.prepare({"data": "?", "more": [], "short": "YWJjZGVm"})


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic takes the TypedDict of typing from 3.12 on")
def test_the_typed_dict_of_typing_is_refused_with_the_one_that_works() -> None:
    with pytest.raises(ToolDefinitionError, match="typing_extensions") as caught:

        @tool
        def keep(numbers: list[StandardTypedDict]) -> int:
            """Keep it."""
            return len(numbers)

    assert "from typing_extensions import TypedDict" in caught.value.hint
    assert "Use JSON-like types" not in caught.value.hint


class StandardTypedDict(typing.TypedDict):
    value: float


def test_a_whole_float_is_taken_for_an_integer() -> None:
    assert add.prepare({"a": 5.0, "b": 2}).values == {"a": 5, "b": 2}


def rendered(result: Any) -> str:
    return replace(add, check_output=None).render(result).text


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (float("nan"), '"NaN"'),
        ({"a": float("inf"), "b": [float("-inf"), 1.5]}, '{"a":"Infinity","b":["-Infinity",1.5]}'),
        (Point(x=1), '{"x":1,"y":0}'),
        (Money(Decimal("1.10"), {1}), '{"amount":"1.10","tags":[1]}'),
        (datetime(2025, 6, 1, 12, tzinfo=UTC), '"2025-06-01T12:00:00Z"'),
        (timedelta(minutes=90), '"PT1H30M"'),
        (Decimal("0.1"), '"0.1"'),
        (Colour.RED, '"red"'),
        (b"abc", '{"base64":"YWJj"}'),
        (frozenset({1}), "[1]"),
        (None, "null"),
    ],
)
def test_a_result_is_written_as_valid_json(result: Any, text: str) -> None:
    assert rendered(result) == text
    json.loads(text, parse_constant=pytest.fail)


def test_a_declared_float_may_be_infinite() -> None:
    @tool
    def f() -> Numbers:
        """Do it."""
        return {"value": float("inf")}

    assert f.render(f()).text == '{"value":"Infinity"}'


@pytest.mark.parametrize("result", [object(), {1j: object()}])
def test_a_result_that_json_cannot_hold_is_told(result: Any) -> None:
    with pytest.raises(InvalidOutput, match="cannot be written as JSON"):
        rendered(result)


def test_a_generator_is_no_result_outside_a_run() -> None:
    async def later() -> AsyncIterator[int]:
        yield 1

    def now() -> Iterator[int]:
        """Count."""
        yield 1

    def declared(n: int) -> list[int]:
        """Count."""
        return map(int, range(n))  # type: ignore[return-value]  # what is tested

    for result in (now(), later(), (one for one in "ab")):
        with pytest.raises(InvalidOutput, match="add") as caught:
            rendered(result)
        assert "return a list" in caught.value.hint
    for made, args in ((tool(now), {}), (tool(declared), {"n": 1})):
        with pytest.raises(InvalidOutput):
            made.render(call(made, args))


def test_a_tool_error_takes_what_its_author_gives() -> None:
    assert (ToolError(ValueError("x")).message, str(ToolError(ValueError("x")))) == ("x", "x")  # type: ignore[arg-type]
    error = ToolError("x", hint=None, code=404, retryable=1)  # type: ignore[arg-type]
    assert (error.hint, error.code, error.retryable, str(error)) == ("", "404", True, "x")
    assert ToolError("x", code=None).code == "tool_error"  # type: ignore[arg-type]
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  # its own bytes
    assert (again.code, again.message) == ("404", "x")


WRONG_ARGS: Any = "Bern"


@pytest.mark.parametrize(
    "examples", [[{"city": "Bern"}], {"city": "Bern"}, ["Bern"], [ExampleCard(args=WRONG_ARGS)], "Bern"]
)
def test_examples_of_another_shape_are_refused_with_the_one_that_is_expected(examples: Any) -> None:
    with pytest.raises(ToolDefinitionError, match="'look' has an example that is no ExampleCard") as caught:

        @tool(examples=examples)
        def look(city: str) -> str:
            """Look at a city."""
            return city

    assert 'ExampleCard(args=dict(city="Bern"))' in caught.value.hint
