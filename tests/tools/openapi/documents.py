"""Small documents for the tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.openapi.document import fetch_document, parse_document
from taoloop.tools.openapi.operation import Operation
from taoloop.tools.openapi.operation_reader import OperationReader
from taoloop.tools.openapi.request import PreparedRequest
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


def read_operations(source: OpenapiSource) -> tuple[tuple[Operation, ...], tuple[LoadProblem, ...]]:
    """The selected operations of the document of a source, and its problems."""
    reader = OperationReader(parse_document(fetch_document(source)), source)
    operations = tuple(reader.operations())
    return operations, reader.problem_log.problems


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


def query_of(request: PreparedRequest) -> list[tuple[str, str]]:
    """The decoded names and values of the query of a request, in order."""
    return parse_qsl(request.url.partition("?")[2], keep_blank_values=True)
