"""Values that a plan states by their origin: found by the executor, chosen by a model, within what was approved."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.planning import (
    FIND,
    REFUND,
    TASK,
    Person,
    Shop,
    StepModel,
    assert_replays,
    plan,
    planner,
    statuses,
    step_of_run,
)
from tests.scripting import call

from taoloop import Agent, MemoryJournal, tool
from taoloop.core.policy import Policy, Rule
from taoloop.core.views.plans import MAKE_PLAN


def test_several_values_at_an_origin_are_chosen_from_by_the_model_within_the_approval() -> None:
    shop, boss = Shop("S-1", "S-2"), Person()
    chooses = StepModel([plan(), "Done."], {2: [call("refund", order_id="S-2", amount=40), "Refunded S-2."]})
    agent = Agent(model=chooses, tools=shop.tools(), strategy="plan_execute", journal=MemoryJournal(), approve=boss)
    result = agent.run_sync(TASK)
    assert (result.status, shop.ledger, boss.tools) == ("completed", [("S-2", 40)], [MAKE_PLAN])
    assert_replays(step_of_run(agent, result, 3))


@pytest.mark.parametrize(
    "args", [{"order_id": "S-9", "amount": 40}, {"order_id": "S-1", "amount": 41}, {"order_id": "S-1", "amount": 40}]
)
def test_what_the_plan_does_not_list_is_asked_about_and_so_is_the_same_call_once_more(args: dict[str, Any]) -> None:
    shop, boss = Shop("S-1", "S-2"), Person()
    boss.answers = [True, False]
    first = call("refund", order_id="S-1", amount=40)
    replies = [call("refund", **args), "FAILED: not allowed"]
    if args == {"order_id": "S-1", "amount": 40}:
        replies.insert(0, first)
    model = StepModel([plan(), "Not done."], {2: replies})
    result = Agent(
        model=model, tools=shop.tools(), strategy="plan_execute:max_replans=0", journal=MemoryJournal(), approve=boss
    ).run_sync(TASK)
    assert boss.tools == [MAKE_PLAN, "refund"]
    assert shop.ledger == ([("S-1", 40)] if len(replies) == 3 else [])
    assert (result.status, statuses(result)) == ("max_steps_exceeded", [(1, "done"), (2, "failed")])


def test_an_id_that_is_a_number_is_passed_as_the_text_that_a_tool_takes() -> None:
    shop, boss = Shop(), Person()
    shop.order_ids = (17,)  # type: ignore[assignment]  # as many shops number their orders
    result = planner(shop, approve=boss).run_sync(TASK)
    assert (shop.ledger, boss.tools, statuses(result)) == ([("17", 40)], [MAKE_PLAN], [(1, "done"), (2, "done")])


@pytest.mark.parametrize(
    ("total", "asked"),
    [("40.5", [MAKE_PLAN]), ("40.50", [MAKE_PLAN]), ("40.5000000000000001", [MAKE_PLAN, "refund"])],
)
def test_an_amount_that_is_a_text_counts_as_the_number_that_it_is_exactly(total: str, asked: list[str]) -> None:
    @tool(tier="read")
    def search_orders(customer: str) -> dict[str, Any]:
        """Search the orders of a customer."""
        return {"items": [{"id": "S-1", "total": total}]}

    amount = {"from": "tool:search_orders.items[].total", "step": 1}
    refund = {**REFUND, "calls": [{"tool": "refund", "args": {"order_id": "S-1", "amount": amount}}]}
    shop, boss = Shop(), Person()
    model = StepModel([plan(FIND, refund), "Done."], {})
    tools = [search_orders, shop.tools()[1]]
    agent = Agent(model=model, tools=tools, strategy="plan_execute:max_replans=0", approve=boss)
    agent.run_sync(TASK)
    assert (shop.ledger, boss.tools) == ([("S-1", 40.5)], asked)


HERE = {"from": "tool:search_orders.items[].id"}
BOTH = {
    "number": 1,
    "goal": "Refund one of them",
    "calls": [
        {"tool": "search_orders", "args": {"customer": "ann"}},
        {"tool": "refund", "args": {"order_id": HERE, "amount": 40}},
    ],
}


class Customers(Shop):
    """Each customer has orders of their own."""

    def tools(self) -> list[Any]:
        @tool(tier="read")
        def search_orders(customer: str) -> dict[str, Any]:
            """Search the orders of a customer."""
            return {"items": [{"id": order_id} for order_id in (self.order_ids if customer == "ann" else ["E-9"])]}

        return [search_orders, super().tools()[1]]


def test_a_model_that_chooses_a_value_cannot_add_to_the_values_by_another_call() -> None:
    shop, boss = Customers("S-1", "S-2"), Person(True, False)
    replies = [call("search_orders", customer="eve"), call("refund", order_id="E-9", amount=40), "Refunded E-9."]
    model = StepModel([plan(BOTH), "Not done."], {1: replies})
    strategy = "plan_execute:max_replans=0"
    agent = Agent(model=model, tools=shop.tools(), strategy=strategy, journal=MemoryJournal(), approve=boss)
    result = agent.run_sync(TASK)
    assert (boss.tools, shop.ledger, statuses(result)) == ([MAKE_PLAN, "refund"], [], [(1, "failed")])


@pytest.mark.parametrize("expect", ["", "len(search_orders.items) == 1"])
def test_a_step_is_not_done_before_each_call_that_it_lists_was_made(expect: str) -> None:
    """The model that chooses says that it is done; that another search finds what the plan expects proves nothing."""
    shop, boss = Customers("S-1", "S-2"), Person()
    replies = [call("search_orders", customer="eve"), "All refunded."]
    if expect:
        replies.insert(1, call("refund", order_id="S-1", amount=40))
    model = StepModel([plan({**BOTH, "expect": expect}), "Not done."], {1: replies})
    strategy = "plan_execute:max_replans=0"
    agent = Agent(model=model, tools=shop.tools(), strategy=strategy, journal=MemoryJournal(), approve=boss)
    result = agent.run_sync(TASK)
    assert statuses(result) == [(1, "failed")]
    step = step_of_run(agent, result, 2)
    assert step.finished is not None
    assert ("does not hold" if expect else "refund") in step.finished.reason
    assert_replays(step)


def test_a_listed_call_that_failed_may_be_made_again_by_the_model_that_chooses() -> None:
    shop, attempts = Customers("S-1", "S-2"), list[str]()

    @tool(tier="write", egress=False, roles={"amount": "value"})
    def refund(order_id: str, amount: float) -> str:
        """Refund an order."""
        attempts.append(order_id)
        if len(attempts) == 1:
            raise ValueError("busy")
        return "refunded"

    chosen = call("refund", order_id="S-1", amount=40)
    for replies, status in (([chosen, chosen, "Refunded."], "done"), ([chosen, "Refunded."], "failed")):
        attempts.clear()
        model = StepModel([plan(BOTH), "Over."], {1: replies})
        tools = [shop.tools()[0], refund]
        agent = Agent(model=model, tools=tools, strategy="plan_execute:max_replans=0", approve=Person())
        assert statuses(agent.run_sync(TASK)) == [(1, status)]


def test_a_step_whose_listed_call_was_denied_says_why() -> None:
    shop, policy = Customers("S-1", "S-2"), Policy(rules=(Rule(tool="refund", verdict="deny", reason="It is closed."),))
    replies = [call("refund", order_id="S-1", amount=40), "All refunded."]
    model = StepModel([plan(BOTH), "Over."], {1: replies})
    agent = Agent(
        model=model,
        tools=shop.tools(),
        strategy="plan_execute",
        policy=policy,
        journal=MemoryJournal(),
        approve=Person(),
    )
    step = step_of_run(agent, agent.run_sync(TASK), 2)
    assert step.finished is not None
    assert (shop.ledger, step.finished.status) == ([], "too_many_errors")
    assert "The call of refund failed" in step.finished.reason
    assert "It is closed." in step.finished.reason
