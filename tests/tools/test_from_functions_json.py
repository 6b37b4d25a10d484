"""Function documents become tools, with names that providers take and are changed back."""

from __future__ import annotations

from typing import Any

import pytest

from taoloop.core.cards.tool_card import ToolCard
from taoloop.tools.from_functions_json import cards_from_functions, tools_from_functions
from taoloop.tools.json_schema import compile_schema

WEATHER = {
    "name": "weather.get_current",
    "description": "Weather right now.",
    "parameters": {
        "type": "dict",
        "properties": {
            "city": {"type": "string", "description": "Its name"},
            "days": {"type": "tuple", "items": {"type": "float"}},
            "detail": {"type": "any"},
            "unit of it": {"type": "String", "enum": ["c", "f"], "optional": True},
        },
        "required": ["city", "unit of it", "gone"],
    },
}


def test_types_of_other_languages_become_those_of_json() -> None:
    (card,) = cards_from_functions([WEATHER]).cards
    assert card.parameters["days"] == {"type": "array", "items": {"type": "number"}}
    assert card.parameters["detail"] == {}
    assert card.required == ("city",)
    assert card.tier is None
    compile_schema(card.input_schema, "it")


def test_names_are_changed_and_the_handler_gets_those_of_the_document() -> None:
    called: list[Any] = []
    (made,) = tools_from_functions([WEATHER], lambda name, args: called.append((name, args))).tools
    assert made.name == "weather_get_current"
    prepared = made.prepare({"city": "Paris", "unit_of_it": "c"})
    made.invoke(prepared.values, None)
    assert called == [("weather.get_current", {"city": "Paris", "unit of it": "c"})]


def test_the_form_of_the_chat_api_is_taken() -> None:
    made = cards_from_functions([{"type": "function", "function": {"name": "f", "description": "d"}}])
    assert (made.cards[0].name, made.cards[0].purpose) == ("f", "d")


@pytest.mark.parametrize(
    "names", [["a.b", "a_b", "a b"], ["same", "same"], ["查询", "天气"], ["x" * 90, "x" * 91], ["find_tool"]]
)
def test_every_name_is_its_own(names: list[str]) -> None:
    made = cards_from_functions([{"name": name} for name in names])
    assert len({card.name for card in made.cards}) == len(names)
    assert [made.names[card.name] for card in made.cards] == names


def test_a_tier_that_is_given_counts() -> None:
    card: ToolCard = cards_from_functions([WEATHER], tier="read").cards[0]
    assert (card.tier, card.egress) == ("read", False)


@pytest.mark.parametrize(
    "junk",
    [
        None,
        5,
        {},
        {"name": ""},
        {"name": 5},
        {"name": "a", "parameters": 5},
        {"name": "a", "parameters": {"type": "array"}},
    ],
)
def test_what_is_none_is_told_and_the_others_are_there(junk: Any) -> None:
    made = cards_from_functions([junk, WEATHER])
    assert [card.name for card in made.cards] == ["weather_get_current"]
    assert made.problems[0].place == "[0]"


def test_references_inside_a_document_are_kept() -> None:
    parameters = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "int"}}}
    (card,) = cards_from_functions([{"name": "f", "parameters": parameters}]).cards
    assert card.input_schema["$defs"] == {"A": {"type": "integer"}}
