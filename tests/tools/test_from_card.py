from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import pytest

from taoloop.core.cards.tool_card import ToolCard
from taoloop.errors import InvalidArguments, InvalidOutput, ToolDefinitionError
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.tool import ToolContext

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 2}, "day": {"type": "string", "format": "date"}},
    "required": ["city"],
}
CARD = ToolCard(
    name="get_weather",
    purpose="Read the weather of one city, today only.",
    input_schema=CITY,
    output_schema={"type": "object", "required": ["degrees"]},
    tier="read",
)


def weather(city: str, day: str = "", *, context: ToolContext) -> dict[str, Any]:
    return {"degrees": len(city + day), "call": context.call_id}


def test_the_schema_judges_arguments_and_results() -> None:
    """S3-61: the schema is enforced."""
    made = tool_from_card(CARD, weather)
    values = made.prepare({"city": "上海", "day": "2025-06-01"}).values
    assert made.render(made.invoke(values, ToolContext(call_id="c1"))).text == '{"degrees":12,"call":"c1"}'
    with pytest.raises(InvalidOutput, match="degrees"):
        made.render({})


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({}, '"city" is a required property'),
        ({"city": "x"}, "'city':"),
        ({"city": "上海", "day": "soon"}, "'day':"),
        ({"city": "上海", "zone": "x"}, "'zone' is not a known argument"),
        ({"city": "上海", "context": "x"}, "'context' is not a known argument"),
    ],
)
def test_arguments_that_do_not_fit_are_told(args: dict[str, Any], message: str) -> None:
    made = tool_from_card(CARD, weather)
    with pytest.raises(InvalidArguments) as caught:
        made.prepare(args)
    assert message in str(caught.value)
    assert "Expected: {" in caught.value.hint


def test_a_text_that_means_a_number_is_taken() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    made = tool_from_card(ToolCard(name="twice", purpose="p", input_schema=schema), lambda n: n * 2)
    assert made.prepare({"n": "5"}).values == {"n": 5}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"type": "string"},
        {},
        {"type": "object", "properties": {"a": {"type": "nope"}}},
        {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
    ],
)
def test_an_invalid_schema_is_refused_when_the_tool_is_made(schema: dict[str, Any]) -> None:
    with pytest.raises(ToolDefinitionError, match=r"schema of 'f1'"):
        tool_from_card(ToolCard(name="f1", purpose="p", input_schema=schema), lambda **_: None)


def test_a_handler_that_does_not_fit_is_refused() -> None:
    for handler in (lambda: None, lambda city, day, more: None):  # noqa: ARG005
        with pytest.raises(ToolDefinitionError, match="does not fit its input schema"):
            tool_from_card(CARD, handler)


def test_a_pattern_that_would_take_forever_ends() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"^(?=(a+)+$)(a|aa)+\1b$"}}}
    made = tool_from_card(ToolCard(name="f1", purpose="p", input_schema=schema), lambda **_: None)
    with pytest.raises(InvalidArguments):
        made.prepare({"a": "a" * 5_000})


def test_importing_the_tools_loads_no_schema_engine_and_no_yaml() -> None:
    code = (
        "import sys, taoloop.tools.toolbox, taoloop.tools.from_card;"
        "print({'yaml', 'jsonschema_rs', 'ctypes'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_what_a_partial_has_bound_is_not_for_the_model() -> None:
    def greet(name: str, who: str) -> str:
        return f"{name} {who}"

    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    made = tool_from_card(ToolCard(name="greet", purpose="p", input_schema=schema), partial(greet, who="alice"))
    assert made.invoke(made.prepare({"name": "x"}).values, ToolContext()) == "x alice"
    with pytest.raises(InvalidArguments, match="'who' is not a known argument"):
        made.prepare({"name": "x", "who": "bob"})
