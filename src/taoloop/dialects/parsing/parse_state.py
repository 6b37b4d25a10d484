"""The state of the parsers of one reply.

`ParseState` has what was read so far: the thoughts, and at most one decision. `ReplyCursor` has the text, and which
part of it belongs to nothing yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call, excerpt
from taoloop.dialects.parsing.call_arguments import answer_text, build_call
from taoloop.dialects.parsing.json_decision import ParsedCall, ParsedItem, ParsedThought
from taoloop.dialects.parsing.json_repair import RepairedJson, match_end, parse_value
from taoloop.dialects.parsing.patterns import (
    BARE_RESULT,
    CALL,
    CONDITION,
    INLINE_LABEL,
    LABEL,
    LANGUAGE,
    MAX_PROSE,
    OWN_OUTPUT,
    RESULT,
    SECOND_THOUGHT,
    SPOKEN,
    WHITESPACE,
    label_kind,
)
from taoloop.dialects.parsing.strict_json import NotJsonError, json_equal
from taoloop.dialects.parsing.tool_names import is_final_name, resolve_tool_name
from taoloop.dialects.texts import LocalizedText, ReplyParseError


@dataclass(slots=True)
class ParseState:
    """The decision of a reply as it takes shape. Every parser adds to it what it has read."""

    cards: Sequence[ToolCard]
    """The tools that may be called."""
    json_answer: bool = False
    """Whether an answer is a JSON value that stays whole."""
    thoughts: list[str] = field(default_factory=list)
    """The thoughts before the decision, in their order."""
    decision: Call | str | None = None
    """The one decision: a call, the text of the final answer, or nothing yet."""
    pending_action: str | None = None
    """The name of an action whose input has not come yet."""
    afterthought: str = ""
    """A thought after the decision."""
    unknown_keys: tuple[str, ...] = ()
    """Keys beside the decision that mean nothing to the runtime."""
    repeats_task: bool = False
    """Whether the reply begins with the label of the task, as some models repeat it."""
    foreign_words: str = ""
    """A line before the decision that may be another party's words."""

    def decide(self, decision: Call | str) -> None:
        """Keep the decision; the same one once more changes nothing.

        Raises:
            ReplyParseError: there is another decision already.
        """
        self.afterthought = ""
        previous = self.decision
        if previous is None:
            self.decision = decision
        elif isinstance(previous, Call) and isinstance(decision, Call):
            if previous.tool != decision.tool or not json_equal(previous.args, decision.args):
                raise ReplyParseError("two_decisions", "two_actions", first=previous.tool, second=decision.tool)
        elif previous != decision:
            both_answers = isinstance(previous, str) and isinstance(decision, str)
            raise ReplyParseError("two_decisions", "two_answers" if both_answers else "action_and_answer")

    def apply(self, item: ParsedItem, *, is_guess: bool) -> None:
        """Add what an object or a leaked call holds.

        Raises:
            ReplyParseError: it is no call or answer that may be believed, or a second decision.
        """
        if item.reason and self.decision is None and item.reason not in self.thoughts[-1:]:
            self.thoughts.append(item.reason)
        if isinstance(item, ParsedThought):
            return
        self.unknown_keys += item.unknown_keys
        if not isinstance(item, ParsedCall):
            self.set_answer(item.value)
        elif self.is_final(item.name):
            self.set_answer(item.args)
        else:
            card = resolve_tool_name(item.name, self.cards)
            if item.unknown_keys and (card is None or not card.reads_only):
                keys = excerpt(", ".join(item.unknown_keys))
                raise ReplyParseError("stray_text", "unknown_keys", keys=keys)
            self.decide(build_call(item.name, item.args, self.cards, has_input=item.has_args, is_guess=is_guess))

    def set_answer(self, value: object) -> None:
        """Decide on a final answer: a text, or a JSON value.

        Raises:
            ReplyParseError: it is empty or a placeholder, or a second decision.
        """
        self.decide(answer_text(value, json_answer=self.json_answer))

    def is_final(self, name: str) -> bool:
        """Whether an action of this name gives the final answer: no tool has the name."""
        return is_final_name(name) and resolve_tool_name(name, self.cards) is None

    def finish_pending_action(self) -> None:
        """Complete an action that got no input of its own.

        Raises:
            ReplyParseError: it needs an input, or is a final answer without a text.
        """
        if self.pending_action is None:
            return
        name, self.pending_action = self.pending_action, None
        if self.is_final(name):
            raise ReplyParseError("bad_final", "empty_answer")
        self.decide(build_call(name, None, self.cards, has_input=False))

    def describe_readable(self) -> LocalizedText | str:
        """Which part of the reply was readable, to complete the message of an error."""
        parts: list[LocalizedText] = [LocalizedText("thought_part")] if self.thoughts else []
        if isinstance(self.decision, Call):
            parts.append(LocalizedText("call_part", {"tool": self.decision.tool}))
        elif self.decision is not None:
            parts.append(LocalizedText("answer_part"))
        elif self.pending_action:
            parts.append(LocalizedText("action_part", {"action": excerpt(self.pending_action)}))
        if not parts:
            return ""
        listed = parts[0] if len(parts) == 1 else LocalizedText("thought_and", {"first": parts[0], "second": parts[1]})
        return LocalizedText("usable", {"parts": listed})


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
        ReplyParseError: it is not JSON.
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
            "stray_text", "text_after_action", text, text=excerpt(text.split("\n", 1)[0]), tool=state.pending_action
        )


def _check_foreign_words(cursor: ReplyCursor, state: ParseState, text: str) -> None:
    """Reject a line that gives a result, and note one in which another party speaks."""
    result = BARE_RESULT.search(text)
    is_filled = result is not None and bool(text[result.end() :].strip())
    if result is not None and (cursor.segment == "thought" or (is_filled and not OWN_OUTPUT.search(result.group()))):
        raise ReplyParseError("invented_observation", "invented_result", text, text=excerpt(result.group()))
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
        or (_changes_something(state) and CONDITION.search(text))
        or (bare != "," and bare.startswith((",", "，", '"', "+", "|", "&&")))
        or INLINE_LABEL.search(text)
        or any(resolve_tool_name(call[1], state.cards) is not None for call in CALL.finditer(text))
    ):
        line, usable = excerpt(text.split("\n", 1)[0]), state.describe_readable()
        raise ReplyParseError("stray_text", "text_after_decision", text, text=line, usable=usable)


def _changes_something(state: ParseState) -> bool:
    """Whether the decision is a call of a tool that does more than read."""
    card = resolve_tool_name(state.decision.tool, state.cards) if isinstance(state.decision, Call) else None
    return card is not None and not card.reads_only
