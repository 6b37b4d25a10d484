"""Whatever fits the schema that is shown fits the one that judges, and the shown one keeps to its room."""

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
def test_whatever_fits_what_is_shown_fits_the_judge(
    properties: dict[str, Any], one: Any, two: Any, value: Any, room: int
) -> None:
    whole = {"type": "object", "properties": properties, "$defs": {"One": one, "Two": two}}
    shown, widened = truncate_schema(whole, room)
    args = {"a": value, "b": value, "c": value}
    if not findings(compile_schema(shown, "what is shown"), args):
        judged = {name: rule for name, rule in properties.items() if name not in widened}
        assert findings(compile_schema({**whole, "properties": judged}, "the whole"), args) == []


def test_a_schema_that_fits_is_shown_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert truncate_schema(schema, 500).schema is schema


def _deep(levels: int) -> dict[str, Any]:
    rule: dict[str, Any] = {"type": "string", "description": "the end of it"}
    for level in range(levels):
        rule = {"type": "object", "properties": {f"level_{level}": rule, "other": {"type": "integer"}}}
    return {"type": "object", "properties": {"top": rule}, "required": ["top"], "additionalProperties": False}


@pytest.mark.parametrize("room", [300, 600, 900])
def test_deep_levels_are_cut_and_said_to_be(room: int) -> None:
    shown = truncate_schema(_deep(30), room).schema
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
    shown = truncate_schema(whole, 700).schema
    assert "$defs" not in shown
    assert shown["properties"]["tree"]["properties"]["name"] == {"type": "string"}


def test_every_argument_is_named_however_little_room_there_is() -> None:
    whole = {"type": "object", "properties": {f"argument_{n}": {"type": "string", "enum": ["a"]} for n in range(200)}}
    assert set(truncate_schema(whole, 100).schema["properties"]) == set(whole["properties"])


def test_a_long_list_of_options_becomes_a_word_on_them() -> None:
    options = [f"option-{n:03}" for n in range(300)]
    whole = {"type": "object", "properties": {"kind": {"type": "string", "enum": options}}}
    shown = truncate_schema(whole, 400).schema["properties"]["kind"]
    assert shown["enum"] == options[:40]
    assert shown["description"] == "(260 more options; only part is shown)"


def test_required_fields_are_shown_however_deep_and_optional_ones_are_named() -> None:
    inner = {"type": "object", "properties": {"city": {"type": "string"}, "note": {}}, "required": ["city"]}
    address = {"type": "object", "properties": {"lines": {"type": "array", "items": inner}}, "required": ["lines"]}
    rule = {
        "type": "object",
        "properties": {"address": address, "filler": {"enum": ["x" * 900]}},
        "required": ["address"],
    }
    whole = {"type": "object", "properties": {"order": {"type": "object", "properties": {"it": rule}}}}
    shown = truncate_schema(whole, 500).schema["properties"]["order"]["properties"]["it"]
    lines = shown["properties"]["address"]["properties"]["lines"]["items"]
    assert lines["required"] == ["city"]
    assert lines["properties"] == {"city": {"type": "string"}}
    assert lines["description"] == "(more fields: note; only part is shown)"


def test_an_argument_whose_required_fields_do_not_fit_is_widened_and_told() -> None:
    fields = {f"field_{number}": {"type": "string", "enum": ["x" * 90]} for number in range(100)}
    rule = {"type": "object", "properties": fields, "required": list(fields)}
    shown, widened = truncate_schema({"type": "object", "properties": {"a": rule, "b": {"type": "integer"}}}, 500)
    assert widened == {"a"}
    assert shown["properties"]["a"]["type"] == "object"
    assert shown["properties"]["b"] == {"type": "integer"}


_CLOSING = {
    "union": ({"anyOf": [{"properties": {"kind": {"const": 1}, "it": {"type": "integer"}}}, {"type": "null"}]}, False),
    "map": ({"properties": {"it": {"type": "integer"}}, "additionalProperties": {"type": "string"}}, True),
    "parts": (
        {"allOf": [{"properties": {"it": {"type": "integer"}}}, {"properties": {"bb": {}}, "required": ["bb"]}]},
        True,
    ),
    "named": ({"properties": {"it": {"type": "integer"}}, "propertyNames": {"minLength": 2}}, True),
    "pattern": ({"properties": {"it": {"type": "integer"}}, "patternProperties": {"^i": {}}}, True),
}


@pytest.mark.parametrize("name", _CLOSING)
def test_a_field_that_is_left_out_does_not_fit_what_is_shown(name: str) -> None:
    rule, keeps_others = _CLOSING[name]
    inner = {"type": "object", "properties": {"it": rule}, "required": ["it"]}
    inner = {"type": "object", "properties": {"x": inner}, "required": ["x"]}
    properties = {"a": inner, "filler": {"enum": ["x" * 900]}}
    whole = {"type": "object", "properties": {"top": {"type": "object", "properties": properties, "required": ["a"]}}}
    shown = truncate_schema(whole, 450).schema
    assert "more fields: " in json.dumps(shown["properties"]["top"]["properties"]["a"])
    judge = compile_schema(shown, "what is shown")

    def fits(value: Any) -> bool:
        return not findings(judge, {"top": {"a": {"x": {"it": value}}}})

    assert fits({"bb": "text"} if name == "parts" else {})
    assert not fits({"it": "no number", "bb": "text"})
    assert fits({"other": "text", "bb": "text"}) is keeps_others


def test_a_field_of_another_alternative_is_not_taken_for_one_that_is_left_out() -> None:
    """Discord: the components of a modal are shown, those of a message are left out."""
    answers = []
    for kind, item, required in (("message", "string", []), ("modal", "integer", ["components"])):
        data = {
            "type": "object",
            "properties": {"components": {"type": "array", "items": {"type": item}}, "note": {"enum": ["x" * 400]}},
            "required": required,
        }
        properties = {"kind": {"const": kind}, "data": {"anyOf": [{"type": "null"}, data]}}
        answers.append({"type": "object", "properties": properties, "required": ["kind", "data"]})
    whole = {"type": "object", "properties": {"body": {"anyOf": answers}}}
    shown = truncate_schema(whole, 900).schema
    value = {"body": {"kind": "message", "data": {"components": [1]}}}
    assert '"items"' in json.dumps(shown)
    assert findings(compile_schema(whole, "the whole"), value)
    assert findings(compile_schema(shown, "what is shown"), value)
