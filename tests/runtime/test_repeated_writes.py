"""The same write twice in a run: asked about with its reason, in one reply as in successive ones."""

from __future__ import annotations

from typing import Any

import pytest

from taoloop import Agent, ApprovalAnswer, ApprovalRequest, Result, ScriptedModel, tool
from taoloop.core.policy import Policy, Profile, Rule
from taoloop.errors import ToolError

PAY = {"tool_calls": [{"name": "pay", "args": {"to": "ann", "amount": 5}}]}
TWICE = {"tool_calls": [*PAY["tool_calls"], {"name": "pay", "args": {"to": "Ann ", "amount": 5}}]}


class Bank:
    """Pays, and counts it."""

    def __init__(self, *errors: ToolError) -> None:
        self.paid, self.errors = 0, list(errors)
        self.questions: list[ApprovalRequest] = []

    def run(self, policy: Policy, *replies: Any, answer: bool = False, task: str = "Pay ann 5") -> Result:
        @tool(tier="write", egress=False, roles={"to": "target", "amount": "value"})
        def pay(to: str, amount: int) -> str:
            """Pay somebody."""
            if self.errors:
                raise self.errors.pop()
            self.paid += amount
            return f"paid {amount} to {to}"

        def approve(request: ApprovalRequest) -> ApprovalAnswer:
            self.questions.append(request)
            return ApprovalAnswer(approved=answer, by="ann")

        model = ScriptedModel([*replies, "Done."])
        return Agent(model=model, tools=[pay], policy=policy, approve=approve).run_sync(task)


@pytest.mark.parametrize("replies", [(TWICE,), (PAY, PAY)])
@pytest.mark.parametrize("profile", ["supervised", "autonomous", "headless"])
def test_nobody_is_paid_twice_unasked(profile: Profile, replies: tuple[Any, ...]) -> None:
    bank = Bank()
    rules = (Rule(verdict="allow", tool="pay"),) if profile == "headless" else ()
    result = bank.run(Policy(profile=profile, rules=rules), *replies)
    assert bank.paid == 5
    verdicts = [call.requested.verdict for call in result.trace.calls.values()]
    assert verdicts == ["allow", "deny" if profile == "headless" else "ask"]
    assert all("exactly this call" in request.reasons[0] for request in bank.questions)
    assert len(bank.questions) == (profile != "headless")


def test_a_person_may_want_it_twice() -> None:
    bank = Bank()
    bank.run(Policy(profile="autonomous"), PAY, PAY, answer=True)
    assert (bank.paid, len(bank.questions)) == (10, 1)
    bank = Bank()
    bank.run(Policy(profile="autonomous"), TWICE, task="Pay ann 5 twice")
    assert (bank.paid, len(bank.questions)) == (10, 0)


def test_a_call_that_was_declined_may_be_tried_again() -> None:
    bank = Bank(ToolError("declined", code="declined"))
    bank.run(Policy(profile="autonomous"), PAY, PAY)
    assert (bank.paid, len(bank.questions)) == (5, 0)
