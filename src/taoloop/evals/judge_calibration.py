"""How far a judge can be believed: its verdicts against the marks of people, and its rates corrected by that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from taoloop.core.human_input import MarkVerdict
from taoloop.core.views.marks import RunMarks
from taoloop.evals.results import MetricValue
from taoloop.evals.statistics.intervals import Counted, ratio, share_interval, wilson
from taoloop.evals.statistics.judge_correction import JudgeCounts, corrected_rate
from taoloop.evals.trial_records import CheckOutcome, TrialRecord
from taoloop.journals.base import Journal
from taoloop.journals.queries import queries_of

_TAIL = 60  # events at the end of a run, among which its marks are


async def marked_runs(journal: Journal, run_ids: Iterable[str]) -> dict[str, MarkVerdict]:
    """What people say of runs, by run; without those that nobody marked, or about which people disagree.

    Raises:
        RunNotFound: the journal does not have one of them.
        JournalError: it cannot be read, or has no queries.
    """
    verdicts: dict[str, MarkVerdict] = {}
    for run_id in run_ids:
        marks = RunMarks()
        for event in await queries_of(journal).read(run_id, limit=_TAIL, last=True):
            marks.fold(event)
        if marks.verdict is not None and marks.verdict != "disputed":
            verdicts[run_id] = marks.verdict
    return verdicts


def judge_reports(records: Sequence[TrialRecord], marks: Mapping[str, MarkVerdict]) -> dict[str, dict[str, Any]]:
    """For each judge of these trials what `Results.judges` has, as JSON data; `marks` are by run.

    `calibrated` says whether there are marks of both kinds. `sensitivity` and `specificity` come from the marked trials
    that no other check fails: there the mark and the judge speak of the same thing. `rates` has, by configuration,
    `measured`, the share that the judge calls right (`n` is the number of cases), and `corrected`, the rate behind it
    (Rogan and Gladen 1978; null where it cannot be said). Undecided verdicts count nowhere but in `undecided`.
    """
    judged = _outcomes_by_judge(records)
    return {name: _report(outcomes, marks) for name, outcomes in judged.items()}


_Judged = list[tuple[TrialRecord, CheckOutcome]]


def _outcomes_by_judge(records: Sequence[TrialRecord]) -> dict[str, _Judged]:
    judged: dict[str, _Judged] = defaultdict(list)
    for record in records:
        for outcome in record.checks:
            if outcome.judge:
                judged[outcome.judge].append((record, outcome))
    return judged


def _report(outcomes: _Judged, marks: Mapping[str, MarkVerdict]) -> dict[str, Any]:
    counts = judge_counts(outcomes, marks)
    decided = [(record, outcome) for record, outcome in outcomes if outcome.passed is not None]
    names = dict.fromkeys(record.configuration for record, _ in decided)
    return {
        "calibrated": counts.right > 0 and counts.wrong > 0,
        "sensitivity": asdict(_proportion(counts.right_as_right, counts.right)),
        "specificity": asdict(_proportion(counts.wrong_as_wrong, counts.wrong)),
        "rates": {name: _rates([pair for pair in decided if pair[0].configuration == name], counts) for name in names},
        "undecided": len(outcomes) - len(decided),
    }


def judge_counts(outcomes: Iterable[tuple[TrialRecord, CheckOutcome]], marks: Mapping[str, MarkVerdict]) -> JudgeCounts:
    """How often a judge's verdicts agree with the marks of the runs, where no other check of the trial fails."""
    pairs = [
        (marks[record.run_id] == "right", outcome.passed)
        for record, outcome in outcomes
        if record.run_id in marks
        and outcome.passed is not None
        and not any(other.passed is False for other in record.checks if other is not outcome)
    ]
    return JudgeCounts(
        right_as_right=pairs.count((True, True)),
        right_as_wrong=pairs.count((True, False)),
        wrong_as_wrong=pairs.count((False, False)),
        wrong_as_right=pairs.count((False, True)),
    )


def _rates(decided: _Judged, counts: JudgeCounts) -> dict[str, Any]:
    by_case: dict[str, list[bool]] = defaultdict(list)
    for record, outcome in decided:
        by_case[record.case_id].append(outcome.passed is True)
    cases = [Counted(sum(verdicts), len(verdicts)) for verdicts in by_case.values()]
    rate, n, interval = ratio(cases), len(cases), share_interval(cases)
    corrected = corrected_rate(rate, n, counts)
    return {
        "measured": asdict(MetricValue(value=rate, low=interval.low, high=interval.high, n=n)),
        "corrected": None
        if corrected is None
        else asdict(MetricValue(value=corrected.value, low=corrected.low, high=corrected.high, n=n)),
    }


def _proportion(successes: int, n: int) -> MetricValue:
    if not n:
        return MetricValue(value=None)
    interval = wilson(successes / n, n)
    return MetricValue(value=successes / n, low=interval.low, high=interval.high, n=n)
