"""What has been read of a reply so far: its thoughts, and at most one decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call, excerpt
from taoloop.dialects.parsing.call_arguments import build_call
from taoloop.dialects.parsing.json_decision import ParsedCall, ParsedItem, ParsedThought
from taoloop.dialects.parsing.parse_error import LocalizedText, ReplyParseError
from taoloop.dialects.parsing.placeholders import answer_text
from taoloop.dialects.parsing.strict_json import json_equal
from taoloop.dialects.parsing.tool_names import is_final_name, resolve_tool_name


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
    repeats_task: bool = False
    """Whether the reply begins with the label of the task, as some models repeat it."""
    foreign_words: str = ""
    """A line before the decision that may be somebody else's words."""

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
        if not isinstance(item, ParsedCall):
            self.set_answer(item.value)
        elif self.is_final(item.name):
            self.set_answer(item.args)
        else:
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

    def describe_readable(self) -> LocalizedText:
        """Which part of the reply was readable, to complete the message of an error."""
        parts: list[LocalizedText] = [LocalizedText("thought_part")] if self.thoughts else []
        if isinstance(self.decision, Call):
            parts.append(LocalizedText("call_part", {"tool": self.decision.tool}))
        elif self.decision is not None:
            parts.append(LocalizedText("answer_part"))
        elif self.pending_action:
            parts.append(LocalizedText("action_part", {"action": excerpt(self.pending_action)}))
        if not parts:
            return LocalizedText("nothing_usable")
        listed = parts[0] if len(parts) == 1 else LocalizedText("thought_and", {"first": parts[0], "second": parts[1]})
        return LocalizedText("usable", {"parts": listed})
