"""Calls in the notations of model families, when they leak into the text of a reply.

Every notation is marks around the same few things, so there is no parser per family: marks are skipped, and what
is between them is a name in a tag with parameters, a name followed by JSON, JSON alone, or `name(key="value")`.

| marks | families |
|---|---|
| `<tool_call>`, `<tools>`, `<TOOLCALL>`, `<function_call>` | Hermes, Qwen, GLM, Granite, Nemotron, Phi |
| `<function=…>`, `<invoke name=…>`, `<parameter…>`, `<arg_key>` | Qwen, Llama, Claude, MiniMax, GLM, DeepSeek |
| `<|python_tag|>`, `[TOOL_CALLS]`, `functools[` | Llama, Mistral, Phi |
| `<｜tool▁call▁begin｜>`, `<|tool_call_begin|>`, `<|action_start|>` | DeepSeek, Kimi, InternLM, LFM, Command R |
| `<|channel|>commentary to=functions.…` | gpt-oss |
| `<start_function_call>call:…`, `tool_code` | Gemma |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from taoloop.core.cards.coercion import schema_types
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.call_arguments import parse_call_arguments, skip_blanks
from taoloop.dialects.parsing.json_decision import ParsedCall, ParsedItem, parse_decision_object
from taoloop.dialects.parsing.json_repair import looks_like_json, parse_value, parse_whole, skip_extra_closers
from taoloop.dialects.parsing.patterns import CALL_NAMESPACE, TOOL_WORD
from taoloop.dialects.parsing.strict_json import NotJsonError, dumps
from taoloop.dialects.parsing.tool_names import resolve_tool_name
from taoloop.dialects.texts import ReplyParseError

_MARK = lazy_pattern(
    rf"\s++|<[|｜](?:/?(?:START_|END_)?{TOOL_WORD}s?[\w▁ ]{{0,30}}|constrain|call|tools_prefix|tools_suffix"
    rf"|plugin|action_end|end|interpreter)[|｜]?>|</?{TOOL_WORD}s?[\w▁]{{0,30}}[|｜]>|>>>"
    rf"|</?{CALL_NAMESPACE}(?:tool_?calls?|function_?calls?|tools|tool_use|start_function_call|end_function_call|action_call)>"
    rf"|</{CALL_NAMESPACE}(?:function|invoke|tool_call|function_call|tool|call)>|</(?:arguments|args|parameters|params|input)>"
    r"|\[/?TOOL_CALLS?\]|functools(?=\[)|```[\w-]{0,12}|(?:tool_code|function|json)\s*(?=[<{`\n])",
    re.IGNORECASE,
)
_SEPARATOR = lazy_pattern(r"function<[|｜]?tool[▁_]sep[|｜]?>", re.IGNORECASE)
_TAGGED = lazy_pattern(
    rf"<{CALL_NAMESPACE}(?:function|invoke|tool_call|function_call|tool|call)(?:=|\s+(?:name|tool)\s*=)\s*(?P<quote>[\"']?)"
    rf"(?P<name>[^\"'<>=\n]{{1,200}})(?P=quote)[^<>\n]{{0,80}}>",
    re.IGNORECASE,
)
_PARAMETER = lazy_pattern(
    rf"<(?P<ns>{CALL_NAMESPACE})(?P<tag>parameter|param|arg|argument)(?:=|\s+name\s*=)\s*(?P<quote>[\"']?)"
    rf"(?P<key>[^\"'<>=\n]{{1,200}})(?P=quote)[^<>\n]{{0,80}}>",
    re.IGNORECASE,
)
_IN_TAGS = lazy_pattern(
    r"<(?P<tag>name|tool_name|function_name|function|tool)>\s*(?P<name>[^<>\n]{1,200}?)\s*</(?P=tag)>\s*"
    r"<(?:arguments|args|parameters|params|input|tool_input)>\s*(?=\{)",
    re.IGNORECASE,
)
_KEYED = lazy_pattern(r"\s*<arg_key>\s*(?P<key>[^<>]{1,200}?)\s*</arg_key>\s*<arg_value>")
_RECIPIENT = lazy_pattern(
    r"(?:<\|start\|>(?:assistant)?\s*)?(?:<\|channel\|>\s*commentary)?\s*to=(?P<name>[\w.:-]{1,200})(?:<\|channel\|>\s*commentary)?"
    r"\s*(?:<\|constrain\|>)?\s*(?:json|code)?\s*<\|message\|>",
    re.IGNORECASE,
)
_NAMED = lazy_pattern(
    r"(?P<name>[^\W\d][\w.-]{0,200}?)(?::\d{1,6})?\s*"
    r"(?:\[CALL_ID\]\w{0,64}\s*)?(?:\[ARGS\]|<[|｜]tool▁sep[|｜]>|<\|tool_call_argument_begin\|>)?\s*(?:```(?:json)?\s*)?(?=[{｛])"
)
_CALLED = lazy_pattern(r"\s*\[?\s*(?:print\()?(?P<name>[^\W\d][\w.]{0,200})(?P<dot>\.call)?\(")
_ESCAPED = lazy_pattern(r"call:(?P<name>[\w.:-]{1,200}?)\s*(?=\{)")
_ESCAPES = lazy_pattern(r"(?P<mark><escape>|<\|\"\|>)|[{}\[\]]")


FUNCTION_CALL = _CALLED
"""A call written as `name(`, perhaps in a list, or printed."""


class LeakedCall(NamedTuple):
    """One call as it leaked."""

    item: ParsedItem
    """What was written."""
    is_guess: bool
    """Whether its end, or a quote in it, had to be repaired."""


def parse_leaked_calls(text: str, position: int, cards: Sequence[ToolCard]) -> tuple[list[LeakedCall], int]:
    """The calls that begin at the mark at `position`, and where the last one ends.

    Raises:
        ReplyParseError: what is between the marks is not a complete call.
    """
    calls: list[LeakedCall] = []
    start = position
    while True:
        position = _skip_marks(text, position)
        count = len(calls)
        try:
            position = _parse_next_call(text, position, cards, calls)
        except NotJsonError as error:
            raise ReplyParseError("bad_json", "leaked_call_unusable", text[start:], error=error.text) from None
        if len(calls) == count:
            break
    if not calls:
        raise ReplyParseError("bad_action", "leaked_call_incomplete", text[start:])
    return calls, position


def _skip_marks(text: str, position: int) -> int:
    while True:
        mark = _SEPARATOR.match(text, position) or _MARK.match(text, position)
        if mark is None or mark.end() == position:
            return position
        position = mark.end()


def _parse_next_call(text: str, position: int, cards: Sequence[ToolCard], calls: list[LeakedCall]) -> int:
    tagged = _TAGGED.match(text, position)
    if tagged is not None:
        return _parse_tagged_call(text, tagged.end(), tagged.group("name"), cards, calls)
    if (named_call := _IN_TAGS.match(text, position)) is not None:
        return _parse_json_arguments(text, named_call.end(), named_call.group("name"), calls)
    recipient = _RECIPIENT.match(text, position)
    if recipient is not None:
        return _parse_json_arguments(text, recipient.end(), recipient.group("name"), calls)
    if text[position : position + 1] in ("{", "[", "｛"):
        called = _CALLED.match(text, position) if text[position] == "[" else None
        if called is None:
            return _parse_json_call(text, position, cards, calls)
        return _parse_function_calls(text, called, cards, calls)
    if escaped := _ESCAPED.match(text, position):
        return _parse_escaped_call(text, escaped, calls)
    if named_call := _NAMED.match(text, position):
        return _parse_json_arguments(text, named_call.end(), named_call.group("name"), calls)
    if called := _CALLED.match(text, position):
        return _parse_function_calls(text, called, cards, calls)
    line_end = text.find("<", position)
    name = text[position:line_end].strip() if line_end > position else ""
    if name and "\n" not in name and _KEYED.match(text, line_end):
        return _parse_key_value_tags(text, line_end, name, cards, calls)
    return position


def _parse_json_call(text: str, position: int, cards: Sequence[ToolCard], calls: list[LeakedCall]) -> int:
    if text[position] != "[" and not looks_like_json(text, position):
        return position
    value = parse_value(text, position)
    items = parse_decision_object(value.value, cards)
    if not items:
        return position
    calls.extend(LeakedCall(item, value.is_guess) for item in items)
    return skip_extra_closers(text, value.end)


def _parse_json_arguments(text: str, position: int, name: str, calls: list[LeakedCall]) -> int:
    value = parse_value(text, position)
    calls.append(LeakedCall(ParsedCall(name, value.value), value.is_guess))
    return skip_extra_closers(text, value.end)


def _parse_tagged_call(text: str, position: int, name: str, cards: Sequence[ToolCard], calls: list[LeakedCall]) -> int:
    """`<function=name>` with an object, or with parameters in tags of their own."""
    after = skip_blanks(text, position)
    if text.startswith("{", after):
        return _parse_json_arguments(text, after, name, calls)
    card = resolve_tool_name(name, cards)
    args: dict[str, Any] = {}
    while (parameter := _PARAMETER.match(text, after)) is not None:
        close = f"</{parameter.group('ns')}{parameter.group('tag')}>"
        end = text.find(close, parameter.end())
        if end < 0:
            raise NotJsonError("json_truncated", truncated=True)
        _add_argument(args, parameter.group("key"), text[parameter.end() : end], card)
        after = skip_blanks(text, end + len(close))
    closed = text.startswith("</", after) or text.startswith("/>", position - 2)
    if not closed and after < len(text):
        raise NotJsonError("call_no_end")
    calls.append(LeakedCall(ParsedCall(name.strip(), args), not closed))
    return after


def _parse_key_value_tags(
    text: str, position: int, name: str, cards: Sequence[ToolCard], calls: list[LeakedCall]
) -> int:
    """`name`, then `<arg_key>…</arg_key><arg_value>…</arg_value>`."""
    card = resolve_tool_name(name, cards)
    args: dict[str, Any] = {}
    while (match := _KEYED.match(text, position)) is not None:
        end = text.find("</arg_value>", match.end())
        if end < 0:
            raise NotJsonError("json_truncated", truncated=True)
        _add_argument(args, match.group("key"), text[match.end() : end], card)
        position = end + len("</arg_value>")
    after = skip_blanks(text, position)
    calls.append(LeakedCall(ParsedCall(name, args), not text.startswith("</", after)))
    return after


def _parse_function_calls(text: str, match: re.Match[str], cards: Sequence[ToolCard], calls: list[LeakedCall]) -> int:
    """`name(key="value")`, perhaps several in a list."""
    in_list = match.group().lstrip().startswith("[")
    name = match.group("name").removesuffix(".call")
    args, end, is_guess = parse_call_arguments(text, match.end(), resolve_tool_name(name, cards))
    calls.append(LeakedCall(ParsedCall(name, args), is_guess))
    if "print(" in match.group() and text.startswith(")", skip_blanks(text, end)):
        end = skip_blanks(text, end) + 1
    end = skip_blanks(text, end)
    while in_list and text.startswith(",", end):
        next_start = skip_blanks(text, end + 1)
        if text.startswith("]", next_start):
            end = next_start
            break
        next_call = _CALLED.match(text, next_start)
        if next_call is None:
            raise NotJsonError("call_no_end")
        args, end, is_guess = parse_call_arguments(
            text, next_call.end(), resolve_tool_name(next_call.group("name"), cards)
        )
        calls.append(LeakedCall(ParsedCall(next_call.group("name"), args), is_guess))
        end = skip_blanks(text, end)
    if in_list and not text.startswith("]", end):
        raise NotJsonError("call_no_end", truncated=end >= len(text))
    return end + in_list


def _parse_escaped_call(text: str, head: re.Match[str], calls: list[LeakedCall]) -> int:
    """`call:name{key:<escape>text<escape>,other:5}`: an object whose texts are between marks instead of quotes."""
    parts: list[str] = []
    position, depth, open_mark = head.end(), 0, ""
    for match in _ESCAPES.finditer(text, position):
        part, mark = text[position : match.start()], match.group("mark")
        if open_mark and mark != open_mark:
            continue
        position = match.end()
        if mark is None:
            depth += 1 if match.group() in "{[" else -1
        parts.append(dumps(part) if open_mark else part + (match.group() if mark is None else ""))
        open_mark = mark if mark and not open_mark else ""
        if not depth:
            value = parse_whole("".join(parts))
            calls.append(LeakedCall(ParsedCall(head.group("name"), value.value), value.is_guess))
            return position
    raise NotJsonError("json_truncated", truncated=True)


def _add_argument(args: dict[str, Any], key: str, raw: str, card: ToolCard | None) -> None:
    key = key.strip()
    value = _parameter_value(raw, key, card)
    if key in args and dumps(args[key]) != dumps(value):
        raise NotJsonError("json_duplicate_key", unrepairable=True, key=key)
    args[key] = value


def _parameter_value(raw: str, key: str, card: ToolCard | None) -> Any:
    """The text of a parameter as it is; JSON where the schema takes no text."""
    raw = raw.removeprefix("\n").removesuffix("\n")
    if "\n" not in raw:
        raw = raw.strip()
    rule = card.parameters.get(key) if card is not None else None
    types = schema_types(rule, card.input_schema) if card is not None and rule is not None else frozenset()
    if "string" in types or not types:
        return raw
    try:
        return parse_whole(raw + "\n").value
    except NotJsonError:
        return raw
