"""Tests of an agent with pytest: what it did, what it asked, what it must never do, and that a crash changes nothing.

Run: pytest examples/recipes/test_support_agent.py     No model is called, and nothing is patched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from support_agent import SCRIPT, Desk, Shop, support_agent

from taoloop import Agent, ApprovalAnswer, ApprovalRequest
from taoloop.testing import (
    assert_asked,
    assert_called,
    assert_effect_once,
    assert_not_called,
    calls,
    explained,
    forbid_real_calls,
    restarts,
)

TICKET = "The lamp of my order A-17 came broken."


@pytest.fixture(autouse=True)
def no_real_calls() -> Iterator[None]:
    """A test that would call a provider fails instead."""
    with forbid_real_calls():
        yield


@pytest.fixture
def shop() -> Shop:
    """A shop with one order of ann."""
    return Shop()


def approving(agent: Agent[Desk]) -> Agent[Desk]:
    """The agent with a person who allows everything."""

    def approve(_: ApprovalRequest) -> ApprovalAnswer:
        return ApprovalAnswer(approved=True, by="boss")

    return replace(agent, approve=approve)


def test_a_refund_waits_for_a_person(shop: Shop) -> None:
    result = support_agent(shop).run_sync(TICKET, user="ann")
    with explained(result):
        assert result.status == "waiting"
        assert_asked(result, ("refund", {"order_id": "A-17"}), outcome="open")
    assert shop.refunds == {}


def test_an_approved_refund_is_paid(shop: Shop) -> None:
    result = approving(support_agent(shop)).run_sync(TICKET, user="ann")
    with explained(result):
        assert calls(result) == [
            ("look_up_order", {"order_id": "A-17"}),
            ("refund", {"order_id": "A-17", "amount": 59.0}),
        ]
    assert shop.refunds == {"A-17": 59.0}


def test_nobody_gets_the_money_of_another_customer(shop: Shop) -> None:
    result = approving(support_agent(shop)).run_sync(TICKET, user="bob")
    assert_called(result, "look_up_order")
    assert shop.refunds == {}


def test_a_refused_refund_is_not_paid_and_the_model_reads_why(shop: Shop) -> None:
    def refuse(_: ApprovalRequest) -> ApprovalAnswer:
        return ApprovalAnswer(approved=False, by="boss", note="send a new lamp")

    script = [*SCRIPT[:2], "We send you a new lamp."]
    agent = replace(support_agent(shop), model=script, approve=refuse)
    result = agent.run_sync(TICKET, user="ann")
    assert_not_called(result, "refund")
    assert result.answer == "We send you a new lamp."


def test_a_crash_at_any_point_pays_once(shop: Shop) -> None:
    for restart in restarts(
        lambda: approving(support_agent(shop)),
        TICKET,
        effects=lambda: list(shop.refunds.items()),
        reset=shop.refunds.clear,
        user="ann",
    ):
        assert_effect_once(restart)
