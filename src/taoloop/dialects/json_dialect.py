"""The JSON dialect: one object per reply, in one of three forms."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from taoloop.core.decision import Act, Answer, Call, Decision, Problem, excerpt
from taoloop.core.message import ModelReply
from taoloop.dialects.labels import LABEL, sections
from taoloop.dialects.prose import ProseDialect, only_call
from taoloop.dialects.replies import (
    RefusedError,
    answer_text,
    check_tool_name,
    find_card,
    is_final_name,
    refuse_placeholders,
    usable_text,
)
from taoloop.dialects.strict import NotJsonError, decode_at, dumps, same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards import ToolCard

_HOLE = re.compile(r"\{\{?[\w .-]{0,40}\}?\}")
_FINAL_AHEAD = re.compile(r"final|最终|\"answer\"", re.IGNORECASE)

_ACTION_KEYS = frozenset({"thought", "action", "action_input"})
_ARGS_KEYS = frozenset({"thought", "action", "args", "final"})
_TYPE_KEYS = frozenset({"type", "tool", "args", "answer", "reason_summary"})


class JsonDialect(ProseDialect):
    """`{"thought", "action", "action_input"}`; the action `final` ends the run.

    Also read: `{"thought", "action", "args"}` or `{"thought", "final"}`, and `{"type", "tool", "args",
    "answer", "reason_summary"}` with the type `tool_call` or `final`. No form takes another key.
    """

    name = "json"

    def read(self, reply: ModelReply, cards: Sequence[ToolCard]) -> Decision | Problem:
        """The decision in the first complete object; text around it is let pass, a second object is not."""
        try:
            return _decision(_the_object(reply), cards)
        except RefusedError as refused:
            return refused.problem

    def write(self, decision: Decision) -> ModelReply:
        """The canonical object on one line, not ASCII-escaped."""
        if isinstance(decision, Act):
            call = only_call(decision, "json")
            made = {"thought": decision.reason, "action": call.tool, "action_input": call.args}
        else:
            made = {"thought": decision.reason, "action": "final", "action_input": decision.text}
        return ModelReply(text=dumps(made))


def _the_object(reply: ModelReply) -> dict[str, Any]:
    """The one object of a reply."""
    text = usable_text(reply)
    if not text:
        raise RefusedError("empty", "The reply is empty.")
    start = _next_brace(text, 0)
    if start < 0:
        raise RefusedError("no_decision", f"The reply has no JSON object: {excerpt(text)!r}.", text)
    if start > 0:
        _check_before(text[:start])
    value, end = _decode(text, start)
    if end < len(text):
        _check_after(value, text, end)
    return value


def _next_brace(text: str, position: int) -> int:
    """Where the next object begins; places like `{city}` in prose are none."""
    while (position := text.find("{", position)) >= 0:
        hole = _HOLE.match(text, position)
        if hole is None:
            return position
        position = hole.end()
    return position


def _decode(text: str, start: int) -> tuple[dict[str, Any], int]:
    try:
        value, end = decode_at(text, start)
    except NotJsonError as error:
        raise RefusedError("bad_json", f"The JSON object cannot be used: {error}.", text[start:]) from None
    return value, end  # it begins with a brace, so it is an object


def _check_before(text: str) -> None:
    """Prose before the object is let pass, but not a decision or an observation in it."""
    for section in sections(text):
        kind, body = section.kind, section.body.strip("`\n ").removesuffix("json").strip("`\n ")
        if kind == "observation" or (kind == "turn" and section.start > 0):
            raise RefusedError(
                "invented_observation",
                "An observation that you wrote yourself stands before the JSON object.",
                text,
            )
        if kind == "final" or (kind in ("action", "input") and body):
            raise RefusedError("two_decisions", "A labelled decision stands before the JSON object.", text)


def _check_after(first: dict[str, Any], text: str, end: int) -> None:
    """Behind the object: no other decision, and nothing that rests on an invented observation."""
    limit = len(text)
    for match in LABEL.finditer(text, end):
        if match.lastgroup in ("observation", "turn") and text[match.end() :].strip():
            limit = match.start()
            break
        if match.lastgroup in ("action", "input", "final"):
            raise RefusedError(
                "two_decisions", "A labelled decision follows the JSON object; nothing was run.", text[end:]
            )
    rest = text[limit:]
    if rest and not _ends_run(first) and _FINAL_AHEAD.search(rest):
        raise RefusedError(
            "invented_observation",
            "You wrote the observation yourself and then a final answer on it; nothing was run. "
            "Give one JSON object and stop.",
            rest,
        )
    while 0 <= (start := _next_brace(text, end)) < limit:
        other, end = _decode(text, start)
        if not same(first, other):
            raise RefusedError(
                "two_decisions",
                "A second, different JSON object follows the first; nothing was run.",
                text[start:],
            )


def _ends_run(made: dict[str, Any]) -> bool:
    action = made.get("action")
    return made.get("type") == "final" or "final" in made or (isinstance(action, str) and is_final_name(action))


def _decision(made: dict[str, Any], cards: Sequence[ToolCard]) -> Decision:
    if "type" in made:
        return _from_type(made, cards)
    if "action_input" not in made and ("args" in made or "final" in made):
        return _from_args(made, cards)
    return _from_action(made, cards)


def _from_action(made: dict[str, Any], cards: Sequence[ToolCard]) -> Decision:
    """`{"thought", "action", "action_input"}`."""
    reason = _reason(made, "thought", _ACTION_KEYS)
    action = made.get("action")
    if action is None:
        raise RefusedError("no_decision", "The JSON object has no action; use a tool's name or 'final'.", dumps(made))
    name = _name(action)
    if is_final_name(name) and find_card(name, cards) is None:
        return Answer(text=answer_text(made.get("action_input")), reason=reason)
    return _act(name, made.get("action_input"), "action_input", made, reason, cards)


def _from_args(made: dict[str, Any], cards: Sequence[ToolCard]) -> Decision:
    """`{"thought", "action", "args"}` or `{"thought", "final"}`; null: not given."""
    reason = _reason(made, "thought", _ARGS_KEYS)
    action, args, final = made.get("action"), made.get("args"), made.get("final")
    if final is not None:
        if action is not None or args is not None:
            raise RefusedError("two_decisions", "'final' excludes 'action' and 'args'; nothing was run.", dumps(made))
        return Answer(text=answer_text(final), reason=reason)
    if action is None:
        raise RefusedError("no_decision", "The JSON object has neither an action nor a final.", dumps(made))
    if args is None:
        raise RefusedError("bad_action", f"The action {excerpt(str(action))!r} has no 'args'; give {{}} for none.")
    return _act(_name(action), args, "args", made, reason, cards)


def _from_type(made: dict[str, Any], cards: Sequence[ToolCard]) -> Decision:
    """`{"type", "tool", "args", "answer", "reason_summary"}`; empty fields count as not given."""
    reason = _reason(made, "reason_summary", _TYPE_KEYS)
    tool, args, answer = made.get("tool"), made.get("args"), made.get("answer")
    if made["type"] == "final":
        if tool not in (None, "") or args not in (None, {}):
            raise RefusedError(
                "two_decisions", "The type 'final' excludes a tool and args; nothing was run.", dumps(made)
            )
        return Answer(text=answer_text(answer), reason=reason)
    if made["type"] != "tool_call":
        raise RefusedError("bad_action", f"The type is {excerpt(str(made['type']))!r}; use 'tool_call' or 'final'.")
    if answer not in (None, ""):
        raise RefusedError("two_decisions", "The type 'tool_call' excludes an answer; nothing was run.", dumps(made))
    return _act(_name(tool), {} if args is None else args, "args", made, reason, cards)


def _act(name: str, args: Any, key: str, made: dict[str, Any], reason: str, cards: Sequence[ToolCard]) -> Decision:
    check_tool_name(name)
    if args is None:
        card = find_card(name, cards)
        if key not in made and card is not None and card.required:
            raise RefusedError(
                "bad_action", f"The action {name!r} has no {key!r}; it needs {', '.join(card.required)}."
            )
        args = {} if card is None or not card.required else None
    refuse_placeholders(args, name)
    return Act(calls=(Call(tool=name, args=args),), reason=reason)


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise RefusedError("bad_action", f"A tool's name must be a text, not {excerpt(dumps(value))}.")
    return value.strip()


def _reason(made: dict[str, Any], key: str, allowed: frozenset[str]) -> str:
    """The reason in the object, which may have the allowed keys only."""
    extra = sorted(made.keys() - allowed)
    if extra:
        raise RefusedError(
            "stray_text",
            f"The JSON object has keys that do not belong there: {excerpt(', '.join(extra))}. "
            f"Allowed: {', '.join(sorted(allowed))}.",
            dumps(made),
        )
    reason = made.get(key)
    if reason is not None and not isinstance(reason, str):
        raise RefusedError("stray_text", f"{key!r} must be a text.", dumps(reason))
    return (reason or "").strip()
