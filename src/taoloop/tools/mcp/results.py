"""What a server answered, as the output of a tool, and its resources and prompts as tools.

Text stays text; anything else is JSON, with what is binary as base64.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from taoloop.core.cards.tool_card import ToolCard
from taoloop.errors import InvalidOutput, McpFailed, ToolError
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.json_schema import Validator, findings, listed
from taoloop.tools.mcp.cards import error_cards
from taoloop.tools.mcp.connection import Connection
from taoloop.tools.mcp.loop_thread import run_in_loop
from taoloop.tools.mcp.settings import McpServer
from taoloop.tools.mcp.texts import TEXTS
from taoloop.tools.texts import CardTexts
from taoloop.tools.tool import Tool


def output_of(server: McpServer, tool: str, result: Any, judge: Validator | None) -> Any:
    """The output of a call: structured content if there is any, else the text, or all parts where some are no text.

    Raises:
        McpFailed: `tool_failed`, the tool says that it did not succeed.
        InvalidOutput: its structured content does not fit what it declares.
    """
    parts = [part_of(content) for content in result.content or ()]
    if result.is_error:
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
        if result.structured_content is not None:
            text = text or json.dumps(result.structured_content, ensure_ascii=False)
        raise McpFailed(text.strip() or TEXTS.run_text("no_text"), code="tool_failed", retryable=False)
    structured = result.structured_content
    if judge is not None:
        if structured is None:
            raise _unfit(server, tool, TEXTS.run_text("no_structure"))
        if problems := findings(judge, structured):
            raise _unfit(server, tool, listed(problems))
    if structured is None:
        return plain(parts)
    extra_parts = [part for part in parts if part["type"] != "text" or not _says(part["text"], structured)]
    if all(part["type"] == "text" for part in extra_parts) and judge is not None:
        return structured  # the text is for clients that know no structure
    return {"structured": structured, "content": extra_parts} if extra_parts else structured


def plain(parts: list[dict[str, Any]]) -> Any:
    """Parts as one text if they are all text, else as they are."""
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return {"content": parts}


def part_of(content: Any) -> dict[str, Any]:
    """One part of a result as JSON; what is binary has its type, its size in bytes, and base64."""
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
    if text is not None:
        record = {"uri": str(resource.uri), "mime_type": resource.mime_type, "text": text}
        return {key: value for key, value in record.items() if value is not None}
    return {"uri": str(resource.uri), **_binary(resource.mime_type, resource.blob)}


def _binary(mime_type: str | None, data: str) -> dict[str, Any]:
    padding = data[-2:].count("=")
    size = max(0, len(data) * 3 // 4 - padding)
    return {"mime_type": mime_type or "application/octet-stream", "size_bytes": size, "base64": data}


def _says(text: str, structured: Any) -> bool:
    """Whether a text only says again what is structured."""
    try:
        return bool(json.loads(text) == structured)
    except (ValueError, RecursionError):
        return isinstance(structured, dict) and list(structured.values()) == [text]


def _unfit(server: McpServer, tool: str, reason: str) -> ToolError:
    values: dict[str, Any] = {"server": server.display_name, "tool": tool, "reason": reason}
    return TEXTS.error("misfit", error_type=InvalidOutput, **values)


NAMES = ("list_resources", "read_resource", "list_prompts", "get_prompt")

T = TypeVar("T")

_FIELDS = ("uri", "uriTemplate", "name", "title", "description", "mimeType", "size", "arguments")


def resource_tools(server: McpServer) -> tuple[Tool, ...]:
    """The tools for the resources of a server."""
    uri = {"type": "string", "minLength": 1, "maxLength": 4_000}

    async def list_resources() -> dict[str, Any]:
        async def ask(connection: Connection) -> dict[str, Any]:
            resources, problems = await connection.list_entries("list_resources")
            templates, more = await connection.list_entries("list_resource_templates")
            return _answer([*problems, *more], resources=resources, templates=templates)

        return await _served(server, ask)

    async def read_resource(uri: str) -> Any:
        async def ask(connection: Connection) -> Any:
            what = TEXTS.run_text("resource", name=uri[:80])
            result = await connection.request(what, lambda client: client.read_resource(uri))
            contents = [resource_of(content) for content in result.contents]
            return contents[0]["text"] if len(contents) == 1 and "text" in contents[0] else {"contents": contents}

        return await _served(server, ask)

    return _tool(server, list_resources, {}), _tool(server, read_resource, {"uri": ("uri", uri)}, ("uri",))


def prompt_tools(server: McpServer) -> tuple[Tool, ...]:
    """The tools for the prompts of a server."""
    name: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 200}
    arguments: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}

    async def list_prompts() -> dict[str, Any]:
        async def ask(connection: Connection) -> dict[str, Any]:
            prompts, problems = await connection.list_entries("list_prompts")
            return _answer(problems, prompts=prompts)

        return await _served(server, ask)

    async def get_prompt(name: str, arguments: dict[str, str] | None = None) -> Any:
        async def ask(connection: Connection) -> Any:
            what = TEXTS.run_text("prompt", name=name[:80])
            result = await connection.request(what, lambda client: client.get_prompt(name, arguments or {}))
            return {"messages": [{"role": one.role, **part_of(one.content)} for one in result.messages]}

        return await _served(server, ask)

    rules = {"name": ("prompt_name", name), "arguments": ("prompt_arguments", arguments)}
    return _tool(server, list_prompts, {}), _tool(server, get_prompt, rules, ("name", "arguments"), required=("name",))


def _tool(
    server: McpServer,
    handler: Callable[..., Any],
    rules: Mapping[str, tuple[str, dict[str, Any]]],
    egress: tuple[str, ...] = (),
    required: Sequence[str] | None = None,
) -> Tool:
    """A tool that reads, by what the protocol says; what it asks for goes to the server, and so out.

    `rules` has for each argument the name of its description and its schema.
    """
    name, text = handler.__name__, CardTexts(TEXTS)
    properties = {argument: {**rule, "description": text(described)} for argument, (described, rule) in rules.items()}
    needed = {"required": list(required or rules)} if rules else {}
    sends_out = server.sends_out_of(name)
    card = ToolCard(
        name=f"{server.name}.{name}",
        purpose=text(name, name=server.name),
        input_schema={"type": "object", "properties": properties, **needed, "additionalProperties": False},
        errors=error_cards(text, "tool_failed", "server_away"),
        tier=server.tier_of(name) or "read",
        egress=(egress or False) if sends_out is None else sends_out,
        timeout_s=server.timeout_s,
    )
    return tool_from_card(card, handler, chinese=text.chinese)


async def _served(server: McpServer, ask: Callable[[Connection], Coroutine[Any, Any, T]]) -> T:
    return await run_in_loop(lambda loop_thread: ask(loop_thread.connection(server)))


def _answer(problems: list[str], **lists: list[Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for name, entries in lists.items():
        plain_entries = [entry.model_dump(by_alias=True, exclude_none=True, mode="json") for entry in entries]
        answer[name] = [{key: entry[key] for key in _FIELDS if key in entry} for entry in plain_entries]
    return answer | ({"problems": problems} if problems else {})
