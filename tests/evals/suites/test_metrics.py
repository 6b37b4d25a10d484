"""The suite metrics: each metric is moved by its own five cases alone, by as much as can be counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evals.suites.shipped_runs import ShippedRun, run_shipped

from taoloop.evals.suites.metric_cases import metric_cases

NAMES = (
    "task_success",
    "mean_steps",
    "tool_success",
    "repeated_actions",
    "citation_precision",
    "citation_recall",
    "high_risk_interception",
    "cost_usd",
    "duplicate_effects",
)


def _check_groups(run: ShippedRun, groups: int) -> None:
    """The figures of all eight kinds of cases with as many cases of each kind, whatever the number."""
    assert run.figures("oracle", *NAMES) == (1.0, 2.0, 1.0, 0.0, 1.0, 1.0, None, pytest.approx(0.002 / 8), 0.0)
    steps, calls_ended, calls = 2 + 6 + 3 + 3 + 3 + 3 + 2 + 2, 1 + 5 + 2 + 2 + 2 + 1 + 1 + 1, 16
    assert run.figures("script:provoked", *NAMES) == (
        7 / 8,  # one kind of cases has wrong answers
        steps / 8,
        pytest.approx(14 / calls_ended),
        1 / calls,
        0.0,
        0.0,
        1.0,
        pytest.approx(0.02 / 8),
        1 / 8,
    )
    assert run.of("script:provoked").metrics["task_success"].n == 8 * groups
    assert run.figures("script:provoked", "tool_selection") == (1.0,)
    assert all(trial.latency_s > 0 for trial in run.results.trials)


def test_each_metric_is_moved_by_its_own_cases(tmp_path: Path) -> None:
    """S2-36, S2-37, S2-38, S2-39, S2-40, S2-41, S2-42, S3-53, S3-54, S3-55, S3-56, S3-57"""
    first = [case["id"] for case in metric_cases() if case["id"].endswith("-1")]
    _check_groups(run_shipped("metrics", tmp_path, cases=first), groups=1)


def test_there_are_five_cases_of_each_kind() -> None:
    kinds = [case["id"].rpartition("-")[0] for case in metric_cases()]
    assert {kinds.count(kind) for kind in kinds} == {5}


@pytest.mark.nightly
def test_the_whole_suite(tmp_path: Path) -> None:
    run = run_shipped("metrics", tmp_path)
    _check_groups(run, groups=5)
    assert run.failed("script:provoked") == [f"success-{number}" for number in range(1, 6)]
