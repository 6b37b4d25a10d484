"""Questions of the model to a person: they wait without a process, are answered once, and authorise nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest
from pydantic import BaseModel
from tests.runtime.approvals.waiting_runs import read_mail
from tests.runtime.paying import drop, pay
from tests.scripting import call, calls

from taoloop import (
    END,
    START,
    Agent,
    ApprovalAnswer,
    ApprovalRequest,
    Graph,
    MemoryJournal,
    Node,
    Result,
    ScriptedModel,
)
from taoloop.core.events import ActionRequested, ActionStarted, ApprovalGiven, ApprovalRefused, Observed
from taoloop.core.message import Message
from taoloop.core.policy import Policy, Rule
from taoloop.core.trace import Trace
from taoloop.dialects.conversation import Conversation
from taoloop.errors import AlreadyAnswered, ApprovalStale, InvalidArguments, ToolError
from taoloop.policy import sources_of, trusted_texts
from taoloop.runtime.after.replay import replay
from taoloop.runtime.approvals.inbox import answer_approval
from taoloop.runtime.approvals.inbox_items import Inbox
from taoloop.runtime.approvals.request import approval_request, unanswered_calls
from taoloop.runtime.approvals.user_questions import question_answer, question_warnings
from taoloop.testing import FakeClock
from taoloop.tools.builtin.ask_user import ask_user

CHOICES = ["R-17", "R-71"]
ACCOUNT, MAIL_ACCOUNT = "DE02120300000000202051", "DE89370400440532013000"


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(**values: Any) -> None:
        asyncio.run(test(**values))

    return run


def asks(**args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": "ask_user", "args": {"question": "Which invoice?"} | args}]}


def agent(journal: MemoryJournal, *replies: Any, **options: Any) -> Agent:
    script = ScriptedModel([*replies, "done"], strict=False)
    return Agent(name="clerk", model=script, tools=[ask_user, pay, drop, read_mail], journal=journal, **options)


def warnings_of(trace: Trace, call_id: str = "call_1") -> tuple[str, ...]:
    question = request_of(trace, call_id).question
    assert question is not None
    return question_warnings(question, "en")


def facts(trace: Trace, kind: type[Any]) -> list[Any]:
    return [event.fact for event in trace if isinstance(event.fact, kind)]


def request_of(trace: Trace, call_id: str = "call_1") -> ApprovalRequest:
    return approval_request(trace, trace.calls[call_id])


async def wait(journal: MemoryJournal, *replies: Any, **options: Any) -> Result:
    result = await agent(journal, *replies, **options).run("pay it", run_id="asks", started_by="os_user:ann")
    assert result.status == "waiting"
    return result


async def answer(
    journal: MemoryJournal, text: str, by: str = "ann", call_id: str = "call_1", authenticated: str = "os_user"
) -> Trace:
    trace = Trace("asks", await journal.load("asks"))
    given = question_answer(request_of(trace, call_id), text, by=by, authenticated=authenticated)
    return (await answer_approval(journal, "asks", call_id, given)).trace


@in_loop
async def test_it_waits_is_answered_from_elsewhere_and_the_model_reads_the_answer() -> None:
    journal = MemoryJournal()
    await wait(journal, asks(choices=CHOICES))
    item = (await Inbox(journal).load()).find("asks", "call_1")
    assert item is not None
    assert (item.kind, item.alike) == ("question", ())
    await answer(journal, "2")
    result = await agent(journal, asks()).resume("asks")
    assert result.status == "completed"
    given, observed = facts(result.trace, ApprovalGiven)[0], facts(result.trace, Observed)[0]
    assert (given.by, observed.ok, observed.output) == ("ann", True, "R-71")
    assert not facts(result.trace, ActionStarted)
    assert all(step.same for step in replay(result.trace))


@in_loop
async def test_the_first_of_two_answers_counts_and_the_second_person_is_told() -> None:
    journal = MemoryJournal()
    await wait(journal, asks())
    await answer(journal, "R-17")
    with pytest.raises(AlreadyAnswered, match="answered by ann"):
        await answer(journal, "R-71", by="bob")


@pytest.mark.parametrize("cut", range(1, 12))
@in_loop
async def test_after_a_crash_at_any_event_nothing_is_asked_twice_or_lost(cut: int) -> None:
    journal = MemoryJournal()
    await wait(journal, asks())
    await answer(journal, "R-17")
    whole = (await agent(journal, asks()).resume("asks")).trace
    events = whole.events[: min(cut, len(whole) - 1)]
    again, questions = MemoryJournal(), list[str]()

    def approve(request: ApprovalRequest) -> ApprovalAnswer:
        questions.append(request.call_id)
        return ApprovalAnswer(approved=True, args={"answer": "R-17"}, by="ann")

    lease = await again.create("asks")
    await again.append(lease, events)
    result = await agent(again, asks(), approve=approve).resume("asks")
    was_answered = any(isinstance(event.fact, ApprovalGiven) for event in events)
    assert result.status == "completed"
    assert questions == ([] if was_answered else ["call_1"])
    assert [one.output for one in facts(result.trace, Observed)] == ["R-17"]


@pytest.mark.parametrize(
    ("args", "text", "value"),
    [
        ({"choices": CHOICES}, "r-17", "R-17"),
        ({"format": "integer"}, "17", 17),
        ({"format": "number"}, "-３.5", -3.5),
        ({"format": "yes_no"}, "是", True),
        ({"format": "date"}, "2026年1月31日", "2026-01-31"),
        ({"format": "date"}, "31 January 2026", "2026-01-31"),
        ({"format": "date"}, "2026-01-31", "2026-01-31"),
        ({}, "汉堡，不是柏林", "汉堡，不是柏林"),
    ],
)
@in_loop
async def test_a_text_is_read_as_what_is_asked_for(args: dict[str, Any], text: str, value: Any) -> None:
    request = request_of((await wait(MemoryJournal(), asks(**args))).trace)
    assert question_answer(request, text, by="ann").args == {"answer": value}


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"choices": CHOICES}, "3"),
        ({"format": "integer"}, "many"),
        ({"format": "date"}, "soon"),
        ({"format": "date"}, "05/06/2026"),
        ({}, " "),
    ],
)
@in_loop
async def test_what_does_not_fit_is_refused_and_the_question_stays_open(args: dict[str, Any], text: str) -> None:
    journal = MemoryJournal()
    await wait(journal, asks(**args))
    with pytest.raises(InvalidArguments):
        await answer(journal, text)
    assert (await Inbox(journal).load()).find("asks", "call_1") is not None


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("integer", "many", "Expected: a whole number, such as 12."),
        ("yes_no", "maybe", "Expected: yes or no."),
        ("date", "tomorrow", "Expected: a day, such as 2026-05-12."),
        ("email", "ann", "Expected: an e-mail address, such as ann@example.com."),
    ],
)
@in_loop
async def test_a_refusal_says_what_is_expected_in_words_of_people(form: str, text: str, expected: str) -> None:
    request = request_of((await wait(MemoryJournal(), asks(format=form))).trace)
    with pytest.raises(InvalidArguments) as caught:
        question_answer(request, text, by="ann")
    assert expected in str(caught.value.hint)
    assert f"{text!r} does not fit" in caught.value.message


@in_loop
async def test_a_program_may_answer_with_a_text_as_a_person_does() -> None:
    journal = MemoryJournal()
    waiting = await wait(journal, asks(format="integer"))

    def approve(_request: ApprovalRequest) -> ApprovalAnswer:
        return ApprovalAnswer(approved=True, args={"answer": " 17 "}, by="ann")

    done = await agent(journal, asks(format="integer"), approve=approve).resume(waiting.run_id)
    assert [fact.output for fact in facts(done.trace, Observed)] == ["17"]


@in_loop
async def test_equal_choices_are_offered_once() -> None:
    request = request_of((await wait(MemoryJournal(), asks(choices=["R-17", "R-17", "R-71"]))).trace)
    assert question_answer(request, "2", by="ann").args == {"answer": "R-71"}


def test_a_plain_yes_answers_nothing_so_the_question_stays_open_and_a_refusal_says_why() -> None:
    result = agent(MemoryJournal(), asks(), approve=lambda _request: True).run_sync("pay it")
    assert (result.status, facts(result.trace, Observed)) == ("waiting", [])
    assert "plain yes" in result.reason
    no = ApprovalAnswer(approved=False, note="ask the accountant")
    result = agent(MemoryJournal(), asks(), approve=lambda _request: no).run_sync("pay it")
    assert "did not answer: ask the accountant" in facts(result.trace, Observed)[0].error.message


def test_where_nobody_can_be_asked_the_model_is_told_and_no_rule_lifts_that() -> None:
    rules = (Rule(verdict="allow", tool="ask_user"),)
    assert agent(MemoryJournal(), asks(), policy=Policy(rules=rules)).run_sync("go").status == "waiting"
    result = agent(MemoryJournal(), asks(), policy="headless").run_sync("go")
    assert facts(result.trace, Observed)[0].error.code == "denied"


@in_loop
async def test_the_answer_of_who_started_the_run_counts_as_their_words_and_taints_nothing() -> None:
    journal = MemoryJournal()
    await wait(journal, asks())
    trace = await answer(journal, f"account {ACCOUNT}")
    assert sources_of(trace).is_trusted_value(ACCOUNT, "target")
    assert trusted_texts(trace)[-1] == f"account {ACCOUNT}"
    assert not sources_of((await agent(journal, asks()).resume("asks")).trace).tainted


@pytest.mark.parametrize(
    ("by", "authenticated"), [("bob", "os_user"), ("ann", ""), ("user", "program"), ("ann", "gateway_key")]
)
@in_loop
async def test_anybody_elses_answer_is_read_as_untrusted_text(by: str, authenticated: str) -> None:
    journal = MemoryJournal()
    await wait(journal, asks(), policy=Policy(trusted_tools=("*",)))
    trace = await answer(journal, f"account {ACCOUNT}", by, authenticated=authenticated)
    assert trusted_texts(trace) == ("pay it",)
    trace = (await agent(journal, asks(), call("pay", to=ACCOUNT, amount=5)).resume("asks")).trace
    assert facts(trace, Observed)[0].output == f"account {ACCOUNT}"
    assert sources_of(trace).tainted
    assert not sources_of(trace).is_trusted_value(ACCOUNT, "target")
    [source] = [source for source in facts(trace, ActionRequested)[-1].sources if source.arg == "to"]
    assert (source.badge, source.call_id) == ("FOREIGN", "call_1")


def test_a_program_vouches_for_the_answers_of_its_user() -> None:
    for authenticated, is_trusted in (("program", True), ("", False)):
        reply = ApprovalAnswer(approved=True, args={"answer": ACCOUNT}, by="ann", authenticated=authenticated)
        script = agent(MemoryJournal(), asks(), approve=lambda _request, reply=reply: reply)
        trace = script.run_sync("pay it", user="ann").trace
        assert sources_of(trace).is_trusted_value(ACCOUNT, "target") is is_trusted


@in_loop
async def test_a_yes_to_a_question_approves_no_call() -> None:
    journal = MemoryJournal()
    replies = asks(question="May I drop the table customers?", format="yes_no"), call("drop", table="customers")
    await wait(journal, *replies)
    await answer(journal, "yes")
    result = await agent(journal, *replies).resume("asks")
    assert result.status == "waiting"
    assert [each.requested.tool for each in unanswered_calls(result.trace)] == ["drop"]


@in_loop
async def test_a_rule_that_wants_a_value_of_the_task_takes_one_of_an_answer_once_it_is_there() -> None:
    journal = MemoryJournal()
    policy = Policy(rules=(Rule(verdict="allow", tool="pay", args={"to": {"from": ["task"]}}),))
    pays = call("pay", to="acme-7", amount=5)
    await wait(journal, pays, asks(), policy=policy)
    refusal = ApprovalAnswer(approved=False, by="ann")
    await answer_approval(journal, "asks", "call_1", refusal)
    await agent(journal, pays, asks(), pays).resume("asks")
    await answer(journal, "pay acme-7", call_id="call_2")
    trace = (await agent(journal, pays, asks(), pays).resume("asks")).trace
    assert [fact.verdict for fact in facts(trace, ActionRequested)] == ["ask", "ask", "allow"]


@in_loop
async def test_a_user_without_authority_authorises_nothing_by_an_answer() -> None:
    journal = MemoryJournal()
    result = await wait(journal, asks(), policy=Policy(task_authority="none"))
    assert not request_of(result.trace).for_operator
    trace = await answer(journal, f"account {ACCOUNT}")
    assert not sources_of(trace).is_trusted_value(ACCOUNT, "target")


@in_loop
async def test_a_choice_that_a_tainted_model_wrote_endorses_nothing() -> None:
    journal = MemoryJournal()
    result = await wait(journal, call("read_mail"), asks(choices=[MAIL_ACCOUNT, "none"]))
    trace = await answer(journal, "1", call_id="call_2")
    assert not sources_of(trace).is_trusted_value(MAIL_ACCOUNT, "target")
    badges = {source.arg: source.badge for source in request_of(result.trace, "call_2").sources}
    assert badges["choices[0]"] == "FOREIGN"


@pytest.mark.parametrize(
    ("question", "warning"),
    [
        ("Which invoice?", "had read untrusted text (read_mail (call_1))"),
        ("Invoice: pay 1700 to DE89370400440532013000, or else?", "repeats words of the untrusted output of read_mail"),
    ],
)
@in_loop
async def test_the_person_sees_which_untrusted_text_the_model_had_read(question: str, warning: str) -> None:
    reply = calls(("ask_user", {"question": question}), ("read_mail", {}))
    result = await wait(MemoryJournal(), call("read_mail"), reply)
    [shown] = warnings_of(result.trace, "call_2")
    assert warning in shown
    assert "call_3" not in shown, "it was read after the question"
    assert warnings_of((await wait(MemoryJournal(), asks())).trace) == ()


@in_loop
async def test_a_question_for_a_secret_is_never_silent() -> None:
    mail = call("read_mail")
    trace = (await wait(MemoryJournal(), mail, asks(question="What is the password of the bank?"))).trace
    origin, secret = warnings_of(trace, "call_2")
    assert "read_mail (call_1)" in origin
    assert "ask for a secret (password)" in secret


@in_loop
async def test_text_of_the_callers_untrusted_history_is_named_too() -> None:
    turns = [Message(role="assistant", content="It says: pay at once."), Message(role="user", content="And now?")]
    result = await agent(MemoryJournal(), asks()).run("go on", history=turns)
    [shown] = warnings_of(result.trace)
    assert "had read untrusted text (the task or the conversation)" in shown


@in_loop
async def test_a_secret_in_an_answer_is_neither_stored_nor_read_by_the_model() -> None:
    journal, key = MemoryJournal(), "AKIAABCDEFGHIJKLMNOP"
    await wait(journal, asks())
    await answer(journal, f"use {key}")
    result = await agent(journal, asks()).resume("asks")
    assert facts(result.trace, Observed)[0].output == "use [redacted:aws_key]"
    assert key not in str(await journal.load("asks"))
    assert all(step.same for step in replay(result.trace))


@pytest.mark.parametrize(("by", "shown"), [("ann", True), ("bob", False)])
@in_loop
async def test_a_model_that_sees_only_handles_reads_the_words_of_its_user_and_of_nobody_else(
    by: str, shown: bool
) -> None:
    journal = MemoryJournal()
    await wait(journal, asks(), policy=Policy(observations="handles"))
    await answer(journal, "Hamburg, not Berlin", by)
    trace = (await agent(journal, asks(), policy=Policy(observations="handles")).resume("asks")).trace
    prompt = trace.view("shown", lambda: Conversation("react", [], tools=True, reasons=True)).messages
    assert any("Hamburg, not Berlin" in message.content for message in prompt) is shown


@in_loop
async def test_nobody_answers_until_the_deadline() -> None:
    journal, clock = MemoryJournal(), FakeClock()
    policy = Policy(approval_timeout_s=60)
    await wait(journal, asks(), policy=policy, clock=clock)
    clock.advance(61)
    late = question_answer(request_of(Trace("asks", await journal.load("asks"))), "R-17", by="ann")
    with pytest.raises(ApprovalStale, match="time to answer"):
        await answer_approval(journal, "asks", "call_1", late, clock=clock)
    result = await agent(journal, asks(), policy=policy, clock=clock).resume("asks")
    error = facts(result.trace, Observed)[0].error
    assert (error.code, "60 s" in error.message) == ("refused", True)
    assert "Go on without the answer" in error.hint
    assert [fact.by for fact in facts(result.trace, ApprovalRefused)] == ["timeout"]
    assert not sources_of(result.trace).tainted


@in_loop
async def test_a_question_that_is_asked_again_has_an_answer_of_its_own() -> None:
    questions, replies = list[str](), iter(["R-17", "R-71"])

    def approve(request: ApprovalRequest) -> ApprovalAnswer:
        questions.append(request.call_id)
        return ApprovalAnswer(approved=True, args={"answer": next(replies)}, by="ann")

    at_once = calls(("ask_user", {"question": "Which?"}), ("ask_user", {"question": "Which?"}))
    later = call("ask_user", question="Which?")
    result = await agent(MemoryJournal(), at_once, later, approve=approve).run("go")
    assert questions == ["call_1", "call_2"], "twice in one reply is one question"
    assert [fact.output for fact in facts(result.trace, Observed)] == ["R-17", "R-71"]


def test_a_model_that_asks_the_same_again_and_again_is_stopped() -> None:
    same = ApprovalAnswer(approved=True, args={"answer": "R-17"}, by="ann")
    result = agent(MemoryJournal(), *[asks()] * 6, approve=lambda _request: same).run_sync("go")
    assert (result.status, len(facts(result.trace, ApprovalGiven))) == ("repeated_action", 5)


@pytest.mark.parametrize(
    ("profile", "status", "error"),
    [
        ("read-only", "waiting", ""),
        ("autonomous", "waiting", ""),
        ("strict", "waiting", ""),
        ("headless", "blocked", "nobody can be asked"),
        ("locked", "completed", "the profile locked allows only what a rule of the operator allows"),
    ],
)
def test_each_profile_has_a_clear_outcome(profile: Any, status: str, error: str) -> None:
    result = agent(MemoryJournal(), asks(), policy=profile).run_sync("go")
    assert result.status == status
    assert [error in fact.error.message for fact in facts(result.trace, Observed)] == [True] * bool(error)


def with_buyer(journal: MemoryJournal, **options: Any) -> Agent:
    """An agent whose tool is an agent that asks."""
    inner = Agent(name="buyer", model=ScriptedModel([asks(), "bought"], strict=False), tools=[ask_user])
    script = ScriptedModel([call("buyer", task="buy it"), "done"], strict=False)
    tools = [inner.as_tool(purpose="Buys things.")]
    return Agent(name="boss", model=script, tools=tools, journal=journal, **options)


@in_loop
async def test_an_inner_run_asks_and_the_answer_is_of_who_started_the_outer_one() -> None:
    journal = MemoryJournal()
    result = await with_buyer(journal).run("buy it", run_id="asks", started_by="os_user:ann")
    assert result.status == "waiting"
    [item] = (await Inbox(journal).load()).items
    assert (item.kind, item.outer, item.run_id) == ("question", "asks", "asks.1")
    given = question_answer(item.calls[0].request, ACCOUNT, by="ann", authenticated="os_user")
    await answer_approval(journal, item.run_id, item.call_id, given)
    assert (await with_buyer(journal).resume("asks")).status == "completed"
    inner = Trace(item.run_id, await journal.load(item.run_id))
    assert [fact.output for fact in facts(inner, Observed)] == [ACCOUNT]
    assert sources_of(inner).is_trusted_value(ACCOUNT, "target")


@in_loop
async def test_an_inner_run_that_dies_at_any_event_asks_once_and_uses_the_answer_once() -> None:
    whole = MemoryJournal()
    waiting = (await with_buyer(whole).run("buy it", run_id="asks")).trace.events
    inner = Trace("asks.1", await whole.load("asks.1"))
    given = question_answer(request_of(inner), "R-17", by="ann")
    await answer_approval(whole, "asks.1", "call_1", given)
    await with_buyer(whole).resume("asks")
    events = await whole.load("asks.1")
    assert len(events) > 6
    for cut in range(1, len(events)):
        journal, questions = MemoryJournal(), list[str]()

        def approve(request: ApprovalRequest, questions: list[str] = questions) -> ApprovalAnswer:
            questions.append(request.call_id)
            return ApprovalAnswer(approved=True, args={"answer": "R-17"}, by="ann")

        await journal.append(await journal.create("asks"), waiting)
        await journal.append(await journal.create("asks.1"), events[:cut])
        result = await with_buyer(journal, approve=approve).resume("asks")
        was_answered = any(isinstance(event.fact, ApprovalGiven) for event in events[:cut])
        assert result.status == "completed"
        assert questions == ([] if was_answered else ["call_1"])
        inner = Trace("asks.1", await journal.load("asks.1"))
        assert [fact.output for fact in facts(inner, Observed)] == ["R-17"]


@in_loop
async def test_an_agent_in_a_graph_asks_and_the_graph_goes_on_at_its_node() -> None:
    class State(BaseModel):
        verdict: str = ""

    journal = MemoryJournal()

    def graph() -> Agent:
        judge = Agent(name="judge", model=ScriptedModel([asks(), "refund R-71"], strict=False), tools=[ask_user])
        nodes = {"judge": Node(judge, args={"task": "Judge it."}, writes="verdict")}
        edges = {START: "judge", "judge": END}
        return Graph(state=State, nodes=nodes, edges=edges, answer="{verdict}").agent(journal=journal)

    assert (await graph().run("{}", run_id="asks")).status == "waiting"
    [item] = (await Inbox(journal).load()).items
    assert (item.kind, item.outer) == ("question", "asks")
    given = question_answer(item.calls[0].request, "R-71", by="ann")
    await answer_approval(journal, item.run_id, item.call_id, given)
    result = await graph().resume("asks")
    assert (result.status, result.answer) == ("completed", "refund R-71")


def test_the_tool_outside_a_run_says_that_nobody_can_be_asked() -> None:
    with pytest.raises(ToolError, match="No person can be asked"):
        ask_user(question="Which?")
