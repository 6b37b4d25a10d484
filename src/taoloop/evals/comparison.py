"""Comparisons of configurations in pairs, on the same cases, corrected over everything that is compared.

The difference of a metric is the mean over the cases that both have of the difference of their figures in each case:
each case counts once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from taoloop.evals.metrics import METRICS, Metric, count_cases, group_cases
from taoloop.evals.results import IntervalNote, MetricComparison, MetricValue, PairedComparison, Verdict
from taoloop.evals.statistics.intervals import Counted, mean_interval, share_difference_interval
from taoloop.evals.statistics.paired_tests import cases_needed, holm, mcnemar, sign_flip
from taoloop.evals.trial_records import TrialRecord

ALPHA = 0.05
"""The level of a verdict: if nothing differs, at most 5 % of all results have any verdict."""

_DETERMINISTIC_MODELS = ("offline", "oracle", "script", "scripted", "replay")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """A configuration that is compared."""

    name: str
    """What it is called in the comparison."""
    cases: Mapping[str, Sequence[TrialRecord]]
    """Its trials by case (`group_cases`)."""
    flaky: tuple[str, ...] = ()
    """Its cases in quarantine."""


def compared_side(name: str, records: Iterable[TrialRecord], flaky: tuple[str, ...] = ()) -> ComparedSide:
    """A configuration with all of its trials, as it is compared."""
    return ComparedSide(name=name, cases=group_cases(records), flaky=flaky)


def compare_sides(pairs: Sequence[tuple[ComparedSide, ComparedSide]], k: int = 1) -> tuple[PairedComparison, ...]:
    """Compare the second of each pair with the first.

    The p values of all pairs and metrics are corrected together, so that the more is compared the more a verdict takes.

    Args:
        pairs: What is compared; the first is the baseline.
        k: The k of pass^k; at 1 it says the same as the task success and is left out.
    """
    metrics = [metric for metric in METRICS.values() if metric.is_compared and (k > 1 or metric.kind != "at_k")]
    compared = [_select_cases(first, second) for first, second in pairs]
    tested = [_test(metric, *pair, k) for _, pair in compared for metric in metrics]
    corrected = holm([test.p for test, _ in tested])
    count = sum(p is not None for p in corrected)
    judged = iter(
        _judge(test, differences, p_corrected, ALPHA / max(1, count))
        for (test, differences), p_corrected in zip(tested, corrected, strict=True)
    )
    return tuple(replace(comparison, metrics=tuple(next(judged) for _ in metrics)) for comparison, _ in compared)


def find_flaky_cases(records: Iterable[TrialRecord], settings: Mapping[str, object]) -> tuple[str, ...]:
    """The cases whose trials disagree although nothing of the configuration is random.

    Nothing is where the model is `offline`, `oracle`, a script or a replay. Trials of any other model may disagree
    without being flaky: pass^k says how often they do.
    """
    model = str(settings.get("model") or "").partition(":")[0]
    if model not in _DETERMINISTIC_MODELS:
        return ()
    cases = group_cases(records)
    return tuple(case_id for case_id, trials in cases.items() if len({trial.passed for trial in trials} - {None}) > 1)


_Pair = tuple[Mapping[str, Sequence[TrialRecord]], Mapping[str, Sequence[TrialRecord]]]


def _select_cases(first: ComparedSide, second: ComparedSide) -> tuple[PairedComparison, _Pair]:
    """The comparison without its metrics, and the cases that are compared."""
    common = [case_id for case_id in first.cases if case_id in second.cases]
    changed = [case_id for case_id in common if _is_changed(first.cases[case_id][0], second.cases[case_id][0])]
    flaky = [case_id for case_id in common if case_id in first.flaky or case_id in second.flaky]
    left_out = {*changed, *flaky}
    case_ids = [case_id for case_id in common if case_id not in left_out]
    comparison = PairedComparison(
        first=first.name,
        second=second.name,
        metrics=(),
        only_first=tuple(case_id for case_id in first.cases if case_id not in second.cases),
        only_second=tuple(case_id for case_id in second.cases if case_id not in first.cases),
        changed=tuple(changed),
        quarantined=tuple(flaky),
    )
    sides = ({case_id: side.cases[case_id] for case_id in case_ids} for side in (first, second))
    return comparison, (next(sides), next(sides))


def _is_changed(first: TrialRecord, second: TrialRecord) -> bool:
    return bool(first.case_digest and second.case_digest) and first.case_digest != second.case_digest


def _test(
    metric: Metric,
    first: Mapping[str, Sequence[TrialRecord]],
    second: Mapping[str, Sequence[TrialRecord]],
    k: int,
) -> tuple[MetricComparison, list[float]]:
    """A comparison without its verdict, and the differences of the cases."""
    counts = count_cases(metric, first, k), count_cases(metric, second, k)
    pairs = [(counts[0][case_id], counts[1][case_id]) for case_id in counts[0] if case_id in counts[1]]
    differences = [_figure(of_second) - _figure(of_first) for of_first, of_second in pairs]
    is_binary = metric.unit == "share" and all(value in (-1, 0, 1) for value in differences)
    is_binary = is_binary and all(case.n == 1 and case.total in (0, 1) for pair in pairs for case in pair)
    if is_binary:
        p = mcnemar(sum(value < 0 for value in differences), sum(value > 0 for value in differences))
    else:
        p = sign_flip(differences)
    return (
        MetricComparison(
            metric=metric.name,
            difference=_difference(metric, differences),
            p=p,
            p_corrected=None,
            verdict="inconclusive",
            test="mcnemar" if is_binary else "sign_flip",
        ),
        differences,
    )


def _figure(case: Counted) -> float:
    return case.total / case.n


def _difference(metric: Metric, differences: Sequence[float]) -> MetricValue:
    count = len(differences)
    if not count:
        return MetricValue(value=None, notes=("nothing_counted",))
    value, notes = math.fsum(differences) / count, list[IntervalNote]()
    if metric.unit == "share":
        interval = share_difference_interval(differences)
    elif (amounts := mean_interval([Counted(difference, 1) for difference in differences])) is not None:
        interval = amounts
        notes += ["no_variation"] if math.isclose(interval.low, interval.high, abs_tol=1e-12) else []
    else:
        return MetricValue(value=value, n=count, cases=count, notes=("one_case",))
    return MetricValue(value=value, low=interval.low, high=interval.high, n=count, cases=count, notes=tuple(notes))


def _judge(
    test: MetricComparison, differences: Sequence[float], p_corrected: float | None, level: float
) -> MetricComparison:
    """The comparison with its verdict; if that is inconclusive, with the number of cases that would decide."""
    difference = test.difference.value
    if p_corrected is None or p_corrected > ALPHA or not difference:
        return replace(test, p_corrected=p_corrected, cases_needed=cases_needed(differences, level))
    is_better = (difference > 0) == (METRICS[test.metric].better == "higher")
    verdict: Verdict = "better" if is_better else "worse"
    return replace(test, p_corrected=p_corrected, verdict=verdict)
