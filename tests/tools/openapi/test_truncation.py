"""The schema that is shown takes whatever the one that judges takes, and keeps to its room."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.sizes import examples

from taoloop.tools.json_schema import compile_schema, findings
from taoloop.tools.openapi.truncation import truncate_schema

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from(["", "x", "yy"]))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
LEAVES = st.one_of(
    st.just(True),
    st.sampled_from([{"type": kind} for kind in ("string", "integer", "object", "array", "null")]),
    st.lists(SCALARS, min_size=1, max_size=3).map(lambda options: {"enum": options}),
    st.sampled_from([{"$ref": "#/$defs/One"}, {"$ref": "#/$defs/Two", "description": "d" * 50}]),
    st.sampled_from([{"minLength": 1, "pattern": "x"}, {"minimum": 0}, {"maxItems": 1, "uniqueItems": True}]),
)


def _compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    parts = st.lists(inner, min_size=1, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, max_size=1),
            "additionalProperties": inner | st.just(False),
            "items": inner,
            "prefixItems": parts,
            "allOf": parts,
            "anyOf": parts,
            "oneOf": parts,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "contains": inner,
            "maxContains": st.just(1),
            "unevaluatedProperties": st.just(False),
            "description": st.just("what it is for, in some words"),
        },
    )


SCHEMAS = st.recursive(LEAVES, _compound, max_leaves=8)


@given(
    properties=st.dictionaries(NAMES, SCHEMAS, min_size=1),
    one=SCHEMAS,
    two=SCHEMAS,
    value=VALUES,
    room=st.integers(1, 400),
)
@examples(400)
def test_whatever_the_judge_takes_fits_what_is_shown(
    properties: dict[str, Any], one: Any, two: Any, value: Any, room: int
) -> None:
    whole = {"type": "object", "properties": properties, "$defs": {"One": one, "Two": two}}
    shown = compile_schema(truncate_schema(whole, room), "what is shown")
    args = {"a": value, "b": value, "c": value}
    if not findings(compile_schema(whole, "the whole"), args):
        assert findings(shown, args) == []


def test_a_schema_that_fits_is_shown_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert truncate_schema(schema, 500) is schema


def _deep(levels: int) -> dict[str, Any]:
    rule: dict[str, Any] = {"type": "string", "description": "the end of it"}
    for level in range(levels):
        rule = {"type": "object", "properties": {f"level_{level}": rule, "other": {"type": "integer"}}}
    return {"type": "object", "properties": {"top": rule}, "required": ["top"], "additionalProperties": False}


@pytest.mark.parametrize("room", [300, 600, 900])
def test_deep_levels_are_cut_and_said_to_be(room: int) -> None:
    shown = truncate_schema(_deep(30), room)
    text = json.dumps(shown)
    assert len(text) <= room * 1.1
    assert "only part is shown" in text
    assert shown["required"] == ["top"]


def test_a_schema_that_contains_itself_ends() -> None:
    tree = {"type": "object", "properties": {"name": {"type": "string"}, "children": {"$ref": "#/$defs/Trees"}}}
    whole = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree"}, "filler": {"description": "x" * 900}},
        "$defs": {"Tree": tree, "Trees": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
    }
    shown = truncate_schema(whole, 700)
    assert "$defs" not in shown
    assert shown["properties"]["tree"]["properties"]["name"] == {"type": "string"}


def test_every_argument_is_named_however_little_room_there_is() -> None:
    whole = {"type": "object", "properties": {f"argument_{n}": {"type": "string", "enum": ["a"]} for n in range(200)}}
    assert set(truncate_schema(whole, 100)["properties"]) == set(whole["properties"])


def test_a_long_list_of_options_becomes_a_word_on_them() -> None:
    options = [f"option-{n:03}" for n in range(300)]
    whole = {"type": "object", "properties": {"kind": {"type": "string", "enum": options}}}
    shown = truncate_schema(whole, 400)["properties"]["kind"]
    assert "enum" not in shown
    assert shown["description"].startswith("One of 300: option-000")
