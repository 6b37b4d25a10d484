"""Asserts about questions, calls, denials and limits, and what a failure of theirs shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from taoloop import Agent, ApprovalAnswer, Result, ScriptedModel, tool
from taoloop.core.policy import Policy, Rule
from taoloop.testing import (
    assert_asked,
    assert_called,
    assert_denied,
    assert_limit_reached,
    assert_not_asked,
    assert_not_called,
    denied,
    questions,
)
from taoloop.tools.builtin.ask_user import ask_user


@tool(tier="read")
def stock(item: str) -> int:
    """How many there are."""
    return len(item)


@tool(tier="write", egress=False)
def order(item: str, count: int) -> str:
    """Order items."""
    return f"ordered {count} {item}"


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "args": args}]}


def ran(*replies: Any, **options: Any) -> Result:
    script = ScriptedModel([*replies, "Done."], strict=False)
    return Agent(model=script, tools=[stock, order, ask_user], **options).run_sync("Fill up the tea.")


def restocked(**options: Any) -> Result:
    return ran(call("stock", item="tea"), call("order", item="tea", count=17), **options)


def answers(approved: bool) -> Callable[[Any], ApprovalAnswer]:
    return lambda _request: ApprovalAnswer(approved=approved, by="Kim", note="" if approved else "Too many.")


def failure(check: Callable[..., None], *values: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as failed:
        check(*values, **options)
    return str(failed.value)


def test_questions_are_what_people_were_asked_and_what_came_of_it() -> None:
    args = {"item": "tea", "count": 17}
    assert questions(restocked()) == [("order", args, "open")]
    assert questions(restocked(approve=answers(True))) == [("order", args, "approved")]
    assert questions(restocked(approve=answers(False))) == [("order", args, "refused")]
    assert questions(restocked(policy="autonomous")) == []


def test_asked_and_not_asked() -> None:
    result = restocked(approve=answers(True))
    assert_asked(result)
    assert_asked(result, "order", outcome="approved")
    assert_asked(result.trace, ("order", {"item": "tea"}))
    assert_not_asked(result, "stock", ("order", {"item": "coffee"}))
    assert_not_asked(restocked(policy="autonomous"))
    assert_asked(ran(call("ask_user", question="Which tea?")), ("ask_user", {"question": "Which tea?"}), outcome="open")


def test_the_failure_of_a_question_shows_what_was_asked() -> None:
    result = restocked(approve=answers(True))
    text = failure(assert_asked, result, "order", ("order", {"item": "coffee"}))
    assert text.startswith(
        'Nobody was asked about order {"item": "coffee"} after order.\n'
        'Asked was:\n- order {"item": "tea", "count": 17} → approved\nRun '
    )
    assert "Observation order" in text
    assert failure(assert_asked, result, outcome="refused").startswith("Nobody was asked anything, refused.")
    assert failure(assert_not_asked, result).startswith('A person was asked about order {"item": "tea", "count": 17}.')
    assert "Asked was: nothing\n" in failure(assert_asked, restocked(policy="autonomous"), "order")


def test_called_is_about_the_order_and_exactly_about_all() -> None:
    result = restocked(policy="autonomous")
    assert_called(result, "stock", ("order", {"count": 17}), exactly=True)
    assert_called(result, "order")
    assert_not_called(result, "ask_user", ("order", {"count": 3}))
    assert_not_called(ran())
    text = failure(assert_called, result, "order", "stock")
    assert text.startswith("stock did not run after order.\nWhat ran:\n- stock {")
    assert failure(assert_called, result, "order", exactly=True).startswith("2 calls ran instead of 1.")
    assert failure(assert_not_called, result, "stock").startswith('stock {"item": "tea"} ran.')


def test_denied_is_by_the_policy_or_by_a_person() -> None:
    refused = restocked(approve=answers(False))
    assert_denied(refused, "order", why="Too many")
    policy = Policy(rules=(Rule(verdict="deny", tool="order", name="No orders on Sundays"),))
    forbidden = restocked(policy=policy)
    assert_denied(forbidden, ("order", {"count": 17}), why="Sundays")
    assert [row[0] for row in denied(forbidden)] == ["order"]
    text = failure(assert_denied, forbidden, "order", why="Mondays")
    assert text.startswith("order was not denied because of 'Mondays'.\nDenied was:\n- order {")
    assert failure(assert_denied, restocked(policy="autonomous")).startswith(
        "No call was denied.\nDenied was: nothing\n"
    )


def test_a_limit_that_ended_the_run() -> None:
    stopped = restocked(policy="autonomous", max_steps=1)
    assert_limit_reached(stopped, "max_steps")
    text = failure(assert_limit_reached, stopped, "max_tokens")
    assert text.startswith("The run did not reach 'max_tokens'.\nReached was:\n- max_steps\nRun ")
