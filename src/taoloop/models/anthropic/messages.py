"""The prompt as Anthropic's API takes it: system apart, roles in turn, tool results in messages of the user.

Its rules: a text block has something in it that is no white space, the last text of the assistant ends without any,
results of calls stand first in the message after them, and ids have letters, digits, `_` and `-` only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic_core import from_json

from taoloop.core.message import Message, ToolCallText
from taoloop.models.openai.names import ToolNameMap

CACHE = {"type": "ephemeral"}
"""Marks the end of a part of the prompt that the next request will begin with again."""

_NOT_OF_IDS = re.compile(r"[^a-zA-Z0-9_-]")
_OPENING = "(The conversation begins.)"


def turns(messages: Sequence[Message], names: ToolNameMap) -> tuple[str, list[dict[str, Any]]]:
    """The system prompt, and the other messages as turns of user and assistant, the last block marked for caching.

    A system message further down stands in a user turn, so that what was sent before stays as it was.
    """
    system: list[str] = []
    converted: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system" and not converted:
            system.append(message.content)
            continue
        role = "assistant" if message.role == "assistant" else "user"
        if not converted and role == "assistant":
            converted.append({"role": "user", "content": [_text(_OPENING)]})
        blocks = _blocks(message, names)
        if converted and converted[-1]["role"] == role:
            converted[-1]["content"].extend(blocks)
        elif blocks:
            converted.append({"role": role, "content": blocks})
    if converted:
        last = converted[-1]["content"]
        last[-1] = {**last[-1], "cache_control": CACHE}
    return "\n\n".join(system), converted


def _blocks(message: Message, names: ToolNameMap) -> list[dict[str, Any]]:
    content = message.content
    if message.role == "tool":
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": _id(message.tool_call_id)}
        if content.strip():
            result["content"] = [_text(content)]
        return [result]
    if message.role == "assistant":
        content = content.rstrip()
    blocks = [_text(content)] if content.strip() else []
    return blocks + [
        {"type": "tool_use", "id": _id(call.id), "name": names.outgoing(call.name), "input": _input(call)}
        for call in message.tool_calls
    ]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _id(call_id: str | None) -> str:
    return _NOT_OF_IDS.sub("_", call_id or "") or "none"


def _input(call: ToolCallText) -> dict[str, Any]:
    """The arguments as an object; what was no object stands under a name of its own."""
    try:
        value = from_json(call.arguments or "{}")
    except ValueError:
        value = call.arguments
    return value if isinstance(value, dict) else {"arguments": value}
