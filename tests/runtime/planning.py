"""An agent that plans a refund: its tools, its plan, the replies of its model, and the person who is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from tests.scripting import call

from taoloop import (
    Agent,
    ApprovalAnswer,
    ApprovalRequest,
    MemoryJournal,
    Result,
    ScriptedModel,
    ToolContext,
    tool,
)
from taoloop.core.effects import ModelRequest
from taoloop.core.trace import Trace
from taoloop.core.views.plans import plan_progress
from taoloop.policy.plan_grants import step_of
from taoloop.runtime.after.replay import replay

TASK = "Refund the order of ann, at most 50."

FIND = {"number": 1, "goal": "Find the order", "calls": [{"tool": "search_orders", "args": {"customer": "ann"}}]}
ORDER_ID = {"from": "tool:search_orders.items[].id", "step": 1}
REFUND = {
    "number": 2,
    "goal": "Refund it",
    "depends_on": [1],
    "calls": [{"tool": "refund", "args": {"order_id": ORDER_ID, "amount": 40}}],
}


class Shop:
    """Orders, and what was refunded: a repeated call under its key has no second effect."""

    def __init__(self, *order_ids: str) -> None:
        self.order_ids = order_ids or ("S-1",)
        self.refunds: dict[str, tuple[str, float]] = {}
        self.note = ""

    @property
    def ledger(self) -> list[tuple[str, float]]:
        """What was refunded."""
        return list(self.refunds.values())

    def tools(self) -> list[Any]:
        """The tools of the shop."""

        @tool(tier="read")
        def search_orders(customer: str) -> dict[str, Any]:
            """Search the orders of a customer."""
            return {"items": [{"id": order_id, "total": 40} for order_id in self.order_ids], "note": self.note}

        @tool(tier="write", idempotent=True, egress=False, roles={"amount": "value"})
        def refund(order_id: str, amount: float, *, context: ToolContext) -> str:
            """Refund an order."""
            self.refunds[context.idempotency_key] = (order_id, amount)
            return f"refunded {amount:g} for {order_id}"

        return [search_orders, refund]


def plan(*steps: dict[str, Any]) -> dict[str, Any]:
    """A reply that makes a plan."""
    return call("make_plan", steps=list(steps or (FIND, REFUND)))


def planner(shop: Shop, *replies: Any, **options: Any) -> Agent:
    """An agent that plans, with these replies of its model, in the run and in its steps alike."""
    options.setdefault("journal", MemoryJournal())
    options.setdefault("strategy", "plan_execute")
    replies = replies or (plan(), "Refunded 40 for S-1.")
    return Agent(model=ScriptedModel(replies, strict=False), tools=shop.tools(), **options)


async def step_trace(agent: Agent, run_id: str, number: int) -> Trace:
    """The trace of the run that a call of the run became."""
    journal = agent.journal
    assert isinstance(journal, MemoryJournal)
    return Trace(f"{run_id}.{number}", await journal.load(f"{run_id}.{number}"))


class Person:
    """Answers questions, and remembers them."""

    def __init__(self, *answers: ApprovalAnswer | bool) -> None:
        self.asked: list[ApprovalRequest] = []
        self.answers = list(answers)

    def __call__(self, request: ApprovalRequest) -> ApprovalAnswer | bool:
        self.asked.append(request)
        return self.answers.pop(0) if self.answers else ApprovalAnswer(approved=True, by="boss")

    @property
    def tools(self) -> list[str]:
        return [request.tool for request in self.asked]


class StepModel:
    """Replies of the run that plans, and of the runs of its steps by number."""

    spec, dialect = "steps", "native"

    def __init__(self, replies: Sequence[Any], steps: dict[int, Sequence[Any]]) -> None:
        self.main = ScriptedModel(replies, strict=False)
        self.steps = {number: ScriptedModel(texts, strict=False) for number, texts in steps.items()}

    async def complete(self, request: ModelRequest) -> Any:
        step = step_of(request.trace)
        return await (self.main if step is None else self.steps[step.number]).complete(request)

    def check_used(self, replies: int) -> None:
        pass

    async def close(self) -> None:
        pass


def step_of_run(agent: Agent, result: Result, number: int) -> Trace:
    return asyncio.run(step_trace(agent, result.run_id, number))


def assert_replays(trace: Trace) -> None:
    assert [event for event in replay(trace) if not event.same] == []


def statuses(result: Result) -> list[tuple[int, str]]:
    return [(number, progress.status) for number, progress in plan_progress(result.trace).steps.items()]
