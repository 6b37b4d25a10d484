"""What the trials add up to for a reader: outcomes by configuration, and cases by how often they were right."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from taoloop.evals.checks.outcome_texts import outcome_detail
from taoloop.evals.results import Results, translate
from taoloop.evals.trial_records import FAULTS, TrialRecord

OUTCOMES: Final = ("right", *FAULTS, "unassigned", "invalid")
"""What becomes of a trial: it is right, or somebody's fault (or nobody's yet), or it counts in no rate."""


def outcome_of(trial: TrialRecord) -> str:
    """What became of a trial: one of `OUTCOMES`."""
    if trial.passed is None:
        return "invalid"
    return "right" if trial.passed else trial.fault or "unassigned"


def outcomes_by_configuration(results: Results) -> dict[str, Counter[str]]:
    """The number of trials of each configuration by outcome, in the order of the configurations."""
    counts: dict[str, Counter[str]] = {configuration.name: Counter() for configuration in results.configurations}
    for trial in results.trials:
        if trial.configuration in counts:
            counts[trial.configuration][outcome_of(trial)] += 1
    return counts


@dataclass(slots=True)
class CaseTally:
    """How often the trials of a case were right."""

    case_id: str
    """The case."""
    category: str
    """Its category."""
    right: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """The number of trials that passed, by configuration."""
    counted: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """The number of trials that count, by configuration."""

    def share(self, configuration: str) -> float | None:
        """The share of a configuration's trials that passed; None if none counts."""
        counted = self.counted.get(configuration, 0)
        return self.right.get(configuration, 0) / counted if counted else None

    @property
    def mean_share(self) -> float:
        """The mean share over the configurations that count; 1 if none does, for then nothing went wrong."""
        shares = [share for name in self.counted if (share := self.share(name)) is not None]
        return sum(shares) / len(shares) if shares else 1.0


def tally_cases(trials: Iterable[TrialRecord]) -> list[CaseTally]:
    """The cases, those that were right least often first, and else in the order of the trials."""
    tallies: dict[str, CaseTally] = {}
    for trial in trials:
        tally = tallies.get(trial.case_id)
        if tally is None:
            tally = tallies[trial.case_id] = CaseTally(trial.case_id, trial.category)
        if trial.passed is not None:
            tally.counted[trial.configuration] += 1
            tally.right[trial.configuration] += trial.passed
    return sorted(tallies.values(), key=lambda tally: tally.mean_share)


@dataclass(frozen=True, slots=True)
class CaseBin:
    """Neighbouring cases that are drawn as one."""

    cases: Sequence[CaseTally]
    """The cases; at least one."""

    def share(self, configuration: str) -> float | None:
        """The mean share of a configuration over the cases; None if no trial counts."""
        shares = [share for case in self.cases if (share := case.share(configuration)) is not None]
        return sum(shares) / len(shares) if shares else None


def bin_cases(tallies: Sequence[CaseTally], most: int) -> list[CaseBin]:
    """The cases in at most `most` bins of nearly the same size, in their order."""
    count = min(len(tallies), most)
    ends = [len(tallies) * number // count for number in range(count + 1)] if count else [0]
    return [CaseBin(tallies[start:end]) for start, end in pairwise(ends)]


def failed_trials(results: Results) -> Mapping[str, list[TrialRecord]]:
    """The trials that are not right by outcome, in the order of `OUTCOMES`."""
    groups: dict[str, list[TrialRecord]] = {outcome: [] for outcome in OUTCOMES if outcome != "right"}
    for trial in results.trials:
        if (outcome := outcome_of(trial)) != "right":
            groups[outcome].append(trial)
    return {outcome: trials for outcome, trials in groups.items() if trials}


def reason_of(trial: TrialRecord, language: str | None = None) -> str:
    """Why a trial is not right: why its run did not complete, else what its first check that does not hold says.

    The latter is in `language`, by default that of errors; empty if neither says why.
    """
    if trial.reason:
        return f"{trial.status}: {trial.reason}"
    failed = next((check for check in trial.checks if check.passed is not True), None)
    if failed is None:
        return ""
    detail = outcome_detail(failed, language)
    return translate("{name}: {text}", language, name=failed.kind, text=detail) if detail else failed.kind
