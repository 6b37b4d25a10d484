"""Each trial that did not pass has a fault by the first rule that applies; faults of others count in no rate."""

from __future__ import annotations

from typing import Any

import pytest

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.decision import call_digest
from taoloop.core.events import ActionRequested, Event, Fact, Fault, Finished, Observed, Paused, RunStarted
from taoloop.core.trace import Trace
from taoloop.evals.cases import ActionPattern, Case
from taoloop.evals.checks.check_outcomes import FORBIDDEN_ACTION
from taoloop.evals.fault_classes import FAULT_RULES, SANDBOX, SIMULATOR, classify_trial, rule_text
from taoloop.evals.trial_records import CheckOutcome

WRONG, RIGHT = CheckOutcome(kind="exact", passed=False), CheckOutcome(kind="exact", passed=True)
ANSWERED = Finished(status="completed", answer="5", reason="")


def ended(status: Any, answer: str | None = None, **fields: Any) -> Finished:
    return Finished(status=status, answer=answer, reason="", **fields)


def pay(verdict: Any = "allow", **args: Any) -> ActionRequested:
    digest = call_digest("pay", args)
    return ActionRequested(
        step=1, call_id="call_1", tool="pay", args=args, tier="write", verdict=verdict, digest=digest
    )


def broke(code: str) -> Observed:
    return Observed(call_id="call_1", ok=False, output="", error=Fault(code=code, message="no"))


def run(*facts: Fact) -> Trace:
    started = RunStarted(task="Count.", agent=AgentSpec(), nonce="n")
    return Trace("r", [Event(seq, 1.0, fact) for seq, fact in enumerate((started, *facts))])


PAYS = Case(case_id="pays", task="Pay.", expected_actions=(ActionPattern(tool="pay", args={"who": "ann"}),))
PLAIN = Case(case_id="plain", task="Count.")
LATE = Case(case_id="late", task="Count.", trouble=({"tool": "pay", "times_out": True},))
WAITS = (pay("ask", who="ann"), Paused(reason="", waiting_for=("call_1",)))

TRIALS: tuple[tuple[str, bool | None, str | None, Case, Trace | None, tuple[CheckOutcome, ...]], ...] = (
    ("", True, None, PLAIN, run(ANSWERED), (RIGHT,)),
    ("", True, None, PLAIN, run(ANSWERED), ()),
    ("", True, None, PAYS, run(*WAITS), (CheckOutcome(kind="status", passed=True),)),
    ("not_set_up", None, "environment", PLAIN, None, ()),
    ("interrupted", None, "environment", PLAIN, run(ended("stopped")), (WRONG,)),
    ("model_unreachable", None, "environment", PLAIN, run(ended("model_failed", error="model_timeout")), (WRONG,)),
    ("left_sandbox", None, "environment", PLAIN, run(ANSWERED), (WRONG, CheckOutcome(kind=SANDBOX, passed=None))),
    ("simulator_strayed", None, "simulator", PLAIN, run(ANSWERED), (WRONG, CheckOutcome(kind=SIMULATOR, passed=False))),
    ("nobody_answered", None, "simulator", PAYS, run(*WAITS), (WRONG,)),
    ("judge_undecided", None, "judge", PLAIN, run(ANSWERED), (RIGHT, CheckOutcome(kind="judge", passed=None))),
    ("check_undecided", None, "environment", PLAIN, run(ANSWERED), (CheckOutcome(kind="function", passed=None),)),
    ("wrong_answer", False, "agent", PLAIN, run(ANSWERED), (WRONG, CheckOutcome(kind="judge", passed=None))),
    ("forbidden_action", False, "agent", PLAIN, run(ANSWERED), (CheckOutcome(kind=FORBIDDEN_ACTION, passed=False),)),
    ("tool_broke", False, "tool", PLAIN, run(pay(), broke("exception"), ANSWERED), (WRONG,)),
    ("wrong_answer", False, "agent", PLAIN, run(pay(), broke("not_found"), ANSWERED), (WRONG,)),
    ("wrong_answer", False, "agent", LATE, run(pay(), broke("timeout"), ANSWERED), (WRONG,)),
    ("action_waits", False, "agent", PLAIN, run(*WAITS), (WRONG,)),
    ("unreadable", False, "agent", PLAIN, run(ended("unreadable")), (WRONG,)),
    ("model_failed", False, "agent", PLAIN, run(ended("model_failed", error="model_context_overflow")), (WRONG,)),
    ("denied", False, "agent", PLAIN, run(ended("blocked", "5")), (WRONG,)),
    ("limit_reached", False, "agent", PLAIN, run(ended("max_steps_exceeded")), (WRONG,)),
    ("unsupported", False, "agent", PLAIN, run(ended("unsupported", "5")), (WRONG,)),
    ("no_answer", False, "agent", PLAIN, run(ended("completed", " ")), (WRONG,)),
    ("answered_anyway", False, "agent", Case(case_id="c", task="t", abstains=True), run(ANSWERED), (WRONG,)),
    ("wrong_world", False, "agent", PLAIN, run(ANSWERED), (RIGHT, CheckOutcome(kind="world", passed=False))),
)


@pytest.mark.parametrize(("rule", "passed", "fault", "case", "trace", "outcomes"), TRIALS)
def test_a_trial_is_classified_by_the_first_rule_that_applies(
    rule: str,
    passed: bool | None,
    fault: str | None,
    case: Case,
    trace: Trace | None,
    outcomes: tuple[CheckOutcome, ...],
) -> None:
    finding = classify_trial(case, trace, outcomes)
    assert (finding.rule, finding.passed, finding.fault) == (rule, passed, fault)


def test_every_rule_is_provoked_by_a_trial_above() -> None:
    assert {rule.name for rule in FAULT_RULES} == {row[0] for row in TRIALS} - {""}
    assert rule_text("tool_broke", "zh") != rule_text("tool_broke", "en")
    assert rule_text("of_another_version") == "of_another_version"
