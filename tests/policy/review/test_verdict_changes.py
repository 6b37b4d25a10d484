"""The calls of a stored run, judged again under another policy."""

from __future__ import annotations

from typing import Any

from tests.policy.staging import Run

from taoloop.core.events import ApprovalRefused, Observed, Verdict
from taoloop.core.policy import Policy, Rule
from taoloop.policy import judge
from taoloop.policy.review.verdict_changes import PolicyTrial, change_text, review_calls

SMALL = Rule(name="small", tool="pay", args={"amount": {"max": 20}}, verdict="allow")


def recorded(policy: Policy | None = None) -> Run:
    """A run that pays three times after a look: an approved call, a refused one, and one without an answer."""
    run = Run(policy)
    run.see("Invoices: 5, 7, 500", query="invoices")
    for amount, answer in ((5, "yes"), (7, "no"), (500, "")):
        args: dict[str, Any] = {"to": "carl@example.com", "amount": amount}
        call_id = run.ask("pay", args, verdict="ask", rule="write_out")
        if answer == "yes":
            run.approve(call_id)
            run.add(Observed(call_id=call_id, ok=True, output="paid"))
        elif answer == "no":
            run.add(ApprovalRefused(call_id=call_id, by="ann"))
    return run


def changes(run: Run, policy: Policy, **more: Any) -> dict[str, str]:
    return {call.requested.call_id: call.change for call in review_calls(run.trace, policy, **more)}


def test_the_recorded_policy_changes_nothing() -> None:
    assert set(changes(recorded(), Policy()).values()) == {"same"}


def test_a_question_that_vanishes_is_told_from_a_call_that_would_newly_run() -> None:
    found = changes(recorded(), Policy(rules=(SMALL,)))
    assert found == {"call_2": "question_vanishes", "call_3": "newly_runs", "call_4": "same"}
    found = changes(recorded(), Policy(profile="autonomous"))
    assert found["call_4"] == "newly_runs"  # nobody has answered


def test_what_is_newly_asked_or_denied_is_reported() -> None:
    assert set(changes(recorded(), Policy(profile="headless")).values()) == {"newly_denied"}
    lenient = recorded(Policy(profile="autonomous"))
    call_id = lenient.ask("delete_file", {"path": "old.txt"}, rule="autonomous")
    assert changes(lenient, Policy())[call_id] == "newly_asked"


def test_a_call_is_judged_with_what_the_model_had_seen_by_then() -> None:
    run = Run()
    first = run.ask("save", {"path": "notes.md", "text": "a"}, rule="wanted")
    run.add(Observed(call_id=first, ok=True, output="saved"))
    run.see("a page", query="x")
    assert [call.verdict.rule for call in review_calls(run.trace, Policy())] == ["wanted"]
    untainted = Rule(name="early", tool="save", tainted=False, verdict="deny")
    assert changes(run, Policy(rules=(untainted,)))[first] == "newly_denied"


def test_calls_that_no_policy_judged_are_left_out() -> None:
    run = Run()
    run.ask("look", {"query": 1}, verdict="deny")  # the arguments did not fit
    assert changes(run, Policy()) == {}


def test_calls_that_a_rule_in_python_decided_are_left_out_where_it_is_unknown() -> None:
    def no_pay(trace: Any, action: Any, card: Any) -> Verdict | None:
        return Verdict(kind="deny", rule="rule:no_pay") if card.name == "pay" else None

    run = Run()
    call_id = run.ask("pay", {"to": "bob@example.com", "amount": 1}, verdict="deny", rule="rule:no_pay")
    assert changes(run, Policy(profile="autonomous")) == {}
    assert changes(run, Policy(profile="autonomous"), rules=(no_pay,)) == {call_id: "same"}


def test_nothing_is_added_to_the_trace() -> None:
    run = recorded()
    events = list(run.trace.events)
    changes(run, Policy(profile="autonomous"))
    assert run.trace.events == events
    assert judge(run.trace, run.trace.calls["call_4"].requested, run.cards["pay"]).kind == "ask"


def test_a_trial_collects_what_changes_and_why_rules_did_not_apply() -> None:
    trial = PolicyTrial(Policy(profile="headless", rules=(SMALL,)), explain=1)
    trial.add(recorded().trace)
    assert trial.counts == {"question_vanishes": 1, "newly_runs": 1, "newly_denied": 1}
    assert [call.requested.call_id for call in trial.changed] == ["call_2", "call_3", "call_4"]
    unmet = PolicyTrial(Policy(profile="headless", rules=(SMALL,)), explain=9)
    unmet.add(recorded().trace)
    (rule,) = unmet.changed[2].unmet
    assert [(condition.name, condition.value) for condition in rule.conditions] == [("args.amount.max", 500)]
    assert not any(call.unmet for call in trial.changed)  # only of the first one, to which the rule applied
    assert trial.problem is None
    assert change_text("newly_runs", "zh") == "新增执行"


def test_a_trial_reports_a_rule_that_no_tool_of_the_runs_can_meet() -> None:
    trial = PolicyTrial(Policy(rules=(Rule(tool="fly", verdict="deny"),)))
    trial.add(recorded().trace)
    assert trial.problem is not None
    assert "fly" in str(trial.problem)
