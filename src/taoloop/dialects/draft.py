"""What has been read of a reply so far: its thoughts, and at most one decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.core.decision import Call, excerpt
from taoloop.dialects.calls import make_call
from taoloop.dialects.names import find_card, is_final_name
from taoloop.dialects.objects import Asked, Meant, Mused
from taoloop.dialects.refusal import RefusedError
from taoloop.dialects.strict import same
from taoloop.dialects.values import answer_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards import ToolCard


class Draft:
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
            if old.tool == new.tool and same(old.args, new.args):
                return
            message = f"Two different actions in one reply, {old.tool!r} and {new.tool!r}; nothing was run."
        elif old == new:
            return
        elif isinstance(old, str) and isinstance(new, str):
            message = "Two different final answers in one reply."
        else:
            message = "An action and a final answer in one reply, before the observation was seen; nothing was run."
        raise RefusedError("two_decisions", f"{message} Give exactly one decision.")

    def means(self, one: Meant, *, doubtful: bool) -> None:
        """Take what an object or a leaked call says."""
        if one.reason and self.found is None and one.reason not in self.thoughts[-1:]:
            self.thoughts.append(one.reason)
        if isinstance(one, Mused):
            return
        if not isinstance(one, Asked):
            self.answer(one.value)
        elif is_final_name(one.name) and find_card(one.name, self.cards) is None:
            self.answer(one.args)
        else:
            self.decide(make_call(one.name, one.args, self.cards, given=one.given, doubtful=doubtful))

    def answer(self, value: object) -> None:
        """Take an answer, which is a text or a value of JSON."""
        self.decide(answer_text(value, json_answer=self.json_answer))

    def settle(self) -> None:
        """An action that got no input of its own is complete here."""
        if self.action is not None:
            name, self.action = self.action, None
            if is_final_name(name) and find_card(name, self.cards) is None:
                raise RefusedError("bad_final", "The final answer is empty. Give the answer, or say what is missing.")
            self.decide(make_call(name, None, self.cards, given=False))

    def usable(self) -> str:
        """Which part of the reply was readable."""
        parts = ["the thought"] if self.thoughts else []
        if isinstance(self.found, Call):
            parts.append(f"the call of {self.found.tool!r}")
        elif self.found is not None:
            parts.append("the final answer")
        elif self.action:
            parts.append(f"the action {excerpt(self.action)!r}")
        return f" Usable before it: {' and '.join(parts)}." if parts else ""
