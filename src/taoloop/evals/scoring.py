"""Results made of records of trials: metrics with intervals, faults, flaky cases and comparisons. Nothing is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from taoloop.evals.cases import CATEGORIES
from taoloop.evals.comparison import ComparedSide, compare_sides, compared_side, find_flaky_cases
from taoloop.evals.metrics import METRICS, group_cases, measure
from taoloop.evals.results import ConfigurationResults, PairedComparison, Results
from taoloop.evals.trial_records import TrialRecord

BASELINE = "baseline"
"""What stands before the name of a configuration of earlier results in comparisons."""


def score(
    records: Iterable[TrialRecord],
    configurations: Mapping[str, Mapping[str, Any]],
    *,
    suite: str,
    digest: str,
    created_at: float,
    version: str,
    baseline: Results | None = None,
    judges: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    database: str = "",
) -> Results:
    """The results of a suite.

    Args:
        records: The trials, in any order.
        configurations: The settings of each configuration by its name, in the order in which they are shown; the first
            one is what the others are compared with.
        suite: The name of the suite.
        digest: The digest of its cases.
        created_at: When, in seconds since the epoch.
        version: The version of taoloop.
        baseline: Earlier results; each configuration is compared with the one of the same name there, or with the only
            one that there is.
        judges: As in `Results`.
        notes: As in `Results`.
        database: As in `Results`.
    """
    trials = sorted(records, key=lambda trial: trial.trial)  # stable: the order of the cases stays
    by_configuration: dict[str, list[TrialRecord]] = {name: [] for name in configurations}
    for trial in trials:
        by_configuration[trial.configuration].append(trial)
    k = largest_k(trials)
    results = tuple(score_configuration(name, configurations[name], own, k) for name, own in by_configuration.items())
    return Results(
        suite=suite,
        digest=digest,
        created_at=created_at,
        version=version,
        configurations=results,
        comparisons=compare_results(results, trials, baseline),
        trials=tuple(trial for own in by_configuration.values() for trial in own),
        judges=judges or {},
        notes=tuple(notes),
        database=database,
    )


def largest_k(trials: Iterable[TrialRecord]) -> int:
    """The number of trials that was asked for: the largest number of any case in one configuration, invalid ones too.

    A case with fewer valid trials than this does not count in pass@k and pass^k; their `n` shows how many do.
    """
    counts = Counter((trial.configuration, trial.case_id) for trial in trials)
    return max(counts.values(), default=1)


def score_configuration(
    name: str, settings: Mapping[str, Any], trials: Sequence[TrialRecord], k: int
) -> ConfigurationResults:
    """What came of one configuration.

    Args:
        name: Its name.
        settings: Its settings; `model` says whether cases can be flaky (`find_flaky_cases`).
        trials: All of its trials, invalid ones included.
        k: The k of pass@k and pass^k.
    """
    cases = group_cases(trials)
    of_category = {
        category: {case_id: own for case_id, own in cases.items() if own[0].category == category}
        for category in CATEGORIES
    }
    return ConfigurationResults(
        name=name,
        settings=settings,
        metrics={metric.name: measure(metric, cases, k) for metric in METRICS.values()},
        k=k,
        by_category={category: measure(METRICS["task_success"], own) for category, own in of_category.items() if own},
        faults=dict(Counter(trial.fault for trial in trials if trial.passed is not True and trial.fault is not None)),
        invalid=sum(trial.passed is None for trial in trials),
        flaky=find_flaky_cases(trials, settings),
    )


def compare_results(
    configurations: Sequence[ConfigurationResults], trials: Iterable[TrialRecord], baseline: Results | None = None
) -> tuple[PairedComparison, ...]:
    """Each further configuration compared with the first and, with a baseline, each with its counterpart there.

    All of it is corrected together: the verdicts of these results are read together, too. So frames without a language
    model (`ConfigurationResults.is_frame`) are not compared where others are: each comparison makes verdicts rarer.
    """
    current = _sides(configurations, trials)
    models = [current[each.name] for each in configurations if not each.is_frame]
    sides = models if len(models) > 1 else [*current.values()]
    pairs = [(sides[0], other) for other in sides[1:]]
    if baseline is not None:
        earlier = _sides(baseline.configurations, baseline.trials, prefix=f"{BASELINE}: ")
        only = next(iter(earlier.values())) if len(earlier) == 1 == len(current) else None
        counterparts = ((earlier.get(side.name, only), side) for side in models or current.values())
        pairs += [(counterpart, side) for counterpart, side in counterparts if counterpart is not None]
    return compare_sides(pairs, max((each.k for each in configurations), default=1))


def _sides(
    configurations: Sequence[ConfigurationResults], trials: Iterable[TrialRecord], prefix: str = ""
) -> dict[str, ComparedSide]:
    by_name: dict[str, list[TrialRecord]] = {each.name: [] for each in configurations}
    for trial in trials:
        by_name[trial.configuration].append(trial)
    return {each.name: compared_side(f"{prefix}{each.name}", by_name[each.name], each.flaky) for each in configurations}
