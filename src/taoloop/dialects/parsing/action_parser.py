"""Parsing an action: its name, and its input in whatever notation it is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from taoloop.core.cards.coercion import schema_types
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call, excerpt
from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.answer_parser import parse_answer, parse_answer_input, parse_finish
from taoloop.dialects.parsing.call_arguments import (
    PUNCTUATION,
    build_call,
    find_closing_bracket,
    input_shape,
    is_program,
    parse_bare_input,
    parse_call_arguments,
    parse_key_lines,
    parse_keyword_arguments,
)
from taoloop.dialects.parsing.json_decision import ParsedThought, parse_decision_object
from taoloop.dialects.parsing.json_repair import looks_like_json, match_end, parse_value, skip_extra_closers
from taoloop.dialects.parsing.parse_state import ParseState, ReplyCursor, end_decision, read_json
from taoloop.dialects.parsing.patterns import (
    ANNOUNCED,
    ANNOUNCES,
    CALL,
    END_TOKEN,
    EVENT,
    FENCE_LINE,
    INLINE_INPUT,
    INLINE_LABEL,
    LABEL,
    LINE_HEAD,
    OBJECT,
    RESULT,
    SECOND_THOUGHT,
    WRAPPED_JSON,
)
from taoloop.dialects.parsing.placeholders import is_placeholder
from taoloop.dialects.parsing.strict_json import NotJsonError
from taoloop.dialects.parsing.tool_names import is_final_name, is_placeholder_name, resolve_tool_name
from taoloop.dialects.texts import ReplyParseError

_INPUT_CLOSE = lazy_pattern(r"</(?:(?:tool|action)[ _]?input|input|args|arguments|parameters)>", re.IGNORECASE)
_CONTINUATION = "([{.+-/|&<>=,"
"""Behind the bracket of a call: an expression or another call, and no end of a sentence."""
_SENTENCE = lazy_pattern(r"\s*[A-Z][a-z]+ [a-z]")
_SENTENCE_ENDS = (".", "!", "?", "。", "！", "？", ":", "：")
_CONJUNCTIONS = ("and", "or", "then", "if")


def parse_action(cursor: ReplyCursor, state: ParseState, start: int) -> int:
    """Parse what is behind the label of an action: an object, or a name with or without its input."""
    text, position = cursor.text, cursor.skip_whitespace(start, state.cards)
    cursor.in_fence = cursor.in_fence or "```" in text[start:position]
    if OBJECT.match(text, position):
        parsed = read_json(cursor, state, position, "action")
        items = parse_decision_object(parsed.value, state.cards)
        if all(isinstance(item, ParsedThought) for item in items):
            raise ReplyParseError("bad_action", "no_tool_named", action=excerpt(text[position : parsed.end]))
        for item in items:
            state.apply(item, is_guess=parsed.is_guess)
        return end_decision(cursor, state, skip_extra_closers(text, parsed.end))
    event = EVENT.match(text, position)
    if event is not None and event.lastgroup == "leak":
        return position
    if event is not None or position >= len(text) or LABEL.match(text, position):
        raise ReplyParseError("bad_action", "no_tool_named", action="", usable=state.describe_readable())
    return _parse_action_line(cursor, state, position)


def _parse_action_line(cursor: ReplyCursor, state: ParseState, start: int) -> int:
    """Parse a name, with what else is on its line."""
    text, end = cursor.text, cursor.line_end(start)
    line = text[start:end].rstrip()
    if "</" in line and (inline := INLINE_INPUT.search(line)) is not None:
        state.pending_action = line[: inline.start()]
        return parse_input(cursor, state, start + inline.end())
    card = resolve_tool_name(line, state.cards) if line[-1:] not in "([{（｛:：" else None
    token = END_TOKEN.search(text, start, end)
    if token is not None and card is None:
        end = token.start()
        line = text[start:end].rstrip()
    if card is not None or (is_final_name(line) and not is_placeholder_name(line)):
        return _await_input(cursor, state, card.name if card is not None else line, end)
    inline = INLINE_INPUT.search(line)
    if inline is not None and not any(char in line[: inline.start()] for char in "{(["):
        state.pending_action = line[: inline.start()]
        return parse_input(cursor, state, start + inline.end())
    return _parse_name_with_input(cursor, state, start, line, end)


def _parse_name_with_input(cursor: ReplyCursor, state: ParseState, start: int, line: str, end: int) -> int:
    """Parse a name that its input follows in brackets or behind a colon."""
    head = line[: match_end(LINE_HEAD, line, 0)]
    name, opener = head.strip(" `*\"'"), line[len(head) : len(head) + 1]
    if is_placeholder_name(name) or is_placeholder(name):
        raise ReplyParseError("bad_action", "no_tool_named", line, action=excerpt(line))
    position = start + len(head) + 1
    if state.is_final(name):
        if opener == "":
            return _await_input(cursor, state, "final", position - 1)
        if opener in ":：":
            return parse_answer(cursor, state, position)
        return parse_finish(cursor, state, opener, position)
    if opener == "":
        return _await_input(cursor, state, line, end)
    if opener in "(（":
        return _parse_function_call(cursor, state, name, position, line)
    if opener in "{｛":
        return _parse_input_of(cursor, state, name, position - 1)
    if opener == "[":
        return _parse_bracketed_input(cursor, state, name, position, line)
    if not line[len(head) + 1 :].strip(" *`"):
        raise ReplyParseError("bad_action", "empty_input", line, action=excerpt(line))
    return _parse_input_of(cursor, state, name, position)


def _await_input(cursor: ReplyCursor, state: ParseState, name: str, position: int) -> int:
    """Keep an action whose input comes with the next label, or directly behind as an object."""
    state.pending_action = name
    cursor.open_segment("action", position)
    return position


def _parse_function_call(cursor: ReplyCursor, state: ParseState, name: str, position: int, line: str) -> int:
    """Parse what is behind the bracket in `name(…)`."""
    text, card = cursor.text, resolve_tool_name(name, state.cards)
    try:
        value, end, is_guess = parse_call_arguments(text, position, card)
    except NotJsonError as error:
        raise ReplyParseError("bad_json", "arguments_in_text", line, text=excerpt(line), error=error.text) from None
    if value == {} and text[position:end].strip(" )）\n") == "":
        return _await_input(cursor, state, name, end)  # `name()`: its input may still follow
    rest = text[end : cursor.line_end(end)].strip(" `*;")
    if rest and rest != "." and (rest[0] in _CONTINUATION or rest.split(" ")[0].casefold() in _CONJUNCTIONS):
        raise ReplyParseError("stray_text", "text_after_action", rest, text=excerpt(rest), tool=name)
    state.decide(build_call(name, value, state.cards, is_guess=is_guess))
    return end_decision(cursor, state, end)


def _parse_bracketed_input(cursor: ReplyCursor, state: ParseState, name: str, position: int, line: str) -> int:
    """Parse what is behind the bracket in `name[value]`: text on one line, or an object."""
    text, content = cursor.text, cursor.skip_whitespace(position, state.cards)
    if text[content : content + 1] == "{":
        parsed = read_json(cursor, state, content, name)
        end = cursor.skip_whitespace(parsed.end, state.cards)
        if not text.startswith("]", end):
            raise ReplyParseError("bad_json", "input_not_closed", line, tool=name)
        state.decide(build_call(name, parsed.value, state.cards, is_guess=parsed.is_guess))
        return end_decision(cursor, state, end + 1)
    line_end = cursor.line_end(position)
    close = find_closing_bracket(text, position, line_end)
    if close < 0:
        raise ReplyParseError("bad_action", "input_not_closed", line, tool=name)
    rest = text[close + 1 : line_end].strip(PUNCTUATION)
    label = LABEL.match(rest)
    if rest and (label is None or label["observation"] is None):
        raise ReplyParseError("two_decisions", "text_behind_bracket", line, text=excerpt(rest), tool=name)
    body, card = text[position:close].strip(), resolve_tool_name(name, state.cards)
    if card is not None and card.reads_only and body[:1] in ('"', "'") and body.count(body[0]) == 1:
        body = body[1:]  # the bracket shows that nothing was cut
    _apply_text_input(state, name, body)
    return end_decision(cursor, state, close + 1 if label is not None else line_end)


def parse_input(cursor: ReplyCursor, state: ParseState, start: int) -> int:
    """Parse what is behind the label of an input."""
    if state.pending_action is None and isinstance(state.decision, Call):
        return _parse_input_of(cursor, state, state.decision.tool, start)  # the same once more, or another version
    if state.pending_action is None:
        raise ReplyParseError(
            "bad_action",
            "input_without_action",
            text=excerpt(cursor.text[start:].strip()),
            usable=state.describe_readable(),
        )
    name, state.pending_action = state.pending_action, None
    if state.is_final(name):
        return parse_answer_input(cursor, state, start)
    is_tag = cursor.text[start - 1 : start] == ">"
    return (_parse_tagged_input if is_tag else _parse_input_of)(cursor, state, name, start)


def _parse_input_of(cursor: ReplyCursor, state: ParseState, name: str, start: int) -> int:
    """Parse the input of an action: an object, or bare text for a tool with one parameter."""
    text, position = cursor.text, cursor.skip_whitespace(start, state.cards)
    opener, following = text[position : position + 1], text[position + 1 : position + 2]
    if opener in ("{", "｛") or (opener in ('"', "'", "“") and following in ("{", "｛")):
        return parse_json_input(cursor, state, name, position)
    event = EVENT.match(text, position)
    if event is not None and event.lastgroup == "leak" and position > start:
        state.pending_action = name
        return position
    if opener in ("[", "［") and OBJECT.match(text, position):
        return parse_json_input(cursor, state, name, position)
    if (announced := _find_announced_object(cursor, state, name, position)) is not None:
        return parse_json_input(cursor, state, name, announced)
    is_empty = event is not None and event.lastgroup not in ("brace", "fence")
    end = position if is_empty else _find_input_end(text, position)
    return _parse_bare_input(cursor, state, name, (start, position, end))


def _parse_bare_input(cursor: ReplyCursor, state: ParseState, name: str, span: tuple[int, int, int]) -> int:
    """Parse an input that is not JSON. `span`: its start, the position after its blanks and fence, and its end."""
    start, position, end = span
    text = cursor.text
    body, before = text[position:end].strip(), text[start:position]
    is_fenced = "```" in before
    if is_fenced:
        fence = FENCE_LINE.search(text, position, end)
        body = text[position : fence.start()].strip() if fence else body.removesuffix("```").strip()
        end = fence.end() if fence else end
    card = resolve_tool_name(name, state.cards)
    if "\n" in body and (args := parse_key_lines(body, card, at_end=end >= len(text))) is not None:
        state.decide(build_call(name, args, state.cards))
        return end_decision(cursor, state, end)
    is_on_line_of_tool = name in text[text.rfind("\n", 0, start) + 1 : start]  # `Action: lookup: key`, one line each
    if not is_fenced and "\n" in body and (is_on_line_of_tool or not _is_several_lines(body, card, state.cards)):
        if text[position] in "\"'“[［":
            return parse_json_input(cursor, state, name, position)
        line = excerpt(body.split("\n", 1)[1].strip().split("\n", 1)[0])
        form = input_shape(card)
        raise ReplyParseError("stray_text", "text_after_input", line, text=line, tool=name, form=form)
    if not body and card is not None and not card.parameters:
        state.pending_action = name
        state.finish_pending_action()
    else:
        _apply_text_input(state, name, body.rstrip("`") if "`" in before else body)
    return end_decision(cursor, state, end)


def _is_several_lines(body: str, card: ToolCard | None, cards: Sequence[ToolCard]) -> bool:
    """Whether all lines of a bare input are the text of a reading tool's only argument, such as a statement in SQL.

    A blank line, or one in words that goes on with the reply, may be something else.
    """
    if card is None or not card.reads_only or card.sole_parameter is None or body[0] in "\"'“[［":
        return False
    if "string" not in schema_types(card.parameters[card.sole_parameter], card.input_schema):
        return False
    if any(resolve_tool_name(call[1], cards) is not None for call in CALL.finditer(body)):
        return False
    lines = body.split("\n")[1:]
    return not any(
        not line.strip()
        or line.rstrip().endswith(_SENTENCE_ENDS)
        or _SENTENCE.match(line)
        or ANNOUNCES.search(line)
        or SECOND_THOUGHT.search(line)
        or RESULT.match(line)
        for line in lines
    )


def _parse_tagged_input(cursor: ReplyCursor, state: ParseState, name: str, start: int) -> int:
    """Parse an input in tags: an object, or bare text."""
    text, position = cursor.text, cursor.skip_whitespace(start, state.cards)
    if text[position : position + 1] in ("{", "｛"):
        return parse_json_input(cursor, state, name, position)
    close = _INPUT_CLOSE.search(text, start)
    if close is None:
        raise ReplyParseError("truncated", "input_not_closed", text[start:], tool=name)
    body = text[start : close.start()].strip()
    if LABEL.search(body) or "<" in body or "\n" in body:
        raise ReplyParseError("stray_text", "input_several_readings", body, tool=name, text=excerpt(body))
    _apply_text_input(state, name, body)
    return end_decision(cursor, state, close.end())


def _find_announced_object(cursor: ReplyCursor, state: ParseState, name: str, position: int) -> int | None:
    """Where the object begins that a line of words announces, as in `Here is the JSON: {…}`; None if none is.

    Raises:
        ReplyParseError: the words and the object might be the text of the tool's only argument.
    """
    wrapped = WRAPPED_JSON.match(cursor.text, position)
    head = wrapped or ANNOUNCED.match(cursor.text, position)
    card = resolve_tool_name(name, state.cards)
    if head is None or card is None or (wrapped is None and head["word"] in card.parameters):
        return None
    start = cursor.skip_whitespace(head.end(), state.cards)
    if not cursor.text.startswith(("{", "｛"), start):
        return None
    value = read_json(cursor, state, start, name).value
    if not isinstance(value, dict) or not all(key in card.parameters for key in value) or not value:
        return None
    if card.sole_parameter is not None and not card.reads_only and wrapped is None:
        raise ReplyParseError("bad_action", "input_several_readings", head.group(), tool=name, text=head.group())
    return start


def parse_json_input(cursor: ReplyCursor, state: ParseState, name: str, position: int) -> int:
    """Parse an input that is a JSON value."""
    parsed = read_json(cursor, state, position, name)
    end = skip_extra_closers(cursor.text, parsed.end)
    state.decide(build_call(name, parsed.value, state.cards, is_guess=parsed.is_guess))
    return end_decision(cursor, state, end)


def _apply_text_input(state: ParseState, name: str, body: str) -> None:
    """Decide on the call whose input is a text that is not JSON."""
    cards = state.cards
    card = resolve_tool_name(name, cards)
    if INLINE_LABEL.search(body):
        raise ReplyParseError("stray_text", "label_in_input", body, tool=name, text=excerpt(body))
    if card is not None and _holds_arguments(body, card):
        raise ReplyParseError("bad_action", "input_several_readings", body, tool=name, text=excerpt(body))
    value, is_guess = _parse_same_call(body, card, cards) or parse_bare_input(body, name, card)
    if value is body and is_program(body) and resolve_tool_name(body.split("(", maxsplit=1)[0], cards) is not None:
        raise ReplyParseError("bad_action", "input_is_call", body, tool=name, text=excerpt(body))
    state.decide(build_call(name, value, cards, is_guess=is_guess))


def _find_input_end(text: str, start: int) -> int:
    ends = (event.start() for event in EVENT.finditer(text, start) if event.lastgroup not in ("brace", "fence"))
    return next((end for end in ends if end > start), len(text))


def _holds_arguments(body: str, card: ToolCard) -> bool:
    """Whether an object with the tool's own arguments is in a text that is more than that object."""
    brace = body.find("{")
    if brace <= 0 or body[0] in "[\"'“" or not looks_like_json(body, brace):
        return False
    try:
        value = parse_value(body, brace).value
    except NotJsonError:
        return False
    return isinstance(value, dict) and any(key in card.parameters for key in value)


def _parse_same_call(body: str, card: ToolCard | None, cards: Sequence[ToolCard]) -> tuple[Any, bool] | None:
    """The named arguments in an input that calls its own tool once more: `search(q="a")`; None for anything else."""
    name, bracket, rest = body.partition("(")
    if card is None or not bracket or not body.endswith(")") or resolve_tool_name(name, cards) is not card:
        return None
    try:
        args, end, is_guess = parse_keyword_arguments(rest, 0)
    except NotJsonError:
        return None
    is_complete = bool(args) and end == len(rest) and all(key in card.parameters for key in args)
    return (args, is_guess) if is_complete else None
