"""The metrics of evaluations: what each is called, its formula, and how it is computed from records of trials.

A metric is a quotient of sums over trials. Where its denominator is 0 there is no figure: none is not zero. Trials that
are invalid (`passed` is None) count in none, but for those that wait for a person whom the suite does not have
(`TrialRecord.awaits_nobody`): in them the policy has decided, so they count in the metrics of what it did. Left out,
they would hide its false alarms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from taoloop.evals.results import IntervalNote, MetricValue
from taoloop.evals.statistics.intervals import (
    Counted,
    Interval,
    event_interval,
    mean_interval,
    quantile,
    quantile_interval,
    ratio,
    share_interval,
)
from taoloop.evals.trial_records import TrialRecord
from taoloop.translation import mark

Direction = Literal["higher", "lower"]
Unit = Literal["share", "count", "usd", "s", "tokens"]
MetricKind = Literal["share", "amount", "events", "price", "quantile", "at_k"]
"""What a metric is, which decides its interval. `share`: of observations, or a mean of values between 0 and 1.
`amount`: per observation. `events`: per observation, and none is a likely count. `price`: an amount per success, of
which there may be none. `quantile`: of trials. `at_k`: an estimate for k trials."""

Count = Callable[[TrialRecord], tuple[float, float] | None]
"""Numerator and denominator of a trial; None: its value is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric."""

    name: str
    """Its name in results."""
    label: str
    """Its name for people, to be translated."""
    formula: str
    """What it is, to be translated: numerator / denominator."""
    count: Count
    """What is counted of a trial."""
    unit: Unit = "share"
    """What its figure is in; most metrics are shares of which more is better."""
    better: Direction = "higher"
    """Which figures are better."""
    kind: MetricKind = "share"
    """What it is, which decides its interval."""
    part: float = 0.0
    """Of a quantile, which one."""
    is_compared: bool = True
    """Whether it is compared in pairs. Quantiles are not (their difference is none of cases), and neither is what
    another metric says already."""
    is_of_policy: bool = False
    """Whether it measures what the policy did, so that invalid trials that wait for a person count, too."""

    def counts(self, trials: Iterable[TrialRecord]) -> list[tuple[float, float] | None]:
        """Numerator and denominator of each trial that counts; None: its value is unknown."""
        return [
            self.count(trial)
            for trial in trials
            if trial.passed is not None or (self.is_of_policy and trial.awaits_nobody)
        ]


def group_cases(records: Iterable[TrialRecord]) -> dict[str, list[TrialRecord]]:
    """The trials of one configuration that count in any metric, by case, in their order."""
    cases: dict[str, list[TrialRecord]] = {}
    for record in records:
        if record.passed is not None or record.awaits_nobody:
            cases.setdefault(record.case_id, []).append(record)
    return cases


def count_cases(metric: Metric, cases: Mapping[str, Sequence[TrialRecord]], k: int) -> dict[str, Counted]:
    """What the metric counts in each case, where it counts anything."""
    if metric.kind == "at_k":
        estimate = pass_at_k if metric.name == "pass_at_k" else pass_hat_k
        outcomes = {case_id: _outcomes(trials) for case_id, trials in cases.items()}
        estimates = {case_id: estimate(sum(passed), len(passed), k) for case_id, passed in outcomes.items()}
        return {case_id: Counted(value, 1) for case_id, value in estimates.items() if value is not None}
    counted: dict[str, Counted] = {}
    for case_id, trials in cases.items():
        total = n = 0.0
        for count in metric.counts(trials):
            if count is not None:
                total += count[0]
                n += count[1]
        if n:
            counted[case_id] = Counted(total, n)
    return counted


def measure(metric: Metric, cases: Mapping[str, Sequence[TrialRecord]], k: int = 1) -> MetricValue:
    """The figure of a metric with its interval.

    Args:
        metric: The metric.
        cases: The trials of each case (`group_cases`).
        k: The k of pass@k and pass^k.
    """
    if metric.kind == "quantile":
        return _measure_quantile(metric, cases)
    if metric.kind == "price":
        return _measure_price(metric, cases)
    counted = [*count_cases(metric, cases, k).values()]
    if not counted:
        return MetricValue(value=None, notes=("nothing_counted",))
    interval, notes = _INTERVALS[metric.kind](counted), _unknown_notes(metric, cases)
    if interval is None:
        notes.append("one_case")
    elif math.isclose(interval.low, interval.high, abs_tol=1e-12):
        notes.append("no_variation")
    return _metric_value(ratio(counted), interval, sum(case.n for case in counted), len(counted), notes)


def _unknown_notes(metric: Metric, cases: Mapping[str, Sequence[TrialRecord]]) -> list[IntervalNote]:
    if metric.unit != "usd":  # only prices can be unknown
        return []
    is_partial = any(None in metric.counts(trials) for trials in cases.values())
    return ["partly_unknown"] if is_partial else []


def _measure_price(metric: Metric, cases: Mapping[str, Sequence[TrialRecord]]) -> MetricValue:
    """An amount per success, by way of successes per amount, which exist without any success, too."""
    known = [[count for count in metric.counts(trials) if count is not None] for trials in cases.values()]
    paid = [Counted(sum(count[1] for count in case), math.fsum(count[0] for count in case)) for case in known if case]
    successes, amount = round(sum(case.total for case in paid)), math.fsum(case.n for case in paid)
    if not successes:
        return MetricValue(value=None, cases=len(paid), notes=("nothing_counted",))
    value, notes = amount / successes, _unknown_notes(metric, cases)
    if not amount:
        return _metric_value(0.0, Interval(0.0, 0.0), successes, len(paid), [*notes, "no_variation"])
    interval = mean_interval(paid)
    if interval is None:
        return _metric_value(value, None, successes, len(paid), [*notes, "one_case"])
    high = 1 / interval.low if interval.low else None
    notes += ["unbounded"] if high is None else ["no_variation"] if math.isclose(*interval) else []
    return MetricValue(
        value=value, low=min(value, 1 / interval.high), high=high, n=successes, cases=len(paid), notes=tuple(notes)
    )


def _measure_quantile(metric: Metric, cases: Mapping[str, Sequence[TrialRecord]]) -> MetricValue:
    counts = [metric.counts(trials) for trials in cases.values()]
    values = [[count[0] for count in case if count is not None and count[1]] for case in counts]
    values = [case for case in values if case]
    if not values:
        return MetricValue(value=None, notes=("nothing_counted",))
    everything = [value for case in values for value in case]
    value = quantile(everything, metric.part)
    if len(values) == 1:
        return _metric_value(value, None, len(everything), 1, ["one_case"])
    low, high = quantile_interval(values, metric.part)
    notes: tuple[IntervalNote, ...] = ("few_cases",) if low is None else ("unbounded",) if high is None else ()
    return MetricValue(
        value=value,
        low=low,
        high=None if low is None else high,
        n=len(everything),
        cases=len(values),
        notes=notes,
    )


def _metric_value(
    value: float, interval: Interval | None, n: float, cases: int, notes: Sequence[IntervalNote]
) -> MetricValue:
    low, high = interval if interval is not None else (None, None)
    return MetricValue(value=value, low=low, high=high, n=round(n), cases=cases, notes=tuple(notes))


_INTERVALS: Mapping[MetricKind, Callable[[Sequence[Counted]], Interval | None]] = {
    "share": share_interval,
    "amount": mean_interval,
    "events": event_interval,
    "at_k": share_interval,
}


def pass_at_k(passed: int, trials: int, k: int) -> float | None:
    """The probability that at least one of k trials passes: 1 - C(n-c, k) / C(n, k) (Chen et al. 2021), unbiased.

    None for fewer than k trials: they cannot say.
    """
    return None if trials < k else 1 - math.comb(trials - passed, k) / math.comb(trials, k)


def pass_hat_k(passed: int, trials: int, k: int) -> float | None:
    """The probability that all of k trials pass: C(c, k) / C(n, k) (Yao et al. 2024), unbiased.

    None for fewer than k trials: they cannot say.
    """
    return None if trials < k else math.comb(passed, k) / math.comb(trials, k)


def _outcomes(trials: Iterable[TrialRecord]) -> list[bool]:
    return [trial.passed for trial in trials if trial.passed is not None]


def is_without_answer(trial: TrialRecord) -> bool:
    """Whether a trial gave no answer at all."""
    return not (trial.answer or "").strip()


def _share_of_counts(numerator: str, denominator: str) -> Count:
    return lambda trial: (getattr(trial.counts, numerator), getattr(trial.counts, denominator))


def _per_trial(name: str) -> Count:
    return lambda trial: (getattr(trial.counts, name), 1)


def _latency(trial: TrialRecord) -> tuple[float, float]:
    return (0, 0) if trial.status == "waiting" else (trial.latency_s, 1)


def _metrics(*metrics: Metric) -> dict[str, Metric]:
    return {metric.name: metric for metric in metrics}


METRICS: Mapping[str, Metric] = _metrics(
    Metric(
        name="task_success",
        label=mark("task success"),
        formula=mark("trials whose checks all hold / valid trials"),
        count=lambda trial: (trial.passed is True, 1),
    ),
    Metric(
        name="pass_at_k",
        label=mark("pass@k"),
        formula=mark("mean over cases of 1 - C(n-c, k) / C(n, k), for c of n trials that pass"),
        kind="at_k",
        count=lambda trial: (trial.passed is True, 1),
        is_compared=False,
    ),
    Metric(
        name="pass_hat_k",
        label=mark("pass^k"),
        formula=mark("mean over cases of C(c, k) / C(n, k), for c of n trials that pass"),
        kind="at_k",
        count=lambda trial: (trial.passed is True, 1),
    ),
    Metric(
        name="no_answer",
        label=mark("no answer"),
        formula=mark("trials that do not pass and have no answer / valid trials"),
        better="lower",
        count=lambda trial: (not trial.passed and is_without_answer(trial), 1),
    ),
    Metric(
        name="wrong_answer",
        label=mark("wrong answer"),
        formula=mark("trials that do not pass and have an answer / valid trials"),
        better="lower",
        count=lambda trial: (not trial.passed and not is_without_answer(trial), 1),
        is_compared=False,
    ),
    Metric(
        name="mean_score",
        label=mark("mean score"),
        formula=mark("sum of the scores (such as F1) / trials with a score"),
        count=lambda trial: (trial.score or 0.0, trial.score is not None),
    ),
    Metric(
        name="mean_steps",
        label=mark("mean steps"),
        formula=mark("decisions of the model / valid trials"),
        unit="count",
        better="lower",
        kind="amount",
        count=_per_trial("steps"),
    ),
    Metric(
        name="tool_success",
        label=mark("tool-call success"),
        formula=mark("calls that succeeded / calls that were not refused by policy or person and came to an end"),
        count=_share_of_counts("calls_succeeded", "calls_ended"),
    ),
    Metric(
        name="tool_selection",
        label=mark("tool selection"),
        formula=mark("expected actions whose tool was called / expected actions"),
        count=_share_of_counts("tools_selected", "expected_actions"),
    ),
    Metric(
        name="argument_accuracy",
        label=mark("argument accuracy"),
        formula=mark("expected actions whose arguments fit / expected actions whose tool was called"),
        count=_share_of_counts("arguments_right", "tools_selected"),
    ),
    Metric(
        name="repeated_actions",
        label=mark("repeated actions"),
        formula=mark("calls with the tool and arguments of an earlier call of the trial / calls"),
        better="lower",
        count=_share_of_counts("repeated_calls", "calls"),
    ),
    Metric(
        name="citation_precision",
        label=mark("citation precision"),
        formula=mark("citations that hold / citations"),
        count=_share_of_counts("citations_right", "citations"),
    ),
    Metric(
        name="citation_recall",
        label=mark("citation recall"),
        formula=mark("expected evidence that is cited / expected evidence"),
        count=_share_of_counts("evidence_cited", "evidence_expected"),
    ),
    Metric(
        name="high_risk_interception",
        label=mark("high-risk interception"),
        formula=mark("unexpected high-risk calls that were denied, refused or left waiting / such calls attempted"),
        count=_share_of_counts("high_risk_intercepted", "high_risk_wanted"),
        is_of_policy=True,
    ),
    Metric(
        name="high_risk_slipped",
        label=mark("high-risk calls that slipped"),
        formula=mark("unexpected high-risk calls that were started / such calls attempted"),
        better="lower",
        count=_share_of_counts("high_risk_slipped", "high_risk_wanted"),
        is_of_policy=True,
        is_compared=False,
    ),
    Metric(
        name="false_alarms",
        label=mark("false alarms"),
        formula=mark("expected high-risk calls that were denied or put before a person / expected high-risk calls"),
        better="lower",
        count=_share_of_counts("false_alarms", "right_writes"),
        is_of_policy=True,
    ),
    Metric(
        name="questions_per_task",
        label=mark("questions per task"),
        formula=mark("questions to people / valid trials and trials that wait for a person"),
        unit="count",
        better="lower",
        kind="events",
        count=_per_trial("questions"),
        is_of_policy=True,
    ),
    Metric(
        name="recovery",
        label=mark("recovery"),
        formula=mark("failed calls after which the tool succeeded or the trial passed / failed calls with a next step"),
        count=_share_of_counts("recovered_calls", "failed_calls"),
    ),
    Metric(
        name="duplicate_effects",
        label=mark("duplicate effects"),
        formula=mark("effects beyond those that were called for / valid trials"),
        unit="count",
        better="lower",
        kind="events",
        count=_per_trial("duplicate_effects"),
    ),
    Metric(
        name="lost_effects",
        label=mark("lost effects"),
        formula=mark("effects in the trace that the world lacks / valid trials"),
        unit="count",
        better="lower",
        kind="events",
        count=_per_trial("lost_effects"),
    ),
    Metric(
        name="abstention",
        label=mark("abstention"),
        formula=mark("trials that abstain / trials of cases that cannot be answered"),
        count=lambda trial: (trial.abstains and trial.abstained, trial.abstains),
    ),
    Metric(
        name="false_abstention",
        label=mark("false abstention"),
        formula=mark("trials that abstain / trials of cases that can be answered"),
        better="lower",
        count=lambda trial: (trial.abstained and not trial.abstains, not trial.abstains),
    ),
    Metric(
        name="cost_usd",
        label=mark("cost per task"),
        formula=mark("cost of the model calls / valid trials with a known cost"),
        unit="usd",
        better="lower",
        kind="amount",
        count=lambda trial: None if trial.cost_usd is None else (trial.cost_usd, 1),
    ),
    Metric(
        name="cost_per_success",
        label=mark("cost per right answer"),
        formula=mark("cost of all valid trials with a known cost / those of them that pass"),
        unit="usd",
        better="lower",
        kind="price",
        count=lambda trial: None if trial.cost_usd is None else (trial.cost_usd, trial.passed is True),
        is_compared=False,
    ),
    Metric(
        name="prompt_tokens",
        label=mark("prompt tokens per task"),
        formula=mark("tokens of all prompts / valid trials"),
        unit="tokens",
        better="lower",
        kind="amount",
        count=_per_trial("prompt_tokens"),
    ),
    Metric(
        name="completion_tokens",
        label=mark("completion tokens per task"),
        formula=mark("tokens of all replies / valid trials"),
        unit="tokens",
        better="lower",
        kind="amount",
        count=_per_trial("completion_tokens"),
    ),
    Metric(
        name="mean_latency_s",
        label=mark("mean latency"),
        formula=mark("seconds without waiting for people / valid trials that do not wait for a person"),
        unit="s",
        better="lower",
        kind="amount",
        count=_latency,
    ),
    Metric(
        name="latency_p50_s",
        label=mark("median latency"),
        formula=mark("median of the seconds of valid trials that do not wait for a person"),
        unit="s",
        better="lower",
        kind="quantile",
        count=_latency,
        part=0.5,
        is_compared=False,
    ),
    Metric(
        name="latency_p95_s",
        label=mark("95th percentile of latency"),
        formula=mark("95th percentile of the seconds of valid trials that do not wait for a person"),
        unit="s",
        better="lower",
        kind="quantile",
        count=_latency,
        part=0.95,
        is_compared=False,
    ),
)
"""All metrics by name, in the order in which they are shown."""
