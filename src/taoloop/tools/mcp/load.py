"""A server's tools, loaded: what it lists, compared with what was approved, as tools that call it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.redaction.redactor import Redactor
from taoloop.errors import ConfigError, TaoError, ToolDefinitionError
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.json_schema import Validator, compile_schema
from taoloop.tools.mcp.cards import SchemaError, card_of, model_tool_names
from taoloop.tools.mcp.connection import Connection
from taoloop.tools.mcp.errors import require_sdk
from taoloop.tools.mcp.listing import Definition, Listing
from taoloop.tools.mcp.loop_thread import LoopThread, run_in_loop, run_in_loop_sync
from taoloop.tools.mcp.pins import Change, Pins
from taoloop.tools.mcp.results import NAMES, output_of, prompt_tools, resource_tools
from taoloop.tools.mcp.settings import McpServer
from taoloop.tools.mcp.texts import TEXTS
from taoloop.tools.texts import CardTexts
from taoloop.tools.tool import Tool, ToolContext
from taoloop.tools.toolbox import LoadProblem, LoadResult

_LOG = logging.getLogger("taoloop.mcp")
_APPROVE = "Look at the change, and approve it to have the tool back: `tao tools FILE --approve-changes`."


def mcp_tools(server: McpServer) -> LoadResult:
    """The tools of one MCP server. Starts it or connects to it, and blocks until it has answered.

    A server that is away is a problem, and so is a tool that cannot be used, or that is not as it was approved. At the
    first contact all its tools count as approved.

    Raises:
        MissingExtra: the MCP SDK is not installed.
        ToolSourceError: the file of approved tools cannot be read or written.
    """
    require_sdk(server)
    try:
        listing, has_resources, has_prompts = run_in_loop_sync(lambda loop_thread: _read_listing(loop_thread, server))
    except TaoError as error:
        message = Redactor(server.secrets, patterns=False).text(error.message).removeprefix(f"{server.display_name} ")
        return LoadResult(
            problems=(LoadProblem(source=server.display_name, place="", message=message, hint=error.hint),)
        )
    waiting = Pins(server).compare(listing.definitions)
    problems = [LoadProblem(source=server.display_name, place="tools", message=f"{text}.") for text in listing.problems]
    problems += [_pending(server, change) for change in waiting if server.offers(change.tool)]
    problems += _unmatched(server, listing)
    tools: dict[str, Tool] = {}
    if has_resources:
        tools |= {tool.name: tool for tool in resource_tools(server)}
    if has_prompts:
        tools |= {tool.name: tool for tool in prompt_tools(server)}
    disabled = {change.tool for change in waiting}
    offered = [name for name in listing.definitions if server.offers(name) and name not in disabled]
    for name, own in model_tool_names(server.name, offered, frozenset(tools)).items():
        if listing.definitions[name].needs_task:
            problems.append(_left_out(server, name, "it can only be called as a task, which is not offered here."))
            continue
        try:
            tools[own] = tool_of(server, listing.definitions[name], own)
        except (SchemaError, ConfigError) as error:
            problems.append(_unusable(server, name, error))
    tools_with_secrets = (replace(tool, secrets=server.secrets) for tool in tools.values())
    return LoadResult(tools=tuple(tools_with_secrets), problems=tuple(problems))


def pending_changes(server: McpServer) -> tuple[Change, ...]:
    """The tools of a server that are not as they were approved. Blocks until the server has answered.

    Raises:
        MissingExtra: the MCP SDK is not installed.
        McpFailed: the server is away.
        ToolSourceError: the file of approved tools cannot be read or written.
    """
    require_sdk(server)
    listing = run_in_loop_sync(lambda loop_thread: loop_thread.connection(server).listing(fresh=True))
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


def tool_of(server: McpServer, definition: Definition, name: str) -> Tool:
    """One tool of a server, under a name of ours.

    Raises:
        SchemaError, ToolDefinitionError: its schema cannot be used.
    """
    text = CardTexts(TEXTS)
    card = card_of(server, definition, name, text)
    judge = _judge(card)
    is_read = card.reads_only

    async def call(context__: ToolContext | None = None, **args: Any) -> Any:  # named as no argument is
        loop, tell = asyncio.get_running_loop(), (context__ or ToolContext()).progress

        def on_progress(line: str) -> None:  # in the thread of the connection
            with contextlib.suppress(RuntimeError):  # the loop of the call is closed: nobody watches any more
                loop.call_soon_threadsafe(tell, line)

        result = await run_in_loop(
            lambda loop_thread: loop_thread.connection(server).call(
                definition, args, is_read=is_read, timeout_s=server.timeout_s, on_progress=on_progress
            )
        )
        return output_of(server, definition.name, result, judge)

    listed_card = card if judge is not None else replace(card, output_schema=None)
    called = tool_from_card(listed_card, call, chinese=text.chinese)
    return replace(called, check_output=None)  # `output_of` judges: there may be more than structure


def _judge(card: ToolCard) -> Validator | None:
    """The judge of structured results; None where there is no schema for them, or a false one."""
    if card.output_schema is None:
        return None
    try:
        return compile_schema(card.output_schema, "the output schema", ToolDefinitionError)
    except ToolDefinitionError as error:
        _LOG.debug("%s: %s", card.name, error)
        return None


async def _read_listing(loop_thread: LoopThread, server: McpServer) -> tuple[Listing, bool, bool]:
    connection = loop_thread.connection(server)
    listing = await connection.listing(fresh=True)
    has = connection.capabilities
    has_resources = server.resources and getattr(has, "resources", None) is not None
    has_prompts = server.prompts and getattr(has, "prompts", None) is not None
    return (
        listing,
        has_resources and await _any(connection, "list_resources", "list_resource_templates"),
        has_prompts and await _any(connection, "list_prompts"),
    )


async def _any(connection: Connection, *methods: str) -> bool:
    """Whether something stands in one of these lists: many servers say that they have them, and have nothing."""
    for method in methods:
        try:
            entries, _ = await connection.list_entries(method)
        except TaoError as error:
            _LOG.debug("%s: %s", connection.server.display_name, error)
            continue
        if entries:
            return True
    return False


def _pending(server: McpServer, change: Change) -> LoadProblem:
    message = f"{str(change).removeprefix(change.tool).strip()}; it is not offered."
    return LoadProblem(source=server.display_name, place=change.tool, message=message, hint=_APPROVE)


def _unmatched(server: McpServer, listing: Listing) -> list[LoadProblem]:
    """Names in the settings that the server has no tool for: a slip there could leave a tool with the wrong tier."""
    known = {*listing.definitions, *NAMES}
    settings_names: dict[str, Callable[[McpServer], Iterable[str]]] = {
        "tools": lambda mcp_server: mcp_server.tools,
        "tiers": lambda mcp_server: mcp_server.tiers,
        "sends_out": lambda mcp_server: mcp_server.sends_out,
    }
    return [
        LoadProblem(source=server.display_name, place=f"{field_name}.{name}", message="it has no tool of this name.")
        for field_name, names in settings_names.items()
        for name in names(server)
        if name not in known and not set(name) & set("*?[")
    ]


def _unusable(server: McpServer, tool: str, error: Exception) -> LoadProblem:
    reason = error.message if isinstance(error, TaoError) else f"its input schema cannot be used: {error}."
    return _left_out(server, tool, reason)


def _left_out(server: McpServer, tool: str, reason: str) -> LoadProblem:
    return LoadProblem(source=server.display_name, place=tool, message=reason, hint="The tool is left out.")
