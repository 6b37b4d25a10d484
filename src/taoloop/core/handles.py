"""Handles: what a planning model reads and writes in place of values that it must not see (`$obs3.items[0].email`).

The idea is the dual model of Willison ("The Dual LLM pattern for building AI assistants that can resist prompt
injection", 2023), made exact by Debenedetti et al. ("Defeating Prompt Injections by Design", 2025: CaMeL): the model
that decides reads no untrusted text, it only says which value goes where.

What it writes. `$obs3` is what came back for `call_3`. A path leads into JSON: `.name`, `["any name"]`, `[0]`, and
`[*]` for each item of a list. A text that consists of one handle means the value itself, with its type; within a longer
text a value is written as text, and braces (`${obs3.name}`) mark the end of the handle.

What it reads. With `Policy(observations="handles")` nothing that a tool returned is shown: not its texts, numbers,
truth values and sizes, and no names of fields either, because the author of the data could choose them. The shape is
the one that the tool's card declares; without a declaration it is only "JSON" or "text". So all that an attacker can
influence is whether a call failed and with which of the declared codes, and the answers to questions for which the
model itself listed the choices.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from taoloop.core.cards.coercion import resolve_reference
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import is_discovery_tool
from taoloop.core.events import ActionRequested, Fault, Observed
from taoloop.core.policy import Policy
from taoloop.core.text import lazy_pattern
from taoloop.core.texts import TEXTS
from taoloop.core.trace import TOOL_CALL_LIMIT
from taoloop.errors import InvalidArguments

MAX_FILLED_CHARS = 1_000_000
"""How long all texts of one call or answer may become together by what is filled in."""

_FULL_PATH = r"(?:\.[^\W\d][\w-]*|\[(?:\d{1,6}|\*)\]|\[\"(?:[^\"\\\n]|\\.)*\"\])*+"
_BARE_PATH = r"(?:\.[A-Za-z_][A-Za-z0-9_]*+|\[(?:\d{1,6}|\*)\])*+"
_WHOLE_HANDLE = lazy_pattern(rf"\$obs(\d{{1,6}})({_FULL_PATH})|\$\{{obs(\d{{1,6}})({_FULL_PATH})\}}")
_HANDLE_IN_TEXT = lazy_pattern(
    rf"\$\{{obs(\d{{1,6}})({_FULL_PATH})\}}"
    rf"|\$obs(\d{{1,6}}+)({_BARE_PATH})(?![\[A-Za-z0-9_]|\.[^\W\d])"
    r"|(\$\{?obs\d[^\s}]{0,60}\}?)"  # neither of the two, but meant as a handle
)
_HANDLE_START = lazy_pattern(r"\$\{?obs(\d{1,6})")
_STEP = lazy_pattern(r"\.([^\W\d][\w-]*)|\[(\d{1,6}|\*)\]|\[(\"(?:[^\"\\\n]|\\.)*\")\]")

Find = Callable[[int], Any]
"""Returns the whole value of an observation by its number; raises LookupError if there is none."""


UNKNOWN_HANDLE, TOO_LONG = "unknown_handle", "too_long"
"""Codes of a call whose handles could not be filled in."""


class HandleError(ValueError):
    """Handles that cannot be filled in: one names nothing, or the values have more than `MAX_FILLED_CHARS` characters.

    `code` says which; `handle` is the one that names nothing, as the model wrote it. It never contains a value of an
    observation.
    """

    def __init__(self, code: str, handle: str = "") -> None:
        super().__init__(code, handle)
        self.code, self.handle = code, handle


def handle_of(call_id: str) -> str:
    """The handle of what came back for a call: `$obs3` for `call_3`."""
    return f"$obs{call_id.removeprefix('call_')}"


def contains_handle(value: Any) -> bool:
    """Whether any text of a value contains a handle, or what was meant as one."""
    return any(_HANDLE_START.search(text) is not None for text in _texts(value))


def is_handle(text: str) -> bool:
    """Whether a text is one handle and nothing else."""
    return _WHOLE_HANDLE.fullmatch(text.strip()) is not None


def numbers_in(value: Any) -> set[int]:
    """The numbers of the observations that the handles in a value refer to."""
    return {int(number) for text in _texts(value) for number in _HANDLE_START.findall(text)}


def value_of(handle: str, find: Find) -> Any:
    """The value that one handle refers to.

    Raises:
        HandleError: it is none, or names nothing.
    """
    match = _WHOLE_HANDLE.fullmatch(handle.strip())
    if match is None:
        raise HandleError(UNKNOWN_HANDLE, handle[:80])
    return _resolve_match(match, find)


def substitute_handles(value: Any, find: Find) -> Any:
    """`value` with every handle replaced by the value that it refers to, once: filled-in text is not searched again.

    The value itself if it contains no handle. Names of fields are left as they are.

    Raises:
        HandleError: a handle names nothing, or it would become too long.
    """
    return _fill(value, find, [MAX_FILLED_CHARS]) if contains_handle(value) else value


def mask_handles(text: str, mask: str) -> str:
    """`text` with every handle replaced by `mask`: for readers who cannot use the observations of this run."""
    return _HANDLE_IN_TEXT.sub(lambda _: mask, text) if _HANDLE_START.search(text) else text


def inline_text(value: Any) -> str:
    """A value as part of a longer text: a list of plain values with commas, other structures as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and not any(isinstance(item, list | dict) for item in value):
        return ", ".join(map(inline_text, value))
    return json.dumps(value, ensure_ascii=False)


def _fill(value: Any, find: Find, room: list[int]) -> Any:
    if isinstance(value, str):
        return _fill_text(value, find, room)
    if isinstance(value, Mapping):
        return {name: _fill(part, find, room) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_fill(part, find, room) for part in value]
    return value


def _fill_text(text: str, find: Find, room: list[int]) -> Any:
    if _HANDLE_START.search(text) is None:
        return text
    if (match := _WHOLE_HANDLE.fullmatch(text.strip())) is not None:
        value = _resolve_match(match, find)
        _use_room(room, inline_text(value))
        return value

    def replace_match(match: re.Match[str]) -> str:
        filled = inline_text(_resolve_match(match, find))
        _use_room(room, filled)
        return filled

    return _HANDLE_IN_TEXT.sub(replace_match, text)


def _use_room(room: list[int], filled: str) -> None:
    room[0] -= len(filled)
    if room[0] < 0:
        raise HandleError(TOO_LONG)


def _resolve_match(match: re.Match[str], find: Find) -> Any:
    number, path = match[1] or match[3], match[2] or match[4] or ""
    try:
        if number is None:
            raise LookupError
        value = find(int(number))
        if path and isinstance(value, str):
            value = json.loads(value)  # many tools give JSON as a text
        return _follow(value, _steps(path))
    except (LookupError, ValueError, RecursionError):
        raise HandleError(UNKNOWN_HANDLE, match.group().strip()[:80]) from None


def _steps(path: str) -> list[str | int | None]:
    """The steps of a path: names, positions, and None for each item."""
    steps: list[str | int | None] = []
    for step in _STEP.finditer(path):
        name, position, quoted = step.groups()
        if position is not None:
            steps.append(None if position == "*" else int(position))
        else:
            steps.append(name if quoted is None else str(json.loads(quoted)))
    return steps


def _follow(value: Any, steps: list[str | int | None]) -> Any:
    for index, step in enumerate(steps):
        if isinstance(step, str):
            if not isinstance(value, Mapping):
                raise LookupError
            value = value[step]
            continue
        if not isinstance(value, list):
            raise LookupError
        if step is None:
            return [_follow(item, steps[index + 1 :]) for item in value]
        value = value[step]
    return value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


READER = "ask_about"
"""The tool that lets a model without tools read observations."""

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
    """What the model reads of an observation. `refusal`: the note of a person who refused the call."""
    if not observed.ok or observed.error is not None:
        return _failure(requested, observed.error, card, policy, language, refusal)
    if is_discovery_tool(card) and requested.written is None:
        return observed.output
    handle = handle_of(requested.call_id)
    answer = reader_answer(requested, observed)
    if answer is not None:
        return f"{handle} = {answer}"
    if is_trusted_output(requested, policy, card):
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


def is_trusted_output(requested: ActionRequested, policy: Policy, card: ToolCard | None = None) -> bool:
    """Whether the model may read what a call returned: the operator trusts the tool, and no handle went into it.

    With the tool's `card` also where the operator approved the content that a call that succeeded returned.
    """
    if requested.written is not None or requested.tool == READER:
        return False
    if is_approved_content(requested, card):
        return True
    return any(fnmatchcase(requested.tool, pattern) for pattern in policy.trusted_tools)


def is_approved_content(requested: ActionRequested, card: ToolCard | None) -> bool:
    """Whether a call reads content that its card names as approved by the operator."""
    if card is None or not card.contents or requested.written is not None or not isinstance(requested.args, Mapping):
        return False
    name = requested.args.get("name")
    return any(content.trusted and content.name == name for content in card.contents)


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
    rule = _follow_references(rule, root)
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


def _follow_references(rule: Any, root: Mapping[str, Any]) -> Any:
    """What references within the schema lead to; anything else as it is."""
    for _ in range(_MAX_DEPTH):
        ref = rule.get("$ref") if isinstance(rule, Mapping) else None
        if not isinstance(ref, str) or not ref.startswith("#/"):
            return rule
        rule = resolve_reference(ref, root)
    return None
