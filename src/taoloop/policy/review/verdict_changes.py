"""The calls of a stored run, judged again under another policy. Nothing is run, and the trace is not changed.

So a change of a policy can be reviewed like a change of code: which questions vanish, and which calls would newly run.
Each call is judged at its place in the recorded run, with what the model had seen and people had answered by then. What
the model would have done after another verdict is not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call
from taoloop.core.events import ActionRequested, ApprovalGiven, ApprovalRefused, Verdict
from taoloop.core.policy import Policy
from taoloop.core.trace import Trace
from taoloop.policy.judge import CodeRule, judge
from taoloop.policy.texts import RULE_PREFIX

Change = Literal["same", "question_vanishes", "newly_runs", "newly_asked", "newly_denied"]
"""What a policy changes for a call. `question_vanishes`: a person approved it, now nobody would be asked.
`newly_runs`: the recorded policy or a person refused it, or nobody has answered; now it would run."""


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


def review_calls(trace: Trace, policy: Policy, *, rules: tuple[CodeRule, ...] = ()) -> Iterator[ReviewedCall]:
    """The judged calls of a run in their order, each with its verdict under `policy`.

    `rules` are rules in Python, as in `judge`. Where they are not known, the calls that one of them decided are left
    out: their verdict cannot be found out again.
    """
    titles = {f"{RULE_PREFIX}{rule.title}" for rule in trace.agent.policy.rules} if trace.started else set()
    for before, requested, card in judged_calls(trace):
        if not rules and requested.rule.startswith(RULE_PREFIX) and requested.rule not in titles:
            continue
        call = Call(tool=requested.tool, args=requested.args)
        verdict = judge(
            before, call, card, policy, rules=rules, filled=requested.written is not None, replaces=requested.replaces
        )
        approval = trace.calls[requested.call_id].approval
        yield ReviewedCall(run_id=trace.run_id, requested=requested, verdict=verdict, approval=approval)
