"""Small documents for the tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.openapi.document.operation import Operation
from taoloop.tools.openapi.document.operation_reader import read_operations
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import LoadProblem


def document(paths: Mapping[str, Any], **more: Any) -> str:
    """The text of an OpenAPI 3.1 document."""
    return json.dumps(
        {
            "openapi": "3.1.0",
            "info": {"title": "Test", "version": "1"},
            "servers": [{"url": "https://api.example.com/v1"}],
            "paths": paths,
            **more,
        }
    )


def one(operation: Mapping[str, Any], *, path: str = "/things", method: str = "get", **more: Any) -> str:
    """A document with one operation, `do_it`."""
    return document({path: {method: {"operationId": "do_it", **operation}}}, **more)


def body(schema: Any, media_type: str = "application/json", **more: Any) -> dict[str, Any]:
    """A request body that is required."""
    return {"requestBody": {"required": True, "content": {media_type: {"schema": schema}}, **more}}


def query(name: str, schema: Any = None, **more: Any) -> dict[str, Any]:
    """A query parameter."""
    return {"name": name, "in": "query", "schema": {"type": "string"} if schema is None else schema, **more}


def read(text: str, **settings: Any) -> tuple[tuple[Operation, ...], tuple[LoadProblem, ...]]:
    """The operations of a document and its problems."""
    return read_operations(OpenapiSource(document=text, cache=False, **settings))


def only(text: str, **settings: Any) -> Operation:
    """The operation of a document that has one and no problem."""
    operations, problems = read(text, **settings)
    assert not problems, [str(problem) for problem in problems]
    (operation,) = operations
    return operation


def tools(text: str, **settings: Any) -> dict[str, Tool]:
    """The tools of a document by name."""
    return {tool.name: tool for tool in openapi_tools(OpenapiSource(document=text, cache=False, **settings)).tools}


def tool(text: str, **settings: Any) -> Tool:
    """The tool of a document that has one."""
    (made,) = tools(text, **settings).values()
    return made
