from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from taoloop.core.cards.coercion import coerce_args


def coerced(value: Any, rule: dict[str, Any], *, required: bool = True) -> Any:
    schema = {"type": "object", "properties": {"a": rule}, "required": ["a"] if required else []}
    return coerce_args({"a": value}, schema)


@pytest.mark.parametrize(
    ("value", "rule", "expected"),
    [
        ("5", {"type": "integer"}, 5),
        ("-5", {"type": "integer"}, -5),
        (5.0, {"type": "integer"}, 5),
        ("2.5", {"type": "number"}, 2.5),
        ("TRUE", {"type": "boolean"}, True),
        ("celsius", {"type": "string", "enum": ["Celsius", "Kelvin"]}, "Celsius"),
        (["1", "2"], {"type": "array", "items": {"type": "integer"}}, [1, 2]),
        ({"n": "1"}, {"type": "object", "properties": {"n": {"type": "integer"}}}, {"n": 1}),
        ("5", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, 5),
        ("5", {"type": ["integer", "null"]}, 5),
    ],
)
def test_a_lossless_correction_is_made(value: Any, rule: dict[str, Any], expected: Any) -> None:
    assert coerced(value, rule) == {"a": expected}
    assert type(coerced(value, rule)["a"]) is type(expected)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("5.5", {"type": "integer"}),
        ("1e3", {"type": "integer"}),
        ("007", {"type": "integer"}),
        (" 5", {"type": "integer"}),
        ("9" * 30, {"type": "integer"}),
        ("5", {"type": "string"}),
        ("5", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (5.5, {"type": "integer"}),
        (5.0, {"type": "number"}),
        ("yes", {"type": "boolean"}),
        (1, {"type": "boolean"}),
        (5, {"type": "string"}),
        ("x", {"enum": ["X", "x "]}),
        ("a", {"enum": ["A", "a", "b"]}),
        ("five", {}),
        ("5", True),
    ],
)
def test_what_could_change_the_meaning_is_left_alone(value: Any, rule: Any) -> None:
    """The schema says what is wrong with it."""
    kept = coerced(value, rule)["a"]
    assert kept == value or (value == "x" and kept == "X")
    assert type(kept) is type(value)


def test_null_for_an_optional_argument_means_not_given() -> None:
    assert coerced(None, {"type": "integer"}, required=False) == {}
    assert coerced(None, {"type": "integer"}) == {"a": None}
    assert coerced(None, {"type": ["integer", "null"]}, required=False) == {"a": None}


@given(st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.floats(), st.none())))
def test_unknown_arguments_stay_for_the_schema_to_refuse(args: dict[str, Any]) -> None:
    assert coerce_args(args, {"type": "object"}).keys() == args.keys()


COLOURS = {
    "$defs": {
        "Colour": {"enum": ["red", "Green"], "type": "string"},
        "Twins": {"enum": ["A", "a", "B"], "type": "string"},
        "Paint": {
            "type": "object",
            "properties": {"colour": {"$ref": "#/$defs/Colour"}, "litres": {"type": "integer"}},
            "required": ["colour"],
        },
        "Tree": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "below": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
        },
        "Circle": {"$ref": "#/$defs/Circle"},
        "Many": {"anyOf": [{"$ref": "#/$defs/Many"}, {"anyOf": [{"$ref": "#/$defs/Many"}, {"type": "integer"}]}]},
    },
    "type": "object",
}


def coerced_there(value: Any, rule: dict[str, Any]) -> Any:
    return coerce_args({"a": value}, {**COLOURS, "properties": {"a": rule}})["a"]


@pytest.mark.parametrize(
    ("value", "rule", "expected"),
    [
        ("RED", {"$ref": "#/$defs/Colour"}, "red"),
        ("RED", {"$ref": "#/$defs/Colour", "default": "red"}, "red"),
        ("green", {"anyOf": [{"$ref": "#/$defs/Colour"}, {"type": "null"}]}, "Green"),
        ("green", {"allOf": [{"$ref": "#/$defs/Colour"}]}, "Green"),
        ("X", {"const": "x"}, "x"),
        ({"colour": "RED", "litres": "2"}, {"$ref": "#/$defs/Paint"}, {"colour": "red", "litres": 2}),
        ([{"colour": "RED"}], {"type": "array", "items": {"$ref": "#/$defs/Paint"}}, [{"colour": "red"}]),
        ({"x": "RED"}, {"type": "object", "additionalProperties": {"$ref": "#/$defs/Colour"}}, {"x": "red"}),
        ({"n": "1", "below": [{"n": "2"}]}, {"$ref": "#/$defs/Tree"}, {"n": 1, "below": [{"n": 2}]}),
        ({"colour": "red", "litres": None}, {"$ref": "#/$defs/Paint"}, {"colour": "red"}),
        ("5", {"$ref": "#/$defs/Many"}, 5),
    ],
)
def test_references_and_alternatives_are_followed(value: Any, rule: dict[str, Any], expected: Any) -> None:
    assert coerced_there(value, rule) == expected


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("b ", {"$ref": "#/$defs/Twins"}),
        ("RED", {"anyOf": [{"$ref": "#/$defs/Colour"}, {"type": "string"}]}),
        ("RED", {"anyOf": [{"$ref": "#/$defs/Colour"}, {"enum": ["Red"]}]}),
        ({"litres": "2"}, {"anyOf": [{"$ref": "#/$defs/Paint"}, {"$ref": "#/$defs/Tree"}]}),
        ("RED", {"$ref": "#/$defs/Circle"}),
        ("RED", {"$ref": "#/$defs/Nowhere"}),
        ("RED", {"$ref": "http://127.0.0.1:9/x.json"}),
        ("5", {"anyOf": [{}, {"type": "integer"}]}),
        ({"x": None}, {"type": "object", "additionalProperties": {"type": "integer"}}),
    ],
)
def test_what_stays_ambiguous_or_leads_nowhere_is_left_alone(value: Any, rule: dict[str, Any]) -> None:
    assert coerced_there(value, rule) == value


def test_twins_that_differ_in_case_only_stay_refused() -> None:
    assert coerced("aA", {"enum": ["AA", "aa"]}) == {"a": "aA"}


def test_a_value_is_corrected_to_a_bounded_depth() -> None:
    value: dict[str, Any] = {"n": "1"}
    for _ in range(200):
        value = {"below": [value]}
    assert coerced_there(value, {"$ref": "#/$defs/Tree"}) == value
