"""Schemas that refer to themselves are read to a bounded depth."""

from __future__ import annotations

from typing import Any

import pytest
from taoloop.models.offline.schema import params

from taoloop.core.cards.tool_card import ToolCard

NODE = {"type": "object", "properties": {f"p{n}": {"$ref": "#/$defs/node"} for n in range(30)}}
LIST = {"items": {"$ref": "#/$defs/node"}}
MANY = {"anyOf": [{"$ref": "#/$defs/node"}] * 20}


@pytest.mark.parametrize("definition", [NODE, LIST, MANY])
def test_a_schema_that_refers_to_itself_ends(definition: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/node"}}, "$defs": {"node": definition}}
    assert [param.name for param in params(ToolCard(name="x", purpose="p", input_schema=schema))] == ["a"]
