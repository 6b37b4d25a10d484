"""The text of a reply as the parsers walk it: where the unassigned text begins, and what it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call, excerpt
from taoloop.dialects.parsing.json_repair import RepairedJson, match_end, parse_value
from taoloop.dialects.parsing.labels import BARE_RESULT, INLINE_LABEL, LABEL, RESULT, SPOKEN, label_kind
from taoloop.dialects.parsing.parse_error import ReplyParseError
from taoloop.dialects.parsing.parse_state import ParseState
from taoloop.dialects.parsing.patterns import CALL, LANGUAGE, MAX_PROSE, OWN_OUTPUT, SECOND_THOUGHT, WHITESPACE
from taoloop.dialects.parsing.strict_json import NotJsonError
from taoloop.dialects.parsing.tool_names import resolve_tool_name

SegmentKind = Literal["preamble", "thought", "action", "turn", "after"]
"""What text without a label of its own belongs to; `after`: it follows the decision."""

END_OF_REPLY = -1
"""The position of a parser that believes nothing further."""


@dataclass(slots=True)
class ReplyCursor:
    """The text of a reply, and the segment in it that no parser has taken yet.

    The parsers pass positions: each takes the position behind its label and returns the one to continue from.
    """

    text: str
    """The whole text, after it was cleaned."""
    position: int = 0
    """From where the next event is searched; `END_OF_REPLY` once nothing further may be believed."""
    segment: SegmentKind = "preamble"
    """What the text before the next event belongs to."""
    segment_start: int = 0
    """Where that text begins."""
    in_fence: bool = False
    """Whether the content of an open code fence is read as the reply."""
    event_count: int = 0
    """The events so far, which `MAX_PARTS` bounds."""
    result_line: tuple[int, int] | None = None
    """Where a line after the call gives its result, which can only be invented."""
    searched_result: bool = False
    """Whether that line was searched for."""
    last_decision_label: int | None = None
    """Where the last label of an action or a final answer begins; -1: there is none, None: not searched yet."""

    def open_segment(self, segment: SegmentKind, start: int) -> None:
        """Let the text from `start` on belong to something else."""
        self.segment, self.segment_start = segment, start

    def line_end(self, position: int) -> int:
        """The end of the line."""
        end = self.text.find("\n", position)
        return end if end >= 0 else len(self.text)

    def skip_whitespace(self, position: int, cards: Sequence[ToolCard]) -> int:
        """Skip blanks and an opening fence, or the language that is left of one unless it is the name of a tool."""
        position = match_end(WHITESPACE, self.text, position)
        language = LANGUAGE.match(self.text, position)
        return position if language is None or resolve_tool_name(language["word"], cards) else language.end()

    def has_decision_label(self, position: int) -> bool:
        """Whether the label of an action or a final answer follows."""
        if self.last_decision_label is None:
            labels = LABEL.finditer(self.text)
            starts = [label.start() for label in labels if label_kind(label) in ("action", "final")]
            self.last_decision_label = starts[-1] if starts else -1
        return self.last_decision_label >= position


def read_json(cursor: ReplyCursor, state: ParseState, position: int, tool: str | None) -> RepairedJson:
    """The JSON value at a position: the input of `tool`, or without one an object by itself.

    Raises:
        ReplyParseError: it is no JSON.
    """
    try:
        return parse_value(cursor.text, position)
    except NotJsonError as error:
        part, usable = cursor.text[position:], state.describe_readable()
        if not tool:
            raise ReplyParseError("bad_json", "object_not_json", part, error=error.text, usable=usable) from None
        raise ReplyParseError("bad_json", "input_not_json", part, tool=tool, error=error.text, usable=usable) from None


def end_decision(cursor: ReplyCursor, state: ParseState, position: int) -> int:
    """Continue after a decision, and search once for a line after a call that gives its result."""
    cursor.open_segment("after", position)
    inline = LABEL.match(cursor.text[position : position + 80].lstrip(" \t.,;"))
    if inline is not None and inline["observation"] is not None:
        start = cursor.text.find(inline.group(), position)
        cursor.result_line, cursor.searched_result = (start, start + len(inline.group())), True
    elif not cursor.searched_result and isinstance(state.decision, Call):
        result = RESULT.search(cursor.text, position)
        cursor.result_line, cursor.searched_result = None if result is None else result.span(), True
    return position


def end_segment(cursor: ReplyCursor, state: ParseState, end: int) -> None:
    """Give the text up to `end` to what came before it.

    Raises:
        ReplyParseError: the text gives a result that only a tool can give, or must not be there.
    """
    text = cursor.text[cursor.segment_start : end].strip()
    cursor.segment_start = end
    if not text:
        return
    if cursor.segment in ("thought", "preamble", "turn") and (":" in text or "：" in text):
        _check_foreign_words(cursor, state, text)
    if cursor.segment == "thought" and state.decision is None:
        state.thoughts.append(text.strip("`*\n "))
    elif cursor.segment == "thought":
        state.afterthought = text.strip("`*_ \n")
    elif cursor.segment == "after":
        _check_trailing_text(state, text)
    elif cursor.segment == "action" and text.strip("`*~ \n") not in ("", "PAUSE"):
        raise ReplyParseError(
            "stray_text",
            "text_after_action",
            text,
            line=excerpt(text.split("\n", 1)[0]),
            action=state.pending_action,
        )


def _check_foreign_words(cursor: ReplyCursor, state: ParseState, text: str) -> None:
    """Reject a line that gives a result, and note one in which somebody else speaks."""
    result = BARE_RESULT.search(text)
    is_filled = result is not None and bool(text[result.end() :].strip())
    if result is not None and (cursor.segment == "thought" or (is_filled and not OWN_OUTPUT.search(result.group()))):
        raise ReplyParseError("invented_observation", "invented_result", text, line=excerpt(result.group()))
    if not state.foreign_words and (spoken := SPOKEN.search(text)) is not None:
        state.foreign_words = spoken.group().strip()
    if result is not None and is_filled and not state.foreign_words:
        state.foreign_words = result.group().strip()


def _check_trailing_text(state: ParseState, text: str) -> None:
    """Let prose after a decision pass, unless it takes the decision back or continues it."""
    bare = text.strip("`*~_ \n")
    if (
        len(text) > MAX_PROSE
        or SECOND_THOUGHT.search(text)
        or (bare != "," and bare.startswith((",", "，", '"', "+", "|", "&&")))
        or INLINE_LABEL.search(text)
        or _holds_call(text, state.cards)
    ):
        raise ReplyParseError(
            "stray_text",
            "text_after_decision",
            text,
            text=excerpt(text.split("\n", 1)[0]),
            usable=state.describe_readable(),
        )


def _holds_call(text: str, cards: Sequence[ToolCard]) -> bool:
    return any(resolve_tool_name(call.group(1), cards) is not None for call in CALL.finditer(text))
