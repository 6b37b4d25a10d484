"""The one reader behind every dialect: from the text of a reply to its one decision, or to why there is none.

The text is walked once. Labels, JSON objects, code fences and calls that leaked are taken where they stand; values are
consumed whole, so that words inside of them are never seen. From the first observation or turn that the model wrote
itself nothing is believed; what is found before it must be one decision.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from taoloop.core.decision import Act, Answer, Call, Decision, excerpt
from taoloop.dialects.parsing.action_parser import ActionReader
from taoloop.dialects.parsing.json_decision import ParsedThought, is_message, is_observation, parse_decision_object
from taoloop.dialects.parsing.json_repair import (
    RepairedJson,
    looks_like_json,
    match_end,
    parse_value,
    skip_extra_closers,
    unescape_quotes,
)
from taoloop.dialects.parsing.labels import FINAL_AHEAD, LABEL, label_kind, strip_partial_label
from taoloop.dialects.parsing.leaked_calls import FUNCTION_CALL, parse_leaked_calls
from taoloop.dialects.parsing.parse_error import ReplyParseError
from taoloop.dialects.parsing.parse_state import first_line
from taoloop.dialects.parsing.patterns import (
    AGREEMENT,
    CLOSING,
    EVENT,
    FENCE_LINE,
    LINE_HEAD,
    MAX_OBJECTS,
    MAX_PARTS,
    PLAIN_ASKED,
    TOOL_ROLE,
)
from taoloop.dialects.parsing.strict_json import NotJsonError, json_equal
from taoloop.dialects.parsing.tool_names import is_final_name, resolve_tool_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards.tool_card import ToolCard


_FENCED_STRING = re.compile(r"```\w{0,20}\s*+(?=[\"'“])")
_FINISH_LINE = re.compile(r"^[ \t]*+finish(?P<sign>[\[(])(?=[^\n]*[\])][ \t]*+(?:\n|\Z))", re.IGNORECASE | re.MULTILINE)
_CALL_LINE = re.compile(r"^[ \t]*+(?P<list>\[[ \t]*+)?(?P<name>[^\W\d][\w.]{0,200})\(", re.MULTILINE)


def read_text(text: str, cards: Sequence[ToolCard], *, json_answer: bool = False) -> Decision:
    """The one decision in a text that was cleaned. `json_answer`: answers that are JSON values stay whole.

    Raises:
        ReplyParseError: there is none, or none that may be believed.
    """
    if not text:
        raise ReplyParseError("empty", "The reply is empty.")
    text = strip_partial_label(text)
    if text.startswith('{\\"'):
        text = _without_escapes(text)
    if (fence := _FENCED_STRING.match(text)) is not None:
        body = text[fence.end() :].removesuffix("```").rstrip()
        inner = _in_a_string(body)
        text = text if inner is body else inner
    elif text[0] in "\"'“" and text[-1] in "\"'”":
        text = _in_a_string(text)
    return _Scan(text, cards, json_answer=json_answer).decision()


def _without_escapes(text: str) -> str:
    try:
        return unescape_quotes(text)
    except NotJsonError:
        return text


def _in_a_string(text: str) -> str:
    """The text in a reply that is one JSON string with an object in it."""
    try:
        found = parse_value(text)
    except NotJsonError:
        return text
    whole = isinstance(found.value, str) and found.end == len(text) and found.value.lstrip()[:1] in ("{", "[")
    return found.value if whole and not found.is_guess else text


class _Scan(ActionReader):
    """The walk over a text: from event to event, each taken by the part of the reader that knows it."""

    def decision(self) -> Decision:
        position = self.calls(0, len(self.text)) or 0
        while position >= 0 and (event := EVENT.search(self.text, position)) is not None:
            position = self.cut() if 0 <= self.result[0] <= event.start() else self.take(event)
        if self.result[0] >= 0 and position >= 0:
            position = self.cut()
        if position >= 0:
            self._take_last_line(len(self.text))
            self.end_segment(len(self.text))
            self.finish_pending_action()
        self._refuse_heard()
        if self.afterthought:
            line = first_line(self.afterthought)
            raise ReplyParseError(
                "stray_text", f"The thought {excerpt(line)!r} follows the decision.{self.describe_readable()}", line
            )
        reason = "\n".join(self.thoughts)
        if isinstance(self.found, Call):
            return Act(calls=(self.found,), reason=reason)
        if self.found is not None:
            return Answer(text=self.found, reason=reason)
        code = "no_decision" if self.kind != "preamble" or self.thoughts or "{" in self.text else "stray_text"
        raise ReplyParseError(
            code,
            f"The reply has neither an action nor a final answer: {excerpt(self.text)!r}.{self.describe_readable()}",
            self.text,
        )

    def _take_last_line(self, end: int) -> None:
        """Take `[name(…)]`, or `name(…)` of a tool that reads, where it is the last line and has no label."""
        if self.found is not None or self.action is not None or self.kind not in ("preamble", "thought"):
            return
        if (done := _FINISH_LINE.search(self.text, self.begin, end)) is not None and not resolve_tool_name(
            "finish", self.cards
        ):
            self.end_segment(done.start())
            self.finish(done["sign"], done.end())
            return
        for line in islice(_CALL_LINE.finditer(self.text, self.begin, end), MAX_OBJECTS):
            card = resolve_tool_name(line["name"], self.cards)
            if card is None or not (card.reads_only or line["list"]):
                continue
            try:
                leaked, last = parse_leaked_calls(self.text, line.start(), self.cards)
            except ReplyParseError:
                return
            if last <= end <= match_end(CLOSING, self.text, last):
                self.end_segment(line.start())
                for one in leaked:
                    self.apply(one.item, doubtful=one.is_guess)
                self.mark_decision_end(last)
            return

    def _refuse_heard(self) -> None:
        """A call of a tool that writes may not rest on what somebody else is made to say before it."""
        if (self.heard or self.echoed) and isinstance(self.found, Call):
            card = resolve_tool_name(self.found.tool, self.cards)
            said = f" ({self.heard!r})" if self.heard else ""
            if card is None or (self.heard and not card.reads_only) or card.tier == "destructive":
                raise ReplyParseError(
                    "invented_observation",
                    f"Before the call of {self.found.tool!r} stand words of somebody else{said}; "
                    "nothing was run. Give only the thought and the action.",
                    self.text,
                )

    def take(self, event: re.Match[str]) -> int:
        """Take one event; the position to go on from, or -1 when nothing further may be believed."""
        self.parts += 1
        if self.parts > MAX_PARTS:
            raise ReplyParseError("stray_text", f"The reply has more than {MAX_PARTS:,} parts; give one decision.")
        what = event.lastgroup or ""
        start = event.start()
        if event["label"] is not None:
            return self.label(event)
        if what == "told":
            return self.invented_turn(start, event.end())
        if what == "fence":
            return self.fence(event)
        if what == "brace":
            return self.brace(start)
        self.end_segment(start)
        leaked, end = parse_leaked_calls(self.text, start, self.cards)
        for call in leaked:
            self.apply(call.item, doubtful=call.is_guess)
        return self.mark_decision_end(end)

    def label(self, event: re.Match[str]) -> int:
        kind = label_kind(event)
        start, end = event.span()
        if kind == "observation" or (kind == "turn" and not self._echoes(event)):
            return self.invented_turn(start, end)
        if kind == "action" and self._speaks(event):
            return self.invented_turn(start, end)
        self.end_segment(start)
        if kind == "input":
            return self.input(end)
        self.finish_pending_action()
        if kind == "action":
            return self.act(end)
        if kind == "final":
            return self.final(end)
        self.kind, self.begin = ("turn" if kind == "turn" else "thought"), end
        self.echoed = self.echoed or kind == "turn"
        return end

    def _echoes(self, event: re.Match[str]) -> bool:
        """Whether a label only repeats that of the task, at the very beginning."""
        first = not self.text[: event.start()].strip() and PLAIN_ASKED.search(event.group()) is not None
        return first and AGREEMENT.match(self.text, event.end(), self.line_end(event.end())) is None

    def _speaks(self, event: re.Match[str]) -> bool:
        """Whether a line behind a call is what the tool said, as in `tool: 3 rooms`, and no second call."""
        if not isinstance(self.found, Call) or not TOOL_ROLE.fullmatch(event.group()):
            return False
        said = self.text[event.end() : self.line_end(event.end())].strip(" \t*_`")
        return " " in said or said[:1] in ("{", "[", '"') or said.isnumeric()

    def invented_turn(self, start: int, end: int) -> int:
        """An observation or a turn that the model wrote itself: nothing from here on is believed."""
        filled = self._filled(end)
        self._take_last_line(start)
        self.end_segment(start)
        if not filled:
            self.kind, self.begin = "after" if self.found is not None else "preamble", end
            return end
        self.finish_pending_action()
        if self.found is None:
            raise ReplyParseError(
                "invented_observation",
                f"The reply goes on with an observation or a turn that you wrote yourself.{self.describe_readable()} "
                "Only the runtime writes observations: stop after the action.",
                self.text[start:],
            )
        if isinstance(self.found, Call) and self._finishes(end):
            raise ReplyParseError(
                "invented_observation",
                "You wrote the observation yourself and then a final answer on it; nothing was run. "
                "Stop after the action and wait for the real observation.",
                self.text[start:],
            )
        return -1

    def _filled(self, position: int) -> bool:
        """Whether anything stands in the slot of an observation before the next label."""
        behind = match_end(CLOSING, self.text, position)
        if behind >= len(self.text):
            return False
        label = LABEL.match(self.text, self.text.rfind("\n", 0, behind) + 1)
        return label is None or label.start() < position or label["observation"] is not None

    def _finishes(self, position: int) -> bool:
        if FINAL_AHEAD.search(self.text, position):
            return True
        for label in LABEL.finditer(self.text, position):
            named = self.text[label.end() : match_end(LINE_HEAD, self.text, label.end())]
            if label["final"] is not None or (label["action"] is not None and is_final_name(named)):
                return True
        return False

    def cut(self) -> int:
        """Nothing from an invented result on is believed."""
        start, end = self.result
        self.result = (-2, -2)
        return self.invented_turn(start, end)

    def fence(self, event: re.Match[str]) -> int:
        """A code fence: its content is a decision, labelled lines, or code that is none of our business."""
        if self.kind == "after" or self.opened:
            self.opened = False
            return event.end()
        start = self.skip_whitespace(event.end())
        close = FENCE_LINE.search(self.text, start)
        end = close.start() if close is not None else len(self.text)
        if self.text[start : start + 1] in ("{", "[", "｛"):
            return start if looks_like_json(self.text, self.text.find("{", start)) else end
        if self.action is None and FUNCTION_CALL.match(self.text, start):
            self.end_segment(event.start())
            self.begin = start
            if (called := self.calls(start, end)) is not None:
                return called
        if self.action is None and self._reads_on(start, end):
            if close is not None and self._decides(close.end()):
                raise ReplyParseError(
                    "two_decisions", "Labels in a code block, and others behind it.", self.text[start:end]
                )
            self.end_segment(event.start())
            self.begin = event.end()
            self.opened = True
            return event.end()
        return close.end() if close is not None else event.end()

    def calls(self, start: int, end: int) -> int | None:
        """Behind `name(…)` where that, or a list of such, is all that stands there; None if no tool is called."""
        call = FUNCTION_CALL.match(self.text, start)
        if call is None or resolve_tool_name(call.group("name").removesuffix(".call"), self.cards) is None:
            return None
        leaked, last = parse_leaked_calls(self.text, start, self.cards)
        behind = match_end(CLOSING, self.text, last)
        if behind < end and not self._reads_on(behind, end):
            raise ReplyParseError(
                "bad_action", "A program is no call of a tool; nothing was run.", self.text[start:end]
            )
        for one in leaked:
            self.apply(one.item, doubtful=one.is_guess)
        return self.mark_decision_end(last)

    def _reads_on(self, start: int, end: int) -> bool:
        event = EVENT.search(self.text, start, end)
        return event is not None and event.lastgroup not in ("brace", "fence")

    def brace(self, start: int) -> int:
        """A brace in the open: a decision, the input of an action that waits for it, or prose."""
        if not looks_like_json(self.text, start):
            return start + 1
        if self.action is not None and not self.text[self.begin : start].strip(" `*\n\tjson"):
            name, self.action = self.action, None
            if is_final_name(name) and resolve_tool_name(name, self.cards) is None:
                self.action = name
                return self.input(start)
            return self.json_input(name, start)
        value = self.value(start, "")
        if is_message(value.value):
            return self.invented_turn(start, start)
        found = parse_decision_object(value.value, self.cards)
        if not found and is_observation(value.value) and (self.found is not None or not self.thoughts):
            return self.invented_turn(start, start)
        decided = [one for one in found if not isinstance(one, ParsedThought)]
        if self.kind == "after" and not decided:
            self.repeated(value)
            return value.end
        if decided:
            self.end_segment(start)
            self.finish_pending_action()
        for one in found:
            self.apply(one, doubtful=value.is_guess)
        return self.mark_decision_end(skip_extra_closers(self.text, value.end)) if decided else value.end

    def repeated(self, value: RepairedJson) -> None:
        """An object behind a call is its arguments once more, or a second version of them."""
        if isinstance(self.found, Call) and not json_equal(self.found.args, value.value):
            raise ReplyParseError(
                "two_decisions", f"A second object follows the call of {self.found.tool!r}; nothing was run."
            )
