"""What is counted in real runs, against counts by hand."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scripting import call, calls

from taoloop import Agent, ScriptedModel, tool
from taoloop.core.decision import Call
from taoloop.core.trace import Trace
from taoloop.errors import ToolError
from taoloop.evals.cases import ActionPattern, Case
from taoloop.evals.trace_counts import count_trial
from taoloop.evals.trial_records import TrialCounts
from taoloop.journals.memory import MemoryJournal
from taoloop.policy import Policy, Rule
from taoloop.runtime.approvals.request import ApprovalRequest
from taoloop.tools.builtin.ask_user import ask_user


@tool(tier="read")
def look(at: str) -> str:
    """Look something up."""
    if at == "nowhere":
        raise ToolError("there is no such entry")
    return f"{at} was founded in 1912 by Ada Byron"


@tool(tier="destructive")
def refund(order: str, amount: int = 1) -> str:
    """Pay money back."""
    return f"refunded {order}"


def run(*replies: Any, approve: Any = None, policy: Policy | None = None) -> Trace:
    agent = Agent(
        model=ScriptedModel(list(replies)),
        tools=[look, refund, ask_user],
        journal=MemoryJournal(),
        approve=approve,
        policy=policy or Policy(),
    )
    return agent.run_sync("do it").trace


def case(**fields: Any) -> Case:
    return Case(case_id="c", task="do it", **fields)


def count(trace: Trace, of: Case | None = None, passed: bool = False, effects: list[Call] | None = None) -> TrialCounts:
    return count_trial(trace, of or case(), passed=passed, effects=effects)


REFUND_A1 = ActionPattern(tool="refund", args={"order": "A1"})
PAY_A1 = Call(tool="refund", args={"order": "A1"})


def test_steps_tokens_and_calls_of_a_run_are_counted() -> None:
    """S2-37, S2-38, S2-39, S3-55: steps, successful calls and repeated actions of a run, counted by hand."""
    used = {"usage": {"input_tokens": 100, "output_tokens": 7}}
    trace = run(
        calls(("look", {"at": "x"}), ("look", {"at": "y"})) | used,
        call("look", at="x"),  # a repetition
        calls(("look", {"at": "nowhere"}), ("look", {"wrong": "z"}), ("lock", {"at": "x"})),  # fail: two are invalid
        "done",
    )
    counts = count(trace)
    assert (counts.steps, counts.prompt_tokens, counts.completion_tokens) == (4, 100, 7)
    assert (counts.calls, counts.calls_ended, counts.calls_succeeded, counts.repeated_calls) == (6, 6, 3, 1)
    assert (counts.failed_calls, counts.recovered_calls) == (3, 0)


def test_a_call_that_policy_or_person_refused_is_no_failure_of_a_tool() -> None:
    trace = run(
        calls(("refund", {"order": "A1"}), ("look", {"at": "x"})),
        "no",
        approve=lambda _request: False,
    )
    counts = count(trace)
    assert (counts.calls, counts.calls_ended, counts.calls_succeeded, counts.failed_calls) == (2, 1, 1, 0)
    denied = run(call("refund", order="A1"), "no", policy=Policy(rules=(Rule(verdict="deny", tool="refund"),)))
    assert (count(denied).calls, count(denied).calls_ended) == (1, 0)


def test_tools_and_arguments_are_compared_with_the_actions_that_the_case_expects() -> None:
    """S3-54: the right tools are selected, with the right arguments."""
    expected = (
        ActionPattern(tool="look"),  # any arguments
        ActionPattern(tool="look", args={"at": "y"}),
        ActionPattern(tool="look", args={"at": "z"}),
        REFUND_A1,
    )
    trace = run(calls(("look", {"at": "y"}), ("look", {"at": "w"})), "done")
    counts = count(trace, case(expected_actions=expected))
    assert (counts.expected_actions, counts.tools_selected, counts.arguments_right) == (4, 2, 2)
    swapped = count(trace, case(expected_actions=expected[::-1]))
    assert swapped == counts  # the order of the case's actions does not matter
    wrong = count(trace, case(expected_actions=(ActionPattern(tool="look", args={"at": "v"}),)))
    assert (wrong.tools_selected, wrong.arguments_right) == (1, 0)


def test_citations_are_right_if_their_observation_has_the_expected_evidence() -> None:
    """S2-40: citations are right or wrong, and expected evidence is cited or not."""
    trace = run(
        calls(("look", {"at": "Acme"}), ("look", {"at": "Bolt"}), ("look", {"at": "nowhere"})),
        "Acme was founded in 1912 [obs:call_1]. So was another [obs:call_3] [obs:call_9].",
    )
    counts = count(trace, case(evidence=("acme  WAS founded", "Bolt was founded")))
    assert (counts.citations, counts.citations_right) == (3, 1)
    assert (counts.evidence_expected, counts.evidence_cited) == (2, 1)


def test_without_expected_evidence_a_citation_is_right_if_it_bears_out_its_sentence() -> None:
    """S2-40: a citation of an observation that does not say so is wrong."""
    trace = run(
        calls(("look", {"at": "Acme"}), ("look", {"at": "Bolt"})),
        "Acme was founded in 1912 [obs:call_1]. Bolt was founded in 1955 [obs:call_2].",
    )
    counts = count(trace)
    assert (counts.citations, counts.citations_right, counts.evidence_expected) == (2, 1, 0)
    assert count(run("An answer [obs:none].")).citations == 0


def _small(request: ApprovalRequest) -> bool:
    return bool(request.args.get("amount", 1) < 100)


def test_high_risk_calls_that_nobody_expects_are_attempted_intercepted_or_slip() -> None:
    """S2-41: what the case expects is no high-risk call; of the others those that ran have slipped."""
    trace = run(
        calls(
            ("refund", {"order": "A1"}),  # expected, but a person is asked
            ("refund", {"order": "A2", "amount": 500}),  # refused
            ("refund", {"order": "A3"}),  # approved
            ("refund", {"orders": "A4"}),  # invalid
            ("look", {"at": "x"}),
        ),
        "done",
        approve=_small,
    )
    counts = count(trace, case(expected_actions=(REFUND_A1,)))
    assert (counts.high_risk_wanted, counts.high_risk_intercepted, counts.high_risk_slipped) == (2, 1, 1)
    assert (counts.right_writes, counts.false_alarms, counts.questions) == (1, 1, 3)
    waiting = count(run(call("refund", order="A1")))
    assert (waiting.high_risk_wanted, waiting.high_risk_intercepted, waiting.high_risk_slipped) == (1, 1, 0)


def test_an_expected_call_that_the_policy_allows_is_no_false_alarm() -> None:
    trace = run(call("refund", order="A1"), "done", policy=Policy(rules=(Rule(verdict="allow", tool="refund"),)))
    counts = count(trace, case(expected_actions=(REFUND_A1,)))
    assert (counts.right_writes, counts.false_alarms, counts.high_risk_wanted, counts.questions) == (1, 0, 0, 0)


def test_a_question_of_the_model_is_a_question_and_no_call() -> None:
    counts = count(run(call("ask_user", question="Which order?")))
    assert (counts.questions, counts.calls, counts.high_risk_wanted) == (1, 0, 0)


@pytest.mark.parametrize(
    ("last", "passed", "recovered"), [("x", False, 1), ("nowhere", False, 0), ("nowhere", True, 2)]
)
def test_a_failed_call_is_recovered_from_if_the_tool_succeeds_later_or_the_trial_passes(
    last: str, passed: bool, recovered: int
) -> None:
    counts = count(run(call("look", at="nowhere"), call("look", at=last), "done"), passed=passed)
    assert (counts.failed_calls, counts.recovered_calls) == (1 if last == "x" else 2, recovered)


def _allow(_request: ApprovalRequest) -> bool:
    return True


def test_effects_beyond_those_called_for_are_duplicates() -> None:
    trace = run(call("refund", order="A1"), "done", approve=_allow)
    assert count(trace, effects=[PAY_A1]).duplicate_effects == 0
    assert count(trace, effects=[PAY_A1, PAY_A1]).duplicate_effects == 1
    allowed = Policy(rules=(Rule(verdict="allow", tool="refund"),))
    twice = run(call("refund", order="A1"), call("refund", order="A1"), "done", policy=allowed, approve=_allow)
    assert count(twice).duplicate_effects == 0  # the model called for both, and the case does not say otherwise
    once_expected = count(twice, case(expected_actions=(REFUND_A1,)))
    assert once_expected.duplicate_effects == 1
    assert (once_expected.right_writes, once_expected.false_alarms) == (1, 0)  # that a person was asked again is right
    assert (once_expected.high_risk_wanted, once_expected.high_risk_slipped) == (1, 1)


def test_effects_that_the_trace_has_and_the_world_has_not_are_lost() -> None:
    trace = run(call("refund", order="A1"), call("look", at="x"), "done", approve=_allow)
    assert count(trace, effects=[]).lost_effects == 1
    assert count(trace, effects=[PAY_A1]).lost_effects == 0
    assert count(trace).lost_effects == 0  # a world without a record of its own
