"""The forms in which the text dialect writes one call, and how they become a tool and its arguments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from taoloop.core.decision import Call, excerpt
from taoloop.dialects.labels import INLINE_LABEL
from taoloop.dialects.replies import (
    RefusedError,
    check_tool_name,
    find_card,
    is_nothing,
    is_placeholder,
    refuse_placeholders,
)
from taoloop.dialects.strict import NotJsonError, decode_at, loads, same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards import ToolCard

_HEAD = re.compile(r"([^:：(\n]*)([:：(]?)")
_FENCED = re.compile(r"```[\w-]*[ \t]*\n?(.*?)\n?[ \t]*```", re.DOTALL)
_KEY = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)\s*")
_WORD = re.compile(r"(True|False|None)\b")
_SINGLE_QUOTED = re.compile(r"'([^'\\\n]*)'")
_PYTHON = {"True": True, "False": False, "None": None}


def split_action(action: str, cards: Sequence[ToolCard]) -> tuple[str, str, str]:
    """The tool's name in an action, the sign behind it (`:`, `(` or nothing), and the rest.

    Raises:
        RefusedError: no tool is named.
    """
    plain = _bare_name(action)
    if find_card(plain, cards) is not None:
        return plain, "", ""
    match = _HEAD.match(action)
    name = _bare_name(match.group(1)) if match else ""
    sign = match.group(2) if match else ""
    if is_nothing(name) or name[0] in "{[":
        raise RefusedError("bad_action", f"The action {excerpt(action)!r} names no tool.", action)
    check_tool_name(name)
    rest = action[match.end() :].strip() if match else ""
    return name, ":" if sign == "：" else sign, rest


def read_call(action: str, given: str | None, cards: Sequence[ToolCard]) -> Call:
    """The call in an action line and the input behind it (None where there was no input label).

    Raises:
        RefusedError: it is incomplete, ambiguous or broken; the message quotes the action.
    """
    name, sign, rest = split_action(action, cards)
    card = find_card(name, cards)
    if sign and given is not None and not (sign == "(" and rest == ")"):
        raise RefusedError("bad_action", f"The action {excerpt(action)!r} has its input twice.", action)
    if sign == "(" and given is None:
        args = _call_args(action, rest, name, card)
    elif sign == ":":
        args = bare_args(rest, action, name, card)
    elif sign == "" and rest:
        line = rest.split("\n", 1)[0]
        raise RefusedError(
            "stray_text", f"The line {excerpt(line)!r} follows the action {name!r} without a label.", line
        )
    elif given is None:
        args = _no_input(action, card)
    else:
        args = bare_args(given, action, name, card)
    refuse_placeholders(args, name)
    return Call(tool=name, args=args)


def bare_args(raw: str, action: str, name: str, card: ToolCard | None) -> Any:
    """Arguments from the text of an input: a JSON object, or a bare value for a tool with one parameter.

    Raises:
        RefusedError: it is empty, broken or ambiguous.
    """
    raw = _unfenced(raw)
    if not raw:
        raise RefusedError("bad_action", f"The action {excerpt(action)!r} has an empty input.", action)
    if raw[0] == "{" and not is_placeholder(raw):
        return _object(raw, name)
    if raw[0] == '"':
        try:
            return _stand_in(loads(raw), name, card)
        except NotJsonError:
            pass
    if "\n" in raw:
        line = raw.split("\n", 1)[1].strip().split("\n", 1)[0]
        raise RefusedError(
            "stray_text", f"The line {excerpt(line)!r} follows the input of {name!r} without a label.", line
        )
    if INLINE_LABEL.search(raw):
        raise RefusedError("stray_text", f"The input of {name!r} has a label inside it: {excerpt(raw)!r}.", raw)
    quoted = _SINGLE_QUOTED.fullmatch(raw)
    return _stand_in(quoted.group(1) if quoted else raw, name, card)


def _bare_name(text: str) -> str:
    return text.strip().strip("`*\"'").strip()


def _unfenced(raw: str) -> str:
    raw = raw.strip()
    if raw.startswith("```"):
        fenced = _FENCED.fullmatch(raw)
        if fenced is not None:
            return fenced.group(1).strip()
    return raw


def _object(raw: str, name: str) -> Any:
    try:
        value, end = decode_at(raw)
    except NotJsonError as error:
        raise RefusedError("bad_json", f"The input of {name!r} is not valid JSON: {error}.", raw) from None
    rest = raw[end:].strip()
    if rest:
        line = rest.split("\n", 1)[0]
        raise RefusedError(
            "stray_text",
            f"The text {excerpt(line)!r} follows the input of {name!r} without a label. "
            f"Usable before it: the call of {name!r}.",
            line,
        )
    return value


def _stand_in(value: Any, name: str, card: ToolCard | None) -> Any:
    """A bare value in place of arguments: the only argument of a tool with one; else it stays as it is."""
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("{") and not is_placeholder(text):
            return _object(text, name)
        if card is not None and is_nothing(text):
            return {}
    sole = card.sole_parameter if card is not None else None
    if card is None or sole is None:
        return value
    schema = card.parameters[sole]
    if isinstance(value, str) and value.startswith("[") and "array" in str(schema.get("type", "")):
        try:
            return {sole: loads(value)}
        except NotJsonError as error:
            raise RefusedError("bad_json", f"The input of {name!r} is not valid JSON: {error}.", value) from None
    return {sole: value}


def _no_input(action: str, card: ToolCard | None) -> dict[str, Any]:
    if card is not None and card.required:
        raise RefusedError(
            "bad_action",
            f"The action {excerpt(action)!r} has no input; {card.name!r} needs {', '.join(card.required)}.",
            action,
        )
    return {}


def _call_args(action: str, rest: str, name: str, card: ToolCard | None) -> Any:
    """The arguments in `key="v", …)`, in `{json})` or in `value)`."""
    try:
        args, end = _inside(rest, name, card)
    except NotJsonError as error:
        raise RefusedError(
            "bad_json", f"The arguments in {excerpt(action)!r} cannot be read: {error}.", action
        ) from None
    if rest[end:].strip():
        line = rest[end:].strip().split("\n", 1)[0]
        raise RefusedError(
            "stray_text", f"The text {excerpt(line)!r} follows the call of {name!r} without a label.", line
        )
    return args


def _inside(rest: str, name: str, card: ToolCard | None) -> tuple[Any, int]:
    args: dict[str, Any] = {}
    position = _skip(rest, 0)
    if rest.startswith(")", position):
        return args, position + 1
    while True:
        key = _KEY.match(rest, position)
        if key is None:
            if args:
                raise NotJsonError(f"an argument without a name at character {position + 1}")
            return _positional(rest, position, name, card)
        value, position = _value(rest, key.end())
        if key.group(1) in args and not same(args[key.group(1)], value):
            raise NotJsonError(f"the argument {key.group(1)!r} stands twice with different values")
        args[key.group(1)] = value
        position, closed = _separator(rest, position)
        if closed:
            return args, position


def _positional(rest: str, position: int, name: str, card: ToolCard | None) -> tuple[Any, int]:
    value, position = _value(rest, position)
    position, closed = _separator(rest, position)
    if not closed:
        raise NotJsonError("several arguments need their names")
    if isinstance(value, dict):
        return value, position
    if card is not None and card.sole_parameter is None:
        raise NotJsonError(f"the arguments of {name!r} need their names")
    return _stand_in(value, name, card), position


def _value(text: str, position: int) -> tuple[Any, int]:
    word = _WORD.match(text, position)
    if word is not None:
        return _PYTHON[word.group()], word.end()
    quoted = _SINGLE_QUOTED.match(text, position)
    if quoted is not None:
        return quoted.group(1), quoted.end()
    return decode_at(text, position)


def _separator(text: str, position: int) -> tuple[int, bool]:
    """Behind a comma or the closing bracket, and which of the two it was."""
    position = _skip(text, position)
    sign = text[position : position + 1]
    if sign == ",":
        return _skip(text, position + 1), False
    if sign == ")":
        return position + 1, True
    raise NotJsonError(f"a comma or ')' is missing at character {position + 1}", ended=not sign)


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position
