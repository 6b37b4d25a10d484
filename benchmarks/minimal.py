"""The yardstick: a hand-written loop that does the same work with nothing around it.

It asks the same scripted model, decodes the same arguments, calls the same function and keeps the same messages;
no validation, no trace, no limits, no time-outs. Every figure of a benchmark is printed beside this one's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from taoloop.core.message import ModelReply


async def minimal_loop(
    task: str,
    ask: Callable[[Sequence[Any], int], Any],
    tools: dict[str, Callable[..., Any]],
) -> str:
    """Think, act, observe, until a reply has no tool call."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    turn = 0
    while True:
        reply: ModelReply = await ask(messages, turn)
        turn += 1
        if not reply.tool_calls:
            return reply.text
        messages.append({"role": "assistant", "content": reply.text})
        for call in reply.tool_calls:
            result = tools[call.name](**json.loads(call.arguments))
            messages.append({"role": "tool", "content": json.dumps(result), "tool_call_id": call.id})
