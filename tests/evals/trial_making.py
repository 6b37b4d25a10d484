"""Records of trials for tests of metrics and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taoloop.evals.results import Results
from taoloop.evals.scoring import score
from taoloop.evals.trial_records import TrialCounts, TrialRecord


def trial(case_id: str = "a", *, passed: bool | None = True, number: int = 0, **fields: Any) -> TrialRecord:
    """A record; counts are given by their names."""
    counts = {name: fields.pop(name) for name in list(fields) if name in TrialCounts.__dataclass_fields__}
    defaults = {"category": "normal", "configuration": "main", "run_id": "r", "status": "completed", "answer": "42"}
    return TrialRecord(case_id=case_id, trial=number, passed=passed, counts=TrialCounts(**counts), **defaults | fields)


def trials(configuration: str, outcomes: Sequence[bool | Sequence[bool | None]], **fields: Any) -> list[TrialRecord]:
    """The trials of cases `c0`, `c1` … of a configuration: whether each passed."""
    return [
        trial(f"c{index}", passed=passed, number=number, configuration=configuration, **fields)
        for index, outcome in enumerate(outcomes)
        for number, passed in enumerate([outcome] if isinstance(outcome, bool) else outcome)
    ]


def scored(*configurations: Sequence[TrialRecord], baseline: Results | None = None, model: str = "x:y") -> Results:
    """The results of the trials of one or more configurations."""
    records = [record for own in configurations for record in own]
    names = dict.fromkeys(record.configuration for record in records)
    settings = {name: {"model": model} for name in names}
    return score(records, settings, suite="s", digest="d", created_at=0.0, version="1", baseline=baseline)
