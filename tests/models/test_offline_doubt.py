"""The offline model after a call that is known to have happened, and whose output is lost."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from taoloop import Agent, ApprovalAnswer, MemoryJournal, tool
from taoloop.core.events import ActionStarted, Event, RunStarted
from taoloop.core.policy import Policy
from taoloop.core.trace import Trace
from taoloop.runtime.approvals.request import ApprovalRequest


@tool(tier="write", egress=True, roles={"email": "target"})
def send_mail(email: str) -> str:
    """Send a mail to an address."""
    return f"sent to {email}"


@tool(tier="write", egress=True, roles={"item": "target"})
def count_stock(item: str) -> str:
    """Count how many of an item there are in stock, on paper."""
    return "40"


@tool(tier="read")
def calculator(expression: str) -> str:
    """Calculate an arithmetic expression."""
    return f"result={eval(expression)}"  # noqa: S307  # the test's own numbers


def settled(task: str, note: str, happened: bool = True, **options: Any) -> Trace:
    """The run of a task whose first effect lost its outcome, and of which a person then said that it happened."""
    journal = MemoryJournal()
    tools = [send_mail, count_stock, calculator]
    whole = Agent(model="offline", tools=tools, policy="autonomous", **options).run_sync(task)
    events = list(whole.trace.events)
    cut = next(number for number, event in enumerate(events) if isinstance(event.fact, ActionStarted)) + 1
    started = events[0].fact
    assert isinstance(started, RunStarted)
    asking = replace(started.agent, policy=Policy(pin="keywords"))
    events[0] = Event(0, events[0].at, replace(started, agent=asking))

    def say(question: ApprovalRequest) -> ApprovalAnswer:
        if not question.doubt:
            return ApprovalAnswer(approved=True, by="ann")
        return ApprovalAnswer(approved=happened, by="ann", note=note, settle="happened")

    async def go_on() -> Trace:
        lease = await journal.create("r")
        await journal.append(lease, events[:cut])
        return (await Agent(model="offline", tools=tools, journal=journal, approve=say, **options).resume("r")).trace

    return asyncio.run(go_on())


@pytest.mark.parametrize(
    ("task", "language", "note", "answer"),
    [
        (
            "Send a mail to ann@example.com.",
            "en",
            "",
            'This call happened: ann says so. Its output was lost. (send_mail(email="ann@example.com"))',
        ),
        (
            "给 ann@example.com 发邮件",
            "zh",
            "单号 4711",
            '这次调用已经生效：由 ann 确认。它的输出已丢失。 单号 4711 (send_mail(email="ann@example.com"))',
        ),
        (
            "Send a mail to ann@example.com and then send a mail to bob@example.com",
            "en",
            "",
            (
                "ann@example.com: This call happened: ann says so. Its output was lost; bob@example.com: sent to "
                'bob@example.com. Based on: send_mail(email="ann@example.com") → This call happened: ann says so. '
                'Its output was lost; send_mail(email="bob@example.com") → sent to bob@example.com.'
            ),
        ),
    ],
)
def test_the_answer_says_that_it_happened(task: str, language: Any, note: str, answer: str) -> None:
    trace = settled(task, note, language=language)
    assert trace.answer is not None
    assert trace.answer.text == answer


def test_a_number_in_what_a_person_said_of_it_is_no_result() -> None:
    task = "Count the stock of apples and multiply the result by 2."
    whole = Agent(model="offline", tools=[count_stock, calculator], policy="autonomous").run_sync(task)
    assert "80" in str(whole.answer)
    trace = settled(task, "receipt 4711")
    assert [call.requested.tool for call in trace.calls.values()] == ["count_stock"]
    assert trace.answer is not None
    assert "9422" not in trace.answer.text
    assert "happened" in trace.answer.text
