"""The schema of a GraphQL API, from a file, a text, or an introspection of its endpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLSchema,
    build_ast_schema,
    build_client_schema,
    get_introspection_query,
    parse,
)

from taoloop.errors import ToolSourceError
from taoloop.tools.graphql.settings import GraphqlSource
from taoloop.tools.openapi.document import MAX_BYTES, fetch, without_secrets
from taoloop.tools.settings_check import expand_home

_MAX_TOKENS = 2_000_000
_HINT = "Give a schema in SDL, or the JSON of an introspection."
_NO_INTROSPECTION = "Give the schema as a file: many servers answer no introspection, or only with a login."


def load_schema(source: GraphqlSource) -> GraphQLSchema:
    """The schema of a source.

    Raises:
        ToolSourceError: it cannot be read, fetched or parsed.
    """
    if not source.schema_file:
        return _client_schema(_introspect(source), without_secrets(source.endpoint))
    text, label = read_text(source.schema_file)
    if text.lstrip().startswith("{"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ToolSourceError(f"It is not JSON: {error}.", source=label, hint=_HINT) from None
        if isinstance(value, dict) and ("__schema" in value or "data" in value):
            return _client_schema(value, label)
        raise ToolSourceError("It is not the JSON of an introspection.", source=label, hint=_HINT)
    document = parse_text(text, label, no_location=True)
    try:
        return build_ast_schema(document, assume_valid=True, assume_valid_sdl=True)
    except (GraphQLError, TypeError, ValueError, RecursionError) as error:
        raise ToolSourceError(f"It is not a usable schema: {_reason(error)}", source=label, hint=_HINT) from None


def read_text(given: str) -> tuple[str, str]:
    """A text that is given, or that of the file which is named; and what errors call it.

    Raises:
        ToolSourceError: the file cannot be read, or is too large.
    """
    if "{" in given or "\n" in given:
        return given, f"the text {' '.join(given.split())[:40]!r}"
    path = expand_home(given)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ToolSourceError(f"It cannot be read: {reason}.", source=given[:200], hint=_HINT) from None
    if len(data) > MAX_BYTES:
        raise ToolSourceError(f"It is larger than {MAX_BYTES:,} bytes.", source=given)
    try:
        return data.decode("utf-8-sig"), Path(given).name
    except UnicodeDecodeError as error:
        raise ToolSourceError(f"It is not UTF-8 text (byte {error.start}).", source=given, hint=_HINT) from None


def parse_text(text: str, label: str, *, no_location: bool = False) -> DocumentNode:
    """A text in GraphQL's syntax, parsed. `no_location`: its nodes need not know where they are, which is faster.

    Raises:
        ToolSourceError: it is not; names the line.
    """
    try:
        return parse(text, no_location=no_location, max_tokens=_MAX_TOKENS)
    except GraphQLError as error:
        line = f"line {error.locations[0].line}" if error.locations else ""
        raise ToolSourceError(f"It is not GraphQL: {_reason(error)}", source=label, place=line, hint=_HINT) from None
    except RecursionError:
        raise ToolSourceError("It is nested too deeply.", source=label) from None


def _introspect(source: GraphqlSource) -> Any:
    label = without_secrets(source.endpoint)
    body = json.dumps({"query": get_introspection_query(input_value_deprecation=False)}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json", **source.headers}
    data = fetch(source.endpoint, label, source.egress, method="POST", headers=headers, body=body)
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise ToolSourceError("Its answer is not JSON.", source=label, hint=_NO_INTROSPECTION) from None


def _client_schema(value: Any, label: str) -> GraphQLSchema:
    """The schema of an introspection, which may still be in the `data` of an answer."""
    if isinstance(value, Mapping) and isinstance(value.get("data"), Mapping):
        value = value["data"]
    if not isinstance(value, Mapping) or not isinstance(value.get("__schema"), Mapping):
        errors = value.get("errors") if isinstance(value, Mapping) else None
        reason = f": {json.dumps(errors)[:200]}" if errors else ""
        raise ToolSourceError(f"It answers no introspection{reason}.", source=label, hint=_NO_INTROSPECTION)
    try:
        introspection: Any = {"__schema": value["__schema"]}
        return build_client_schema(introspection, assume_valid=True)
    except (GraphQLError, TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise ToolSourceError(f"It is not a usable schema: {_reason(error)}", source=label, hint=_HINT) from None


def _reason(error: Exception) -> str:
    text = " ".join(str(getattr(error, "message", error)).split())[:200]
    return text if text.endswith(".") else f"{text}."
