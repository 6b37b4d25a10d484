"""A server's tools, resources and prompts as tools: those of its definitions that were approved, and what they return.

Of a result text stays text; anything else is JSON, with what is binary as base64.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from operator import methodcaller
from typing import TYPE_CHECKING, Any, TypeVar

from taoloop.core.attachments.files import File
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.images import Image
from taoloop.core.redaction.redactor import Redactor
from taoloop.errors import ConfigError, FileError, ImageError, McpFailed, MissingExtra, TaoError, ToolDefinitionError
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.json_schema import Validator, compile_schema, findings, listed
from taoloop.tools.mcp.cards import Definition, SchemaError, card_of, error_cards, model_tool_names
from taoloop.tools.mcp.loop_thread import use_connection, use_connection_sync
from taoloop.tools.mcp.pins import Change, Pins
from taoloop.tools.mcp.settings import McpServer
from taoloop.tools.mcp.texts import TEXTS
from taoloop.tools.texts import CardTexts
from taoloop.tools.tool import RunContext, Tool, misfit_result
from taoloop.tools.toolbox import LoadProblem, LoadResult

if TYPE_CHECKING:
    from mcp import Client

    from taoloop.tools.mcp.connection import Connection
    from taoloop.tools.mcp.listing import Listing
    from taoloop.tools.mcp.open_calls import OpenCall

T = TypeVar("T")

_LOG = logging.getLogger("taoloop.mcp")
_APPROVE = "Look at the change, and approve it to have the tool back: `tao tools FILE --approve-changes`."
_PDF_BASE64 = "JVBERi0"  # how `%PDF-` begins as base64
_OWN_TOOLS = ("list_resources", "read_resource", "list_prompts", "get_prompt")
_ENTRY_FIELDS = ("uri", "uriTemplate", "name", "title", "description", "mimeType", "size", "arguments")


def mcp_tools(server: McpServer) -> LoadResult:
    """The tools of one MCP server. Starts it or connects to it, and blocks until it has answered.

    A server that is away is a problem, and so is a tool that cannot be used, or that is not as it was approved. At the
    first contact all its tools count as approved.

    Raises:
        MissingExtra: the MCP SDK is not installed.
        ToolSourceError: the file of approved tools cannot be read or written.
    """
    _require_sdk(server)
    problem = partial(LoadProblem, source=server.display_name)
    try:
        listing, has_resources, has_prompts = use_connection_sync(server, _read_listing)
    except TaoError as error:
        message = Redactor(server.secrets, patterns=False).text(error.message).removeprefix(f"{server.display_name} ")
        return LoadResult(problems=(problem(place="", message=message, hint=error.hint),))
    changes = {change.tool: change for change in Pins(server).compare(listing.definitions)}
    problems = [problem(place="tools", message=f"{text}.") for text in listing.problems]
    for name, change in changes.items():
        if server.offers(name):
            what = str(change).removeprefix(name).strip()
            problems.append(problem(place=name, message=f"{what}; it is not offered.", hint=_APPROVE))
    problems += [problem(place=place, message="it has no tool of this name.") for place in _unmatched(server, listing)]
    tools = [*(resource_tools(server) if has_resources else ()), *(prompt_tools(server) if has_prompts else ())]
    offered = [name for name in listing.definitions if server.offers(name) and name not in changes]
    for name, own in model_tool_names(server.name, offered, frozenset(tool.name for tool in tools)).items():
        try:
            tools.append(tool_of(server, listing.definitions[name], own))
            if own != f"{server.name}.{name}":
                message = f"its name is taken, or providers refuse it: it is offered as {own!r}."
                problems.append(problem(place=name[:80], message=message))
        except (SchemaError, ConfigError) as error:
            message = error.message if isinstance(error, ConfigError) else f"its input schema cannot be used: {error}."
            problems.append(problem(place=name, message=message, hint="The tool is left out."))
    return LoadResult(tools=tuple(replace(tool, secrets=server.secrets) for tool in tools), problems=tuple(problems))


def pending_changes(server: McpServer) -> tuple[Change, ...]:
    """The tools of a server that are not as they were approved. Blocks until the server has answered.

    Raises:
        MissingExtra: the MCP SDK is not installed.
        McpFailed: the server is away.
        ToolSourceError: the file of approved tools cannot be read or written.
    """
    _require_sdk(server)
    listing = use_connection_sync(server, lambda connection: connection.listing(fresh=True))
    return tuple(Pins(server).compare(listing.definitions))


def approve_changes(server: McpServer, changes: Iterable[Change] | None = None) -> tuple[Change, ...]:
    """Approve changes exactly as they were shown; None: all that there are now. Gives those that were approved.

    Raises:
        MissingExtra, McpFailed: only without `changes`, as `pending_changes`.
        ToolSourceError: the file of approved tools cannot be read or written.
    """
    accepted = tuple(pending_changes(server) if changes is None else changes)
    if accepted:
        Pins(server).approve(accepted)
    return accepted


def _require_sdk(server: McpServer) -> None:
    if find_spec("mcp") is None:
        text = f"{server.display_name} needs the MCP SDK, which is not installed: pip install 'taoloop[mcp]'."
        raise MissingExtra(text)


async def _read_listing(connection: Connection) -> tuple[Listing, bool, bool]:
    """The tools of the server, and whether it has resources and prompts."""
    server, listing = connection.server, await connection.listing(fresh=True)
    capabilities = (await connection.client()).server_capabilities
    has_resources = server.resources and capabilities.resources is not None
    has_prompts = server.prompts and capabilities.prompts is not None
    return (
        listing,
        has_resources and await _has_any(connection, "list_resources", "list_resource_templates"),
        has_prompts and await _has_any(connection, "list_prompts"),
    )


async def _has_any(connection: Connection, *methods: str) -> bool:
    """Whether one of these lists has an entry: many servers say that they have them, and have nothing."""
    for method in methods:
        try:
            entries, _ = await connection.list_entries(method)
        except TaoError as error:
            _LOG.debug("%s: %s", connection.server.display_name, error)
            continue
        if entries:
            return True
    return False


def _unmatched(server: McpServer, listing: Listing) -> Iterator[str]:
    """Names in the settings that the server has no tool for: a slip there could leave a tool with the wrong tier."""
    known = {*listing.definitions, *_OWN_TOOLS}
    for setting, names in (("tools", server.tools), ("tiers", server.tiers), ("sends_out", server.sends_out)):
        yield from (f"{setting}.{name}" for name in names if name not in known and not set(name) & set("*?["))


def tool_of(server: McpServer, definition: Definition, name: str) -> Tool:
    """One tool of a server, under a name of ours.

    Raises:
        SchemaError, ToolDefinitionError: its schema cannot be used.
    """
    text = CardTexts(TEXTS)
    card = card_of(server, definition, name, text)
    validator: Validator | None = None
    if card.output_schema is not None:
        try:
            validator = compile_schema(card.output_schema, "the output schema", ToolDefinitionError)
        except ToolDefinitionError as error:
            _LOG.debug("%s: %s", name, error)
            card = replace(card, output_schema=None)
    is_read = card.reads_only

    async def call(context__: RunContext | None = None, **args: Any) -> Any:  # named as no argument is
        open_call = open_call_of(server, context__ or RunContext())
        result = await use_connection(
            server, lambda connection: connection.call(definition, args, is_read=is_read, open_call=open_call)
        )
        return output_of(server, definition.name, result, validator, open_call.unanswered)

    called = tool_from_card(card, call, chinese=text.chinese)
    return replace(called, check_output=None)  # `output_of` judges: there may be more than structure


def open_call_of(server: McpServer, context: RunContext) -> OpenCall:
    """A call as its connection needs it, which is in another thread than the loop of the run."""
    from taoloop.tools.mcp.open_calls import CallTimer, OpenCall, asking_in  # noqa: PLC0415  # needs the SDK

    loop = asyncio.get_running_loop()

    def on_progress(line: str) -> None:  # in the thread of the connection
        with contextlib.suppress(RuntimeError):  # the loop of the call is closed: nobody watches any more
            loop.call_soon_threadsafe(context.progress, line)

    return OpenCall(
        timer=CallTimer(server.timeout_s, server.longest_s),
        answer_timeout_s=server.answer_timeout_s,
        ask=asking_in(loop, context.ask),
        run_id=context.run_id,
        on_progress=on_progress,
    )


def output_of(
    server: McpServer, tool: str, result: Any, validator: Validator | None, unanswered: Sequence[str] = ()
) -> Any:
    """The output of a call: structured content if there is any, else the text, or all parts where some are no text.

    `unanswered`: what a person was asked and did not answer, which the model must know to understand the result.

    Raises:
        McpFailed: `tool_failed`, the tool says that it did not succeed.
        InvalidOutput: its structured content does not fit what it declares.
    """
    parts = [part_of(content) for content in result.content or ()]
    structured = result.structured_content
    if result.is_error:
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
        if structured is not None:
            text = text or json.dumps(structured, ensure_ascii=False)
        text = "\n".join([text.strip() or TEXTS.run_text("no_text"), *unanswered])
        raise McpFailed(text, code="tool_failed", retryable=False)
    parts += [{"type": "text", "text": text} for text in unanswered]
    if validator is not None:
        reason = TEXTS.run_text("no_structure") if structured is None else listed(findings(validator, structured))
        if reason:
            raise misfit_result(f"{server.name}.{tool}", reason)
    if structured is None:
        pieces: list[Any] = [
            part["text"] if part["type"] == "text" else part.get("image", part.get("file")) for part in parts
        ]
        if all(isinstance(part, str) for part in pieces):
            return "\n\n".join(pieces)
        return pieces if all(part is not None for part in pieces) else {"content": parts}
    extra_parts = [part for part in parts if part["type"] != "text" or not _says(part["text"], structured)]
    if all(part["type"] == "text" for part in extra_parts) and validator is not None and not unanswered:
        return structured  # the text is for clients that know no structure
    return {"structured": structured, "content": extra_parts} if extra_parts else structured


def _binary_field(part: Mapping[str, Any]) -> str:
    return "image" if "image" in part else "file"


def _says(text: str, structured: Any) -> bool:
    """Whether a text only says again what is structured."""
    try:
        return bool(json.loads(text) == structured)
    except (ValueError, RecursionError):
        return isinstance(structured, dict) and list(structured.values()) == [text]


def part_of(content: Any) -> dict[str, Any]:
    """One part of a result as JSON; what is binary is an `Image`, a `File`, or has type, size in bytes and base64."""
    kind = content.type
    if kind == "text":
        return {"type": "text", "text": content.text}
    if kind in ("image", "audio"):
        return {"type": kind, **_binary(content.mime_type, content.data)}
    if kind == "resource":
        return {"type": "resource", **resource_of(content.resource)}
    return {"type": kind, **content.model_dump(by_alias=True, exclude_none=True, mode="json", exclude={"type", "meta"})}


def resource_of(resource: Any) -> dict[str, Any]:
    """The contents of a resource as JSON."""
    text = getattr(resource, "text", None)
    if text is None:
        name = str(resource.uri).partition("?")[0].rpartition("/")[2]
        return {"uri": str(resource.uri), **_binary(resource.mime_type, resource.blob, name)}
    mime_type = {} if resource.mime_type is None else {"mime_type": resource.mime_type}
    return {"uri": str(resource.uri), **mime_type, "text": text}


def _binary(mime_type: str | None, data: str, name: str = "") -> dict[str, Any]:
    """Binary content: an image or a PDF by what its bytes are, whatever the server calls it."""
    problem: dict[str, Any] = {}
    if data.startswith(_PDF_BASE64):
        try:
            return {"file": File.from_base64(data, name=name if name.lower().endswith(".pdf") else "")}
        except FileError as error:
            problem = {"problem": error.message}
    if mime_type is None or not mime_type.startswith("audio/"):
        try:
            return {"image": Image.from_base64(data)}
        except ImageError as error:
            problem = {"problem": error.message} if (mime_type or "").startswith("image/") else problem
    size = max(0, len(data) * 3 // 4 - data[-2:].count("="))
    return {"mime_type": mime_type or "application/octet-stream", "size_bytes": size, **problem, "base64": data}


def resource_tools(server: McpServer) -> tuple[Tool, ...]:
    """The tools for the resources of a server."""

    async def list_resources() -> dict[str, Any]:
        return await _list(server, resources="list_resources", templates="list_resource_templates")

    async def read_resource(uri: str) -> Any:
        what = TEXTS.run_text("resource", name=uri[:80])
        result = await _request(server, what, lambda client: client.read_resource(uri))
        contents = [resource_of(content) for content in result.contents]
        return contents[0]["text"] if len(contents) == 1 and "text" in contents[0] else {"contents": contents}

    uri = {"type": "string", "minLength": 1, "maxLength": 4_000}
    return _own_tool(server, list_resources, {}), _own_tool(server, read_resource, {"uri": ("uri", uri)}, ("uri",))


def prompt_tools(server: McpServer) -> tuple[Tool, ...]:
    """The tools for the prompts of a server."""

    async def list_prompts() -> dict[str, Any]:
        return await _list(server, prompts="list_prompts")

    async def get_prompt(name: str, arguments: dict[str, str] | None = None) -> Any:
        what = TEXTS.run_text("prompt", name=name[:80])
        result = await _request(server, what, lambda client: client.get_prompt(name, arguments or {}))
        return {"messages": [{"role": message.role, **part_of(message.content)} for message in result.messages]}

    rules: dict[str, tuple[str, dict[str, Any]]] = {
        "name": ("prompt_name", {"type": "string", "minLength": 1, "maxLength": 200}),
        "arguments": ("prompt_arguments", {"type": "object", "additionalProperties": {"type": "string"}}),
    }
    return _own_tool(server, list_prompts, {}), _own_tool(server, get_prompt, rules, ("name",))


def _own_tool(
    server: McpServer,
    handler: Callable[..., Any],
    rules: Mapping[str, tuple[str, Mapping[str, Any]]],
    required: tuple[str, ...] = (),
) -> Tool:
    """A tool that reads, by what the protocol says; what it asks for goes to the server, and so out.

    `rules` has for each argument the name of its description and its schema.
    """
    name, text = handler.__name__, CardTexts(TEXTS)
    properties = {argument: {**rule, "description": text(described)} for argument, (described, rule) in rules.items()}
    sends_out = server.sends_out_of(name)
    card = ToolCard(
        name=f"{server.name}.{name}",
        purpose=text(name, name=server.name),
        input_schema={
            "type": "object",
            "properties": properties,
            **({"required": list(required)} if required else {}),
            "additionalProperties": False,
        },
        errors=error_cards(text, "tool_failed", "server_away"),
        tier=server.tier_of(name) or "read",
        egress=(tuple(rules) or False) if sends_out is None else sends_out,
        timeout_s=server.timeout_s,
    )
    return tool_from_card(card, handler, chinese=text.chinese)


async def _request(server: McpServer, what: str, send: Callable[[Client], Awaitable[T]]) -> T:
    return await use_connection(server, lambda connection: connection.request(what, send))


async def _list(server: McpServer, **methods: str) -> dict[str, Any]:
    """The entries of these lists of a server, and what is wrong with them."""
    answer: dict[str, Any] = {}
    problems: list[str] = []
    for name, method in methods.items():
        entries, more = await use_connection(server, methodcaller("list_entries", method))
        records = [entry.model_dump(by_alias=True, exclude_none=True, mode="json") for entry in entries]
        answer[name] = [{key: record[key] for key in _ENTRY_FIELDS if key in record} for record in records]
        problems += more
    return answer | ({"problems": problems} if problems else {})
