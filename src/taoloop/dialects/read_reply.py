"""Reading one reply by itself: raw text and tools in, one judged decision out. For evaluation and other runtimes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from taoloop.core.cards.tool_card import TIERS, ToolCard
from taoloop.core.decision import Answer, Call, Problem
from taoloop.core.message import ModelReply, ToolCallText
from taoloop.dialects.parsing.argument_check import coerce_and_validate
from taoloop.dialects.parsing.json_decision import ROLES, plain_key
from taoloop.dialects.parsing.parse_error import ReplyParseError
from taoloop.dialects.parsing.tool_names import resolve_tool_name

if TYPE_CHECKING:
    from taoloop.dialects.base import Dialect

_FUNCTIONS = ("function", "functionCall", "function_call", "toolUse", "tool_use", "tool_call", "toolCall", "custom")
_CALLS = frozenset({"tooluse", "toolcall", "functioncall", "function", "customtoolcall"})
_NAMES = frozenset({"name", "toolname", "functionname", "tool", "function"})
_THINKING = frozenset({"thinking", "redactedthinking", "reasoning", "thought", "summary", "reasoningtext"})


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


def read_and_validate(
    dialect: Dialect, tools: Sequence[ToolCard | Mapping[str, Any]], output: str, finish_reason: str | None
) -> Reading:
    """The reply `output` as `dialect` reads it, with every call judged by the tool's schema."""
    cards = tuple(tool if isinstance(tool, ToolCard) else _card_of(tool) for tool in tools)
    reply = parse_api_choice(output) if dialect.native else ModelReply(text=output, finish_reason=finish_reason)
    if isinstance(reply, Problem):
        return Reading(kind="reject", problem=reply)
    decision = dialect.read(reply, cards)
    if isinstance(decision, Problem):
        return Reading(kind="reject", problem=decision)
    if isinstance(decision, Answer):
        return Reading(kind="final", answer=decision.text)
    calls = []
    for call in decision.calls:
        card = resolve_tool_name(call.tool, cards)
        if card is None:
            return _rejection(
                f"There is no tool {call.tool!r}. The tools are: {', '.join(card.name for card in cards)}."
            )
        args, fault = coerce_and_validate(call.args, card.input_schema)
        if fault:
            return _rejection(f"The arguments of {call.tool!r} do not fit: {fault}.")
        calls.append(Call(tool=card.name, args=args, ref=call.ref))
    return Reading(kind="action", tool=calls[0].tool, args=calls[0].args, calls=tuple(calls))


def parse_api_choice(output: str) -> ModelReply | Problem:
    """One choice of an OpenAI-compatible API, from its JSON text."""
    try:
        choice = json.loads(output)
        message = choice["message"]
        text, entries = _parse_content(message.get("content"))
        listed = message.get("tool_calls") or []
        entries += [listed] if isinstance(listed, dict) else listed
        if message.get("function_call"):
            entries.append(message["function_call"])
        calls = tuple(map(_parse_tool_call, entries))
        refusal, finish_reason = message.get("refusal"), choice.get("finish_reason")
        if isinstance(refusal, str) and refusal.strip() not in ("", text.strip()):
            if text.strip() or calls:
                raise ReplyParseError("two_decisions", "refusal_beside", refusal)
            text = refusal
    except ReplyParseError as refused:
        return refused.problem
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return Problem(code="bad_json", message=f"This is no choice of the API ({type(error).__name__}).")
    return ModelReply(
        text=text, tool_calls=calls, finish_reason=finish_reason if isinstance(finish_reason, str) else None
    )


def _parse_tool_call(entry: Mapping[str, Any]) -> ToolCallText:
    """One call of a list, with its function on a level of its own or beside the id, as providers have it."""
    function = next((entry[key] for key in _FUNCTIONS if isinstance(entry.get(key), Mapping)), entry)
    names = {key: function[key] for key in function if plain_key(key) in _NAMES and isinstance(function[key], str)}
    arguments_keys = [function[key] for key in function if plain_key(key) in ROLES["args"]]
    if len(set(names.values())) != 1 or len(arguments_keys) > 1:
        raise TypeError("a call needs one name and one set of arguments")
    arguments = arguments_keys[0] if arguments_keys else None
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
    ref = entry.get("call_id") or entry.get("id")
    return ToolCallText(name=next(iter(names.values())), arguments=arguments, id=ref if isinstance(ref, str) else None)


def _parse_content(content: Any) -> tuple[str, list[Any]]:
    """The text of a message, and the calls among its parts.

    Raises:
        ReplyParseError: a part is a result of a tool, or of a kind that is not known.
    """
    if not isinstance(content, list):
        if content is not None and not isinstance(content, str):
            raise TypeError("the content is no text")
        return content or "", []
    texts: list[str] = []
    calls: list[Any] = []
    for part in content:
        kind = plain_key(part.get("type") or ("text" if isinstance(part.get("text"), str) else ""))
        if kind in ("text", "outputtext"):
            texts.append(part.get("text") or "")
        elif kind == "refusal":
            texts.append(part.get("refusal") or "")
        elif kind in _CALLS or any(isinstance(part.get(key), Mapping) for key in _FUNCTIONS):
            calls.append(part)
        elif kind not in _THINKING:
            raise ReplyParseError("stray_text", "unknown_part", kind=kind[:40])
    return "".join(texts), calls


def _card_of(tool: Mapping[str, Any]) -> ToolCard:
    """A card from plain data: name, description, effect, parameters."""
    effect = tool.get("effect")
    return ToolCard(
        name=tool["name"],
        purpose=tool.get("description") or "",
        input_schema=tool.get("parameters") or {"type": "object", "properties": {}},
        tier=effect if effect in TIERS else None,
    )


def _rejection(message: str) -> Reading:
    return Reading(kind="reject", problem=Problem(code="bad_action", message=message))
