"""Plans together with what else decides about a run: evidence, hand-offs and the rules before them, questions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.planning import FIND, REFUND, TASK, Shop, plan, planner
from tests.scripting import call
from tests.tools.skills.folders import write_skill

from taoloop import Agent, ApprovalAnswer, ApprovalRequest, MemoryJournal, ScriptedModel
from taoloop.core.events import Observed, Verdict
from taoloop.core.policy import Policy, Rule
from taoloop.core.trace import Trace
from taoloop.core.views.handoff import answered_by
from taoloop.core.views.plans import MAKE_PLAN, RUN_STEP
from taoloop.runtime.after.replay import replay
from taoloop.tools.skills import SkillFolder, approve_skills, skill_tools

OVER = call("hand_over_to_clerk", reason="It knows more.")


def approve(_request: ApprovalRequest) -> ApprovalAnswer:
    return ApprovalAnswer(approved=True, by="boss")


def clerk(shop: Shop, *replies: Any, **options: Any) -> Agent:
    """An agent that can be handed over to, with the tools of the shop."""
    model = ScriptedModel(replies, strict=False)
    return Agent(name="clerk", description="Refunds", model=model, tools=shop.tools(), **options)


def inner(agent: Agent, result_id: str, *numbers: int) -> Trace:
    journal = agent.journal
    assert isinstance(journal, MemoryJournal)
    run_id = ".".join((result_id, *map(str, numbers)))
    return Trace(run_id, asyncio.run(journal.load(run_id)))


def last_observed(trace: Trace) -> Observed:
    return [event.fact for event in trace.events if isinstance(event.fact, Observed)][-1]


@pytest.mark.parametrize(
    ("second", "status"),
    [("Refunded 40 for S-1 [obs:call_3].", "completed"), ("Refunded 70 for S-1 [obs:call_3].", "unsupported")],
)
def test_the_answer_of_a_plan_is_sent_back_once_if_its_steps_do_not_bear_it_out(second: str, status: str) -> None:
    agent = planner(Shop(), plan(), "Refunded 60 for S-1.", second, approve=approve, evidence="require")
    result = agent.run_sync(TASK)
    assert (result.status, result.answer, result.trace.model_calls) == (status, second, 3)
    assert result.trace.held_back is not None
    assert all(decided.same for decided in replay(result.trace))


def test_the_last_answer_after_a_limit_of_plans_says_what_it_lacks() -> None:
    broken = {**FIND, "expect": "len(search_orders.items) == 5"}
    agent = planner(
        Shop(), plan(broken), "Found 7 [obs:call_2].", strategy="plan_execute:max_replans=0", evidence="require"
    )
    result = agent.run_sync(TASK)
    assert result.status == "max_steps_exceeded"
    assert result.trace.finished is not None
    assert result.trace.finished.evidence


def test_a_model_that_plans_may_hand_over_instead_and_no_step_may() -> None:
    shop = Shop()
    handing = {**FIND, "calls": [{"tool": "hand_over_to_clerk", "args": {"reason": "x"}}]}
    agent = planner(shop, plan(handing), OVER, handoffs=[clerk(shop, "Done.")])
    result = agent.run_sync(TASK)
    assert (result.status, result.answer, answered_by(result.trace)) == ("completed", "Done.", "clerk")
    assert [view.requested.tool for view in result.trace.calls.values()] == [MAKE_PLAN, "hand_over_to_clerk"]
    refused = result.trace.calls["call_1"].observed
    assert refused is not None
    assert refused.error is not None
    assert "hand_over_to_clerk" in refused.error.message
    assert all(decided.same for decided in replay(result.trace))


def test_a_step_has_no_hand_offs() -> None:
    shop = Shop()
    agent = planner(shop, approve=approve, handoffs=[clerk(shop, "Done.")])
    result = agent.run_sync(TASK)
    assert result.status == "completed"
    assert not any(card.hands_over_to for card in inner(agent, result.run_id, 2).agent.tools)


def test_the_rules_of_the_agent_before_hold_in_the_steps_of_a_plan() -> None:
    shop = Shop()

    def no_refunds(_trace: Any, action: Any, _card: Any) -> Verdict | None:
        return Verdict(kind="deny", reasons=("No refunds today.",)) if action.tool == "refund" else None

    planning = clerk(shop, plan(), "No refund.", strategy="plan_execute", approve=approve)
    first = Agent(
        name="triage", model=ScriptedModel([OVER]), rules=(no_refunds,), tools=shop.tools(), handoffs=[planning],
        journal=MemoryJournal(),
    )  # fmt: skip
    result = first.run_sync(TASK)
    assert shop.ledger == []
    step = inner(first, result.run_id, 1, 3)
    assert [view.requested.verdict for view in step.calls.values()] == ["deny"]


def test_the_rules_in_python_of_an_agent_that_plans_hold_in_its_steps() -> None:
    shop = Shop()

    def no_refunds(_trace: Trace, action: Any, _card: Any) -> Verdict | None:
        return Verdict(kind="deny", reasons=("No.",)) if action.tool == "refund" else None

    planner(shop, approve=approve, rules=(no_refunds,)).run_sync(TASK)
    assert shop.ledger == []


def test_what_the_steps_of_a_plan_did_counts_after_a_hand_off() -> None:
    shop = Shop()
    rule = Rule(tool="refund", calls_over=1, verdict="deny")
    again = call("refund", order_id="S-2", amount=40)
    agent = planner(
        shop, plan(), OVER, approve=approve, policy=Policy(rules=(rule,)),
        handoffs=[clerk(shop, again, "No.", policy="autonomous", approve=approve)],
    )  # fmt: skip
    result = agent.run_sync(TASK)
    assert shop.ledger == [("S-1", 40)]
    taken = inner(agent, result.run_id, 4)
    assert [view.requested.verdict for view in taken.calls.values()] == ["deny"]


def test_the_approval_of_a_plan_answers_no_question_to_the_person() -> None:
    asked: list[str] = []

    def answer(request: ApprovalRequest) -> ApprovalAnswer:
        asked.append(request.tool)
        if request.tool == "ask_user":
            return ApprovalAnswer(approved=True, by="boss", args={"answer": "S-1"})
        return ApprovalAnswer(approved=True, by="boss")

    question = {"number": 1, "goal": "Ask", "calls": [{"tool": "ask_user", "args": {"question": "Which order?"}}]}
    refund = {**REFUND, "calls": [{"tool": "refund", "args": {"order_id": "S-1", "amount": 40}}]}
    shop = Shop()
    agent = Agent(
        model=ScriptedModel([plan(question, refund), "Done."], strict=False), strategy="plan_execute", approve=answer,
        tools=[*shop.tools(), "ask_user"], journal=MemoryJournal(),
    )  # fmt: skip
    result = agent.run_sync(TASK)
    assert asked[:2] == [MAKE_PLAN, "ask_user"]
    assert "S-1" in last_observed(inner(agent, result.run_id, 2)).output
    assert [view.requested.tool for view in result.trace.calls.values()] == [MAKE_PLAN, RUN_STEP, RUN_STEP]


def test_the_model_that_plans_may_ask_the_user_and_load_a_skill_first_and_read_nothing_else(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "refunds")
    settings = SkillFolder(tmp_path / "skills", pins=tmp_path)
    approve_skills(settings)
    skills = skill_tools(settings).tools
    pay = {"number": 1, "goal": "Refund", "calls": [{"tool": "refund", "args": {"order_id": "S-1", "amount": 40}}]}
    replies: list[Any] = [
        call("ask_user", question="Which order?"),
        call("load_skill", name="refunds"),
        call("search_orders", customer="ann"),
        plan(pay),
        "Done.",
    ]

    def answer(request: ApprovalRequest) -> ApprovalAnswer:
        args = {"answer": "S-1"} if request.tool == "ask_user" else None
        return ApprovalAnswer(approved=True, by="user", args=args, authenticated="program")

    shop = Shop()
    agent = Agent(
        model=ScriptedModel(replies, strict=False), strategy="plan_execute", approve=answer,
        tools=[*shop.tools(), "ask_user", *skills], journal=MemoryJournal(),
    )  # fmt: skip
    result = agent.run_sync("Refund the order, 40 at most.")
    assert (result.status, shop.ledger) == ("completed", [("S-1", 40)])
    observed = [(view.requested.tool, view.observed and view.observed.ok) for view in result.trace.calls.values()]
    tools = [("ask_user", True), ("load_skill", True), ("search_orders", False), (MAKE_PLAN, True), (RUN_STEP, True)]
    assert observed == tools
