"""Reading one reply by itself: raw text and tools in, one judged decision out. For evaluation and other runtimes.

The arguments of a call are judged by the part of JSON Schema that decides what the call means: types, enums, required
and unknown arguments, bounds, and references within the schema. Patterns and formats are left to the executor, which
validates again. An object whose schema lists its properties takes no others unless it says so: an unknown argument may
carry what the call is about.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any, Literal

from taoloop.core.cards.coercion import coerce_args, resolve_reference
from taoloop.core.cards.schema_bounds import SchemaBounds, SchemaExcessError
from taoloop.core.cards.tool_card import TIERS, ToolCard
from taoloop.core.decision import Answer, Call, Problem
from taoloop.core.message import ModelReply, ToolCallText
from taoloop.dialects.base import Dialect, takes_was_seen
from taoloop.dialects.parsing.json_decision import ROLES, plain_key
from taoloop.dialects.parsing.tool_names import resolve_tool_name
from taoloop.dialects.texts import ReplyParseError

_MAX_DEPTH = 40
_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
_BOUNDS = {"minimum": ge, "maximum": le, "exclusiveMinimum": gt, "exclusiveMaximum": lt}
_SIZES: dict[str, type[Any]] = {"Length": str, "Items": list, "Properties": dict}


def coerce_and_validate(args: Any, schema: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The arguments after lossless corrections, and what does not fit (empty: they fit)."""
    if not isinstance(args, dict):
        return {}, "the arguments are not a JSON object"
    corrected = coerce_args(args, schema)
    try:
        SchemaBounds(schema).steps(corrected)
    except SchemaExcessError as error:
        return corrected, f"the arguments cannot be judged: {error}"
    return corrected, _violation(corrected, schema, schema, "", _MAX_DEPTH)


def _violation(value: Any, rule: Any, root: Mapping[str, Any], path: str, levels: int) -> str:
    """What is wrong with a value by its rule, in words; empty if nothing is."""
    if rule is False or not levels:
        return f"{path or 'it'} is not allowed"
    if not isinstance(rule, Mapping):
        return ""
    if isinstance(reference := rule.get("$ref"), str):
        target = resolve_reference(reference, root)
        return _violation(value, {} if target is None else target, root, path, levels - 1)
    declared = rule.get("type", ())
    types = (declared,) if isinstance(declared, str) else tuple(declared)
    if types and not any(_has_type(value, kind) for kind in types):
        return f"{path or 'it'} must be {' or '.join(types)}"
    if "enum" in rule and not any(_equals(value, option) for option in rule["enum"]):
        return f"{path or 'it'} must be one of {', '.join(map(str, rule['enum']))}"
    if "const" in rule and not _equals(value, rule["const"]):
        return f"{path or 'it'} must be {rule['const']!r}"
    return (
        _size_violation(value, rule, path)
        or _branch_violation(value, rule, root, path, levels)
        or _member_violation(value, rule, root, path, levels)
    )


def _member_violation(value: Any, rule: Mapping[str, Any], root: Mapping[str, Any], path: str, levels: int) -> str:
    if isinstance(value, list) and "items" in rule:
        violations = (
            _violation(item, rule["items"], root, f"{path}[{index}]", levels - 1) for index, item in enumerate(value)
        )
        return next(filter(None, violations), "")
    if not isinstance(value, dict):
        return ""
    properties: Mapping[str, Any] = rule.get("properties", {})
    missing = [name for name in rule.get("required", ()) if name not in value]
    if missing:
        return f"{', '.join(missing)} is missing"
    additional = rule.get("additionalProperties", not properties and path != "")
    for name, item in value.items():
        rule_of_member = properties.get(name, additional)
        if name not in properties and additional is False:
            return f"{name!r} is not a known argument"
        if violation := _violation(item, rule_of_member, root, f"{path}.{name}" if path else name, levels - 1):
            return violation
    return ""


def _branch_violation(value: Any, rule: Mapping[str, Any], root: Mapping[str, Any], path: str, levels: int) -> str:
    for branch in rule.get("allOf", ()):
        if violation := _violation(value, branch, root, path, levels - 1):
            return violation
    for name in ("anyOf", "oneOf"):
        branches: Sequence[Any] = rule.get(name, ())
        if branches and all(_violation(value, branch, root, path, levels - 1) for branch in branches):
            return f"{path or 'it'} fits none of its alternatives"
    return ""


def _size_violation(value: Any, rule: Mapping[str, Any], path: str) -> str:
    limits = _BOUNDS if isinstance(value, int | float) and not isinstance(value, bool) else {}
    size = value
    for noun, kind in _SIZES.items():
        if isinstance(value, kind):
            size, limits = len(value), {f"min{noun}": ge, f"max{noun}": le}
    broken = (name for name, holds in limits.items() if name in rule and not holds(size, rule[name]))
    return next((f"{path or 'it'} breaks its {name} of {rule[name]}" for name in broken), "")


def _has_type(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(name, object))


def _equals(left: Any, right: Any) -> bool:
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


_FUNCTIONS = ("function", "functionCall", "function_call", "toolUse", "tool_use", "tool_call", "toolCall", "custom")
_CALLS = frozenset({"tooluse", "toolcall", "functioncall", "function", "customtoolcall"})
_NAMES = frozenset({"name", "toolname", "functionname", "tool", "function"})
_THINKING = frozenset({"thinking", "redactedthinking", "reasoning", "thought", "summary", "reasoningtext"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The decision in a reply, judged by the schemas of the tools."""

    kind: Literal["action", "final", "reject"]
    """A call, a final answer, or nothing that may be believed."""
    tool: str | None = None
    """The tool of an action; of several calls that of the first."""
    args: dict[str, Any] | None = None
    """Its arguments, corrected without loss; they fit the tool's schema."""
    answer: str | None = None
    """The text of a final answer."""
    problem: Problem | None = None
    """Why the reply is rejected."""
    calls: tuple[Call, ...] = ()
    """Every call of an action; the native dialect can write several."""


def read_and_validate(
    dialect: Dialect,
    tools: Sequence[ToolCard | Mapping[str, Any]],
    output: str,
    finish_reason: str | None,
    seen: str = "",
) -> Reading:
    """The reply `output` as `dialect` reads it, with every call judged by the tool's schema.

    `seen` is what the model was shown: a value that it has is no placeholder.
    """
    cards = tuple(tool if isinstance(tool, ToolCard) else _card_of(tool) for tool in tools)
    reply = parse_api_choice(output) if dialect.native else ModelReply(text=output, finish_reason=finish_reason)
    if isinstance(reply, Problem):
        return Reading(kind="reject", problem=reply)
    takes_seen = seen and takes_was_seen(dialect)
    decision = dialect.read(reply, cards, was_seen=seen.__contains__) if takes_seen else dialect.read(reply, cards)
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
        return Problem(code="bad_json", message=f"This is not a choice of the API ({type(error).__name__}).")
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
