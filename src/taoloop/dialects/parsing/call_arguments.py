"""From a name and what stood where its arguments belong to one call, or to the reason why there is none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from taoloop.core.cards.coercion import schema_types
from taoloop.core.decision import Call, excerpt
from taoloop.dialects.parsing.json_decision import ROLES, plain_key
from taoloop.dialects.parsing.json_repair import looks_like_json, read_value, read_whole, skip_extra_closers
from taoloop.dialects.parsing.parse_error import ReplyParseError
from taoloop.dialects.parsing.placeholders import is_placeholder, reject_placeholders
from taoloop.dialects.parsing.strict_json import NotJsonError, dumps, json_equal
from taoloop.dialects.parsing.tool_names import MAX_NAME_CHARS, bare_name, is_placeholder_name, resolve_tool_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards.tool_card import ToolCard

_KEY = re.compile(r"\s*([^\W\d]\w*)\s*(?:=(?!=)|[:：](?![:/]))\s*")
_MEMBER = re.compile(r"[\"'“][\w -]{1,60}[\"'”]\s*[:：]")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "`": "`", "＂": "＂", "「": "」"}
_EXPRESSION = re.compile(r"[^\W\d][\w.]*\s*\(.*\)", re.DOTALL)
_LINE = re.compile(
    r"\s{0,8}(?P<key>[^\W\d]\w*):[ \t]++(?:(?P<quoted>\"[^\"\\]*\"|'[^'\\]*')"
    r"|(?P<plain>(?!-\D|[?:,\[\]{}#&*!|>'\"%@`~=<“‘])(?:[^\s:#]|[:#](?=\S)(?<!\s#)|[ \t]+(?=[^\s#]))+))[ \t\r]*"
)
_SCALAR = re.compile(r"true|false|[-+.\d][\d._e+-]*", re.IGNORECASE)
_YAML_WORDS = frozenset({"null", "none", "yes", "no", "on", "off", "nan", "inf", ".nan", ".inf"})
_DEEPEST = 3


def build_call(name: str, value: Any, cards: Sequence[ToolCard], *, given: bool = True, doubtful: bool = False) -> Call:
    """The call of the tool that `name` means. An unknown tool stays as it was written: the executor answers it.

    `given` False: there was no place for arguments. `doubtful`: brackets were missing or quotes not escaped, which
    only a tool that reads may rest on.

    Raises:
        RefusedError: nothing is named, or the arguments are incomplete, ambiguous or not filled in.
    """
    card = resolve_tool_name(name, cards)
    tool = card.name if card is not None else _unknown(name)
    if doubtful and (card is None or not card.reads_only):
        raise ReplyParseError(
            "bad_json",
            f"The arguments of {tool!r} are not complete, or their quotes are not escaped; nothing was run.",
            dumps(value),
        )
    if not given or value is None:
        if card is not None and card.required:
            raise ReplyParseError(
                "bad_action", f"The action {tool!r} has no input; it needs {', '.join(card.required)}.", name
            )
        value = {}
    args = _arguments(value, card, tool, cards)
    if card is not None and isinstance(args, dict):
        args = _decoded(args, card)
    reject_placeholders(args, tool, cards)
    return Call(tool=tool, args=args)


def _decoded(args: dict[str, Any], card: ToolCard) -> dict[str, Any]:
    """The arguments, with JSON in a text where the schema takes a list or an object and no text."""
    return {
        name: _listed(value, _types(card, name)) if isinstance(value, str) and name in card.parameters else value
        for name, value in args.items()
    }


def _listed(text: str, types: frozenset[str]) -> Any:
    kind = {"[": "array", "{": "object"}.get(text.strip()[:1], "")
    if kind not in types or "string" in types:
        return text
    try:
        inner = read_whole(text)
    except NotJsonError:
        return text
    return text if inner.is_guess else inner.value


def _unknown(name: str) -> str:
    plain = name if _is_plain(name) else bare_name(name) or name.strip()
    if is_placeholder_name(plain):
        raise ReplyParseError("bad_action", f"The action {excerpt(name)!r} names no tool.", name)
    if len(plain) > MAX_NAME_CHARS or "\n" in plain or is_placeholder(plain):
        raise ReplyParseError("bad_action", f"This is no tool name: {excerpt(name)!r}.", name)
    return plain


def _is_plain(name: str) -> bool:
    return name.replace(".", "").replace("-", "").isidentifier()


def _arguments(value: Any, card: ToolCard | None, tool: str, cards: Sequence[ToolCard], depth: int = 0) -> Any:
    """Arguments out of a text that holds them, or out of one more wrapper; a bare value of the only parameter."""
    if depth > _DEEPEST:
        raise ReplyParseError("bad_action", f"The arguments of {tool!r} are wrapped too often.", dumps(value))
    if isinstance(value, str):
        text = value.strip()
        if (text[:1] in ("{", "｛") and looks_like_json(text, 0)) or text.startswith('{\\"'):
            return _arguments(_inner(text, card, tool), card, tool, cards, depth + 1)
        if card is not None and is_placeholder_name(text):
            return {}
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and _takes_no_list(card):
        return _arguments(value[0], card, tool, cards, depth + 1)
    if isinstance(value, dict):
        inner = _unwrapped(value, card, tool, cards)
        return value if inner is None else _arguments(inner, card, tool, cards, depth + 1)
    return _bare(value, card, tool)


def _inner(text: str, card: ToolCard | None, tool: str) -> Any:
    try:
        found = read_whole(text)
    except NotJsonError as error:
        raise ReplyParseError("bad_json", f"The input of {tool!r} is not valid JSON: {error}.", text) from None
    if found.is_guess and (card is None or not card.reads_only):
        raise ReplyParseError("bad_json", f"The input of {tool!r} is not complete; nothing was run.", text)
    return found.value


def _bare(value: Any, card: ToolCard | None, tool: str) -> Any:
    """A bare value in place of arguments: the only argument of a tool with one; else it stays as it is."""
    sole = card.sole_parameter if card is not None else None
    if card is None or sole is None:
        if value == [] and card is not None and not card.required:
            return {}
        return value
    if isinstance(value, str) and "array" in _types(card, sole) and value.strip().startswith("["):
        return {sole: _inner(value.strip(), card, tool)}
    return {sole: value}


def _takes_no_list(card: ToolCard | None) -> bool:
    """Whether a list can only be a wrapper around the arguments of a tool."""
    if card is None or not card.parameters:
        return False
    types = _types(card, card.sole_parameter) if card.sole_parameter is not None else frozenset({"object"})
    return bool(types) and "array" not in types


def _types(card: ToolCard, name: str) -> frozenset[str]:
    return schema_types(card.parameters[name], card.input_schema)


def _unwrapped(value: dict[str, Any], card: ToolCard | None, tool: str, cards: Sequence[ToolCard]) -> Any:
    """What is in the one wrapper around arguments, None if there is none."""
    if card is None or not value or any(key in card.parameters for key in value):
        return None
    if len(value) == 1:
        ((key, inner),) = value.items()
        if isinstance(inner, dict) and resolve_tool_name(key, cards) is card:
            return inner
    plain = {plain_key(key): key for key in value}
    held = [key for word, key in plain.items() if word in ROLES["args"]]
    named = [key for word, key in plain.items() if word in ROLES["tool"]]
    mused = [key for word, key in plain.items() if word in ROLES["thought"]]
    if (
        len(held) != 1
        or len(held) + len(named) + len(mused) != len(value)
        or not isinstance(value[held[0]], dict | str)
    ):
        return None
    for key in named:
        other = value[key]
        if not isinstance(other, str) or resolve_tool_name(other, cards) is not card:
            raise ReplyParseError(
                "two_decisions", f"The input of {tool!r} names another tool: {excerpt(str(other))!r}."
            )
    return value[held[0]]


def input_value(raw: str, name: str, card: ToolCard | None) -> tuple[Any, bool]:
    """The value in the text of an input that is no JSON object, and whether it is doubtful.

    Raises:
        RefusedError: it is empty, ambiguous, or a program.
    """
    text = raw.strip()
    if not text:
        raise ReplyParseError("bad_action", f"The action {name!r} has an empty input.", raw)
    if is_placeholder_name(text):
        return text, False
    pairs = _pairs(text, card)
    if pairs is not None:
        return pairs
    sole = card.sole_parameter if card is not None else None
    if text[0] == "[" and card is not None and sole is not None and "array" in _types(card, sole):
        return text, False
    if _MEMBER.match(text) or (text[0] == "[" and text[-1] == "]"):
        raise ReplyParseError(
            "bad_action", f"The input {excerpt(text)!r} of {name!r} is no JSON object, nor bare text.", text
        )
    if _quoted_whole(text):
        try:
            found = read_whole(text)
        except NotJsonError as error:
            raise ReplyParseError("bad_json", f"The input of {name!r} is not valid JSON: {error}.", text) from None
        return found.value, found.is_guess
    if text[0] in _QUOTES and text.count(text[0]) % 2 and _QUOTES[text[0]] == text[0]:
        raise ReplyParseError("bad_json", f"The input of {name!r} begins a text that never ends.", text)
    return text, False


def key_lines(text: str, card: ToolCard | None, *, ended: bool) -> dict[str, Any] | None:
    """`key: value` on a line each, as YAML has it, for a tool of several parameters that reads; None for other texts.

    `ended`: the reply ends with this text, so a last value without quotes may be cut.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    if card is None or not card.reads_only or card.sole_parameter is not None or len(lines) < 2:
        return None
    args: dict[str, Any] = {}
    for number, line in enumerate(lines):
        match = _LINE.fullmatch(line)
        if match is None or match["key"] not in card.parameters or match["key"] in args:
            return None
        plain = match["plain"]
        if plain is not None and (
            plain.casefold() in _YAML_WORDS
            or (ended and number == len(lines) - 1)
            or (_SCALAR.fullmatch(plain) and "string" in (_types(card, match["key"]) or ("string",)))
        ):
            return None
        args[match["key"]] = match["plain"] or read_whole(match["quoted"]).value
    return args if all(key in args for key in card.required) else None


def _quoted_whole(text: str) -> bool:
    closer = _QUOTES.get(text[0])
    return (
        closer is not None
        and len(text) > 1
        and text[-1] == closer
        and closer not in text[1:-1].replace("\\" + closer, "")
    )


def _pairs(text: str, card: ToolCard | None) -> tuple[Any, bool] | None:
    """`key="value", key=5` as arguments; None if the text is not written so."""
    key = _KEY.match(text)
    if key is None or card is None:
        return None
    if key.group(1) not in card.parameters and not ("=" in key.group() and text[key.end() : key.end() + 1] in _QUOTES):
        return None
    try:
        args, end, doubtful = read_pairs(text + ")", 0)
    except NotJsonError as error:
        raise ReplyParseError(
            "bad_action", f"The input {excerpt(text)!r} of {card.name!r} is no JSON object: {error}.", text
        ) from None
    if end != len(text) + 1:
        raise ReplyParseError("bad_action", f"The input {excerpt(text)!r} of {card.name!r} is no JSON object.", text)
    return args, doubtful


def read_pairs(text: str, position: int) -> tuple[dict[str, Any], int, bool]:
    """`key="value", …)`: the arguments, where they end, and whether a repair in them is doubtful.

    Raises:
        NotJsonError: an argument has no name or no value that can be read.
    """
    args: dict[str, Any] = {}
    doubtful = False
    position = _skip(text, position)
    while not text.startswith((")", "）"), position):
        key = _KEY.match(text, position)
        if key is None:
            ended = position >= len(text)
            raise NotJsonError(f"an argument without a name at character {position + 1}", ended=ended)
        found = read_value(text, key.end(), call=True)
        if found.missing:
            raise NotJsonError("it stops in the middle", ended=True)
        name = key.group(1)
        if name in args and not json_equal(args[name], found.value):
            raise NotJsonError(f"the argument {name!r} stands twice with different values", final=True)
        args[name], doubtful = found.value, doubtful or found.requoted
        position = _skip(text, found.end)
        if text.startswith((",", "，"), position):
            position = _skip(text, position + 1)
        elif not text.startswith((")", "）"), position):
            raise NotJsonError(f"a comma or ')' is missing at character {position + 1}", ended=position >= len(text))
    return args, position + 1, doubtful


def read_in_brackets(text: str, position: int, card: ToolCard | None) -> tuple[Any, int, bool]:
    """What stands behind the `(` of a call: named arguments, one object, or one value; and where it ends.

    Raises:
        NotJsonError: it is broken, or values have no names though there are several parameters.
    """
    start = _skip(text, position)
    if text.startswith((")", "）"), start):
        return {}, start + 1, False
    if _KEY.match(text, start):
        return read_pairs(text, start)
    if text.startswith("**", start):
        start = _skip(text, start + 2)
    found = read_value(text, start, call=True)
    end = _skip(text, skip_extra_closers(text, found.end) if isinstance(found.value, dict) else found.end)
    if text.startswith((",", "，"), end):
        end = _skip(text, end + 1)
    if found.missing or not text.startswith((")", "）"), end):
        raise NotJsonError("its end, or the names of several arguments, are missing", ended=end >= len(text))
    if not isinstance(found.value, dict) and card is not None and card.sole_parameter is None:
        raise NotJsonError(f"the arguments of {card.name!r} need their names")
    return found.value, end + 1, found.requoted


def is_program(text: str) -> bool:
    """Whether a bare text calls something: `search("x")` inside of an input is not a value."""
    return _EXPRESSION.fullmatch(text.strip()) is not None


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position
