"""What was judged is what runs, also after a change of code: changed tools, models and policies at a resume."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated, Any

import pytest
from tests.scripting import call

from taoloop import Agent, ApprovalAnswer, MemoryJournal, ScriptedModel, tool
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.card_changes import card_changes
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.events import ActionRequested, Event, JudgedAgain, Noted, Observed, Resumed, RunStarted
from taoloop.core.stored_events import decode_fact, encode_fact
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result
from taoloop.errors import ConfigError, PolicyError
from taoloop.policy import Policy, Rule
from taoloop.runtime import answer_approval
from taoloop.runtime.after.replay import replay
from taoloop.runtime.resume_facts import agent_changes
from taoloop.tools.toolbox import Toolbox

PAID: list[str] = []


def old_pay(**card: Any) -> Any:
    @tool(tier="write", name="pay", **card)
    def pay(who: str) -> str:
        """Pay somebody."""
        PAID.append(who)
        return f"paid {who}"

    return pay


def new_pay(**card: Any) -> Any:
    @tool(tier="write", name="pay", **card)
    def pay(who: str, amount: int = 3) -> str:
        """Pay somebody an amount."""
        PAID.append(f"{who} {amount}")
        return f"paid {amount} to {who}"

    return pay


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    PAID.clear()


def facts(result: Result, kind: type[Any]) -> list[Any]:
    return [event.fact for event in result.trace if isinstance(event.fact, kind)]


def test_an_approval_given_for_the_tool_as_it_was_is_asked_for_again() -> None:
    journal, model = MemoryJournal(), ScriptedModel([call("pay", who="ann"), "Done."])
    waiting = Agent(model=model, tools=[old_pay()], journal=journal).run_sync("Settle the bill.")
    asyncio.run(answer_approval(journal, waiting.run_id, "call_1", ApprovalAnswer(approved=True, by="bob")))
    changed = Agent(model=model, tools=[new_pay()], journal=journal)
    again = changed.resume_sync(waiting.run_id)
    assert (again.status, PAID) == ("waiting", [])
    [resumed], [judged] = facts(again, Resumed), facts(again, JudgedAgain)
    assert [card.name for card in resumed.cards] == ["pay"]
    assert "amount" in resumed.cards[0].parameters
    assert (judged.verdict, judged.args) == ("ask", {"who": "ann"})
    for fact in (resumed, judged):
        assert decode_fact(fact.kind, encode_fact(fact)) == fact
    asyncio.run(answer_approval(journal, waiting.run_id, "call_1", ApprovalAnswer(approved=True, by="bob")))
    done = changed.resume_sync(waiting.run_id)
    assert (done.status, PAID) == ("completed", ["ann 3"])
    assert [bool(fact.cards) for fact in facts(done, Resumed)] == [True, False], "told once"
    [told] = facts(done, Noted)
    assert "amount" in told.text
    assert all(step.same for step in replay(done.trace))


def test_a_call_is_judged_by_the_card_of_the_code_that_makes_it() -> None:
    """The next call after the resume: the model and the policy know the tool as it is now."""
    model = ScriptedModel([call("pay", who="ann"), call("pay", who="eve", amount=7), "Done."])
    journal = MemoryJournal()
    waiting = Agent(model=model, tools=[old_pay()], journal=journal).run_sync("Settle the bill.")
    result = Agent(model=model, tools=[new_pay()], journal=journal, approve=lambda _: True).resume_sync(waiting.run_id)
    assert PAID == ["ann 3", "eve 7"]
    card = result.trace.card("pay")
    assert card is not None
    assert "amount" in card.parameters


@pytest.mark.parametrize("profile", ["supervised", "autonomous"])
def test_an_idempotent_call_in_doubt_is_not_repeated_by_another_card(profile: Any) -> None:
    """The process died in the call; the tool that would repeat it under its key is another one now."""
    journal, model = MemoryJournal(), ScriptedModel([call("pay", who="ann"), "Done."])
    policy = Policy(profile=profile)

    ended = Agent(
        model=model, tools=[old_pay(idempotent=True)], journal=journal, policy=policy, approve=lambda _: True
    ).run_sync("Settle the bill.")
    started = next(event.seq for event in ended.trace if event.fact.kind == "action_started")

    async def die() -> None:
        await journal.append(await journal.create("died"), ended.trace.events[: started + 1])

    asyncio.run(die())
    changed = Agent(model=model, tools=[new_pay(idempotent=True)], journal=journal)
    result = changed.resume_sync("died")
    assert len(PAID) == 1, "not repeated"
    assert result.status == ("waiting" if profile == "supervised" else "completed")
    assert result.trace.calls["call_1"].doubt is not None
    if profile == "autonomous":
        [observed] = facts(result, Observed)
        assert observed.error.code == "in_doubt"
    assert all(step.same for step in replay(result.trace))


def test_what_was_always_allowed_was_allowed_for_the_tool_as_it_was() -> None:
    journal = MemoryJournal()
    model = ScriptedModel([call("pay", who="ann"), call("pay", who="bob"), call("pay", who="eve"), "Done."])
    asked: list[str] = []

    def always(request: Any) -> ApprovalAnswer | None:
        asked.append(request.args["who"])
        return ApprovalAnswer(approved=True, scope="rule") if len(asked) == 1 else None

    agent = Agent(model=model, tools=[old_pay()], journal=journal, approve=always, closing_turn=False)
    stopped = agent.run_sync("Settle the bills of ann, bob and eve.", max_steps=2)
    assert (stopped.status, PAID) == ("max_steps_exceeded", ["ann", "bob"])
    changed = Agent(model=model, tools=[new_pay()], journal=journal)
    again = changed.resume_sync(stopped.run_id, max_steps=9)
    assert (again.status, len(PAID)) == ("waiting", 2)


def test_the_model_and_the_policy_are_told_and_what_is_the_same_is_not() -> None:
    journal, model = MemoryJournal(), ScriptedModel([call("pay", who="ann"), "Done."])
    pay = old_pay()
    waiting = Agent(model=model, tools=[pay], journal=journal).run_sync("Settle the bill.")
    same = Agent(model=model, tools=[pay], journal=journal).resume_sync(waiting.run_id)
    [resumed] = facts(same, Resumed)
    assert encode_fact(resumed).find(b"cards") == -1
    other = Agent(model="offline", tools=[pay], journal=journal, policy="strict").resume_sync(waiting.run_id)
    told = facts(other, Resumed)[-1]
    assert (told.model, told.policy) == ("offline", Policy(profile="strict", pin="keywords").version)
    assert other.trace.agent.policy.profile == "supervised", "the run keeps its own"


@pytest.mark.parametrize(("strategy", "same"), [("react", False), ("given", True), ("undo", True)])
def test_a_run_without_a_model_has_a_policy_of_its_own(strategy: str, same: bool) -> None:
    spec = AgentSpec(model="caller", strategy=strategy, policy=Policy(profile="strict"))
    trace = Trace("r", [Event(0, 0.0, RunStarted(task="t", agent=spec, nonce="n"))])
    assert agent_changes(trace, Toolbox([]), "offline", "supervised").are_none is same


def test_a_run_resumes_under_another_policy_and_denied_calls_are_judged_by_it() -> None:
    replies: list[Any] = [call("pay", who="ann"), "I could not pay.", call("pay", who="ann"), "Paid."]
    agent = Agent(model=ScriptedModel(replies), tools=[old_pay()], journal=MemoryJournal(), policy="headless")
    blocked = agent.run_sync("Settle the bill.")
    assert (blocked.status, PAID) == ("blocked", [])
    assert "Resume the run under a policy that allows them" in blocked.reason
    policy = Policy(profile="headless", rules=(Rule(tool="pay", verdict="allow", name="bills"),))
    done = agent.resume_sync(blocked.run_id, policy=policy)
    assert (done.status, PAID) == ("completed", ["ann"])
    [resumed] = facts(done, Resumed)
    assert resumed.new_policy == replace(policy, pin="keywords")
    [note] = facts(done, Noted)
    assert "pay (call_1)" in note.text
    assert [requested.rule for requested in facts(done, ActionRequested)][1] == "rule:bills"
    assert decode_fact(resumed.kind, encode_fact(resumed)) == resumed
    assert all(event.same for event in replay(done.trace))


def test_a_call_that_waits_is_judged_by_the_new_policy_and_an_earlier_answer_is_void() -> None:
    journal, model = MemoryJournal(), ScriptedModel([call("pay", who="ann"), "Done.", "Done."])
    agent = Agent(model=model, tools=[old_pay()], journal=journal)
    waiting = agent.run_sync("Settle the bill.")
    asyncio.run(answer_approval(journal, waiting.run_id, "call_1", ApprovalAnswer(approved=True, by="bob")))
    denied = agent.resume_sync(waiting.run_id, policy="headless")
    assert (denied.status, PAID) == ("blocked", [])
    [again] = facts(denied, JudgedAgain)
    assert (again.verdict, again.policy) == ("deny", denied.trace.agent.policy.version)
    assert denied.trace.agent.policy.profile == "headless"
    assert "call_1" in facts(agent.resume_sync(waiting.run_id, policy="strict"), Noted)[-1].text


def test_the_policy_that_a_run_has_is_no_new_one_and_an_impossible_one_is_refused_before_the_run_is_taken() -> None:
    agent = Agent(model=ScriptedModel([call("pay", who="ann"), "Done."]), tools=[old_pay()], journal=MemoryJournal())
    waiting = agent.run_sync("Settle the bill.")
    [resumed] = facts(agent.resume_sync(waiting.run_id, policy="supervised"), Resumed)
    assert resumed.new_policy is None
    with pytest.raises(PolicyError, match="no such tool"):
        agent.resume_sync(waiting.run_id, policy=Policy(rules=(Rule(tool="py", verdict="allow"),)))
    with pytest.raises(ConfigError, match="observations"):
        agent.resume_sync(waiting.run_id, policy=Policy(observations="handles"))
    assert agent.resume_sync(waiting.run_id).status == "waiting"


def test_after_a_replacement_the_policy_of_the_agent_is_not_compared_any_more() -> None:
    agent = Agent(model=ScriptedModel([call("pay", who="ann"), "Done."]), tools=[old_pay()], journal=MemoryJournal())
    waiting = agent.run_sync("Settle the bill.")
    agent.resume_sync(waiting.run_id, policy="strict")
    assert facts(agent.resume_sync(waiting.run_id), Resumed)[-1].policy == ""


def test_a_tool_with_other_texts_alone_is_the_same_tool_and_answers_stay_valid() -> None:
    @tool(tier="write", name="pay")
    def described(who: Annotated[str, "The name of the person"]) -> str:
        """Settle what somebody is owed. Use when: a bill is due."""
        PAID.append(who)
        return f"paid {who}"

    journal, model = MemoryJournal(), ScriptedModel([call("pay", who="ann"), "Done."])
    waiting = Agent(model=model, tools=[old_pay()], journal=journal).run_sync("Settle the bill.")
    asyncio.run(answer_approval(journal, waiting.run_id, "call_1", ApprovalAnswer(approved=True, by="bob")))
    changes = agent_changes(waiting.trace, Toolbox([described]), "scripted", "supervised")
    assert (changes.changed, list(changes.texts)) == ({}, ["pay"])
    assert "purpose" in {change.path for change in changes.texts["pay"]}
    done = Agent(model=model, tools=[described], journal=journal).resume_sync(waiting.run_id)
    assert (done.status, PAID) == ("completed", ["ann"])
    [resumed] = facts(done, Resumed)
    assert (facts(done, JudgedAgain), resumed.cards, [card.name for card in resumed.texts]) == ([], (), ["pay"])
    assert "Settle what somebody is owed." in facts(done, Noted)[0].text, "the model reads it"
    assert all(event.same for event in replay(done.trace))
    assert decode_fact(resumed.kind, encode_fact(resumed)) == resumed


def test_a_property_that_is_called_description_is_no_text() -> None:
    def card(kind: str) -> ToolCard:
        schema = {"type": "object", "properties": {"description": {"type": kind, "description": kind}}}
        return ToolCard(name="note", purpose="Note.", input_schema=schema)

    [change] = card_changes(card("string"), card("integer"))
    assert not change.is_text


@pytest.mark.parametrize(("reply", "status"), [(call("pay", who="bob"), "completed"), ("I still cannot.", "blocked")])
def test_after_a_replacement_another_call_of_the_tool_makes_up_for_the_denied_one(reply: Any, status: str) -> None:
    replies: list[Any] = [call("pay", who="ann"), "I could not pay.", reply, "Paid."][
        : 4 if status == "completed" else 3
    ]
    agent = Agent(model=ScriptedModel(replies), tools=[old_pay()], journal=MemoryJournal(), policy="headless")
    blocked = agent.run_sync("Settle the bill.")
    ended = agent.resume_sync(
        blocked.run_id, policy=Policy(profile="headless", rules=(Rule(tool="pay", verdict="allow"),))
    )
    assert ended.status == status
    assert all(event.same for event in replay(ended.trace))
