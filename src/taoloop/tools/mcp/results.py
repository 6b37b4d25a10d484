"""What a server answered, as the output of a tool: text where it is text, else JSON with the rest as base64."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from taoloop.errors import InvalidOutput, McpFailed
from taoloop.tools.json_schema import Validator, findings, listed
from taoloop.tools.mcp.settings import McpServer

_NO_TEXT = "The tool gave no further word."


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
        raise McpFailed(text.strip() or _NO_TEXT, code="tool_failed", retryable=False)
    structured = result.structured_content
    if judge is not None:
        if structured is None:
            raise _unfit(server, tool, "it has no structured content")
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


def messages_of(messages: Iterable[Any]) -> list[dict[str, Any]]:
    """The messages of a prompt as JSON."""
    return [{"role": message.role, **part_of(message.content)} for message in messages]


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


def _unfit(server: McpServer, tool: str, why: str) -> InvalidOutput:
    return InvalidOutput(
        f"{server.display_name} ran {tool!r}, but its result does not fit what it declares: {why}.",
        hint="The call was carried out; do not repeat it only because of this.",
    )
