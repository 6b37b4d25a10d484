"""Decimals reach a tool digit for digit: as the model wrote them, or as the person who edited the call did."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from taoloop import Agent, ApprovalAnswer, MemoryJournal, ScriptedModel, ToolContext, tool
from taoloop.core.events import ApprovalGiven
from taoloop.core.stored_events import decode_fact, encode_fact
from taoloop.runtime.after.replay import replay
from taoloop.runtime.approvals.inbox import answer_approval


@tool(tier="write")
def book(amount: float, rate: float, text: str, *, call: ToolContext) -> str:
    """Book an amount."""
    given = {"amount": amount, "rate": rate, "text": text}
    return " ".join(f"{place}={text}" for place, text in sorted(call.literals(given).items())) or "none"


WRITTEN = '{"tool": "book", "args": {"amount": -0.00, "rate": 1.10, "text": "a"}}'
REPLY = f"Thought: I book.\nAction: book\nAction Input: {WRITTEN[25:-1]}"


def booked(edit: dict[str, Any] | None, digits: dict[str, str] | None = None, *, later: bool) -> tuple[str, Any]:
    journal = MemoryJournal()
    said = ApprovalAnswer(approved=True, by="ann", args=edit, digits=digits)
    model = ScriptedModel([REPLY, "Final Answer: done"], strict=False)
    agent = Agent(model=model, tools=[book], journal=journal, dialect="text", approve=None if later else lambda _: said)
    result = agent.run_sync("go")
    if later:
        assert result.status == "waiting"
        asyncio.run(answer_approval(journal, result.run_id, "call_1", said))
        result = agent.resume_sync(result.run_id)
    assert result.status == "completed"
    assert all(one.same for one in replay(result.trace))
    call = result.trace.calls["call_1"]
    assert call.observed is not None
    assert isinstance(call.approval, ApprovalGiven)
    assert decode_fact("approval_given", encode_fact(call.approval)) == call.approval
    return call.observed.output, call.approval.args


@pytest.mark.parametrize("later", [False, True])
def test_what_nobody_edited_goes_out_as_the_model_wrote_it(later: bool) -> None:
    assert booked(None, later=later) == ("/amount=-0.00 /rate=1.10", None)


@pytest.mark.parametrize("later", [False, True])
def test_the_sign_of_a_zero_is_an_edit(later: bool) -> None:
    output, args = booked({"amount": 0.0, "rate": 1.1, "text": "a"}, later=later)
    assert output == "/rate=1.10"
    assert repr(args["amount"]) == "0.0"


@pytest.mark.parametrize("later", [False, True])
def test_what_a_person_left_as_it_was_keeps_its_digits(later: bool) -> None:
    output, _ = booked({"amount": -0.0, "rate": 2.5, "text": "b"}, later=later)
    assert output == "/amount=-0.00"


@pytest.mark.parametrize("later", [False, True])
def test_what_a_person_wrote_goes_out_digit_for_digit(later: bool) -> None:
    output, _ = booked({"amount": 3.5, "rate": 1.1, "text": "a"}, {"/amount": "3.50"}, later=later)
    assert output == "/amount=3.50"


def test_digits_of_another_number_are_left_aside() -> None:
    output, _ = booked({"amount": 3.5, "rate": 1.1, "text": "a"}, {"/amount": "9.99", "/text": "1"}, later=True)
    assert "9.99" not in output
