"""The calls of a stored run, judged again under another policy. Nothing is run, and the trace is not changed.

So a change of a policy can be reviewed like a change of code: which questions vanish, and which calls would newly run.
Each call is judged at its place in the recorded run, with what the model had seen and people had answered by then. What
the model would have done after another verdict is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call
from taoloop.core.events import ActionRequested, ApprovalGiven, ApprovalRefused, Verdict
from taoloop.core.policy import Policy
from taoloop.core.trace import Trace
from taoloop.errors import PolicyError
from taoloop.policy.judge import CodeRule, judge
from taoloop.policy.review.unmet_conditions import UnmetRule, unmet_rules
from taoloop.policy.rules import reject_unmatchable_rules
from taoloop.policy.texts import RULE_PREFIX, TEXTS

Change = Literal["same", "question_vanishes", "newly_runs", "newly_asked", "newly_denied"]
"""What a policy changes for a call. `question_vanishes`: a person approved it, now nobody would be asked.
`newly_runs`: the recorded policy or a person refused it, or nobody has answered; now it would run."""

CHANGES: tuple[Change, ...] = ("newly_runs", "newly_denied", "newly_asked", "question_vanishes")
"""The changes, the most important one first."""


def change_text(change: Change, language: str) -> str:
    """A change in words, such as `would newly run`."""
    return TEXTS.text(language, f"change_{change}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedCall:
    """One recorded call and its verdict under the policy that is tried."""

    run_id: str
    """The run that made the call."""
    requested: ActionRequested
    """The call, with the recorded verdict."""
    verdict: Verdict
    """The verdict of the policy that is tried."""
    approval: ApprovalGiven | ApprovalRefused | None
    """What a person answered to the recorded question."""
    unmet: tuple[UnmetRule, ...] = ()
    """The rules of the policy that is tried which are about the tool, were asked first and did not apply. Only where
    they were requested, and only of a call whose verdict changes."""

    @property
    def change(self) -> Change:
        """What the policy changes for the call."""
        before, after = self.requested.verdict, self.verdict.kind
        if before == after:
            return "same"
        if after == "allow":
            was_approved = before == "ask" and isinstance(self.approval, ApprovalGiven)
            return "question_vanishes" if was_approved else "newly_runs"
        return "newly_asked" if after == "ask" else "newly_denied"


def judged_calls(trace: Trace) -> Iterator[tuple[Trace, ActionRequested, ToolCard]]:
    """Each call of a run that its policy judged, with the run as it was before the call, and the card of its tool.

    Calls that were refused for another reason (no such tool, arguments that do not fit) are left out. The trace that
    comes with a call grows afterwards: use it before the next call is taken.
    """
    before = Trace(trace.run_id)
    for event in trace.events:
        fact = event.fact
        if isinstance(fact, ActionRequested) and fact.rule and (card := before.card(fact.tool)) is not None:
            yield before, fact, card
        before.append(event)


def review_calls(
    trace: Trace, policy: Policy, *, rules: tuple[CodeRule, ...] = (), explain: int = 0
) -> Iterator[ReviewedCall]:
    """The judged calls of a run in their order, each with its verdict under `policy`.

    `rules` are rules in Python, as in `judge`. Where they are not known, the calls that one of them decided are left
    out: their verdict cannot be found out again. `explain` is for how many changed verdicts the unmet rules are found.
    """
    titles = {f"{RULE_PREFIX}{rule.title}" for rule in trace.agent.policy.rules} if trace.started else set()
    for before, requested, card in judged_calls(trace):
        if not rules and requested.rule.startswith(RULE_PREFIX) and requested.rule not in titles:
            continue
        call = Call(tool=requested.tool, args=requested.args)
        filled = requested.written is not None
        verdict = judge(before, call, card, policy, rules=rules, filled=filled, replaces=requested.replaces)
        unmet: list[UnmetRule] = []
        if explain > 0 and verdict.kind != requested.verdict:
            explain -= 1
            unmet = unmet_rules(before, policy, card, requested.args, filled=filled)
        yield ReviewedCall(
            run_id=trace.run_id,
            requested=requested,
            verdict=verdict,
            approval=trace.calls[requested.call_id].approval,
            unmet=tuple(unmet),
        )


class PolicyTrial:
    """A policy that is tried on stored runs, one after another: which verdicts it changes.

    Args:
        policy: What is tried.
        explain: For how many of the changed calls the rules are found that did not apply to them.
    """

    def __init__(self, policy: Policy, *, explain: int = 0) -> None:
        self.policy = policy
        self.changed: list[ReviewedCall] = []
        self.counts: Counter[Change] = Counter()
        self._explain = explain
        self._cards: dict[str, ToolCard] = {}

    def add(self, trace: Trace) -> None:
        """Judge the calls of a run."""
        if trace.started is not None:
            self._cards.update((card.name, card) for card in trace.agent.tools)
        for call in review_calls(trace, self.policy, explain=self._explain - len(self.changed)):
            self.counts[call.change] += 1
            if call.change != "same":
                self.changed.append(call)

    @property
    def problem(self) -> PolicyError | None:
        """A rule that no tool of these runs can meet; the policy may be for agents that they are not of."""
        try:
            reject_unmatchable_rules(self.policy, self._cards)
        except PolicyError as error:
            return error
        return None
