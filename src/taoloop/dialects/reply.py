"""Reading one reply by itself: raw text and tools in, one judged decision out. For evaluation and other runtimes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from taoloop.core.cards import TIERS, ToolCard
from taoloop.core.decision import Answer, Call, Problem
from taoloop.core.message import ModelReply, ToolCallText
from taoloop.dialects.fit import fitted
from taoloop.dialects.names import find_card

if TYPE_CHECKING:
    from taoloop.dialects.base import Dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a reply comes to once the tools have been asked: an `action`, a `final`, or a `reject` with its problem.

    `args` are corrected and fit the schema of `tool`. Several calls of the native dialect are all in `calls`; `tool`
    and `args` are those of the first.
    """

    kind: Literal["action", "final", "reject"]
    tool: str | None = None
    args: dict[str, Any] | None = None
    answer: str | None = None
    problem: Problem | None = None
    calls: tuple[Call, ...] = ()


def judged(
    dialect: Dialect, tools: Sequence[ToolCard | Mapping[str, Any]], output: str, finish_reason: str | None
) -> Reading:
    """The reply `output` as `dialect` reads it, with every call judged by the tool's schema."""
    cards = tuple(tool if isinstance(tool, ToolCard) else _card(tool) for tool in tools)
    reply = native_reply(output) if dialect.native else ModelReply(text=output, finish_reason=finish_reason)
    if isinstance(reply, Problem):
        return Reading(kind="reject", problem=reply)
    read = dialect.read(reply, cards)
    if isinstance(read, Problem):
        return Reading(kind="reject", problem=read)
    if isinstance(read, Answer):
        return Reading(kind="final", answer=read.text)
    calls = []
    for call in read.calls:
        card = find_card(call.tool, cards)
        if card is None:
            return _rejected(f"There is no tool {call.tool!r}. The tools are: {', '.join(one.name for one in cards)}.")
        args, fault = fitted(call.args, card.input_schema)
        if fault:
            return _rejected(f"The arguments of {call.tool!r} do not fit: {fault}.")
        calls.append(Call(tool=card.name, args=args, ref=call.ref))
    return Reading(kind="action", tool=calls[0].tool, args=calls[0].args, calls=tuple(calls))


def native_reply(output: str) -> ModelReply | Problem:
    """One choice of an OpenAI-compatible API, from its JSON text."""
    try:
        choice = json.loads(output)
        message = choice["message"]
        functions = [(call["function"], call.get("id")) for call in message.get("tool_calls") or ()]
        if message.get("function_call"):
            functions.append((message["function_call"], None))
        calls = tuple(_call_text(function, ref) for function, ref in functions)
        text, finish_reason = _content(message.get("content")), choice.get("finish_reason")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return Problem(code="bad_json", message=f"This is no choice of the API ({type(error).__name__}).")
    return ModelReply(
        text=text, tool_calls=calls, finish_reason=finish_reason if isinstance(finish_reason, str) else None
    )


def _call_text(function: Mapping[str, Any], ref: Any) -> ToolCallText:
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
    name = function["name"]
    if not isinstance(name, str):
        raise TypeError("a name is no text")
    return ToolCallText(name=name, arguments=arguments, id=ref if isinstance(ref, str) else None)


def _content(content: Any) -> str:
    if isinstance(content, list):
        return "".join(
            part.get("text") or "" for part in content if part.get("type", "text") in ("text", "output_text")
        )
    if content is not None and not isinstance(content, str):
        raise TypeError("the content is no text")
    return content or ""


def _card(tool: Mapping[str, Any]) -> ToolCard:
    """A card from plain data: name, description, effect, parameters."""
    effect = tool.get("effect")
    return ToolCard(
        name=tool["name"],
        purpose=tool.get("description") or "",
        input_schema=tool.get("parameters") or {"type": "object", "properties": {}},
        tier=effect if effect in TIERS else None,
    )


def _rejected(message: str) -> Reading:
    return Reading(kind="reject", problem=Problem(code="bad_action", message=message))
