"""Whatever a model builds from the card that it sees fits the schema that judges it."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.sizes import examples
from tests.tools.openapi.argument_samples import ArgumentSampler
from tests.tools.openapi.documents import body, one, tools
from tests.tools.openapi.test_documents import OPERATIONS

from taoloop.errors import InvalidArguments
from taoloop.tools.json_schema import compile_schema, findings
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.tool import Tool

SHARES = (0.0, 0.0, 0.5, 1.0)
"""How many of the optional arguments a sample has."""


def judge_samples(made: Tool) -> tuple[int, list[str]]:
    """How many samples fit what the card shows, and what the judge refuses of these."""
    shown = compile_schema(made.card.input_schema, made.name)
    fitting, refused = 0, []
    for (seed, share), with_noted in product(enumerate(SHARES), (False, True)):
        args = ArgumentSampler(made.card.input_schema, seed, with_noted=with_noted).arguments(share)
        if findings(shown, args):
            continue
        fitting += not with_noted
        try:
            made.prepare(args)
        except InvalidArguments as error:
            refused.append(error.message)
    return fitting, refused


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly if OPERATIONS[name] > 200 else ()) for name in OPERATIONS]
)
def test_arguments_from_the_cards_of_real_documents_fit(shared: Path, name: str) -> None:
    source = OpenapiSource(document=str(shared / "openapi" / name), include_deprecated=True, cache=False)
    total = 0
    for made in openapi_tools(source).tools:
        fitting, refused = judge_samples(made)
        assert not refused, (made.name, refused)
        assert fitting, made.name
        total += fitting
    assert total >= 0.95 * len(SHARES) * OPERATIONS[name]


REFERENCES = st.sampled_from([{"$ref": f"#/components/schemas/{name}"} for name in ("Pet", "Tree")])
LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "format": "date", "nullable": True},
        {"type": "string", "format": "uuid"},
        {"type": ["integer", "null"], "minimum": 1, "exclusiveMaximum": 9},
        {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
        {"type": "number", "multipleOf": 0.5},
        {"type": "string", "enum": ["a", "b", None], "nullable": True},
        {"type": "string", "pattern": "^[A-Z]{2}-\\d+$"},
        {"type": "boolean", "readOnly": True},
        {"type": "string", "enum": [f"option-{number:03}" for number in range(90)]},
    ]
)
NAMES = st.sampled_from(["id", "name", "kind", "x y", "größe"])


def _compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, min_size=1, max_size=4)},
        optional={
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": st.booleans() | inner,
            "description": st.just("what it is for, in some words " * 5),
            "nullable": st.booleans(),
        },
    )
    lists = st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional={"minItems": st.just(1)})
    parts = st.lists(inner | REFERENCES, min_size=1, max_size=3)
    return objects | lists | st.fixed_dictionaries({"allOf": parts}) | _choices(parts)


def _choices(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    kinds = st.just({"propertyName": "kind", "mapping": {"pet": "#/components/schemas/Pet"}})
    return st.fixed_dictionaries({"oneOf": parts}, optional={"discriminator": kinds}) | st.fixed_dictionaries(
        {"anyOf": parts}
    )


SCHEMAS = st.recursive(LEAVES | REFERENCES, _compound, max_leaves=12)


@given(schema=SCHEMAS, pet=SCHEMAS, max_bytes=st.sampled_from([500, 1_000, 8_000]))
@examples(300)
def test_arguments_from_the_cards_of_any_document_fit(schema: Any, pet: Any, max_bytes: int) -> None:
    tree = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}},
            "pet": {"$ref": "#/components/schemas/Pet"},
        },
    }
    wrapped = {"type": "object", "properties": {"it": pet}}
    text = one(body(schema), method="post", components={"schemas": {"Tree": tree, "Pet": wrapped}})
    for made in tools(text, max_card_bytes=max_bytes).values():
        _, refused = judge_samples(made)
        assert not refused


def test_arguments_of_swagger_2_fit() -> None:
    text = """{"swagger": "2.0", "info": {}, "host": "a.example", "paths": {"/a": {"post": {"parameters": [
        {"name": "ids", "in": "query", "type": "array", "collectionFormat": "multi", "items": {"type": "integer"}},
        {"name": "day", "in": "formData", "type": "string", "format": "date", "x-nullable": true, "required": true},
        {"name": "photo", "in": "formData", "type": "file"}]}}}}"""
    (made,) = tools(text).values()
    assert judge_samples(made) == (len(SHARES), [])
