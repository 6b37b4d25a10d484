"""The real documents: every operation becomes a valid tool that providers take."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from taoloop.dialects.prompt import describe
from taoloop.models.http.reply_builder import ToolNameMap
from taoloop.tools.json_schema import compile_schema
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.openapi.load import load_or_build_plan

OPERATIONS = {
    "discord-3.1.json": 242,
    "figma.yaml": 47,
    "higress-amap-3.1.yaml": 2,
    "higress-deepl-3.1.yaml": 1,
    "higress-xzweather-3.1.yaml": 1,
    "link-example-3.0.yaml": 6,
    "museum-3.1.yaml": 8,
    "openai-3.1.yaml": 288,
    "petstore-3.0.yaml": 19,
    "qdrant-3.0.json": 69,
    "realworld-3.yml": 19,
    "slack-web-2.0.json": 174,
    "twilio-api-3.0.json": 197,
    "uspto-3.0.yaml": 3,
    "weaviate-2.0.json": 123,
    "xkcd-3.0.yaml": 2,
}
NO_SERVER = ("link-example-3.0.yaml", "weaviate-2.0.json")
PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def properties(schema: Any) -> set[str]:
    """The names of all properties that a schema tells of."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        rule = waiting.pop()
        if isinstance(rule, dict):
            for key, value in rule.items():
                if key in ("properties", "$defs"):
                    found |= set(value)
                    waiting += value.values()
                elif key not in ("enum", "const", "default", "examples"):
                    waiting.append(value)
        elif isinstance(rule, list):
            waiting += rule
    return found


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_makes_a_valid_tool(shared: Path, name: str) -> None:
    source = OpenapiSource(document=str(shared / "openapi" / name), include_deprecated=True, cache=False)
    loaded = openapi_tools(source)
    assert len(loaded.tools) == OPERATIONS[name]
    assert len(loaded.problems) == (name in NO_SERVER)
    names = [one.name for one in loaded.tools]
    assert len(set(names)) == len(names)
    wire = ToolNameMap(names)
    for made in loaded.tools:
        schema = json.loads(json.dumps(made.card.input_schema))
        compile_schema(schema, made.name)
        compile_schema(made.whole_schema or schema, made.name)
        assert wire.outgoing(made.name) == made.name  # the form that OpenAI takes, unchanged
        assert schema["type"] == "object"
        assert not schema.keys() & {"oneOf", "anyOf", "allOf", "enum", "not"}
        assert all(PROPERTY.fullmatch(one) for one in properties(schema))
        assert 0 < len(describe(made.card)) <= 1_024
        assert made.card.tier is not None
        assert len(json.dumps(schema)) < 16_000
        for example in made.card.examples:
            made.prepare(dict(example.args))


def test_the_largest_document_is_the_same_from_the_cache(shared: Path, tmp_path: Path) -> None:
    document = str(shared / "openapi" / "openai-3.1.yaml")
    source = OpenapiSource(document=document, cache_folder=str(tmp_path))
    first = load_or_build_plan(source)
    assert len(list(tmp_path.iterdir())) == 1
    assert load_or_build_plan(source) == first


def test_names_that_providers_refuse_are_changed_and_sent_as_they_were(shared: Path) -> None:
    source = OpenapiSource(document=str(shared / "openapi" / "weaviate-2.0.json"), include_deprecated=True, cache=False)
    names = {one.operation.operation_id: one.card.name for one in load_or_build_plan(source).tools}
    assert names["objects.class.get"] == "objects_class_get"
    source = OpenapiSource(
        document=str(shared / "openapi" / "twilio-api-3.0.json"), operations=("ListCall",), cache=False
    )
    (planned,) = load_or_build_plan(source).tools
    names = {one.arg: one.name for one in planned.operation.parameters}
    assert (names["StartTime_lt"], names["StartTime_gt"]) == ("StartTime<", "StartTime>")


def test_a_secret_takes_a_parameter_out_of_every_card(shared: Path) -> None:
    source = OpenapiSource(
        document=str(shared / "openapi" / "slack-web-2.0.json"), secrets={"token": "xoxb-1"}, cache=False
    )
    assert not any("token" in one.card.parameters for one in openapi_tools(source).tools)
