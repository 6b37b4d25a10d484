"""From what was written as a tool's arguments, or as an answer, to one call or answer, or to the reason why not.

`build_call` accepts every notation. The `canonical_` functions are the fast path for replies in canonical form, as most
are: they may return only what the tolerant parser would return, and None for everything else. Without them a step costs
30 % more (`benchmarks/overhead.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from taoloop.core.cards.coercion import schema_types
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call, Decision, excerpt
from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.cleanup import EDGE_CHARS, strip_end_tokens
from taoloop.dialects.parsing.json_decision import ROLES, plain_key
from taoloop.dialects.parsing.json_repair import looks_like_json, parse_value, parse_whole, skip_extra_closers
from taoloop.dialects.parsing.placeholders import is_example_call, is_placeholder, repeats_example
from taoloop.dialects.parsing.strict_json import NotJsonError, compact_json, decode_at, dumps, json_equal, strings_in
from taoloop.dialects.parsing.tool_names import MAX_NAME_CHARS, bare_name, is_placeholder_name, resolve_tool_name
from taoloop.dialects.texts import LocalizedText, ReplyParseError

_KEY = lazy_pattern(r"\s*([^\W\d]\w*)\s*(?:=(?!=)|[:：](?![:/]))\s*")
_MEMBER = lazy_pattern(r"[\"'“][\w -]{1,60}[\"'”]\s*[:：]")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "`": "`", "＂": "＂", "「": "」"}
_BRACKETS = lazy_pattern(r"[\[\]]")
_QUOTED_ITEMS = lazy_pattern(r"([\"'])[^\"'\n]*\1\s*,")
_EXPRESSION = lazy_pattern(r"[^\W\d][\w.]*\s*\(.*\)", re.DOTALL)
_LINE = lazy_pattern(
    r"\s{0,8}(?P<key>[^\W\d]\w*):[ \t]++(?:(?P<quoted>\"[^\"\\]*\"|'[^'\\]*')"
    r"|(?P<plain>(?!-\D|[?:,\[\]{}#&*!|>'\"%@`~=<“‘])(?:[^\s:#]|[:#](?=\S)(?<!\s#)|[ \t]+(?=[^\s#]))+))[ \t\r]*"
)
_SCALAR = lazy_pattern(r"true|false|[-+.\d][\d._e+-]*", re.IGNORECASE)
_YAML_WORDS = frozenset({"null", "none", "yes", "no", "on", "off", "nan", "inf", ".nan", ".inf"})
_MAX_WRAPPERS = 3

PUNCTUATION = " \t`*.,;:!?。，；：！？、"
"""What may follow the bracket of a call on its line."""


def build_call(
    name: str, value: Any, cards: Sequence[ToolCard], *, has_input: bool = True, is_guess: bool = False
) -> Call:
    """The call of the tool that `name` means. An unknown tool stays as it was written: the executor answers it.

    Args:
        name: The name as it was written.
        value: What was written as the arguments.
        cards: The tools that may be called.
        has_input: False: nothing was written where the arguments belong.
        is_guess: Brackets were missing or quotes not escaped; that is accepted for tools that only read.

    Raises:
        ReplyParseError: nothing is named, or the arguments are incomplete, ambiguous or not filled in.
    """
    card = resolve_tool_name(name, cards)
    tool = card.name if card is not None else _unknown_tool_name(name)
    if is_guess and (card is None or not card.reads_only):
        raise ReplyParseError("bad_json", "arguments_incomplete", dumps(value), tool=tool)
    if not has_input or value is None:
        if card is not None and card.required:
            parameters, form = ", ".join(card.required), input_shape(card)
            raise ReplyParseError("bad_action", "no_input", name, tool=tool, parameters=parameters, form=form)
        value = {}
    args = _unwrap_arguments(value, card, tool, cards)
    if card is not None and isinstance(args, dict):
        args = _decode_nested_json(args, card)
    _check_strings(args, tool)
    return Call(tool=tool, args=args)


def _check_strings(args: Any, tool: str) -> None:
    """Refuse arguments that are nested too deeply to be looked through."""
    try:
        strings_in(args)
    except NotJsonError as error:
        raise ReplyParseError("bad_json", "input_not_json", tool=tool, error=error.text) from None


def _decode_nested_json(args: dict[str, Any], card: ToolCard) -> dict[str, Any]:
    """The arguments, with JSON in a text where the schema takes a list or an object and no text."""
    return {
        name: _decode_if_json(value, _types(card, name))
        if isinstance(value, str) and name in card.parameters
        else value
        for name, value in args.items()
    }


def _decode_if_json(text: str, types: frozenset[str]) -> Any:
    json_type = {"[": "array", "{": "object"}.get(text.strip()[:1], "")
    if json_type not in types or "string" in types:
        return text
    try:
        parsed = parse_whole(text)
    except NotJsonError:
        return text
    return text if parsed.is_guess else parsed.value


def _unknown_tool_name(name: str) -> str:
    is_identifier = name.replace(".", "").replace("-", "").isidentifier()
    plain = name if is_identifier else bare_name(name) or name.strip()
    if is_placeholder_name(plain):
        raise ReplyParseError("bad_action", "no_tool_named", name, action=excerpt(name))
    if len(plain) > MAX_NAME_CHARS or "\n" in plain or is_placeholder(plain):
        raise ReplyParseError("bad_action", "no_tool_name", name, name=excerpt(name))
    return plain


def _unwrap_arguments(value: Any, card: ToolCard | None, tool: str, cards: Sequence[ToolCard], depth: int = 0) -> Any:
    """Arguments out of a text that holds them, or out of one more wrapper; a bare value of the only parameter."""
    if depth > _MAX_WRAPPERS:
        error = LocalizedText("json_too_deep", {"levels": _MAX_WRAPPERS})
        raise ReplyParseError("bad_action", "input_not_json", dumps(value), tool=tool, error=error)
    if isinstance(value, str):
        text = value.strip()
        if (text[:1] in ("{", "｛") and looks_like_json(text, 0)) or text.startswith('{\\"'):
            return _unwrap_arguments(_parse_arguments_text(text, card, tool), card, tool, cards, depth + 1)
        if card is not None and is_placeholder_name(text):
            return {}
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and _rejects_list(card):
        return _unwrap_arguments(value[0], card, tool, cards, depth + 1)
    if isinstance(value, dict):
        inner = _wrapper_content(value, card, tool, cards)
        return value if inner is None else _unwrap_arguments(inner, card, tool, cards, depth + 1)
    return _wrap_sole_argument(value, card, tool)


def _parse_arguments_text(text: str, card: ToolCard | None, tool: str) -> Any:
    try:
        parsed = parse_whole(text)
    except NotJsonError as error:
        raise ReplyParseError("bad_json", "input_not_json", text, tool=tool, error=error.text) from None
    if parsed.is_guess and (card is None or not card.reads_only):
        raise ReplyParseError("bad_json", "arguments_incomplete", text, tool=tool)
    return parsed.value


def _wrap_sole_argument(value: Any, card: ToolCard | None, tool: str) -> Any:
    """A bare value in place of arguments: the only argument of a tool with one; else it stays as it is."""
    sole = card.sole_parameter if card is not None else None
    if card is None or sole is None:
        if value == [] and card is not None and not card.required:
            return {}
        return value
    if isinstance(value, str) and "array" in _types(card, sole) and value.strip().startswith("["):
        return {sole: _parse_arguments_text(value.strip(), card, tool)}
    return {sole: value}


def _rejects_list(card: ToolCard | None) -> bool:
    """Whether a list can only be a wrapper around the arguments of a tool."""
    if card is None or not card.parameters:
        return False
    types = _types(card, card.sole_parameter) if card.sole_parameter is not None else frozenset({"object"})
    return bool(types) and "array" not in types


def _types(card: ToolCard, name: str) -> frozenset[str]:
    return schema_types(card.parameters[name], card.input_schema)


def _wrapper_content(value: dict[str, Any], card: ToolCard | None, tool: str, cards: Sequence[ToolCard]) -> Any:
    """What is in the one wrapper around arguments, None if there is none."""
    if card is None or not value or any(key in card.parameters for key in value):
        return None
    if len(value) == 1:
        ((key, inner),) = value.items()
        if isinstance(inner, dict) and resolve_tool_name(key, cards) is card:
            return inner
    keys = {plain_key(key): key for key in value}
    args_keys = [key for word, key in keys.items() if word in ROLES["args"]]
    tool_keys = [key for word, key in keys.items() if word in ROLES["tool"]]
    thought_keys = [key for word, key in keys.items() if word in ROLES["thought"]]
    if (
        len(args_keys) != 1
        or len(args_keys) + len(tool_keys) + len(thought_keys) != len(value)
        or not isinstance(value[args_keys[0]], dict | str)
    ):
        return None
    for key in tool_keys:
        other = value[key]
        if not isinstance(other, str) or resolve_tool_name(other, cards) is not card:
            raise ReplyParseError("two_decisions", "two_actions", first=tool, second=excerpt(str(other)))
    return value[args_keys[0]]


def parse_bare_input(raw: str, name: str, card: ToolCard | None) -> tuple[Any, bool]:
    """The value in the text of an input that is not a JSON object, and whether it is a guess.

    Raises:
        ReplyParseError: it is empty, ambiguous, or a program.
    """
    text = raw.strip()
    if not text:
        raise ReplyParseError("bad_action", "empty_input", raw, action=name)
    if is_placeholder_name(text):
        return text, False
    pairs = _parse_input_pairs(text, card)
    if pairs is not None:
        return pairs
    sole = card.sole_parameter if card is not None else None
    if text[0] == "[" and card is not None and sole is not None and "array" in _types(card, sole):
        return text, False
    if _MEMBER.match(text) or (text[0] == "[" and text[-1] == "]"):
        raise ReplyParseError(
            "bad_action", "input_no_object", text, text=excerpt(text), tool=name, form=input_shape(card)
        )
    if _is_one_quoted_string(text):
        try:
            parsed = parse_whole(text)
        except NotJsonError as error:
            raise ReplyParseError("bad_json", "input_not_json", text, tool=name, error=error.text) from None
        return parsed.value, parsed.is_guess
    if card is not None and not card.reads_only and _QUOTED_ITEMS.match(text):
        raise ReplyParseError("bad_action", "input_several_readings", text, tool=name, text=excerpt(text))
    if text[0] in _QUOTES and text.count(text[0]) % 2 and _QUOTES[text[0]] == text[0]:
        fault = LocalizedText("json_truncated")
        raise ReplyParseError("bad_json", "input_not_json", text, tool=name, error=fault)
    return text, False


def parse_key_lines(text: str, card: ToolCard | None, *, at_end: bool) -> dict[str, Any] | None:
    """`key: value` on a line each, as YAML has it, for a tool of several parameters that reads; None for other texts.

    `at_end`: the reply ends with this text, so a last value without quotes may be cut.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    if card is None or not card.reads_only or card.sole_parameter is not None or len(lines) < 2:
        return None
    args: dict[str, Any] = {}
    for index, line in enumerate(lines):
        match = _LINE.fullmatch(line)
        if match is None or match["key"] not in card.parameters or match["key"] in args:
            return None
        unquoted = match["plain"]
        if unquoted is not None and (
            unquoted.casefold() in _YAML_WORDS
            or (at_end and index == len(lines) - 1)
            or (_SCALAR.fullmatch(unquoted) and "string" in (_types(card, match["key"]) or ("string",)))
        ):
            return None
        args[match["key"]] = match["plain"] or parse_whole(match["quoted"]).value
    return args if all(key in args for key in card.required) else None


def _is_one_quoted_string(text: str) -> bool:
    closer = _QUOTES.get(text[0])
    return (
        closer is not None
        and len(text) > 1
        and text[-1] == closer
        and closer not in text[1:-1].replace("\\" + closer, "")
    )


def _parse_input_pairs(text: str, card: ToolCard | None) -> tuple[Any, bool] | None:
    """`key="value", key=5` as arguments; None if the text is not written so."""
    key = _KEY.match(text)
    if key is None or card is None:
        return None
    if key.group(1) not in card.parameters and not ("=" in key.group() and text[key.end() : key.end() + 1] in _QUOTES):
        return None
    try:
        args, end, is_guess = parse_keyword_arguments(text + ")", 0)
    except NotJsonError as error:
        raise ReplyParseError("bad_action", "arguments_in_text", text, text=excerpt(text), error=error.text) from None
    if end != len(text) + 1:
        raise ReplyParseError(
            "bad_action", "input_no_object", text, text=excerpt(text), tool=card.name, form=input_shape(card)
        )
    return args, is_guess


def parse_keyword_arguments(text: str, position: int) -> tuple[dict[str, Any], int, bool]:
    """`key="value", …)`: the arguments, where they end, and whether a repair in them is a guess.

    Raises:
        NotJsonError: an argument has no name or no value that can be read.
    """
    args: dict[str, Any] = {}
    is_guess = False
    position = skip_blanks(text, position)
    while not text.startswith((")", "）"), position):
        key = _KEY.match(text, position)
        if key is None:
            raise NotJsonError.at(position, LocalizedText("json_no_key"), truncated=position >= len(text))
        parsed = parse_value(text, key.end(), call=True)
        if parsed.missing_closers:
            raise NotJsonError("json_truncated", truncated=True)
        name = key.group(1)
        if name in args and not json_equal(args[name], parsed.value):
            raise NotJsonError("json_duplicate_key", unrepairable=True, key=name)
        args[name], is_guess = parsed.value, is_guess or parsed.has_bare_quotes
        position = skip_blanks(text, parsed.end)
        if text.startswith((",", "，"), position):
            position = skip_blanks(text, position + 1)
        elif not text.startswith((")", "）"), position):
            raise NotJsonError.at(position, LocalizedText("json_no_comma"), truncated=position >= len(text))
    return args, position + 1, is_guess


def parse_call_arguments(text: str, position: int, card: ToolCard | None) -> tuple[Any, int, bool]:
    """What follows the `(` of a call: named arguments, one object, or one value; and where it ends.

    Raises:
        NotJsonError: it is broken, or values have no names though there are several parameters.
    """
    start = skip_blanks(text, position)
    if text.startswith((")", "）"), start):
        return {}, start + 1, False
    if _KEY.match(text, start):
        return parse_keyword_arguments(text, start)
    if text.startswith("**", start):
        start = skip_blanks(text, start + 2)
    parsed = parse_value(text, start, call=True)
    end = skip_blanks(text, skip_extra_closers(text, parsed.end) if isinstance(parsed.value, dict) else parsed.end)
    if text.startswith((",", "，"), end):
        end = skip_blanks(text, end + 1)
    if parsed.missing_closers or not text.startswith((")", "）"), end):
        raise NotJsonError("call_no_end", truncated=end >= len(text))
    if not isinstance(parsed.value, dict) and card is not None and card.sole_parameter is None:
        raise NotJsonError("call_no_end")
    return parsed.value, end + 1, parsed.has_bare_quotes


def input_shape(card: ToolCard | None) -> str:
    """The object that the input of a tool is, with its own parameters: the remedy in a correction."""
    names = () if card is None else card.required or tuple(card.parameters)
    return "{" + ", ".join(f'"{name}": …' for name in names) + "}" if names else "{…}"


def find_closing_bracket(text: str, start: int, end: int) -> int:
    """Where the `]` is that closes the bracket before `start`, a quoted text in it passed over; -1 if there is none."""
    quote = text[start : start + 1]
    if quote in ('"', "'") and (closer := re.compile(rf"{quote}\s*\]").search(text, start + 1, end)):
        return closer.end() - 1
    depth = 1
    for match in _BRACKETS.finditer(text, start, end):
        depth += 1 if match.group() == "[" else -1
        if not depth:
            return match.start()
    return -1


def is_program(text: str) -> bool:
    """Whether a bare text calls something: `search("x")` inside of an input is not a value."""
    return _EXPRESSION.fullmatch(text.strip()) is not None


def skip_blanks(text: str, position: int) -> int:
    """The first position from here on that is no blank."""
    while position < len(text) and text[position].isspace():
        position += 1
    return position


_MIN_ANSWER_CHARS = 8
_SPECIAL_STARTS = ("[", "{", "<")  # JSON in a text, if the schema wants a list or an object; a tag


def canonical_call(tool: str, source: str, reason: str, cards: Sequence[ToolCard]) -> Act | None:
    """The call of a known tool with plain arguments in strict JSON; None for anything else."""
    args = canonical_args(tool, source, cards)
    return None if args is None else Act(calls=(Call(tool=tool, args=args),), reason=reason)


def canonical_args(tool: str, source: str, cards: Sequence[ToolCard]) -> Any:
    """The plain arguments of a known tool in strict JSON; None for anything else."""
    try:
        args, end = decode_at(source)
    except NotJsonError:
        return None
    return args if end == len(source) and _are_plain(args, tool, cards) else None


def canonical_decision(
    action: Any, value: Any, reason: str, cards: Sequence[ToolCard], finals: Sequence[str]
) -> Decision | None:
    """The decision of a canonical object: a call, or an answer where the action is one of `finals`."""
    if action not in finals:
        return Act(calls=(Call(tool=action, args=value),), reason=reason) if _are_plain(value, action, cards) else None
    is_tool = any(card.name in finals for card in cards)
    return canonical_answer(value, reason) if type(value) is str and not is_tool else None


def canonical_answer(text: str, reason: str) -> Answer | None:
    """An answer of one line that cannot be mistaken for a placeholder."""
    text = text.strip(" ")
    if len(text) < _MIN_ANSWER_CHARS or not text.isprintable() or is_placeholder(text) or repeats_example(text):
        return None
    return Answer(text=text, reason=reason)


def _are_plain(args: Any, tool: str, cards: Sequence[ToolCard]) -> bool:
    """Whether arguments are plain texts, numbers and booleans, and parameters of a known tool."""
    for card in cards:
        if card.name == tool:
            break
    else:
        return False
    if type(args) is not dict:
        return False
    parameters = card.parameters
    for name, value in args.items():
        if name not in parameters:
            return False
        if type(value) is str:
            if value[:1] in _SPECIAL_STARTS or is_placeholder(value):
                return False
        elif type(value) not in (int, float, bool):
            return False
    return (bool(args) or not parameters) and not is_example_call(tool, args)


_ANSWER_KEYS = frozenset({"answer", "finalanswer", "text", "content", "output", "response", "答案", "回答"})


def is_answer_wrapper(value: Any) -> bool:
    """Whether an object only says that the value in it is the answer; any other object is the answer itself."""
    return isinstance(value, dict) and len(value) == 1 and plain_key(next(iter(value))) in _ANSWER_KEYS


def answer_text(value: Any, *, json_answer: bool = False) -> str:
    """The answer in the value of a final: a text, the value of an object whose key says so, or JSON as it is.

    `json_answer`: JSON stays whole, and an empty list, an empty object and a written null are answers too.

    Raises:
        ReplyParseError: the answer is empty.
    """
    if (
        json_answer
        and value is not None
        and (text := value.strip(EDGE_CHARS) if isinstance(value, str) else dumps(value))
    ):
        return text
    for _ in range(3):  # an answer in an object in an object
        if is_answer_wrapper(value):
            value = next(iter(value.values()))
    if isinstance(value, str):
        text = strip_end_tokens(value.strip(EDGE_CHARS)).strip(EDGE_CHARS)
    else:
        text = "" if value is None else compact_json(value)
    if not text or value in ({}, []):
        raise ReplyParseError("bad_final", "empty_answer", text)
    return text
