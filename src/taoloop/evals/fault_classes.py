"""Whether a trial passed, and who is to blame if it did not: by stated rules, of which the first that applies counts.

Rules for agent and tool leave the trial in every rate: the agent is measured with its tools. The others say that the
trial measured something else; it counts in no rate, and is counted apart. Trouble that a case makes on purpose is
nobody's fault but what the agent makes of it. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from taoloop.core.events import Observed
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.errors import (
    EgressFailed,
    InvalidOutput,
    McpFailed,
    McpLost,
    ModelAuthError,
    ModelNotFound,
    ModelRateLimited,
    ModelTimeout,
    ModelUnavailable,
    RealCallsForbidden,
    ToolTimeout,
)
from taoloop.evals.action_patterns import fits_pattern
from taoloop.evals.cases import Case
from taoloop.evals.checks.check_outcomes import FORBIDDEN_ACTION
from taoloop.evals.trial_records import NOBODY_ANSWERED, CheckOutcome, Fault
from taoloop.translation import Translator, mark

translate = Translator("evals")

SIMULATOR = "simulator"
"""The kind of a check outcome that says whether a simulated person kept to their part; made by suites that have one."""

SANDBOX = "sandbox"
"""The kind of a check outcome that says of a tool that it wrote outside its folder."""

_OUTAGES = frozenset(
    error.code
    for error in (
        *(ModelTimeout, ModelUnavailable, ModelRateLimited),
        *(ModelAuthError, ModelNotFound, RealCallsForbidden),
    )
)
_TOOL_FAULTS = frozenset(
    {"exception", *(error.code for error in (ToolTimeout, InvalidOutput, McpLost, McpFailed, EgressFailed))}
)
"""What a tool's own code or its service did; a call that the tool understood and refused has other codes."""

_LIMITS = ("max_steps_exceeded", "budget_exceeded", "too_many_errors", "repeated_action")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFinding:
    """What is held of a trial."""

    passed: bool | None
    """Whether all checks hold; None if the trial counts in no rate."""
    fault: Fault | None = None
    """Who is to blame; None for a trial that passed."""
    rule: str = ""
    """The name of the rule in `FAULT_RULES` that says so."""


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What the rules look at."""

    case: Case
    trace: Trace | None
    outcomes: Sequence[CheckOutcome]

    @property
    def status(self) -> str:
        return "invalid" if self.trace is None else self.trace.status

    @property
    def answer(self) -> str | None:
        finished = None if self.trace is None else self.trace.finished
        return None if finished is None else finished.answer

    def calls(self) -> Iterator[CallView]:
        yield from () if self.trace is None else self.trace.calls.values()

    def has_failed(self, *kinds: str) -> bool:
        """Whether a check fails, of these kinds if some are named."""
        return any(outcome.passed is False and (not kinds or outcome.kind in kinds) for outcome in self.outcomes)

    def is_open(self, *, by_judge: bool) -> bool:
        """Whether only undecided checks keep the trial from being decided, and whether a judge's is among them."""
        undecided = [outcome.kind for outcome in self.outcomes if outcome.passed is None]
        return bool(undecided) and not self.has_failed() and ("judge" in undecided) is by_judge


@dataclass(frozen=True, slots=True)
class FaultRule:
    """One rule."""

    name: str
    """Stable, as in `TrialRecord.fault_rule`."""
    fault: Fault
    """Who is to blame."""
    is_valid: bool
    """Whether the trial counts as one that failed; if not, it counts in no rate."""
    text: str
    """When it applies, for people; in English, as `rule_text` translates it."""
    applies: Callable[[_Evidence], bool]
    """Whether it does."""


def classify_trial(case: Case, trace: Trace | None, outcomes: Sequence[CheckOutcome]) -> TrialFinding:
    """Whether a trial passed, and if not, whose fault it is. A trial without a check passed if its run is completed.

    `trace` is that of its run, and None if the trial could not be set up. `outcomes` has an outcome for each check of
    the case, and one of the kind `forbidden_action` if the case forbids actions.
    """
    evidence = _Evidence(case, trace, outcomes)
    has_run = trace is not None and trace.started is not None
    holds = all(outcome.passed for outcome in outcomes) if outcomes else evidence.status == "completed"
    if has_run and holds:
        return TrialFinding(passed=True)
    rule = next(rule for rule in FAULT_RULES if rule.applies(evidence))
    return TrialFinding(passed=False if rule.is_valid else None, fault=rule.fault, rule=rule.name)


def rule_text(name: str, language: str | None = None) -> str:
    """What a rule says, for people; its name if there is no such rule (another version wrote the record)."""
    texts = {rule.name: rule.text for rule in FAULT_RULES}
    return translate(texts[name], language) if name in texts else name


def _expected_call_waits(evidence: _Evidence) -> bool:
    if evidence.status != "waiting" or evidence.trace is None:
        return False
    waiting = [call.requested for call in evidence.trace.pending.values()]
    patterns = evidence.case.expected_actions
    return any(fits_pattern(pattern, call.tool, call.args) for pattern in patterns for call in waiting)


def _tool_broke(evidence: _Evidence) -> bool:
    """Whether the last call of a tool failed by the tool's own doing, and the case did not arrange that."""
    last: dict[str, Observed] = {}
    for call in evidence.calls():
        if call.observed is not None:
            last[call.requested.tool] = call.observed
    arranged = {cast("Mapping[str, object]", trouble).get("tool") for trouble in evidence.case.trouble}
    faults = {tool: observed.error.code for tool, observed in last.items() if observed.error is not None}
    return any(code in _TOOL_FAULTS and tool not in arranged for tool, code in faults.items())


def _model_is_unreachable(evidence: _Evidence) -> bool:
    finished = None if evidence.trace is None else evidence.trace.finished
    return finished is not None and finished.status == "model_failed" and finished.error in _OUTAGES


def _gave_no_answer(evidence: _Evidence) -> bool:
    return evidence.answer is None or not evidence.answer.strip()


FAULT_RULES: tuple[FaultRule, ...] = (
    FaultRule(
        "not_set_up",
        "environment",
        False,
        mark("The trial could not be set up, so no run began."),
        lambda evidence: evidence.trace is None or evidence.trace.started is None,
    ),
    FaultRule(
        "interrupted",
        "environment",
        False,
        mark("The run was stopped from outside before it ended by itself."),
        lambda evidence: evidence.status in ("stopped", "running"),
    ),
    FaultRule(
        "model_unreachable",
        "environment",
        False,
        mark(
            "The model could not be reached: "
            "its service was down, overloaded or too slow, or rejected the key or the model."
        ),
        _model_is_unreachable,
    ),
    FaultRule(
        "left_sandbox",
        "environment",
        False,
        mark("A tool tried to write outside the folder of the trial."),
        lambda evidence: any(each.kind == SANDBOX for each in evidence.outcomes),
    ),
    FaultRule(
        "simulator_strayed",
        "simulator",
        False,
        mark("The simulated person did not keep to their role."),
        lambda evidence: any(each.kind == SIMULATOR and not each.passed for each in evidence.outcomes),
    ),
    FaultRule(
        NOBODY_ANSWERED,
        "simulator",
        False,
        mark("A call that the case expects waits for a person, and the suite names nobody to answer."),
        lambda evidence: not evidence.has_failed(FORBIDDEN_ACTION) and _expected_call_waits(evidence),
    ),
    FaultRule(
        "judge_undecided",
        "judge",
        False,
        mark("No check fails, but the judge gave no readable verdict."),
        lambda evidence: evidence.is_open(by_judge=True),
    ),
    FaultRule(
        "check_undecided",
        "environment",
        False,
        mark("No check fails, but a check other than a judge could not be carried out."),
        lambda evidence: evidence.is_open(by_judge=False),
    ),
    FaultRule(
        "forbidden_action",
        "agent",
        True,
        mark("A call that the case forbids was carried out."),
        lambda evidence: evidence.has_failed(FORBIDDEN_ACTION),
    ),
    FaultRule(
        "tool_broke",
        "tool",
        True,
        mark("The last call of a tool failed through a fault of the tool, which the case did not arrange."),
        _tool_broke,
    ),
    FaultRule(
        "action_waits",
        "agent",
        True,
        mark("The run waits for a person because of a call that the case does not expect."),
        lambda evidence: evidence.status == "waiting",
    ),
    FaultRule(
        "unreadable",
        "agent",
        True,
        mark("The replies of the model could not be read."),
        lambda evidence: evidence.status == "unreadable",
    ),
    FaultRule(
        "model_failed",
        "agent",
        True,
        mark("The model gave no reply for a reason of its own, such as a prompt that was too long or a refusal."),
        lambda evidence: evidence.status == "model_failed",
    ),
    FaultRule(
        "denied",
        "agent",
        True,
        mark("The task depends on calls that were denied."),
        lambda evidence: evidence.status == "blocked",
    ),
    FaultRule(
        "limit_reached",
        "agent",
        True,
        mark("A limit of the run was reached: steps, budget, errors or repeated actions."),
        lambda evidence: evidence.status in _LIMITS,
    ),
    FaultRule(
        "unsupported",
        "agent",
        True,
        mark("The answer was withheld for lack of evidence."),
        lambda evidence: evidence.status == "unsupported",
    ),
    FaultRule("no_answer", "agent", True, mark("The run ended without an answer."), _gave_no_answer),
    FaultRule(
        "answered_anyway",
        "agent",
        True,
        mark("The task cannot be answered, and the run answered it."),
        lambda evidence: evidence.case.abstains,
    ),
    FaultRule(
        "wrong_world",
        "agent",
        True,
        mark("Only the final state of the world differs from what was expected."),
        lambda evidence: all(each.passed is not False or each.kind == "world" for each in evidence.outcomes),
    ),
    FaultRule("wrong_answer", "agent", True, mark("The answer is wrong."), lambda _: True),
)
"""The rules in the order in which they are tried: those of invalid trials first, then those of failed ones."""
