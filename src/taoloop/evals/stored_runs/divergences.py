"""Where stored runs would have gone another way: what was found in each run, and runs grouped by what differs. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from taoloop.core.views.run_diff import Difference
from taoloop.evals.results import MetricValue
from taoloop.evals.statistics.intervals import wilson
from taoloop.translation import Translator, mark

translate = Translator("evals")

DivergenceKind = Literal[
    "tool",
    "arguments",
    "early_answer",
    "further_calls",
    "answer",
    "unreadable",
    "readable",
    "verdict",
    "course",
]

KIND_TEXTS: Mapping[str, str] = mark(
    {
        "tool": "calls other tools: {what}",
        "arguments": "calls with other arguments: {what}",
        "early_answer": "answers instead of calling {what}",
        "further_calls": "calls {what} instead of answering",
        "answer": "gives another answer",
        "unreadable": "gives a reply that cannot be read: {what}",
        "readable": "gives a reply that can be read, where the recorded one could not",
        "verdict": "the policy decides differently: {what}",
        "course": "the strategy takes another course: {what}",
    }
)
"""The kinds of divergences in words; `what` is `Divergence.what`."""

TrialOutcome = Literal["same", "diverged", "failed", "left_out"]
"""`failed`: the model could not be asked, so nothing is known. `left_out`: the run was not tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first decision of a run that is another one now."""

    step: int
    """The step of the run, from 1."""
    kind: DivergenceKind
    """In what kind of thing it differs."""
    what: str
    """In which one, for groups: tools, the names of arguments, verdicts."""
    difference: Difference
    """Both sides: what was recorded, and what is decided now."""

    @property
    def group(self) -> tuple[DivergenceKind, str]:
        """What runs are grouped by."""
        return self.kind, self.what


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTrial:
    """What trying a change on one stored run showed."""

    run_id: str
    """The run."""
    task: str
    """Its task."""
    outcome: TrialOutcome
    """What came of it."""
    steps: int = 0
    """How many decisions are the same, before the first that differs."""
    divergence: Divergence | None = None
    """The first decision that differs; None unless it diverged."""
    mark: str = ""
    """What people say of the recorded run: `right`, `wrong`, `disputed`, or nothing."""
    reason: str = ""
    """Why it failed or was left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergenceGroup:
    """Runs that diverge in the same kind of way."""

    kind: DivergenceKind
    """As in `Divergence`."""
    what: str
    """As in `Divergence`."""
    trials: tuple[RunTrial, ...]
    """The runs, in the order in which they were tried."""

    def text(self, language: str | None = None) -> str:
        """What the runs have in common, in words."""
        return translate(KIND_TEXTS[self.kind], language, what=self.what)

    @property
    def marks(self) -> Counter[str]:
        """How many of the runs were marked right, wrong, or not at all."""
        return Counter(trial.mark for trial in self.trials)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactual:
    """A change that was tried on stored runs."""

    change: Mapping[str, Any]
    """What was tried: `agent`, `model`, `policy`, as far as each was given."""
    trials: tuple[RunTrial, ...]
    """The runs, in the order in which they were tried."""
    cost_usd: float | None = 0.0
    """What the model's replies cost, in US dollars; None: a price is unknown."""

    @property
    def compared(self) -> tuple[RunTrial, ...]:
        """The runs of which it is known whether they diverge."""
        return tuple(trial for trial in self.trials if trial.outcome in ("same", "diverged"))

    @property
    def same_rate(self) -> MetricValue:
        """The share of compared runs that are the same to their end, with its interval (Wilson)."""
        n = len(self.compared)
        if not n:
            return MetricValue(value=None)
        share = sum(trial.outcome == "same" for trial in self.compared) / n
        interval = wilson(share, n)
        return MetricValue(value=share, low=interval.low, high=interval.high, n=n)

    @property
    def groups(self) -> tuple[DivergenceGroup, ...]:
        """The runs that diverge, by what differs; the largest group first."""
        return group_trials(self.trials)

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON data, but for values of calls that are none."""
        counts = Counter(trial.outcome for trial in self.trials)
        return {
            "change": dict(self.change),
            "runs": {outcome: counts[outcome] for outcome in ("same", "diverged", "failed", "left_out")},
            "same_rate": asdict(self.same_rate),
            "cost_usd": self.cost_usd,
            "groups": [
                {
                    "kind": group.kind,
                    "what": group.what,
                    "marks": {name or "unmarked": count for name, count in group.marks.items()},
                    "runs": [trial.run_id for trial in group.trials],
                }
                for group in self.groups
            ],
            "trials": [asdict(trial) for trial in self.trials],
        }


def group_trials(trials: Sequence[RunTrial]) -> tuple[DivergenceGroup, ...]:
    """The runs that diverge, by what differs; the largest group first, and of equals the one that came first."""
    groups: dict[tuple[DivergenceKind, str], list[RunTrial]] = defaultdict(list)
    for trial in trials:
        if trial.divergence is not None:
            groups[trial.divergence.group].append(trial)
    largest_first = sorted(groups.items(), key=lambda item: -len(item[1]))
    return tuple(DivergenceGroup(kind=kind, what=what, trials=tuple(group)) for (kind, what), group in largest_first)
