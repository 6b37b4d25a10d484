"""A GraphQL API as tools: its schema is loaded, each operation gets a card, and what cannot be used is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from taoloop.core.cards.tool_card import ErrorCard, Tier, ToolCard
from taoloop.errors import MissingExtra, ToolDefinitionError
from taoloop.tools.graphql.settings import GraphqlSource
from taoloop.tools.json_schema import compile_schema
from taoloop.tools.openapi.document import plain_text, shorten
from taoloop.tools.openapi.names import tool_name
from taoloop.tools.openapi.operation_call import CONTEXT, ApiClient, argument_checker
from taoloop.tools.openapi.settings import OpenapiSource
from taoloop.tools.openapi.truncation import truncate_schema
from taoloop.tools.tool import Tool, require_name
from taoloop.tools.toolbox import LoadProblem, LoadResult

if TYPE_CHECKING:
    from taoloop.tools.graphql.input_types import InputTypes
    from taoloop.tools.graphql.operations import GraphqlOperation

_MAX_PURPOSE = 600
_ERRORS = (ErrorCard(code="graphql_error", advice="Read its message: the API says there what was wrong."),)
_LARGE_SCHEMA = 200
"""From this many components on a schema is judged when it is loaded, because it may exceed what is judged at all."""


def graphql_tools(source: GraphqlSource) -> LoadResult:
    """The operations of a GraphQL API as tools, and what could not be used.

    Raises:
        MissingExtra: the package for GraphQL is not installed.
        ToolSourceError: the schema, or a document, cannot be read or fetched.
        ConfigError: `login` says too little.
    """
    try:
        import graphql  # noqa: PLC0415,F401  # optional
    except ImportError as error:
        raise MissingExtra(
            "graphql-core, which reads GraphQL schemas, is not installed: pip install 'taoloop[graphql]'."
        ) from error
    from taoloop.tools.graphql.input_types import InputTypes  # noqa: PLC0415  # needs the package
    from taoloop.tools.graphql.operations import matches, read_operations  # noqa: PLC0415  # as above
    from taoloop.tools.graphql.schema import load_schema  # noqa: PLC0415  # as above

    result = read_operations(source, load_schema(source))
    names = [operation.name for operation in result.operations]
    for setting in ("operations", "approval", "tiers", "select"):
        for entry in getattr(source, setting):
            if not any(matches(source, name, entry) for name in names):
                result.leave_out(source.endpoint, setting, f"No operation matches {entry[:80]!r}.")
    api, types = _client(source), InputTypes()
    tools: dict[str, Tool] = {}
    for operation in result.operations:
        try:
            tool = _make_tool(operation, source, api, types, tools, listed=len(names) <= source.search_above)
        except ToolDefinitionError as error:
            result.problems.append(
                LoadProblem(source=source.endpoint, place=operation.name, message=f"It is omitted. {error.message}")
            )
            continue
        tools[tool.name] = tool
    return LoadResult(tools=tuple(tools.values()), problems=tuple(result.problems))


def _client(source: GraphqlSource) -> ApiClient:
    """The client for the endpoint, with the login of people."""
    from taoloop.tools.graphql.operation_call import LOGIN_SCHEME, endpoint_operation  # noqa: PLC0415  # as above

    api = ApiClient(
        OpenapiSource(
            document="{}",
            name=source.name,
            base_url=source.endpoint,
            headers=source.headers,
            auth={LOGIN_SCHEME: {**source.login, "grant": "authorization_code"}} if source.login else {},
            token_file=source.token_file,
            token_store=source.token_store,
            timeout_s=source.timeout_s,
            retries=source.retries,
            egress=source.egress,
            hide_server=source.hide_server,
        )
    )
    api.logins.read([endpoint_operation("login", source.endpoint, source.login)])
    return api


def _make_tool(
    operation: GraphqlOperation,
    source: GraphqlSource,
    api: ApiClient,
    types: InputTypes,
    used: dict[str, Tool],
    *,
    listed: bool,
) -> Tool:
    """The tool of one operation.

    Raises:
        ToolDefinitionError: its name, or the schema of its variables, cannot be used.
    """
    from taoloop.tools.graphql.operation_call import GraphqlCaller, endpoint_operation  # noqa: PLC0415  # as above

    name = tool_name(operation.name, operation.kind, operation.name, prefix=source.name, used=used)
    schema = types.schema_of(operation.variables)
    if len(schema.get("$defs", ())) > _LARGE_SCHEMA:
        compile_schema(schema, f"The input schema of {name!r}", ToolDefinitionError)
    shown, widened = truncate_schema(schema, source.max_card_bytes)
    if widened:  # nothing is required of them that is not shown
        rules = {name: shown["properties"][name] for name in widened}
        schema = {**schema, "properties": {**schema["properties"], **rules}}
    card = ToolCard(
        name=require_name(name),
        purpose=_purpose(operation),
        avoid_when=f"It is deprecated. {shorten(plain_text(operation.deprecated), 200)}"
        if operation.deprecated
        else "",
        input_schema=shown,
        tier=(tier := _tier(operation, source)),
        approval="required" if _first_match(source, operation.name, source.approval) is not None else None,
        timeout_s=source.timeout_s,
        egress=False if tier == "read" else None,
        reversible=None if tier == "read" else False,
        errors=_ERRORS,
        described_by="third_party" if not source.documents else "operator",
        listed=listed,
    )
    whole_card = replace(card, input_schema=schema)
    endpoint = endpoint_operation(name, source.endpoint, source.login)
    return Tool(
        card=card,
        whole_schema=schema if shown is not schema else None,
        keywords=" ".join((operation.kind, *operation.fields, operation.returns)),
        handler=GraphqlCaller(endpoint, whole_card, api, text=operation.text, operation_name=operation.name),
        check=argument_checker(whole_card, {}),
        context_parameter=CONTEXT,
        is_async=True,
        secrets=api.secrets,
        login=api.logins.first_of(endpoint),
    )


def _purpose(operation: GraphqlOperation) -> str:
    text = shorten(plain_text(operation.description), _MAX_PURPOSE)
    if not text:
        text = f"{operation.kind.capitalize()} {operation.name}."
    elif text[-1] not in ".!?。！？…":
        text += "."
    return f"{text} Returns {operation.returns}." if operation.returns else text


def _tier(operation: GraphqlOperation, source: GraphqlSource) -> Tier:
    """The tier that the operator declares, else that of queries or mutations."""
    entry = _first_match(source, operation.name, source.tiers)
    return source.tiers[entry] if entry is not None else "read" if operation.kind == "query" else "write"


def _first_match(source: GraphqlSource, name: str, entries: Iterable[str]) -> str | None:
    """The most specific entry that names an operation: its name, else the longest pattern; None: none."""
    from taoloop.tools.graphql.operations import matches  # noqa: PLC0415  # as above

    matching = [entry for entry in entries if matches(source, name, entry)]
    return max(matching, key=lambda entry: (entry == name, len(entry)), default=None)
