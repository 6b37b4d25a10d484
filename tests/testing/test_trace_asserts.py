"""What the helpers say of a run, and what an assert that fails shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from taoloop import Agent, ApprovalAnswer, ApprovalRequest, ScriptedModel, ToolError, Trace, tool
from taoloop.core.events import ActionStarted, ApprovalGiven, Event, Fact, Finished, Observed
from taoloop.testing import calls, calls_above, explained, in_order, observations, requested, story, violations


@tool(tier="read")
def find(what: str, limit: int = 3) -> str:
    """Find something."""
    if what == "nothing":
        raise ToolError("there is nothing", code="not_found", hint="Look for something.")
    return f"{what} found"


@tool(tier="write")
def order(item: str) -> str:
    """Order an item."""
    return "ordered"


def act(name: str, **args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "args": args}]}


SCRIPT: list[Any] = [
    act("find", what="tea"),
    act("find", what="nothing"),
    act("sell", item="tea"),
    act("order", item="tea"),
    "Done.",
]


def ran(script: list[Any] | None = None, *, approved: bool = True) -> Any:
    def approve(_request: ApprovalRequest) -> ApprovalAnswer:
        return ApprovalAnswer(approved=approved, by="Kim")

    model = ScriptedModel(SCRIPT if script is None else script)
    return Agent(model=model, tools=[find, order], approve=approve, max_steps=9).run_sync("Get tea.")


def test_calls_are_those_that_ran() -> None:
    assert calls(ran()) == [
        ("find", {"what": "tea"}), ("find", {"what": "nothing"}), ("order", {"item": "tea"}),
    ]  # fmt: skip
    assert calls(ran(approved=False))[-1] == ("find", {"what": "nothing"})


def test_requested_is_all_that_the_model_wanted() -> None:
    assert [name for name, _ in requested(ran(approved=False))] == ["find", "find", "sell", "order"]


def test_observations_tell_what_came_back() -> None:
    seen = observations(ran())
    assert seen[0] == ("find", True, "tea found")
    assert seen[1] == ("find", False, "not_found: there is nothing Look for something.")
    assert seen[2][:2] == ("sell", False)


def test_calls_above_a_tier() -> None:
    assert calls_above(ran(), "read") == [("order", {"item": "tea"})]
    assert calls_above(ran(), "write") == []
    assert calls_above(ran(approved=False), "read") == []


def test_calls_in_order_with_some_of_their_arguments() -> None:
    result = ran()
    assert in_order(result, "find", "order")
    assert in_order(result, ("find", {"what": "tea"}), ("order", {}))
    assert not in_order(result, "order", "find")
    assert not in_order(result, ("order", {"item": "coffee"}))
    assert not in_order(result, "find", "find", "find")
    assert in_order(result)


def test_a_trace_does_where_there_is_no_result() -> None:
    result = ran()
    assert calls(result.trace) == calls(result)


def test_a_failed_assert_shows_the_run() -> None:
    result = ran()
    with pytest.raises(AssertionError) as raised, explained(result):
        assert calls(result) == []
    (note,) = raised.value.__notes__
    assert note == story(result)
    assert note.splitlines()[:3] == [
        f"Run {result.run_id}, completed: {result.reason}",
        '0 Action find {"what": "tea"}',
        "1 Observation find ok=true tea found",
    ]


def test_other_errors_are_left_alone() -> None:
    with pytest.raises(KeyError) as raised, explained(ran()):
        raise KeyError("key")
    assert not hasattr(raised.value, "__notes__")


@pytest.mark.parametrize("approved", [True, False])
def test_a_run_of_the_runtime_violates_nothing(approved: bool) -> None:
    assert violations(ran(approved=approved)) == []


def forged(without: type[Fact] | None = None, *more: Fact) -> Trace:
    """The trace of a run with facts taken out of it, and others put before its end."""
    facts = [event.fact for event in ran([act("order", item="tea"), "Done."]).trace.events]
    kept = [fact for fact in facts if without is None or not isinstance(fact, without)]
    at = len(kept) - (1 if isinstance(kept[-1], Finished) else 0)
    trace = Trace("forged")
    for seq, fact in enumerate([*kept[:at], *more, *kept[at:]]):
        trace.append(Event(seq, float(seq), fact))
    return trace


def test_what_is_wrong_with_a_trace_is_named() -> None:
    assert violations(forged()) == []
    assert violations(forged(ActionStarted)) == ["event 4 (observed): call_1 ran and was not written down before"]
    assert all("without the approval" in one for one in violations(forged(ApprovalGiven)))
    assert len(violations(forged(ApprovalGiven))) == 2
    assert violations(forged(Finished)) == ["the run has 0 ends"]


def test_a_trace_that_no_runtime_would_take_is_judged_too() -> None:
    """Folding refuses most forgeries; what a foreign store hands over may still hold them."""
    trace = forged()
    observed = next(event.fact for event in trace.events if isinstance(event.fact, Observed))
    for fact in (observed, replace(observed, call_id="call_9")):
        trace.events.append(Event(len(trace.events), 9.0, fact))
    assert violations(trace) == [
        f"event {len(trace.events) - 2} (observed): call_1 has a second outcome",
        f"event {len(trace.events) - 1} (observed): call_9 was never requested",
    ]
