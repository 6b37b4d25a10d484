"""Every limit ends a run with its own name, keeps the work, and lets the run go on when it is raised."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.scripting import call

from taoloop import Agent, ApprovalAnswer, ApprovalRequest, Limits, MemoryJournal, ScriptedModel, ToolError, tool
from taoloop.core.events import Finished, LimitReached, Noted, Observed, RunStarted
from taoloop.core.views.transcript import Result
from taoloop.testing import FakeClock

_FREE = Limits(max_steps=None, max_consecutive_errors=None, repeat_tell=None, repeat_stop=None)


@tool(tier="read")
def look(place: int) -> str:
    """Look at a place."""
    return f"seen {place}"


@tool(tier="read")
def wait() -> str:
    """Always the same."""
    return "not yet"


@tool(tier="read")
def break_down(n: int) -> str:
    """Fail."""
    raise ToolError(f"Part {n} is broken.", code="broken")


def costly(reply: dict[str, Any]) -> dict[str, Any]:
    return {**reply, "usage": {"input_tokens": 60, "output_tokens": 40}, "cost_usd": 0.5}


def looks(count: int) -> list[Any]:
    return [call("look", place=n) for n in range(count)]


_CASES: list[tuple[str, str, list[Any], dict[str, Any], dict[str, Any]]] = [
    ("max_steps", "max_steps_exceeded", looks(2), {"max_steps": 2}, {"max_steps": 9}),
    ("max_tool_calls", "budget_exceeded", looks(3), {"max_tool_calls": 2}, {"max_tool_calls": 9}),
    ("max_tokens", "budget_exceeded", [costly(one) for one in looks(2)], {"max_tokens": 150}, {"max_tokens": 10_000}),
    (
        "max_cost_usd",
        "budget_exceeded",
        [costly(one) for one in looks(2)],
        {"max_cost_usd": 0.9},
        {"max_cost_usd": 90.0},
    ),
    (
        "max_consecutive_errors",
        "too_many_errors",
        [call("break_down", n=n) for n in range(3)],
        {"max_consecutive_errors": 3},
        {"max_consecutive_errors": 3},
    ),
    (
        "max_total_errors",
        "too_many_errors",
        [call("break_down", n=1), call("look", place=1), call("break_down", n=2)],
        {"max_total_errors": 2},
        {"max_total_errors": 9},
    ),
    ("repeat_stop", "repeated_action", [call("wait")] * 5, {"repeat_tell": 3, "repeat_stop": 5}, {}),
]


def kinds(result: Result, kind: type) -> list[Any]:
    return [event.fact for event in result.trace.events if isinstance(event.fact, kind)]


@pytest.mark.parametrize("closing_turn", [True, False])
@pytest.mark.parametrize(("limit", "status", "script", "limits", "larger"), _CASES)
def test_a_limit_is_named_keeps_the_work_and_can_be_raised(
    limit: str,
    status: str,
    script: list[Any],
    limits: dict[str, Any],
    larger: dict[str, Any],
    closing_turn: bool,
) -> None:
    """One finished event with its exact reason; without the last turn the answer is null."""
    journal = MemoryJournal()
    closing = ["so far"] if closing_turn else []
    agent = Agent(
        model=ScriptedModel([*script, *closing, call("look", place=99), "done"]),
        tools=[look, wait, break_down],
        limits=replace(_FREE, **limits),
        closing_turn=closing_turn,
        journal=journal,
    )
    ended = agent.run_sync("go")
    assert (ended.status, ended.answer) == (status, "so far" if closing_turn else None)
    assert [fact.limit for fact in kinds(ended, LimitReached)] == [limit]
    assert [fact.limit for fact in kinds(ended, Finished)] == [limit]
    done = len(kinds(ended, Observed))
    assert done == len(script), "nothing that was done is lost"

    resumed = agent.resume_sync(ended.run_id, limits=replace(_FREE, **{**limits, **larger}))
    assert (resumed.status, resumed.answer) == ("completed", "done")
    assert len(kinds(resumed, RunStarted)) == 1
    assert len(kinds(resumed, Observed)) == done + 1, "the work before was kept, and not done again"


def test_the_third_time_is_told_to_the_model_and_the_fifth_ends_the_run() -> None:
    """S2-26."""
    result = Agent(
        model=ScriptedModel([call("wait")] * 5 + ["so far"]),
        tools=[wait],
        limits=Limits(max_steps=None),
    ).run_sync("go")
    assert result.status == "repeated_action"
    order = [
        event.fact.kind for event in result.trace.events if isinstance(event.fact, Observed | Noted | LimitReached)
    ]
    assert order == ["observed"] * 3 + ["noted"] + ["observed"] * 2 + ["limit_reached"]


def test_two_actions_in_turn_are_repetition_too() -> None:
    """Hiding a loop behind another action does not help: each is counted by itself."""
    result = Agent(
        model=ScriptedModel([*([call("wait"), call("look", place=1)] * 4), call("wait"), "so far"]),
        tools=[wait, look],
        limits=Limits(max_steps=None),
    ).run_sync("go")
    assert (result.status, result.answer) == ("repeated_action", "so far")


def test_polling_that_brings_something_new_is_free() -> None:
    seen = iter(range(1000))

    @tool(tier="read")
    def poll() -> str:
        """How far it is."""
        return f"{next(seen)} %"

    result = Agent(
        model=ScriptedModel([call("poll")] * 40 + ["done"]), tools=[poll], limits=Limits(max_steps=None)
    ).run_sync("go")
    assert (result.status, kinds(result, Noted)) == ("completed", [])


def test_of_two_limits_that_are_reached_at_once_the_errors_are_named() -> None:
    """S0-46: three errors in the last step allowed are too many errors, not the step limit."""
    result = Agent(
        model=ScriptedModel([*(call("break_down", n=n) for n in range(3)), "it failed"]),
        tools=[break_down],
        limits=Limits(max_steps=3),
    ).run_sync("go")
    assert (result.status, result.answer) == ("too_many_errors", "it failed")
    assert "3 errors in a row" in result.reason


@pytest.mark.parametrize(("limits", "limit"), [({"max_wall_s": 10.0}, "max_wall_s"), ({"max_working_s": 10.0}, None)])
def test_waiting_for_a_person_costs_wall_time_and_no_working_time(limits: dict[str, float], limit: str | None) -> None:
    clock = FakeClock()

    def slow(_request: ApprovalRequest) -> ApprovalAnswer:
        clock.advance(30.0)
        return ApprovalAnswer(approved=True, by="ann")

    @tool(tier="write")
    def pay(amount: int) -> str:
        """Pay an amount."""
        return f"paid {amount}"

    agent = Agent(
        model=ScriptedModel([call("pay", amount=1), "done"]),
        tools=[pay],
        approve=slow,
        limits=replace(_FREE, **limits),  # type: ignore[arg-type]  # times only
        clock=clock,
    )
    finished = agent.run_sync("go").trace.finished
    assert finished is not None
    assert finished.limit == limit


def test_a_slow_tool_costs_working_time() -> None:
    clock = FakeClock()

    @tool(tier="read")
    def rest() -> str:
        """Let time pass."""
        clock.advance(30.0)
        return "rested"

    agent = Agent(
        model=ScriptedModel([call("rest"), "so far"]),
        tools=[rest],
        limits=replace(_FREE, max_working_s=10.0),
        clock=clock,
    )
    finished = agent.run_sync("go").trace.finished
    assert finished is not None
    assert (finished.limit, finished.answer) == ("max_working_s", "so far")
