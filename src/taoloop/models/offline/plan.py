"""Decides the next action: goes through the goals in order, taking from the trace what is known already.

Nothing is remembered between turns. The same task, tools and observations always lead to the same place.
"""

from __future__ import annotations

from collections.abc import Sequence

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Answer, Decision
from taoloop.core.trace import Trace
from taoloop.models.offline.compound import Compound
from taoloop.models.offline.goals import goals
from taoloop.models.offline.steps import Stuck, Wanted


def decide(task: str, cards: Sequence[ToolCard], trace: Trace, *, close: bool = False) -> Decision:
    """The next action, or the answer. `close`: answer from what is known, whatever is missing."""
    return _Plan(task, cards, trace).decision(close=close)


class _Plan(Compound):
    def decision(self, *, close: bool) -> Decision:
        if not self.cards:
            return Answer(text=self.speech.refusal([], ()), reason=self.speech.say("refuse"))
        troubles: list[str] = []
        asked = goals(self.chooser)
        if not asked:
            troubles.append(self.speech.say("nothing"))
        for goal in asked:
            try:
                self.results += [self.arithmetic(goal, goal.tree)] if goal.tree is not None else self.asked(goal)
            except Stuck as stuck:
                troubles.append(str(stuck))
            except Wanted as wanted:
                if not close:
                    return wanted.act
                troubles.append(self.speech.say("unfinished", what=wanted.what))
                break
        troubles += dict.fromkeys(self.notes)
        ends = [finding for number, finding in enumerate(self.results) if number not in self.consumed]
        if not self.facts:
            return Answer(text=self.speech.refusal(troubles, self.cards), reason=self.speech.say("refuse"))
        text = self.speech.answer(ends, self.facts, troubles)
        return Answer(text=text, reason=self.speech.say("partly" if troubles else "done"))
