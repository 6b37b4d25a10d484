"""The counting behind an interception rate."""

from __future__ import annotations

import pytest

from taoloop import Agent, tool
from taoloop.core.trace import Trace
from taoloop.policy import InterceptionCounts, Policy, Rule, interceptions, total
from taoloop.runtime.approvals.request import ApprovalRequest


@tool(tier="destructive", egress=True)
def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    return f"paid {amount} to {to}"


@tool(tier="read")
def look(at: str) -> str:
    """Look at something."""
    return at


def calls(*args: dict[str, object], name: str = "pay") -> dict[str, object]:
    return {"tool_calls": [{"name": name, "args": one} for one in args]}


def run(script: list[object], approve: object = None, policy: Policy | None = None) -> Trace:
    agent = Agent(
        model=script,  # type: ignore[arg-type]  # plain replies
        tools=[pay, look],
        approve=approve,  # type: ignore[arg-type]  # functions of several kinds
        policy=policy or Policy(),
    )
    return agent.run_sync("do it").trace


def test_high_risk_actions_are_counted_with_what_became_of_them() -> None:
    """S2-41: the interception rate of high-risk actions can be reported."""
    script: list[object] = [
        calls({"to": "ann", "amount": 5}, {"to": "bob", "amount": 500}),
        calls({"at": "x"}, name="look"),
        calls({"to": "eve"}),  # does not fit: no action at all
        "done",
    ]

    def small(request: ApprovalRequest) -> bool:
        return bool(request.args["amount"] < 100)

    counts = interceptions(run(script, small))
    assert counts == InterceptionCounts(wanted=2, asked=2, refused=1, started=1)
    assert counts.intercepted == 1
    assert counts.rate == pytest.approx(0.5)


def test_what_was_denied_or_waits_is_intercepted() -> None:
    waiting = run([calls({"to": "ann", "amount": 5})])
    assert interceptions(waiting) == InterceptionCounts(wanted=1, asked=1, open=1)
    never = Policy(rules=(Rule(verdict="deny", tool="pay"),))
    denied = run([calls({"to": "ann", "amount": 5}), "no"], policy=never)
    assert interceptions(denied) == InterceptionCounts(wanted=1, denied=1)
    assert total([waiting, denied]).rate == 1
    assert interceptions(run(["nothing to do"])).rate is None
