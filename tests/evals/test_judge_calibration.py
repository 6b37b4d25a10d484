"""A judge is calibrated by marked trials in which it alone decides; without marks of both kinds it is not."""

from __future__ import annotations

import asyncio

import pytest

from taoloop import Agent, MemoryJournal, ScriptedModel
from taoloop.evals.judge_calibration import judge_reports, marked_runs
from taoloop.evals.trial_records import CheckOutcome, TrialRecord
from taoloop.runtime import mark_run

JUDGE = "openai:judge#12345678"


def record(number: int, verdict: bool | None, *others: CheckOutcome, configuration: str = "a") -> TrialRecord:
    judged = CheckOutcome(kind="judge", passed=verdict, judge=JUDGE)
    return TrialRecord(
        case_id=f"case {number}",
        category="normal",
        configuration=configuration,
        trial=0,
        run_id=f"run {number}",
        status="completed",
        answer="",
        passed=verdict,
        checks=(judged, *others),
    )


def test_rates_are_corrected_by_the_marked_trials() -> None:
    records = [record(number, number >= 3) for number in range(20)]
    marks = {f"run {number}": "right" if number >= 5 else "wrong" for number in range(15)}
    report = judge_reports(records, marks)[JUDGE]  # type: ignore[arg-type]  # the literals are right
    assert report["calibrated"]
    assert (report["sensitivity"]["value"], report["sensitivity"]["n"]) == (1.0, 10)
    assert (report["specificity"]["value"], report["specificity"]["n"]) == (0.6, 5)
    rates = report["rates"]["a"]
    assert rates["measured"]["value"] == pytest.approx(17 / 20)
    assert rates["corrected"]["value"] == pytest.approx((17 / 20 + 0.6 - 1) / 0.6)
    assert rates["corrected"]["low"] < rates["corrected"]["value"] < rates["corrected"]["high"]


def test_an_uncalibrated_judge_is_said_to_be_one() -> None:
    report = judge_reports([record(1, True), record(2, None)], {"run 1": "right"})[JUDGE]
    assert not report["calibrated"]
    assert report["specificity"]["value"] is None  # none is not zero
    assert report["rates"]["a"]["corrected"] is None
    assert report["undecided"] == 1


def test_a_trial_that_another_check_fails_says_nothing_about_the_judge() -> None:
    failed = CheckOutcome(kind="exact", passed=False)
    report = judge_reports([record(1, True, failed)], {"run 1": "wrong"})[JUDGE]
    assert report["specificity"]["n"] == 0
    assert judge_reports([], {}) == {}


def test_marks_are_read_from_the_journal_unless_people_disagree() -> None:
    journal = MemoryJournal()
    agent = Agent(model=ScriptedModel(["Five."]), journal=journal)
    first, second, third = (agent.run_sync("How many?").run_id for _ in range(3))

    async def scenario() -> dict[str, str]:
        await mark_run(journal, first, "wrong", by="ann")
        await mark_run(journal, second, "wrong", by="ann")
        await mark_run(journal, second, "right", by="bob")
        return dict(await marked_runs(journal, (first, second, third)))

    assert asyncio.run(scenario()) == {first: "wrong"}
