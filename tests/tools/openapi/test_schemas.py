"""Schemas of every version, and of none, become JSON Schema 2020-12 that judges as their authors meant."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.sizes import examples
from tests.tools.openapi.documents import body, one, tool

from taoloop.core.handles import schema_signature
from taoloop.errors import InvalidArguments
from taoloop.tools.json_schema import compile_schema, findings
from taoloop.tools.openapi.document import OpenapiDocument, SourceBytes
from taoloop.tools.openapi.references import References
from taoloop.tools.openapi.schemas import Components, standalone_schema


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": ["string", "null"], "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "x-nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"enum": ["a"], "nullable": True}, {"enum": ["a", None]}),
        ({"nullable": True}, {}),
        (
            {"allOf": [{"type": "string"}], "nullable": True},
            {"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]},
        ),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        ({"exclusiveMinimum": 3}, {"exclusiveMinimum": 3}),
        ({"type": "string", "required": True}, {"type": "string"}),
        ({"required": ["a", "a", 5]}, {"required": ["a"]}),
        ({"required": []}, {}),
        ({"type": "file"}, {"type": "string", "format": "binary"}),
        ({"type": "string", "contentMediaType": "application/octet-stream"}, {"type": "string", "format": "binary"}),
        ({"type": "integer", "format": "int64"}, {"type": "integer"}),
        ({"type": "dict"}, {"type": "object"}),
        ({"type": "float"}, {"type": "number"}),
        ({"type": "any"}, {}),
        ({"type": ""}, {}),
        ({"type": ["integer", "number"]}, {"type": "number"}),
        ({"type": ["string", None]}, {"type": ["string", "null"]}),
        ({"properties": {"a": {"type": "string"}}}, {"type": "object", "properties": {"a": {"type": "string"}}}),
        ({"properties": None, "items": 5, "allOf": {}}, {}),
        ({"type": "string", "enum": [1, True, "a", "a"]}, {"type": "string", "enum": ["1", "true", "a"]}),
        ({"type": "integer", "enum": ["1", "2"]}, {"type": "integer", "enum": [1, 2]}),
        ({"enum": []}, {}),
        (
            {"minimum": "3", "maxLength": "x", "minLength": -1, "maxItems": 2.0, "multipleOf": 0},
            {"minimum": 3, "maxItems": 2},
        ),
        (
            {"items": [{"type": "string"}], "additionalItems": False},
            {"prefixItems": [{"type": "string"}], "items": False},
        ),
        ({"type": "string", "pattern": "("}, {"type": "string"}),
        ({"type": "string", "pattern": "^(?!a)b$"}, {"type": "string", "pattern": "^(?!a)b$"}),
        ({"type": "string", "example": "00012345"}, {"type": "string", "examples": ["00012345"]}),
        ({"type": "string", "example": 12345}, {"type": "string", "examples": ["12345"]}),
        ({"type": "string", "default": None}, {"type": "string"}),
        ({"xml": {}, "externalDocs": {}, "title": "T", "x-more": 1, "$comment": "c", "$anchor": "a", "$id": "i"}, {}),
        ({"description": "A <b>bold</b> [word](https://x) \n **now**"}, {"description": "A bold word now"}),
        (
            {"oneOf": [True], "discriminator": {"propertyName": "kind"}},
            {"anyOf": [True], "description": "'kind' determines which one it is."},
        ),
        (
            {"oneOf": [True], "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/c", "dog": "#/d"}}},
            {"anyOf": [True], "description": "'kind' determines which one it is: cat, dog."},
        ),
    ],
)
def test_an_old_or_wrong_form_becomes_what_is_meant(told: dict[str, Any], meant: dict[str, Any]) -> None:
    assert standalone_schema(told) == meant


def test_a_list_in_place_of_a_schema_means_alternatives() -> None:
    assert standalone_schema({"items": [], "properties": {"a": [{"type": "string"}, {"type": "null"}]}})[
        "properties"
    ] == {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}


def test_what_names_a_property_is_no_keyword() -> None:
    names = ("type", "enum", "required", "properties", "nullable", "items", "$ref", "readOnly", "example")
    told = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": list(names)}
    assert standalone_schema(told) == told


def test_a_long_description_ends_at_a_sentence() -> None:
    told = standalone_schema({"description": "One sentence here. " * 60})["description"]
    assert len(told) <= 500
    assert told.endswith("here.")


KEYWORDS = (
    *("type", "nullable", "properties", "items", "required", "enum", "allOf", "anyOf", "$ref", "minimum", "pattern"),
    *("exclusiveMinimum", "format", "default", "not", "additionalProperties", "const", "patternProperties", "$defs"),
    *("minLength", "multipleOf", "prefixItems", "dependentRequired", "examples", "a b"),
)
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-1, 1)
    | st.sampled_from(["", "string", "a", "#/x", "("]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYWORDS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(JUNK)
@examples(400)
def test_whatever_stands_there_becomes_a_valid_schema(junk: Any) -> None:
    made = standalone_schema({"properties": {"it": junk}})
    findings(compile_schema(made, "it"), {"it": None})


@pytest.mark.parametrize("names", [("not", "items", "contains"), ("contains", "items", "not")])
def test_nested_keywords_keep_the_order_of_the_document(names: tuple[str, ...]) -> None:
    assert tuple(standalone_schema({name: {"type": "string"} for name in names})) == names


SERVER_SET = {"id": {"type": "string", "readOnly": True}, "name": {"type": "string"}}
ADDRESSED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    # `required` beside an `allOf` whose part says that only the server sets it
    ({"allOf": [{"$ref": "#/components/schemas/Pet"}], "required": ["id", "name"]}, {"name": "Tom"}),
    # in two parts of an `allOf`, in either order
    ({"allOf": [{"required": ["id", "name"]}, {"$ref": "#/components/schemas/Pet"}]}, {"name": "Tom"}),
    ({"allOf": [{"$ref": "#/components/schemas/Needs"}, {"$ref": "#/components/schemas/Pet"}]}, {"name": "Tom"}),
    ({"allOf": [{"$ref": "#/components/schemas/Pet"}, {"allOf": [{"$ref": "#/components/schemas/Needs"}]}]}, {}),
    # beside a reference, which counts in 3.1
    ({"$ref": "#/components/schemas/Pet", "required": ["id"]}, {}),
    # an alternative of the same value requires it
    ({"properties": SERVER_SET, "anyOf": [{"required": ["id"]}, {"required": ["name"]}]}, {}),
    # the schema of the property says so, not the property
    ({"properties": {"id": {"$ref": "#/components/schemas/Id"}, "name": {}}, "required": ["id"]}, {"name": "x"}),
    # a part defines it and another one marks it
    ({"allOf": [{"$ref": "#/components/schemas/Needs"}, {"properties": {"id": {"readOnly": True}}}]}, {}),
]


@pytest.mark.parametrize(("schema", "args"), ADDRESSED)
def test_what_only_the_server_sets_is_not_demanded_wherever_it_is_required(
    schema: dict[str, Any], args: dict[str, Any]
) -> None:
    schemas = {
        "Pet": {"type": "object", "properties": SERVER_SET},
        "Needs": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        "Id": {"type": "string", "readOnly": True},
    }
    nested = {"type": "object", "properties": {"pet": schema}, "required": ["pet"]}
    text = one(body(nested), method="post", components={"schemas": schemas})
    made = tool(text)
    made.prepare({"pet": args})
    assert '"id"' not in json.dumps(made.card.input_schema)


def test_a_part_that_another_schema_also_uses_still_demands_what_is_hidden_only_here() -> None:
    schemas = {
        "Pet": {"type": "object", "properties": SERVER_SET},
        "Needs": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    }
    both = {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"$ref": "#/components/schemas/Needs"}]}
    schema = {"type": "object", "properties": {"new": both, "known": {"$ref": "#/components/schemas/Needs"}}}
    made = tool(one(body(schema), method="post", components={"schemas": schemas}))
    made.prepare({"new": {}, "known": {"id": "7"}})
    with pytest.raises(InvalidArguments, match="id"):
        made.prepare({"known": {}})


def test_a_component_of_a_response_is_only_read_when_it_is_looked_up() -> None:
    schemas = {"A": {"properties": {"b": {"$ref": "#/components/schemas/B"}}}, "B": {"$ref": "#/gone"}}
    root = {"openapi": "3.1.0", "components": {"schemas": schemas}}
    origin = SourceBytes(data=b"", uri="file:///a", label="a")
    problems: list[str] = []
    references = References(OpenapiDocument(root=root, version="3.1", origin=origin))
    components = Components(references, problems.append, siblings_count=True, request=False)
    schema = components.read_lazily({"$ref": "#/components/schemas/A"}, "file:///a")
    assert not problems
    assert schema_signature(schema) == '{"b": …}'
    assert schema["$defs"]["A"]["properties"] == {"b": {"$ref": "#/$defs/B"}}
    assert len(problems) == 1
    assert schema["$defs"].get("C") is None
