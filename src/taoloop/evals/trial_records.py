"""What is kept of one trial of a case: its outcome and its counts. Metrics and comparisons are made of these alone.

A record is made of the trial's trace (`taoloop.evals.trace_counts`), can be written as a line of JSON and read again:
so results can be scored and compared without running anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from taoloop.evals.cases import CATEGORIES, Category
from taoloop.evals.stored_fields import (
    AMOUNT,
    FLAG,
    LIST,
    MAPPING,
    SHARE,
    TEXT,
    WHOLE,
    Kind,
    at_path,
    check_fields,
    choice,
)

Fault = Literal["agent", "tool", "environment", "simulator", "judge"]
"""Who is to blame for a trial that did not pass (`taoloop.evals.fault_classes`)."""
FAULTS: tuple[Fault, ...] = get_args(Fault)

NOBODY_ANSWERED = "nobody_answered"
"""The rule by which a trial is invalid that waits for a person whom the suite does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutcome:
    """What a check said of a trial."""

    kind: str
    """The kind of the check, or `forbidden_action`."""
    passed: bool | None
    """Whether it holds; None if it could not be decided (a judge that answered nonsense)."""
    score: float | None = None
    """A degree between 0 and 1 where the kind has one, such as F1."""
    code: str = ""
    """What was expected and what there was: the name of a text (`taoloop.evals.checks.outcome_texts`); empty if there
    is nothing to say, or `detail` says it."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """What the text is filled in with, as JSON data."""
    detail: str = ""
    """The same in somebody else's words: of a function of the suite, of an error, or of an earlier version."""
    judge: str = ""
    """The name of the judge (`taoloop.evals.judge_model`); empty for any other check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCounts:
    """Counts of one trial; each metric is a quotient of sums of these. A count that does not apply is 0."""

    steps: int = 0
    """Decisions of the model."""
    calls: int = 0
    """Tool calls that the model requested, valid or not; questions to people are none."""
    calls_ended: int = 0
    """Calls with an outcome of their own: they were run, or were invalid (an unknown tool, arguments that do not fit);
    policy, person or limit did not refuse them."""
    calls_succeeded: int = 0
    """Of `calls_ended`, those that succeeded."""
    expected_actions: int = 0
    """Calls that the case expects."""
    tools_selected: int = 0
    """Of `expected_actions`, those whose tool was called (each call counts for one at most)."""
    arguments_right: int = 0
    """Of `tools_selected`, those whose arguments fit, too."""
    repeated_calls: int = 0
    """Calls whose tool and arguments are those of an earlier call of the trial."""
    citations: int = 0
    """Citations in the answer."""
    citations_right: int = 0
    """Of `citations`, those of a successful observation of this run with evidence that the case expects (or, where it
    expects none, those that bear out what the answer attributes to them)."""
    evidence_expected: int = 0
    """Pieces of evidence that the case expects."""
    evidence_cited: int = 0
    """Of `evidence_expected`, those in a cited observation."""
    high_risk_wanted: int = 0
    """Calls above tier `draft` that the case does not expect, or that repeat an expected one that has succeeded."""
    high_risk_intercepted: int = 0
    """Of `high_risk_wanted`, those that did not run because the policy or a person refused them or nobody answered."""
    high_risk_slipped: int = 0
    """Of `high_risk_wanted`, those that were started."""
    right_writes: int = 0
    """Calls above tier `draft` that the case expects."""
    false_alarms: int = 0
    """Of `right_writes`, those that were denied or put before a person."""
    questions: int = 0
    """Questions to a person: approvals, doubts, questions of the model and of tools."""
    failed_calls: int = 0
    """Calls that failed and after which a further decision of the model followed."""
    recovered_calls: int = 0
    """Of `failed_calls`, those after which a call of the same tool succeeded, or the trial passed."""
    duplicate_effects: int = 0
    """Effects on the world that happened more often than the case expects or, where it does not expect them, than the
    model called for them."""
    lost_effects: int = 0
    """Effects that the trace says happened and that the world does not have."""
    prompt_tokens: int = 0
    """Tokens of all prompts."""
    completion_tokens: int = 0
    """Tokens of all replies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """One trial."""

    case_id: str
    """The case; the cluster of all statistics."""
    category: Category
    """The category of the case."""
    configuration: str
    """The name of the configuration (`taoloop.evals.configurations`)."""
    trial: int
    """Counts from 0 within case and configuration."""
    run_id: str
    """The run that opens in the panel."""
    case_digest: str = ""
    """The digest of the case; a case that was changed is another one in comparisons. Empty: unknown."""
    status: str
    """How the run ended, or `invalid` if the trial could not be set up."""
    answer: str | None
    """The answer; None if there is none."""
    reason: str = ""
    """Why the run did not complete, in words; empty if it did."""
    passed: bool | None
    """Whether all checks hold; None if the trial is invalid and counts in no rate (`fault` says whose fault it is)."""
    score: float | None = None
    """The mean score of the checks that have one; None without such a check."""
    checks: tuple[CheckOutcome, ...] = ()
    """What each check said."""
    fault: Fault | None = None
    """Who is to blame; None for a trial that passed."""
    fault_rule: str = ""
    """The name of the rule that says so."""
    abstains: bool = False
    """Whether the case is one that cannot be answered."""
    abstained: bool = False
    """Whether the run gave no answer or said that there is none."""
    counts: TrialCounts = field(default_factory=TrialCounts)
    """What was counted in its trace."""
    cost_usd: float | None = None
    """The cost of its model calls; None if a price is unknown."""
    latency_s: float = 0.0
    """Seconds from its first event to its last, without waiting for people."""

    @property
    def awaits_nobody(self) -> bool:
        """Whether an expected call waits for a person whom the suite does not have, which makes the trial invalid."""
        return self.passed is None and self.fault_rule == NOBODY_ANSWERED

    def to_json(self) -> dict[str, Any]:
        """The record as JSON data; defaults are left out."""
        record = {name: value for name in _FIELDS if (value := getattr(self, name)) != _DEFAULTS.get(name, _REQUIRED)}
        if "counts" in record:
            counts = ((name, getattr(self.counts, name)) for name in _COUNTS)
            record["counts"] = {name: count for name, count in counts if count}
        if "checks" in record:
            record["checks"] = [
                {
                    name: value
                    for name, value in asdict(outcome).items()
                    if value not in (None, "", {}) or name == "passed"
                }
                for outcome in self.checks
            ]
        return record

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> TrialRecord:
        """The record that `to_json` gave.

        Raises:
            StoredProblem: the data is no record; says which field.
        """
        check_fields(record, _KINDS, _REQUIRED_FIELDS)
        counts, checks = record.get("counts", {}), record.get("checks", ())
        with at_path("counts"):
            check_fields(counts, _COUNT_KINDS)
        for index, outcome in enumerate(checks):
            with at_path("checks", index):
                check_fields(outcome, _CHECK_KINDS, ("kind", "passed"))
        outcomes = tuple(CheckOutcome(**outcome) for outcome in checks)
        return cls(**{**record, "checks": outcomes, "counts": TrialCounts(**counts)})


_REQUIRED = object()
_FIELDS = tuple(field.name for field in fields(TrialRecord))
_COUNTS = tuple(field.name for field in fields(TrialCounts))
_DEFAULTS: dict[str, Any] = {
    field.name: TrialCounts() if field.name == "counts" else field.default
    for field in fields(TrialRecord)
    if field.default is not MISSING or field.name == "counts"
}
_REQUIRED_FIELDS = tuple(name for name in _FIELDS if name not in _DEFAULTS)
_COUNT_KINDS = dict.fromkeys(_COUNTS, WHOLE)
_CHECK_KINDS: Mapping[str, Kind] = {
    "kind": TEXT,
    "passed": FLAG.or_null(),
    "score": SHARE.or_null(),
    "code": TEXT,
    "values": MAPPING,
    "detail": TEXT,
    "judge": TEXT,
}
_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("case_id", "configuration", "run_id", "case_digest", "status", "reason", "fault_rule"), TEXT),
    "category": choice(CATEGORIES),
    "trial": WHOLE,
    "answer": TEXT.or_null(),
    "passed": FLAG.or_null(),
    "score": SHARE.or_null(),
    "checks": LIST,
    "fault": choice(FAULTS).or_null(),
    "abstains": FLAG,
    "abstained": FLAG,
    "counts": MAPPING,
    "cost_usd": AMOUNT.or_null(),
    "latency_s": AMOUNT,
}
"""What each field of a stored record may be."""
