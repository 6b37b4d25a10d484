"""How far a judge can be believed: its verdicts against the marks of people, and its rates corrected by that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from taoloop.core.human_input import MarkVerdict
from taoloop.core.views.marks import RunMarks
from taoloop.evals.results import MetricValue
from taoloop.evals.statistics.intervals import Counted, ratio, share_interval
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
    marked = [*_marked_verdicts(outcomes, marks)]
    counts = judge_counts(marked)
    decided = [(record, outcome) for record, outcome in outcomes if outcome.passed is not None]
    names = dict.fromkeys(record.configuration for record, _ in decided)
    return {
        "calibrated": counts.right > 0 and counts.wrong > 0,
        "sensitivity": asdict(_agreement(marked, is_right=True)),
        "specificity": asdict(_agreement(marked, is_right=False)),
        "rates": {name: _rates([pair for pair in decided if pair[0].configuration == name], counts) for name in names},
        "undecided": len(outcomes) - len(decided),
    }


class MarkedVerdict(NamedTuple):
    """A verdict of a judge on a trial that people have marked."""

    case_id: str
    """The case of the trial."""
    is_right: bool
    """What people say."""
    verdict: bool
    """What the judge says."""


def _marked_verdicts(outcomes: _Judged, marks: Mapping[str, MarkVerdict]) -> Iterator[MarkedVerdict]:
    """The verdicts on marked trials that no other check fails."""
    for record, outcome in outcomes:
        other_checks = (check for check in record.checks if check is not outcome)
        fails_elsewhere = any(check.passed is False for check in other_checks)
        if record.run_id in marks and outcome.passed is not None and not fails_elsewhere:
            yield MarkedVerdict(record.case_id, marks[record.run_id] == "right", outcome.passed)


def judge_counts(marked: Iterable[MarkedVerdict]) -> JudgeCounts:
    """How often a judge's verdicts agree with the marks of the runs."""
    pairs = [(each.is_right, each.verdict) for each in marked]
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


def _agreement(marked: Iterable[MarkedVerdict], *, is_right: bool) -> MetricValue:
    """Of what people marked so, the part that the judge calls the same; the case is the cluster, as in all metrics."""
    by_case: dict[str, list[bool]] = defaultdict(list)
    for each in marked:
        if each.is_right is is_right:
            by_case[each.case_id].append(each.verdict is is_right)
    cases = [Counted(sum(agreed), len(agreed)) for agreed in by_case.values()]
    if not cases:
        return MetricValue(value=None)
    interval, n = share_interval(cases), sum(map(len, by_case.values()))
    return MetricValue(value=ratio(cases), low=interval.low, high=interval.high, n=n, cases=len(cases))
