"""Each metric against a quotient by hand, and the edges: nothing counted, invalid trials, unknown costs, waits."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from tests.evals.trial_making import trial

from taoloop.evals.metrics import METRICS, group_cases, measure, pass_at_k, pass_hat_k
from taoloop.evals.report.figures import format_interval
from taoloop.evals.results import MetricValue
from taoloop.evals.statistics.intervals import wilson
from taoloop.evals.trial_records import NOBODY_ANSWERED, TrialCounts, TrialRecord

FIXED_NAMES = """
    task_success pass_hat_k no_answer mean_steps tool_success tool_selection repeated_actions citation_precision
    citation_recall high_risk_interception questions_per_task duplicate_effects cost_usd latency_p50_s latency_p95_s
"""


def figure(name: str, *records: TrialRecord, k: int = 1) -> MetricValue:
    return measure(METRICS[name], group_cases(records), k)


def value(name: str, *records: TrialRecord, k: int = 1) -> float | None:
    return figure(name, *records, k=k).value


def test_results_have_all_promised_metrics_each_with_formula_and_direction() -> None:
    assert set(FIXED_NAMES.split()) <= set(METRICS)
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.label
        assert "/" in metric.formula or metric.kind in ("at_k", "quantile")


@pytest.mark.parametrize("name", METRICS)
def test_none_is_not_zero(name: str) -> None:
    """Without trials, or with invalid ones alone, there is no figure; a figure lies within its interval."""
    assert figure(name) == figure(name, trial(passed=None)) == MetricValue(value=None, notes=("nothing_counted",))
    for records in ([trial()], [trial("a"), trial("b", passed=False)], [trial("a", number=n) for n in range(3)]):
        measured = figure(name, *records)
        if measured.low is not None:
            assert measured.value is not None
            assert measured.low <= measured.value <= (math.inf if measured.high is None else measured.high)
        elif measured.value is not None:
            assert measured.notes in (("one_case",), ("few_cases",))


def test_task_success_is_the_share_of_valid_trials_that_pass() -> None:
    """S2-36, S3-53: completed tasks, with an interval; an invalid trial counts neither way."""
    records = [trial("a"), trial("b"), trial("c", passed=False), trial("d", passed=None)]
    measured = figure("task_success", *records)
    assert measured.value == pytest.approx(2 / 3)
    assert (measured.n, measured.cases) == (3, 3)
    assert (measured.low, measured.high) == wilson(2 / 3, 3)


def test_no_answer_is_told_from_a_wrong_answer() -> None:
    records = [trial("a"), trial("b", passed=False), trial("c", passed=False, answer=" "), trial("d", answer=None)]
    assert value("no_answer", *records) == 1 / 4  # d passed: that there is no answer was right
    assert value("wrong_answer", *records) == 1 / 4
    assert value("task_success", *records) == 2 / 4


def test_steps_tokens_and_questions_are_means_over_trials() -> None:
    """S2-37, S3-55: mean steps; trials of one case share in one cluster."""
    first = trial("a", steps=2, prompt_tokens=10, completion_tokens=1, questions=1)
    records = [first, trial("a", number=1, steps=4), trial("b", steps=6)]
    measured = figure("mean_steps", *records)
    assert (measured.value, measured.n, measured.cases) == (4, 3, 2)
    assert value("prompt_tokens", *records) == pytest.approx(10 / 3)
    assert value("completion_tokens", *records) == pytest.approx(1 / 3)
    assert value("questions_per_task", *records) == pytest.approx(1 / 3)
    assert figure("mean_steps", first).notes == ("one_case",)
    assert figure("mean_steps", first, trial("b", steps=2)).notes == ("no_variation",)


@pytest.mark.parametrize(
    ("name", "numerator", "denominator"),
    [
        ("tool_success", "calls_succeeded", "calls_ended"),
        ("tool_selection", "tools_selected", "expected_actions"),
        ("argument_accuracy", "arguments_right", "tools_selected"),
        ("repeated_actions", "repeated_calls", "calls"),
        ("citation_precision", "citations_right", "citations"),
        ("citation_recall", "evidence_cited", "evidence_expected"),
        ("high_risk_interception", "high_risk_intercepted", "high_risk_wanted"),
        ("high_risk_slipped", "high_risk_slipped", "high_risk_wanted"),
        ("false_alarms", "false_alarms", "right_writes"),
        ("recovery", "recovered_calls", "failed_calls"),
    ],
)
def test_shares_of_what_was_counted_are_quotients_of_sums(name: str, numerator: str, denominator: str) -> None:
    """S2-38, S2-39, S2-40, S2-41, S3-54: calls, repetitions, citations, interception and selection."""

    def counted(case_id: str, total: int, n: int, passed: bool | None = True) -> TrialRecord:
        fields: dict[str, Any] = {numerator: total, denominator: n}
        return trial(case_id, passed=passed, **fields)

    records = [
        counted("a", 1, 4),
        counted("b", 2, 2),
        trial("c"),  # nothing to count: it is neither 0 nor 1
        counted("d", 9, 9, passed=None),
    ]
    measured = figure(name, *records)
    assert (measured.value, measured.n, measured.cases) == (3 / 6, 6, 2)
    assert measured.low is not None
    assert measured.low < 0.5


def test_what_the_policy_did_counts_although_nobody_answered() -> None:
    """S2-41: an expected call that waits makes its trial invalid, and is a false alarm all the same."""
    fields: dict[str, Any] = {"right_writes": 1, "false_alarms": 1, "questions": 1, "high_risk_wanted": 1}
    unanswered: dict[str, Any] = {"passed": None, "status": "waiting", "fault_rule": NOBODY_ANSWERED}
    waiting = trial("a", **unanswered, high_risk_intercepted=1, **fields)
    records = [waiting, trial("b", right_writes=1)]
    assert value("false_alarms", *records) == 1 / 2
    assert value("questions_per_task", *records) == 1 / 2
    assert value("high_risk_interception", *records) == 1
    assert figure("task_success", *records).n == figure("pass_hat_k", *records).n == 1
    assert figure("mean_steps", *records).n == figure("cost_usd", trial("b", cost_usd=0.1), waiting).n == 1
    assert figure("cost_usd", trial("b", cost_usd=0.1), waiting).notes == ("one_case",)


@pytest.mark.parametrize("name", METRICS)
def test_an_invalid_trial_changes_no_figure_but_those_of_the_policy(name: str) -> None:
    """Not even its number of cases or its interval, whatever was counted in it and however it ended."""
    fields: dict[str, Any] = dict.fromkeys(TrialCounts.__dataclass_fields__, 3)
    fields |= {"abstained": True, "score": 0.2, "cost_usd": 0.3, "latency_s": 9.0}
    valid = [trial(f"c{index}", passed=index % 3 > 0, **fields) for index in range(12)]
    valid[0] = replace(valid[0], abstains=True)
    expected = figure(name, *valid)
    assert expected.value is not None
    invalid = {"passed": None, "abstains": True, **fields}
    for rule in ("left_sandbox", "judge_undecided", "interrupted", ""):
        for status in ("waiting", "completed", "stopped"):
            assert figure(name, *valid, trial("z", status=status, fault_rule=rule, **invalid)) == expected
            assert figure(name, *valid, trial("c1", number=1, status=status, fault_rule=rule, **invalid)) == expected
    waits = trial("z", status="waiting", fault_rule=NOBODY_ANSWERED, **invalid)
    assert (figure(name, *valid, waits) == expected) is not METRICS[name].is_of_policy


def test_few_cases_bound_no_quantile() -> None:
    """Three latencies do not say how long the slowest of twenty takes, nor what the median is."""
    three = [trial(f"c{index}", latency_s=float(index)) for index in range(1, 4)]
    median, high = figure("latency_p50_s", *three), figure("latency_p95_s", *three)
    assert (median.value, median.low, median.high, median.notes) == (2, None, None, ("few_cases",))
    assert (high.value, high.low, high.high, high.notes) == (3, 2, None, ("unbounded",))
    assert format_interval("latency_p50_s", median) == "too few cases for an interval"
    assert format_interval("latency_p95_s", high, "zh") == "至少 2.0 秒"


def test_effects_and_scores_are_means() -> None:
    records = [trial("a", duplicate_effects=2, lost_effects=1, score=0.5), trial("b", score=1.0), trial("c")]
    assert value("duplicate_effects", *records) == pytest.approx(2 / 3)
    assert value("lost_effects", *records) == pytest.approx(1 / 3)
    assert (figure("mean_score", *records).value, figure("mean_score", *records).n) == (0.75, 2)
    assert figure("duplicate_effects", trial()).high == pytest.approx(3.69, abs=0.03)  # none in one says little


def test_abstention_is_counted_over_what_cannot_be_answered_and_false_abstention_over_the_rest() -> None:
    records = [
        trial("a", abstains=True, abstained=True),
        trial("b", abstains=True),
        trial("c", abstained=True),
        trial("d"),
        trial("e"),
    ]
    assert value("abstention", *records) == 1 / 2
    assert value("false_abstention", *records) == 1 / 3


def test_an_unknown_cost_is_left_out_and_said() -> None:
    """S2-42, S3-57: cost per task and per right answer; None is not zero."""
    records = [trial("a", cost_usd=0.2), trial("b", cost_usd=0.4, passed=False), trial("c")]
    cost, price = figure("cost_usd", *records), figure("cost_per_success", *records)
    assert cost.value == pytest.approx(0.3)
    assert price.value == pytest.approx(0.6)
    assert (cost.n, cost.notes) == (2, ("partly_unknown",))
    assert (price.n, price.cases) == (1, 2)
    assert price.notes == ("partly_unknown", "unbounded")  # the interval of successes per dollar reaches 0
    assert value("cost_per_success", trial("a", cost_usd=0.2, passed=False)) is None
    assert figure("cost_per_success", trial("a", cost_usd=0.0)) == MetricValue(
        value=0, low=0, high=0, n=1, cases=1, notes=("no_variation",)
    )
    assert figure("cost_usd", trial("c")).notes == ("nothing_counted",)


def test_latency_leaves_out_runs_that_wait_for_a_person() -> None:
    """S2-42, S3-56: latency per task, its median and 95th percentile."""
    records = [trial(f"c{index}", latency_s=float(index)) for index in range(1, 101)]
    records.append(trial("w", status="waiting", latency_s=9_999.0))
    median, high = figure("latency_p50_s", *records), figure("latency_p95_s", *records)
    assert (median.value, median.low, median.high, median.n) == (50, 40, 61, 100)
    assert (high.value, high.low, high.high, high.notes) == (95, 90, 100, ())
    assert value("mean_latency_s", *records) == 50.5
    assert figure("latency_p95_s", *records[:9]).notes == ("unbounded",)
    assert value("latency_p50_s", records[-1]) is None


@pytest.mark.parametrize("estimate", [pass_at_k, pass_hat_k])
def test_the_estimates_for_k_trials_are_means_over_all_ways_to_choose_them(estimate: object) -> None:
    decides = any if estimate is pass_at_k else all
    function = pass_at_k if estimate is pass_at_k else pass_hat_k
    for passed in range(6):
        outcomes = [True] * passed + [False] * (5 - passed)
        for k in range(1, 6):
            chosen = [decides(choice) for choice in combinations(outcomes, k)]
            assert function(passed, 5, k) == pytest.approx(sum(chosen) / len(chosen))
    assert function(3, 3, 4) is None  # three trials say nothing about four


def test_two_halves_are_no_success_and_cases_with_too_few_trials_do_not_count() -> None:
    half = [trial("a", number=0), trial("a", number=1, passed=False)]
    other = [trial("b", number=0), trial("b", number=1, passed=False)]
    assert value("pass_hat_k", *half, *other, k=2) == 0
    assert value("pass_at_k", *half, *other, k=2) == 1
    whole = [trial("c", number=0), trial("c", number=1)]
    measured = figure("pass_hat_k", *half, *whole, trial("d"), k=2)
    assert (measured.value, measured.n) == (0.5, 2)
    assert figure("pass_hat_k", trial("d"), k=2).notes == ("nothing_counted",)
