"""The parser behind every dialect: from the text of a reply to its one decision, or to the reason why it has none.

The problem. A model is asked for one form and writes another: labels in bold or in Chinese, JSON with comments, a call
in the notation of its own family, two steps at once, an observation that it made up, a thought after the decision. A
grammar for the requested form rejects most of that; a pattern that searches for something like a call believes too
much, and what is believed here runs with side effects. A rejected reply costs one more turn. A wrong call may not be
undone. So the parser has to be tolerant about notation and strict about meaning.

The idea. The text is read once from left to right, from event to event. An event (`EVENT` in `patterns`) is anything at
which the meaning of the text can change: a label, a brace, a code fence, a leaked call, a tag that only another party
writes. The parser of that event consumes a whole value (an object with all that is in it, a fenced block, an answer up
to its end) and says where to continue, so words inside a value are never taken for events. The text between two events
is a segment; it belongs to what came before it, and `end_segment` checks that it may be there. What has been read is in
`ParseState`, which accepts one decision only; the text and the open segment are in `ReplyCursor`. All parsers are
functions of these two.

The invariants.

- At most one decision. A second one that differs is an error; there is no order of precedence among decisions.
- Nothing after the first observation, result or turn that the model wrote itself is believed. A decision that was
  complete before it counts, unless a final answer follows that rests on the invention.
- Syntax is repaired, values are not. A repair that guesses (`is_guess`) is good enough only for tools that read.
- No text is dropped in silence: what belongs to nothing is an error, except prose around a complete decision.
- The time is linear in the length of the reply: every pattern is bounded, and so is the number of events and objects.

Where they are tested: `tests/dialects/test_rules.py` (one test per rule), `test_drifts.py` and `test_corpus.py`
(replies as models write them, each with the one right outcome), `test_properties.py` (no exception, linear time, and
what a dialect writes is read back).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call, Decision, excerpt
from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.action_parser import parse_action, parse_input, parse_json_input
from taoloop.dialects.parsing.answer_parser import parse_answer, parse_finish
from taoloop.dialects.parsing.json_decision import ParsedThought, is_message, is_observation, parse_decision_object
from taoloop.dialects.parsing.json_repair import (
    RepairedJson,
    looks_like_json,
    match_end,
    parse_value,
    skip_extra_closers,
    unescape_quotes,
)
from taoloop.dialects.parsing.leaked_calls import FUNCTION_CALL, LeakedCall, parse_leaked_calls
from taoloop.dialects.parsing.parse_state import (
    END_OF_REPLY,
    ParseState,
    ReplyCursor,
    end_decision,
    end_segment,
    read_json,
)
from taoloop.dialects.parsing.patterns import (
    AGREEMENT,
    CLOSING,
    EVENT,
    FENCE_LINE,
    FINAL_AHEAD,
    LABEL,
    LINE_HEAD,
    MAX_OBJECTS,
    MAX_PARTS,
    PLAIN_ASKED,
    TOOL_ROLE,
    label_kind,
    strip_partial_label,
)
from taoloop.dialects.parsing.strict_json import NotJsonError, dumps, json_equal
from taoloop.dialects.parsing.tool_names import is_final_name, resolve_tool_name
from taoloop.dialects.texts import LocalizedText, ReplyParseError

_FENCED_STRING = lazy_pattern(r"```\w{0,20}\s*+(?=[\"'“])")
_FINISH_LINE = lazy_pattern(
    r"^[ \t]*+finish(?P<opener>[\[(])(?=[^\n]*[\])][ \t]*+(?:\n|\Z))", re.IGNORECASE | re.MULTILINE
)
_CALL_LINE = lazy_pattern(r"^[ \t]*+(?P<list>\[[ \t]*+)?(?P<name>[^\W\d][\w.]{0,200})\(", re.MULTILINE)


def parse_reply(text: str, cards: Sequence[ToolCard], *, json_answer: bool = False) -> Decision:
    """The one decision in a text that was cleaned. `json_answer`: answers that are JSON values stay whole.

    Raises:
        ReplyParseError: there is none, or none that may be believed.
    """
    text = strip_partial_label(text)
    if not text:
        raise ReplyParseError("empty", "empty")
    cursor, state = ReplyCursor(_unwrap_string(text)), ParseState(cards, json_answer)
    _parse_events(cursor, state)
    if cursor.position != END_OF_REPLY:
        end = len(cursor.text)
        _parse_last_line(cursor, state, end)
        end_segment(cursor, state, end)
        state.finish_pending_action()
    _check_foreign_words(cursor, state)
    if state.afterthought:
        line = state.afterthought.split("\n", 1)[0]
        usable = state.describe_readable()
        raise ReplyParseError("stray_text", "text_after_decision", line, text=excerpt(line), usable=usable)
    reason = "\n".join(state.thoughts)
    if isinstance(state.decision, Call):
        return Act(calls=(state.decision,), reason=reason, unknown_keys=state.unknown_keys)
    if state.decision is not None:
        return Answer(text=state.decision, reason=reason, unknown_keys=state.unknown_keys)
    raise _no_decision(cursor, state)


def _no_decision(cursor: ReplyCursor, state: ParseState) -> ReplyParseError:
    is_prose = cursor.segment == "preamble" and not state.thoughts and "{" not in cursor.text
    code, usable = "stray_text" if is_prose else "no_decision", state.describe_readable()
    return ReplyParseError(code, "no_decision", cursor.text, text=excerpt(cursor.text), usable=usable)


def _unwrap_string(text: str) -> str:
    """The reply in a JSON string, where the text is one, perhaps in a code fence; else the text as it is."""
    if text.startswith('{\\"'):
        with suppress(NotJsonError):
            text = unescape_quotes(text)
    fence = _FENCED_STRING.match(text)
    if fence is None:
        is_quoted = text[0] in "\"'“" and text[-1] in "\"'”"
        return _object_in_string(text) or text if is_quoted else text
    return _object_in_string(text[fence.end() :].removesuffix("```").rstrip()) or text


def _object_in_string(text: str) -> str | None:
    """The object in a text that is one JSON string with an object in it."""
    try:
        parsed = parse_value(text)
    except NotJsonError:
        return None
    is_whole = isinstance(parsed.value, str) and parsed.end == len(text) and not parsed.is_guess
    return parsed.value if is_whole and parsed.value.lstrip()[:1] in ("{", "[") else None


def _parse_events(cursor: ReplyCursor, state: ParseState) -> None:
    """Go from event to event, up to the last one or to where nothing further may be believed."""
    cursor.position = _parse_function_calls(cursor, state, 0, len(cursor.text)) or 0
    while cursor.position != END_OF_REPLY:
        event = EVENT.search(cursor.text, cursor.position)
        result = cursor.result_line
        if result is not None and (event is None or result[0] <= event.start()):
            cursor.result_line = None
            cursor.position = _parse_invented_turn(cursor, state, *result)
        elif event is None:
            return
        else:
            cursor.position = _parse_event(cursor, state, event)


def _parse_event(cursor: ReplyCursor, state: ParseState, event: re.Match[str]) -> int:
    """Parse what begins at an event; the position to continue from."""
    cursor.event_count += 1
    if cursor.event_count > MAX_PARTS:
        raise ReplyParseError("stray_text", "too_many_parts", count=MAX_PARTS)
    start = event.start()
    if event["label"] is not None:
        return _parse_labelled(cursor, state, event)
    if event.lastgroup == "foreign":
        return _parse_invented_turn(cursor, state, start, event.end())
    if event.lastgroup == "fence":
        return _parse_fence(cursor, state, event)
    if event.lastgroup == "brace":
        return _parse_brace(cursor, state, start)
    end_segment(cursor, state, start)
    calls, end = parse_leaked_calls(cursor.text, start, state.cards)
    return _apply_calls(cursor, state, calls, end)


def _apply_calls(cursor: ReplyCursor, state: ParseState, calls: Sequence[LeakedCall], end: int) -> int:
    for call in calls:
        state.apply(call.item, is_guess=call.is_guess)
    return end_decision(cursor, state, end)


def _parse_labelled(cursor: ReplyCursor, state: ParseState, label: re.Match[str]) -> int:
    """Parse what is behind a label, each kind in its own way."""
    kind = label_kind(label)
    start, end = label.span()
    if (
        kind == "observation"
        or (kind == "turn" and not _repeats_task(cursor, label))
        or (kind == "action" and _is_tool_speaking(cursor, state, label))
    ):
        return _parse_invented_turn(cursor, state, start, end)
    end_segment(cursor, state, start)
    if kind == "input":
        return parse_input(cursor, state, end)
    state.finish_pending_action()
    if kind == "action":
        return parse_action(cursor, state, end)
    if kind == "final":
        return parse_answer(cursor, state, end)
    cursor.open_segment("turn" if kind == "turn" else "thought", end)
    state.repeats_task = state.repeats_task or kind == "turn"
    return end


def _repeats_task(cursor: ReplyCursor, label: re.Match[str]) -> bool:
    """Whether a label only repeats that of the task, at the very beginning."""
    text, end = cursor.text, label.end()
    is_first = not text[: label.start()].strip() and PLAIN_ASKED.search(label.group()) is not None
    return is_first and AGREEMENT.match(text, end, cursor.line_end(end)) is None


def _is_tool_speaking(cursor: ReplyCursor, state: ParseState, label: re.Match[str]) -> bool:
    """Whether a line after a call gives the words of the tool, as in `tool: 3 rooms`, and is no second call."""
    if not isinstance(state.decision, Call) or not TOOL_ROLE.fullmatch(label.group()):
        return False
    words = cursor.text[label.end() : cursor.line_end(label.end())].strip(" \t*_`")
    return " " in words or words[:1] in ("{", "[", '"') or words.isnumeric()


def _parse_invented_turn(cursor: ReplyCursor, state: ParseState, start: int, end: int) -> int:
    """Stop before an observation or a turn that the model wrote itself; an empty slot for one is passed over."""
    is_filled = _is_slot_filled(cursor.text, end)
    _parse_last_line(cursor, state, start)
    end_segment(cursor, state, start)
    if not is_filled:
        cursor.open_segment("after" if state.decision is not None else "preamble", end)
        return end
    state.finish_pending_action()
    part = cursor.text[start:]
    if state.decision is None:
        raise ReplyParseError("invented_observation", "invented_turn", part, usable=state.describe_readable())
    if isinstance(state.decision, Call) and _answer_follows(cursor.text, end):
        raise ReplyParseError("invented_observation", "answer_on_invention", part)
    return END_OF_REPLY


def _is_slot_filled(text: str, position: int) -> bool:
    """Whether there is anything in the slot of an observation before the next label."""
    start = match_end(CLOSING, text, position)
    if start >= len(text):
        return False
    label = LABEL.match(text, text.rfind("\n", 0, start) + 1)
    return label is None or label.start() < position or label["observation"] is not None


def _answer_follows(text: str, position: int) -> bool:
    if FINAL_AHEAD.search(text, position):
        return True
    for label in LABEL.finditer(text, position):
        name = text[label.end() : match_end(LINE_HEAD, text, label.end())]
        if label["final"] is not None or (label["action"] is not None and is_final_name(name)):
            return True
    return False


def _parse_fence(cursor: ReplyCursor, state: ParseState, fence: re.Match[str]) -> int:
    """Parse a code fence: its content is a decision, labelled lines, or code that is passed over."""
    if cursor.segment == "after" or cursor.in_fence:
        cursor.in_fence = False
        return fence.end()
    text, start = cursor.text, cursor.skip_whitespace(fence.end(), state.cards)
    close = FENCE_LINE.search(text, start)
    end = close.start() if close is not None else len(text)
    if text[start : start + 1] in ("{", "[", "｛"):
        return start if looks_like_json(text, text.find("{", start)) else end
    if state.pending_action is None and FUNCTION_CALL.match(text, start):
        end_segment(cursor, state, fence.start())
        cursor.segment_start = start
        if (position := _parse_function_calls(cursor, state, start, end)) is not None:
            return position
    if state.pending_action is None and _holds_event(text, start, end):
        if close is not None and cursor.has_decision_label(close.end()):
            raise ReplyParseError("two_decisions", "labels_in_block", text[start:end])
        end_segment(cursor, state, fence.start())
        cursor.segment_start = fence.end()
        cursor.in_fence = True
        return fence.end()
    return close.end() if close is not None else fence.end()


def _holds_event(text: str, start: int, end: int) -> bool:
    event = EVENT.search(text, start, end)
    return event is not None and event.lastgroup not in ("brace", "fence")


def _parse_function_calls(cursor: ReplyCursor, state: ParseState, start: int, end: int) -> int | None:
    """Parse `name(…)`, or a list of such calls, where nothing else is there; None if no tool is called."""
    text = cursor.text
    call = FUNCTION_CALL.match(text, start)
    if call is None or resolve_tool_name(call.group("name").removesuffix(".call"), state.cards) is None:
        return None
    calls, calls_end = parse_leaked_calls(text, start, state.cards)
    rest = match_end(CLOSING, text, calls_end)
    if rest < end and not _holds_event(text, rest, end):
        raise ReplyParseError("bad_action", "program", text[start:end])
    return _apply_calls(cursor, state, calls, calls_end)


def _parse_last_line(cursor: ReplyCursor, state: ParseState, end: int) -> None:
    """Parse `[name(…)]`, or `name(…)` of a tool that reads, where it is the last line and has no label."""
    if state.decision is not None or state.pending_action is not None or cursor.segment not in ("preamble", "thought"):
        return
    text = cursor.text
    finish = _FINISH_LINE.search(text, cursor.segment_start, end)
    if finish is not None and not resolve_tool_name("finish", state.cards):
        end_segment(cursor, state, finish.start())
        parse_finish(cursor, state, finish["opener"], finish.end())
        return
    for line in islice(_CALL_LINE.finditer(text, cursor.segment_start, end), MAX_OBJECTS):
        card = resolve_tool_name(line["name"], state.cards)
        if card is None or not (card.reads_only or line["list"]):
            continue
        try:
            calls, calls_end = parse_leaked_calls(text, line.start(), state.cards)
        except ReplyParseError:
            return
        if calls_end <= end <= match_end(CLOSING, text, calls_end):
            end_segment(cursor, state, line.start())
            _apply_calls(cursor, state, calls, calls_end)
        return


def _parse_brace(cursor: ReplyCursor, state: ParseState, start: int) -> int:
    """Parse what a brace begins: a decision, the input of an action that waits for it, or prose."""
    text, name = cursor.text, state.pending_action
    if not looks_like_json(text, start):
        return start + 1
    if name is not None and not text[cursor.segment_start : start].strip(" `*\n\tjson"):
        if state.is_final(name):
            return parse_input(cursor, state, start)
        state.pending_action = None
        return parse_json_input(cursor, state, name, start)
    parsed = read_json(cursor, state, start, None)
    if is_message(parsed.value):
        return _parse_invented_turn(cursor, state, start, start)
    items = parse_decision_object(parsed.value, state.cards)
    if not items and is_observation(parsed.value) and (state.decision is not None or not state.thoughts):
        return _parse_invented_turn(cursor, state, start, start)
    has_decision = any(not isinstance(item, ParsedThought) for item in items)
    if cursor.segment == "after" and not has_decision:
        _check_repeated_arguments(state, parsed)
        return parsed.end
    if has_decision:
        end_segment(cursor, state, start)
        state.finish_pending_action()
    for item in items:
        state.apply(item, is_guess=parsed.is_guess)
    return end_decision(cursor, state, skip_extra_closers(text, parsed.end)) if has_decision else parsed.end


def _check_repeated_arguments(state: ParseState, parsed: RepairedJson) -> None:
    """Reject an object after a call that is another version of its arguments."""
    if isinstance(state.decision, Call) and not json_equal(state.decision.args, parsed.value):
        text = excerpt(dumps(parsed.value))
        raise ReplyParseError("two_decisions", "text_after_action", text=text, tool=state.decision.tool)


def _check_foreign_words(cursor: ReplyCursor, state: ParseState) -> None:
    """Reject a call of a tool that writes if it may rest on words that the reply attributes to another party."""
    words, call = state.foreign_words, state.decision
    if not (words or state.repeats_task) or not isinstance(call, Call):
        return
    card = resolve_tool_name(call.tool, state.cards)
    if card is None or (words and not card.reads_only) or card.tier == "destructive":
        quoted = LocalizedText("quoted_words", {"words": words}) if words else ""
        raise ReplyParseError("invented_observation", "foreign_words", cursor.text, tool=call.tool, quoted=quoted)
