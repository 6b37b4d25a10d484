"""Parsing a final answer: from its label to where something new begins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import excerpt
from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.call_arguments import find_closing_bracket, is_answer_wrapper, parse_call_arguments
from taoloop.dialects.parsing.json_decision import ParsedCall, parse_decision_object
from taoloop.dialects.parsing.json_repair import parse_value
from taoloop.dialects.parsing.parse_state import ParseState, ReplyCursor, end_decision
from taoloop.dialects.parsing.patterns import (
    EVENT,
    FENCE_LINE,
    LABEL,
    LINE_BRACE,
    LINE_HEAD,
    MAX_OBJECTS,
    QUESTION_LABELS,
    label_kind,
)
from taoloop.dialects.parsing.strict_json import NotJsonError
from taoloop.dialects.parsing.tool_names import resolve_tool_name
from taoloop.dialects.texts import LocalizedText, ReplyParseError

_ANSWER_CLOSE = lazy_pattern(r"</(?:final[ _]?answer|answer|final)>", re.IGNORECASE)
_IN_TAGS = lazy_pattern(r"<(final[ _]?answer|answer|final)>(.*)</\1>", re.IGNORECASE | re.DOTALL)
_LABEL_EDGES = " \t>#*_`-+•:：0123456789.)、"
_COMMON_ACTION_WORDS = ("tool", "function", "tool name", "工具", "操作")


def parse_answer(cursor: ReplyCursor, state: ParseState, start: int) -> int:
    """Parse the answer behind its label, up to the next label that is not in a code block."""
    text, end = cursor.text, _find_answer_end(cursor, state, start)
    if text[start - 1 : start] == ">" and (close := _ANSWER_CLOSE.search(text, start, end)):
        state.set_answer(text[start : close.start()])
        return end_decision(cursor, state, close.end())
    body = text[start:end].strip()
    if not body and text[end : end + 1] == "<" and LABEL.match(text, end):
        return end  # the answer is in tags of its own behind the label
    if (tagged := _IN_TAGS.fullmatch(body)) is not None:
        body = tagged[2].strip()
    if len(FENCE_LINE.findall(body)) % 2 and LABEL.search(body):
        raise ReplyParseError("truncated", "open_code_block", body)
    body = _strip_outer_marks(body, in_fence=cursor.in_fence)
    if body.casefold().rstrip(".") in ("none", "null", "n/a"):
        raise ReplyParseError("bad_final", "placeholder_answer", text=body)
    if not state.json_answer and _holds_call(body, state.cards):
        raise ReplyParseError("two_decisions", "action_and_answer", body)
    state.set_answer(body if state.json_answer else _only_value(body))
    return end_decision(cursor, state, end)


def parse_answer_input(cursor: ReplyCursor, state: ParseState, start: int) -> int:
    """Parse the input of an action that is called Final Answer: a text, or JSON that holds it."""
    text, position = cursor.text, cursor.skip_whitespace(start, state.cards)
    opener = text[position : position + 1]
    if not opener or opener not in '"{“':
        return parse_answer(cursor, state, start)
    try:
        parsed = parse_value(text, position)
    except NotJsonError as error:
        if opener == "{":
            raise ReplyParseError("bad_json", "answer_unreadable", error=error.text) from None
        return parse_answer(cursor, state, start)
    end = _find_answer_end(cursor, state, parsed.end)
    if text[parsed.end : end].strip("`*} \n"):
        return parse_answer(cursor, state, start)
    state.set_answer(parsed.value)
    return end_decision(cursor, state, end)


def parse_finish(cursor: ReplyCursor, state: ParseState, opener: str, position: int) -> int:
    """Parse what is behind the opening bracket in `Finish[…]` or `Finish("…")`."""
    closer = {"[": "]", "(": ")", "（": "）"}.get(opener, "}")
    end = _find_answer_end(cursor, state, position)
    body = cursor.text[position:end].rstrip("`*. \n")
    if opener in "{｛" or not body.endswith(closer):
        raise ReplyParseError("bad_final", "answer_unreadable", body, error=LocalizedText("json_truncated"))
    close = find_closing_bracket(body, 0, len(body)) if opener == "[" else len(body) - 1
    if 0 <= close < len(body) - 1:
        raise ReplyParseError(
            "two_decisions", "text_behind_bracket", body, text=excerpt(body[close + 1 :]), tool="finish"
        )
    content = body[:-1].strip()
    state.set_answer(content if opener == "[" else _quoted_answer(content, body))
    return end_decision(cursor, state, end)


def _quoted_answer(content: str, body: str) -> object:
    try:
        value, end, is_guess = parse_call_arguments(content + ")", 0, None)
    except NotJsonError as error:
        raise ReplyParseError("bad_final", "answer_unreadable", body, error=error.text) from None
    if end != len(content) + 1 or is_guess:
        fault = LocalizedText("json_text_follows", {"position": end})
        raise ReplyParseError("bad_final", "answer_unreadable", body, error=fault)
    return value


def _find_answer_end(cursor: ReplyCursor, state: ParseState, start: int) -> int:
    """Where an answer ends: at a label that is in no code block, or where another turn begins."""
    in_block = False
    for event in EVENT.finditer(cursor.text, start):
        if event.lastgroup == "fence":
            if cursor.in_fence and not in_block and event.group().strip(" `~>") == "":
                return event.start()
            in_block = not in_block
        elif in_block or event.lastgroup == "brace" or event.start() < start:
            continue
        elif event["label"] is None or _label_ends_answer(cursor, state, event):
            return event.start()
    return len(cursor.text)


def _label_ends_answer(cursor: ReplyCursor, state: ParseState, label: re.Match[str]) -> bool:
    """Whether a label in an answer begins something new; words that any answer may hold stay content."""
    kind, word = label_kind(label), label.group().strip(_LABEL_EDGES).casefold()
    if kind == "input" or (kind == "action" and word in _COMMON_ACTION_WORDS):
        line = cursor.text[label.end() : cursor.line_end(label.end())]
        name = LINE_HEAD.match(line)
        return name is not None and resolve_tool_name(name.group().strip(), state.cards) is not None
    if kind == "turn" and word not in QUESTION_LABELS and not _begins_turn(cursor, label):
        raise ReplyParseError("stray_text", "unclear_turn", text=label.group())
    return True


def _begins_turn(cursor: ReplyCursor, label: re.Match[str]) -> bool:
    """Whether a line that names a person is another turn, and no line of an answer such as `User: admin`."""
    start = label.start()
    previous_line = cursor.text[cursor.text.rfind("\n", 0, max(start - 1, 0)) + 1 : start]
    return not previous_line.strip() or cursor.has_decision_label(label.end())


def _holds_call(body: str, cards: Sequence[ToolCard]) -> bool:
    """Whether a line of an answer begins a call of a known tool, written as an object.

    In a code block that the answer continues after, it is content.
    """
    blocks = _inner_blocks(body)
    for brace in islice(LINE_BRACE.finditer(body), MAX_OBJECTS):
        if any(start < brace.start() < end for start, end in blocks):
            continue
        try:
            items = parse_decision_object(parse_value(body, brace.end() - 1).value, cards)
        except (NotJsonError, ReplyParseError):
            continue
        if any(isinstance(item, ParsedCall) and resolve_tool_name(item.name, cards) is not None for item in items):
            return True
    return False


def _inner_blocks(body: str) -> list[tuple[int, int]]:
    """The code blocks of an answer that continues in words after them."""
    fences = [fence.start() for fence in islice(FENCE_LINE.finditer(body), MAX_OBJECTS)]
    last = FENCE_LINE.match(body, fences[-1]) if fences else None
    if last is None or len(fences) % 2 or not body[last.end() :].strip(" `~*.\n"):
        return []
    return list(zip(fences[::2], fences[1::2], strict=True))


def _strip_outer_marks(body: str, *, in_fence: bool) -> str:
    """An answer without the bold marks that were opened with its label, or the fence around the whole reply."""
    if in_fence and body.endswith("```"):
        body = body[:-3].rstrip()
    if body.endswith("**") and body.count("**") % 2:
        body = body[:-2].rstrip()
    return body


def _only_value(body: str) -> object:
    """The answer in an object whose only key says that it is one, else the text as it is."""
    if not (body.startswith("{") and body.endswith("}")):
        return body
    try:
        value = parse_value(body).value
    except NotJsonError:
        return body
    return value if is_answer_wrapper(value) and isinstance(next(iter(value.values())), str) else body
