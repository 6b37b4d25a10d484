"""All trials of a suite, as programs run them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from taoloop import tool
from taoloop.core.events import Resumed, RunStarted
from taoloop.errors import AgentFileError
from taoloop.evals.cases import ActionPattern, Case, Check
from taoloop.evals.configurations import configurations_of
from taoloop.evals.suite import Suite
from taoloop.evals.trials.suite_run import SuiteOutcome, SuiteRun
from taoloop.evals.worlds import current_world
from taoloop.journals.sqlite.journal import SqliteJournal


@tool(tier="write", inline=True)
def refund(order: str) -> str:
    """Refund an order.

    Args:
        order: the order
    """
    current_world().state["refunded"].append(order)
    return "done"


def refund_case(*orders: str, **fields: Any) -> Case:
    calls = [{"tool_calls": [{"name": "refund", "args": {"order": order}}]} for order in orders]
    settings: dict[str, Any] = {
        "case_id": "-".join(orders),
        "task": f"Refund {', '.join(orders)}.",
        "world": {"refunded": []},
        "checks": (Check(kind="world", expected={"refunded": list(orders)}),),
        "expected_actions": tuple(ActionPattern(tool="refund", args={"order": order}) for order in orders),
        "script": (*calls, "Done."),
    }
    return Case(**settings | fields)


def run_cases(
    folder: Path,
    cases: Sequence[Case],
    path: Path | None = None,
    tools: Sequence[Any] = (refund,),
    **options: Any,
) -> SuiteOutcome:
    suite_fields: dict[str, Any] = {"tools": tools, "model": "oracle", "people": "approve", "concurrency": 1}
    suite = Suite(name="refunds", cases=lambda: cases, path=path, **suite_fields)
    configurations = configurations_of(suite, {})
    run = SuiteRun(suite=suite, configurations=configurations, database=folder / "e.db", env={}, **options)
    return asyncio.run(run.run())


CHECKS = """
import asyncio
from pathlib import Path


def right(answer: str, world: dict) -> bool:
    if answer == "Done." and not Path(__file__).with_name("checked").exists():
        raise asyncio.CancelledError  # as if the process ended here
    return world["refunded"] == ["A1"]
"""


def test_a_run_whose_process_ended_before_it_was_checked_is_only_checked(tmp_path: Path) -> None:
    (tmp_path / "late_checks.py").write_text(CHECKS, encoding="utf-8")
    check = Check(kind="function", expected="late_checks:right")
    cases = [refund_case("A1", checks=(check,), file=str(tmp_path / "suite.yaml"))]
    assert run_cases(tmp_path, cases).records == ()
    (tmp_path / "checked").touch()

    (record,) = run_cases(tmp_path, cases).records

    async def events() -> list[Any]:
        async with SqliteJournal(tmp_path / "e.db", read_only=True) as journal:
            return [event.fact for event in await journal.load(record.run_id)]

    facts = asyncio.run(events())
    assert record.passed, "the world is as the run left it"
    assert (record.counts.duplicate_effects, record.counts.lost_effects) == (0, 0)
    assert sum(isinstance(fact, RunStarted) for fact in facts) == 1
    assert not any(isinstance(fact, Resumed) for fact in facts)


def test_the_order_of_records_is_that_of_the_cases_whatever_ends_first(tmp_path: Path) -> None:
    cases = [refund_case(*(f"A{index}" for index in range(6 - size))) for size in range(5)]

    outcome = run_cases(tmp_path, cases, trials=2, concurrency=5)

    expected = [(case.case_id, number) for case in cases for number in range(2)]
    assert [(record.case_id, record.trial) for record in outcome.records] == expected
    assert outcome.progress.passed == 10


def test_a_budget_that_cannot_be_kept_ends_the_evaluation(tmp_path: Path) -> None:
    cases = [refund_case("A1", script=({"text": "Done.", "cost_usd": None},)), refund_case("A2")]

    outcome = run_cases(tmp_path, cases, max_cost_usd=1.0)

    assert [record.case_id for record in outcome.records] == ["A1"], "its only reply was its last"
    assert outcome.notes[0] == "The price of the model oracle is unknown, so that max_cost_usd cannot be kept."


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ([refund_case("A1"), refund_case("A1")], "the case 'A1' appears a second time"),
        ([refund_case("A1", forbidden_actions=(ActionPattern(tool="refnd"),))], "no tool 'refnd'"),
        ([refund_case("A1", tools=("calculator",))], "no tool 'calculator'"),
        ([refund_case("A1", checks=())], "it has no check"),
    ],
)
def test_what_is_wrong_with_a_case_is_found_before_anything_is_run(
    tmp_path: Path, cases: list[Case], message: str
) -> None:
    with pytest.raises(AgentFileError, match=message):
        run_cases(tmp_path, cases)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.nightly
def test_a_trial_whose_process_fails_is_invalid_and_the_others_go_on(tmp_path: Path) -> None:
    """The process that is to be killed reads the suite again, and its case is not there any more."""
    path = tmp_path / "refunds.yaml"
    path.write_text("suite: refunds\ncases: [{id: B1, task: Refund B1., expect: {exact: Done.}}]\n", encoding="utf-8")
    cases = [refund_case("A1", trouble=({"kill": "after_effect"},)), refund_case("A2")]

    failed, other = run_cases(tmp_path, cases, path).records

    assert (failed.passed, failed.fault_rule) == (None, "not_set_up")
    assert "ended with 1" in failed.checks[0].detail
    assert other.passed


@tool(tier="read", inline=True)
def spoil(order: str) -> str:
    """Spoil the world.

    Args:
        order: the order
    """
    current_world().state[order] = object()
    return "done"


def test_a_world_that_is_no_json_makes_its_own_trial_invalid_and_the_others_are_kept(tmp_path: Path) -> None:
    spoils = {"tool_calls": [{"name": "spoil", "args": {"order": "A1"}}]}
    spoiled = refund_case(
        "A1", case_id="spoiled", script=(spoils, "Done."), checks=(Check(kind="exact", expected="Done."),)
    )

    records = run_cases(tmp_path, [spoiled, refund_case("A2")], tools=(refund, spoil)).records

    assert [record.passed for record in records] == [None, True]
    assert "no longer be stored as JSON" in records[0].checks[0].detail
