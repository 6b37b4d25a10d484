"""What a planning model reads of an observation that it must not see: handle, status, our own codes, and the shape.

With `Policy(observations="handles")` nothing that a tool returned is shown: not its texts, numbers, truth values and
sizes, and no names of fields either, because whoever writes the data could choose them. The shape is the one that the
tool's card declares; without a declaration it is only "JSON" or "text". So all that an attacker can influence is
whether a call failed and with which of the declared codes, and the answers to questions for which the model itself
listed the choices.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import is_discovery_tool
from taoloop.core.events import ActionRequested, Fault, Observed
from taoloop.core.handles.handle import handle_of
from taoloop.core.policy import Policy
from taoloop.core.texts import TEXTS
from taoloop.core.trace import TOOL_CALL_LIMIT
from taoloop.errors import InvalidArguments

READER = "ask_about"
"""The tool that lets a model without tools read observations."""

UNKNOWN_HANDLE, TOO_LONG = "unknown_handle", "too_long"
"""Codes of a call whose handles could not be filled in."""

_MAX_DEPTH, _MAX_PARTS = 6, 80
_FAILURES = {
    **dict.fromkeys(InvalidArguments.codes, "opaque_invalid_arguments"),
    "exception": "opaque_tool_error",
    "rolled_back": "opaque_not_done",
    **{
        code: f"opaque_{code}" for code in ("denied", "timeout", "tool_error", "invalid_output", "in_doubt", "not_done")
    },
}
"""The texts for the codes of taoloop itself; they say nothing that a tool could choose."""

_CODES_WITH_OWN_TEXT = frozenset({"unknown_tool", *InvalidArguments.codes, TOOL_CALL_LIMIT})
"""Codes whose message quotes the model's own call, which is safe to show if it contained no handles."""

_HANDLE_CODES = frozenset({UNKNOWN_HANDLE, TOO_LONG})  # the message names only the handle


def render_opaque(
    requested: ActionRequested,
    observed: Observed,
    card: ToolCard | None,
    policy: Policy,
    language: str,
    refusal: str | None = None,
) -> str:
    """The text for an observation. `refusal` is the note of the person who refused the call, None if nobody did."""
    if not observed.ok or observed.error is not None:
        return _failure(requested, observed.error, card, policy, language, refusal)
    if is_discovery_tool(card) and requested.written is None:
        return observed.output
    handle = handle_of(requested.call_id)
    answer = reader_answer(requested, observed)
    if answer is not None:
        return f"{handle} = {answer}"
    if is_trusted_output(requested, policy):
        return f"{handle} = {observed.output}"
    return f"{handle}: {_shape_of(requested, observed, card)}"


def reader_answer(requested: ActionRequested, observed: Observed) -> str | None:
    """The answer of a reader that the model may see: yes or no, or one of its own choices; None for any other."""
    if requested.tool != READER or not observed.ok or not isinstance(requested.args, Mapping):
        return None
    answer_form = requested.args.get("answer")
    if answer_form == "yes_no":
        return {"true": "yes", "false": "no"}.get(observed.output)
    return observed.output if isinstance(answer_form, list) and observed.output in answer_form else None


def is_trusted_output(requested: ActionRequested, policy: Policy) -> bool:
    """Whether the model may read what a call returned: the operator trusts the tool, and no handle went into it."""
    if requested.written is not None or requested.tool == READER:
        return False
    return any(fnmatchcase(requested.tool, pattern) for pattern in policy.trusted_tools)


def schema_signature(schema: Any) -> str:
    """The form that a JSON Schema describes, in one line, such as `{"items": [{"email": string}]}`."""
    root = schema if isinstance(schema, Mapping) else {}
    return _shape(root, root, 0, [_MAX_PARTS])


def _failure(
    requested: ActionRequested,
    fault: Fault | None,
    card: ToolCard | None,
    policy: Policy,
    language: str,
    refusal: str | None,
) -> str:
    code = fault.code if fault is not None else "failed"
    declared = next((error for error in card.errors if error.code == code), None) if card is not None else None
    if refusal is not None:
        return _lines("refused", TEXTS.text(language, "opaque_refused"), refusal)
    if fault is not None and requested.verdict == "deny":  # it was not run: what is said of it is our own
        if code in _HANDLE_CODES or (code in _CODES_WITH_OWN_TEXT and requested.written is None):
            return _lines(code, fault.message, fault.hint)
        if code == "denied":
            titles = {f"rule:{rule.title}" for rule in policy.rules}
            return _lines(
                code, TEXTS.text(language, "opaque_denied"), requested.rule if requested.rule in titles else ""
            )
    if declared is not None:
        return _lines(code, declared.advice)
    if code in _FAILURES:
        return _lines(code, TEXTS.text(language, _FAILURES[code]))
    return _lines("failed", TEXTS.text(language, "opaque_failed"))


def _lines(code: str, *texts: str) -> str:
    return "\n".join([f"error: {code}", *(text for text in texts if text)])


def _shape_of(requested: ActionRequested, observed: Observed, card: ToolCard | None) -> str:
    if requested.tool == READER:
        answer_form = requested.args.get("answer") if isinstance(requested.args, Mapping) else None
        return "number" if answer_form == "number" else "text"
    if observed.form == "text":
        return "text"
    if card is None or card.output_schema is None:
        return "JSON"
    return schema_signature(card.output_schema)


def _shape(rule: Any, root: Mapping[str, Any], depth: int, room: list[int]) -> str:
    rule = _resolve_reference(rule, root)
    room[0] -= 1
    if room[0] < 0 or depth > _MAX_DEPTH or not isinstance(rule, Mapping):
        return "…"
    for name in ("anyOf", "oneOf"):
        if isinstance(rule.get(name), list):
            parts = [_shape(part, root, depth + 1, room) for part in rule[name]]
            return " or ".join(dict.fromkeys(parts)) or "…"
    if isinstance(rule.get("properties"), Mapping):
        return _fields(rule["properties"], root, depth, room)
    kind = rule.get("type")
    if kind == "array" or "items" in rule:
        return f"[{_shape(rule.get('items', {}), root, depth + 1, room)}]"
    if isinstance(kind, list):
        return " or ".join(str(type_name) for type_name in kind)
    if kind == "object":
        return "{…}"
    return str(kind) if isinstance(kind, str) else "…"


def _fields(properties: Mapping[str, Any], root: Mapping[str, Any], depth: int, room: list[int]) -> str:
    parts: list[str] = []
    for name, part in properties.items():
        if room[0] <= 0:
            parts.append("…")
            break
        parts.append(f"{json.dumps(name, ensure_ascii=False)}: {_shape(part, root, depth + 1, room)}")
    return "{" + ", ".join(parts) + "}"


def _resolve_reference(rule: Any, root: Mapping[str, Any]) -> Any:
    """The target of a reference within the schema; anything else as it is."""
    for _ in range(_MAX_DEPTH):
        ref = rule.get("$ref") if isinstance(rule, Mapping) else None
        if not isinstance(ref, str) or not ref.startswith("#/"):
            return rule
        rule = root
        for step in ref[2:].split("/"):
            rule = rule.get(step) if isinstance(rule, Mapping) else None
    return None
