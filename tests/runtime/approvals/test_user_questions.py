"""Questions of the model to a person: they wait without a process, are answered once, and authorise nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest
from tests.runtime.approvals.waiting_runs import read_mail
from tests.runtime.paying import pay

from taoloop import Agent, ApprovalAnswer, ApprovalRequest, MemoryJournal, Result, ScriptedModel
from taoloop.core.events import ActionStarted, ApprovalGiven, Observed
from taoloop.core.policy import Policy, Rule
from taoloop.core.trace import Trace
from taoloop.errors import AlreadyAnswered, InvalidArguments, ToolError
from taoloop.policy import sources_of, trusted_texts
from taoloop.runtime.after.replay import replay
from taoloop.runtime.approvals.inbox import answer_approval
from taoloop.runtime.approvals.inbox_items import Inbox
from taoloop.runtime.approvals.request import approval_request
from taoloop.runtime.approvals.user_questions import question_answer
from taoloop.tools.builtin.ask_user import ask_user

CHOICES = ["R-17", "R-71"]


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(**values: Any) -> None:
        asyncio.run(test(**values))

    return run


def asks(**args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": "ask_user", "args": {"question": "Which invoice?", **args}}]}


def agent(journal: MemoryJournal, *replies: Any, **options: Any) -> Agent:
    script = ScriptedModel([*replies, "done"], strict=False)
    return Agent(name="clerk", model=script, tools=[ask_user, pay, read_mail], journal=journal, **options)


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
        ({"format": "yes_no"}, "是", True),
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
    [({"choices": CHOICES}, "3"), ({"format": "integer"}, "many"), ({"format": "date"}, "soon"), ({}, " ")],
)
@in_loop
async def test_what_does_not_fit_is_refused_and_the_question_stays_open(args: dict[str, Any], text: str) -> None:
    journal = MemoryJournal()
    await wait(journal, asks(**args))
    with pytest.raises(InvalidArguments):
        await answer(journal, text)
    assert (await Inbox(journal).load()).find("asks", "call_1") is not None


def test_a_plain_yes_answers_nothing_and_a_refusal_says_why() -> None:
    result = agent(MemoryJournal(), asks(), approve=lambda _request: True).run_sync("pay it")
    assert "plain yes" in facts(result.trace, Observed)[0].error.message
    no = ApprovalAnswer(approved=False, note="ask the accountant")
    result = agent(MemoryJournal(), asks(), approve=lambda _request: no).run_sync("pay it")
    assert "did not answer: ask the accountant" in facts(result.trace, Observed)[0].error.message


def test_where_nobody_can_be_asked_the_model_is_told_and_no_rule_lifts_that() -> None:
    rules = (Rule(verdict="allow", tool="ask_user"),)
    assert agent(MemoryJournal(), asks(), policy=Policy(rules=rules)).run_sync("go").status == "waiting"
    result = agent(MemoryJournal(), asks(), policy="headless").run_sync("go")
    assert facts(result.trace, Observed)[0].error.code == "denied"


@in_loop
async def test_the_answer_counts_as_words_of_the_user_and_taints_nothing() -> None:
    journal = MemoryJournal()
    await wait(journal, asks())
    trace = await answer(journal, "account DE02120300000000202051")
    assert sources_of(trace).is_trusted_value("DE02120300000000202051", "target")
    assert trusted_texts(trace)[-1] == "account DE02120300000000202051"
    assert not sources_of((await agent(journal, asks()).resume("asks")).trace).tainted


@in_loop
async def test_a_user_without_authority_authorises_nothing_by_an_answer() -> None:
    journal = MemoryJournal()
    result = await wait(journal, asks(), policy=Policy(task_authority="none"))
    assert not request_of(result.trace).for_operator
    trace = await answer(journal, "account DE02120300000000202051")
    assert not sources_of(trace).is_trusted_value("DE02120300000000202051", "target")


@in_loop
async def test_a_choice_that_a_tainted_model_wrote_endorses_nothing() -> None:
    journal, account = MemoryJournal(), "DE89370400440532013000"
    mail = {"tool_calls": [{"name": "read_mail", "args": {}}]}
    await wait(journal, mail, asks(choices=[account, "none"]))
    trace = await answer(journal, "1", call_id="call_2")
    assert not sources_of(trace).is_trusted_value(account, "target")


def test_the_tool_outside_a_run_says_that_nobody_can_be_asked() -> None:
    with pytest.raises(ToolError, match="No person can be asked"):
        ask_user(question="Which?")
