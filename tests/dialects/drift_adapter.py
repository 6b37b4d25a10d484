"""The dialects as the drift corpus scores a parser: `parse(case)`; see shared/drift/README.md."""

from __future__ import annotations

import json
from typing import Any

from taoloop.core.cards import ToolCard
from taoloop.core.decision import Act, Answer
from taoloop.core.message import ModelReply, ToolCallText
from taoloop.dialects import get_dialect


def parse(case: dict[str, Any]) -> dict[str, Any]:
    cards = tuple(
        ToolCard(name=tool["name"], purpose=tool.get("description", ""), input_schema=tool["parameters"])
        for tool in case["tools"]
    )
    reply = native_reply(case["output"]) if case["dialect"] == "native" else ModelReply(
        text=case["output"], finish_reason=case["finish_reason"]
    )
    decision = get_dialect(case["dialect"]).read(reply, cards)
    if isinstance(decision, Act) and len(decision.calls) == 1:
        call = decision.calls[0]
        return {"kind": "action", "tool": call.tool, "args": call.args, "answer": None}
    if isinstance(decision, Answer):
        return {"kind": "final", "tool": None, "args": None, "answer": decision.text}
    return {"kind": "reject", "tool": None, "args": None, "answer": None}


def native_reply(output: str) -> ModelReply:
    """One choice of the API as the model adapter hands it on."""
    choice = json.loads(output)
    message = choice["message"]
    functions = [(call["function"], call.get("id")) for call in message.get("tool_calls") or ()]
    if message.get("function_call"):
        functions.append((message["function_call"], None))
    calls = tuple(
        ToolCallText(name=function["name"], arguments=_text(function["arguments"]), id=ref)
        for function, ref in functions
    )
    return ModelReply(
        text=message.get("content") or "", tool_calls=calls, finish_reason=choice.get("finish_reason")
    )


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
