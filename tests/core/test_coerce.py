from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taoloop.core.coerce import coerce_args


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
    """S0-11: the schema says what is wrong with it."""
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
