"""What has been read of a reply so far: its thoughts, and at most one decision."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from taoloop.core.decision import Call, excerpt
from taoloop.dialects.parsing.call_arguments import build_call
from taoloop.dialects.parsing.json_decision import ParsedCall, ParsedItem, ParsedThought
from taoloop.dialects.parsing.json_repair import RepairedJson, match_end, parse_value
from taoloop.dialects.parsing.labels import BARE_RESULT, INLINE_LABEL, LABEL, RESULT, SPOKEN
from taoloop.dialects.parsing.parse_error import ReplyParseError
from taoloop.dialects.parsing.patterns import CALL, LANGUAGE, MAX_PROSE, OWN_OUTPUT, SECOND_THOUGHT, WHITESPACE
from taoloop.dialects.parsing.placeholders import answer_text
from taoloop.dialects.parsing.strict_json import NotJsonError, json_equal
from taoloop.dialects.parsing.tool_names import is_final_name, resolve_tool_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards.tool_card import ToolCard


def first_line(text: str) -> str:
    """The first line."""
    return text.split("\n", 1)[0]


class ParseState:
    """The decision of a reply as it takes shape; whoever reads a part of the reply puts it here."""

    def __init__(self, cards: Sequence[ToolCard], *, json_answer: bool) -> None:
        self.cards, self.json_answer = cards, json_answer
        self.thoughts: list[str] = []
        self.found: Call | str | None = None
        self.action: str | None = None  # an action whose input has not come yet
        self.afterthought = ""  # a thought behind the decision

    def decide(self, new: Call | str) -> None:
        """Keep the decision; the same one again is nothing new."""
        self.afterthought = ""
        old = self.found
        if old is None:
            self.found = new
            return
        if isinstance(old, Call) and isinstance(new, Call):
            if old.tool == new.tool and json_equal(old.args, new.args):
                return
            message = f"Two different actions in one reply, {old.tool!r} and {new.tool!r}; nothing was run."
        elif old == new:
            return
        elif isinstance(old, str) and isinstance(new, str):
            message = "Two different final answers in one reply."
        else:
            message = "An action and a final answer in one reply, before the observation was seen; nothing was run."
        raise ReplyParseError("two_decisions", f"{message} Give exactly one decision.")

    def apply(self, one: ParsedItem, *, doubtful: bool) -> None:
        """Take what an object or a leaked call says."""
        if one.reason and self.found is None and one.reason not in self.thoughts[-1:]:
            self.thoughts.append(one.reason)
        if isinstance(one, ParsedThought):
            return
        if not isinstance(one, ParsedCall):
            self.answer(one.value)
        elif is_final_name(one.name) and resolve_tool_name(one.name, self.cards) is None:
            self.answer(one.args)
        else:
            self.decide(build_call(one.name, one.args, self.cards, has_input=one.has_args, is_guess=doubtful))

    def answer(self, value: object) -> None:
        """Take an answer, which is a text or a value of JSON."""
        self.decide(answer_text(value, json_answer=self.json_answer))

    def finish_pending_action(self) -> None:
        """An action that got no input of its own is complete here."""
        if self.action is not None:
            name, self.action = self.action, None
            if is_final_name(name) and resolve_tool_name(name, self.cards) is None:
                raise ReplyParseError(
                    "bad_final", "The final answer is empty. Give the answer, or say what is missing."
                )
            self.decide(build_call(name, None, self.cards, has_input=False))

    def describe_readable(self) -> str:
        """Which part of the reply was readable."""
        parts = ["the thought"] if self.thoughts else []
        if isinstance(self.found, Call):
            parts.append(f"the call of {self.found.tool!r}")
        elif self.found is not None:
            parts.append("the final answer")
        elif self.action:
            parts.append(f"the action {excerpt(self.action)!r}")
        return f" Usable before it: {' and '.join(parts)}." if parts else ""


class ReplyCursor(ParseState):
    """A draft with the text that it is read from: what stands between two events belongs to what came before."""

    def __init__(self, text: str, cards: Sequence[ToolCard], *, json_answer: bool) -> None:
        super().__init__(cards, json_answer=json_answer)
        self.text = text
        self.kind = "preamble"  # what the text before the next event belongs to
        self.begin = 0  # where that text begins
        self.opened = False  # inside of a code fence whose content is read
        self.parts = 0
        self.result = (-1, -1)  # where a line behind the decision gives a result; -2: there is none
        self.last_decision = -1  # where the last label of an action or a final stands
        self.echoed = False  # the label of the task stands before everything
        self.heard = ""  # a line before the decision that may be the words of somebody else

    def value(self, position: int, name: str) -> RepairedJson:
        """The value at a position, which is the input of `name` (empty: an object in the open)."""
        try:
            return parse_value(self.text, position)
        except NotJsonError as error:
            whose = f"The input of {name!r}" if name else "The JSON object"
            raise ReplyParseError(
                "bad_json", f"{whose} is not valid JSON: {error}.{self.describe_readable()}", self.text[position:]
            ) from None

    def mark_decision_end(self, position: int) -> int:
        """Behind a decision; a line there that gives the result of an action can only be invented."""
        self.kind, self.begin = "after", position
        inline = LABEL.match(self.text[position : position + 80].lstrip(" \t.,;"))
        if inline is not None and inline["observation"] is not None:
            found = self.text.find(inline.group(), position)
            self.result = (found, found + len(inline.group()))
        elif self.result[0] == -1 and isinstance(self.found, Call):
            result = RESULT.search(self.text, position)
            self.result = result.span() if result is not None else (-2, -2)
        return position

    def skip_whitespace(self, position: int) -> int:
        """Behind blanks and an opening fence, or the language that is left of one."""
        position = match_end(WHITESPACE, self.text, position)
        language = LANGUAGE.match(self.text, position)
        return position if language is None or resolve_tool_name(language["word"], self.cards) else language.end()

    def line_end(self, position: int) -> int:
        """The end of the line."""
        end = self.text.find("\n", position)
        return end if end >= 0 else len(self.text)

    def end_segment(self, end: int) -> None:
        """The text up to `end` belongs to what came before it."""
        text = self.text[self.begin : end].strip()
        self.begin = end
        if not text:
            return
        speaks = self.kind in ("thought", "preamble", "turn") and (":" in text or "：" in text)
        result = BARE_RESULT.search(text) if speaks else None
        if result is not None and (self.kind == "thought" or self._is_told(text, result)):
            raise ReplyParseError(
                "invented_observation",
                f"The line {excerpt(result.group())!r} gives a result that you wrote yourself.",
                text,
            )
        if speaks and not self.heard and (spoken := SPOKEN.search(text)) is not None:
            self.heard = spoken.group().strip()
        if result is not None and not self.heard and text[result.end() :].strip():
            self.heard = result.group().strip()
        if self.kind == "thought" and self.found is None:
            self.thoughts.append(text.strip("`*\n "))
        elif self.kind == "thought":
            self.afterthought = text.strip("`*_ \n")
        elif self.kind == "after":
            self.check_trailing_text(text)
        elif self.kind == "action" and text.strip("`*~ \n") not in ("", "PAUSE"):
            raise ReplyParseError(
                "stray_text",
                f"The line {excerpt(first_line(text))!r} follows the action {self.action!r} without a label.",
                text,
            )

    def _is_told(self, text: str, result: re.Match[str]) -> bool:
        """Whether a line before everything gives a result; `Output:` may be the word for the decision itself."""
        return bool(text[result.end() :].strip()) and OWN_OUTPUT.search(result.group()) is None

    def check_trailing_text(self, text: str) -> None:
        """Prose behind a decision is let pass, unless it takes the decision back or goes on with it."""
        bare = text.strip("`*~_ \n")
        if (
            len(text) > MAX_PROSE
            or SECOND_THOUGHT.search(text)
            or (bare != "," and bare.startswith((",", "，", '"', "+", "|", "&&")))
            or INLINE_LABEL.search(text)
            or self._calls_in(text)
        ):
            raise ReplyParseError(
                "stray_text",
                f"The text {excerpt(first_line(text))!r} follows the decision without a label."
                f"{self.describe_readable()}",
                text,
            )

    def _calls_in(self, text: str) -> bool:
        return any(resolve_tool_name(call.group(1), self.cards) is not None for call in CALL.finditer(text))
