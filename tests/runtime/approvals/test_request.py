"""Questions to a person while the run's process is there: batches, scopes, edits, timeouts."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.runtime.paying import drop, pay, paying
from tests.scripting import calls

from taoloop import Agent, ApprovalAnswer, ApprovalRequest, MemoryJournal, Result, ScriptedModel, ToolContext, tool
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import (
    ActionRequested,
    ActionStarted,
    ApprovalGiven,
    ApprovalRefused,
    Event,
    Fact,
    Observed,
    Paused,
    RunStarted,
    Verdict,
)
from taoloop.core.policy import Policy, Rule
from taoloop.core.trace import Trace
from taoloop.core.views.deadlines import open_since
from taoloop.runtime.after.replay import replay
from taoloop.runtime.approvals.request import seconds_left
from taoloop.testing import FakeClock

Given = Callable[[ApprovalRequest], Any]


@tool(tier="write")
def tell(to: str) -> str:
    """Tell somebody.

    Args:
        to: Whom.
    """
    return f"told {to}"


@tool(tier="read")
def look() -> str:
    """Look around."""
    return "there is the table secret_plans"


def run(replies: list[Any], approve: Given | None = None, *, task: str = "go", **options: Any) -> Result:
    agent = Agent(model=ScriptedModel(replies, strict=False), tools=[pay, tell, drop, look], approve=approve, **options)
    result = agent.run_sync(task)
    assert all(one.same for one in replay(result.trace)), "a replay decides the same"
    return result


def facts(result: Result, kind: type[Any]) -> list[Any]:
    return [event.fact for event in result.trace if isinstance(event.fact, kind)]


def outputs(result: Result) -> list[str]:
    return [fact.output for fact in facts(result, Observed) if fact.ok]


# One question per kind


def test_calls_of_one_kind_are_one_question_and_a_yes_to_it_allows_them_all() -> None:
    asked: list[ApprovalRequest] = []

    def approve(question: ApprovalRequest) -> ApprovalAnswer:
        asked.append(question)
        return ApprovalAnswer(approved=True, by="ann", batch=True)

    both = calls(("pay", {"to": "a", "amount": 1}), ("tell", {"to": "c"}), ("pay", {"to": "b", "amount": 2}))
    result = run([both, "done"], approve)
    assert [(one.call_id, [other.call_id for other in one.batch]) for one in asked] == [
        ("call_1", ["call_2", "call_3"]),
    ]
    assert sorted(outputs(result)) == ["paid 1 to a", "paid 2 to b", "told c"]
    assert [fact.by for fact in facts(result, ApprovalGiven)] == ["ann"] * 3


def test_who_looks_at_one_call_only_allows_no_other() -> None:
    """A callback that judges `args` must never let a call pass that it was not shown as the question."""
    result = run([paying(5, 5000), "done"], lambda question: question.args["amount"] < 100)
    assert outputs(result) == ["paid 5 to ann"]
    assert [fact.call_id for fact in facts(result, ApprovalRefused)] == ["call_2"]
    answer = run([paying(5, 5000), "done"], lambda question: ApprovalAnswer(approved=question.args["amount"] < 100))
    assert outputs(answer) == ["paid 5 to ann"]


def test_what_is_allowed_runs_before_the_next_question() -> None:
    paid: list[str] = []

    @tool(tier="write")
    def book(seat: str) -> str:
        """Book a seat.

        Args:
            seat: Which one.
        """
        paid.append(seat)
        return "booked"

    seen: list[list[str]] = []

    def approve(question: ApprovalRequest) -> bool:
        seen.append(list(paid))
        return True

    two = calls(("book", {"seat": "1"}), ("book", {"seat": "2"}))
    Agent(model=ScriptedModel([two, "ok"]), tools=[book], approve=approve).run_sync("q")
    assert seen == [[], ["1"]]


def test_a_question_pauses_that_call_only() -> None:
    """What reads runs, what was allowed runs, and only then does the run wait for the rest."""
    mixed = calls(("pay", {"to": "a", "amount": 1}), ("look", {}), ("tell", {"to": "b"}))
    result = run([mixed, "done"], lambda question: None if question.tool == "pay" else True)
    assert result.status == "waiting"
    assert outputs(result) == ["there is the table secret_plans", "told b"]
    [paused] = facts(result, Paused)
    assert paused.waiting_for == ("call_1",)


def test_a_question_left_for_later_is_not_put_twice_by_one_process() -> None:
    asked: list[str] = []

    def approve(question: ApprovalRequest) -> bool | None:
        asked.append(question.call_id)
        return None if question.call_id == "call_1" else True

    run([calls(("pay", {"to": "a", "amount": 1}), ("tell", {"to": "b"})), "done"], approve)
    assert asked == ["call_1", "call_2"]


# Scopes


def test_always_reaches_the_other_calls_of_the_question_and_later_ones() -> None:
    asked: list[str] = []

    def approve(question: ApprovalRequest) -> ApprovalAnswer:
        asked.append(question.call_id)
        return ApprovalAnswer(approved=True, scope="rule")

    policy = Policy(rules=(Rule(verdict="ask", tool="pay"),))
    result = run([paying(3, 2), paying(1), "done"], approve, task="Pay ann 1, 2 and 3.", policy=policy)
    assert asked == ["call_1"]
    assert len(outputs(result)) == 3
    assert [fact.scope for fact in facts(result, ApprovalGiven)] == ["rule", "call"]


def test_always_reaches_no_other_target() -> None:
    asked: list[str] = []

    def approve(question: ApprovalRequest) -> ApprovalAnswer:
        asked.append(question.call_id)
        return ApprovalAnswer(approved=True, scope="rule")

    both = calls(("tell", {"to": "ann"}), ("tell", {"to": "eve"}))
    run([both, calls(("tell", {"to": "ann"})), "done"], approve, task="Ask ann.")
    assert asked == ["call_1", "call_2"], "eve is asked about, ann is not asked about again"


def test_calls_with_targets_of_different_provenance_are_not_one_question() -> None:
    asked: list[list[str]] = []

    def approve(question: ApprovalRequest) -> ApprovalAnswer:
        asked.append([each.call_id for each in (question, *question.batch)])
        return ApprovalAnswer(approved=True, batch=True)

    three = calls(("tell", {"to": "ann"}), ("tell", {"to": "eve"}), ("tell", {"to": "bob"}))
    run([three, "done"], approve, task="Ask ann and bob.")
    assert asked == [["call_1", "call_3"], ["call_2"]]


def test_there_is_no_always_for_a_call_that_cannot_be_undone_and_whose_target_nobody_named() -> None:
    asked: list[ApprovalRequest] = []

    def approve(question: ApprovalRequest) -> ApprovalAnswer:
        asked.append(question)
        return ApprovalAnswer(approved=True, scope="rule", batch=True)

    two = calls(("drop", {"table": "one"}), ("drop", {"table": "two"}))
    result = run([two, "done"], approve)
    assert [one.grave for one in asked] == [True] * 2
    assert all(one.batch == () for one in asked), "each is a question of its own"
    assert [fact.scope for fact in facts(result, ApprovalGiven)] == ["call"] * 2


def test_the_question_says_where_each_value_came_from() -> None:
    asked: list[ApprovalRequest] = []
    replies = [calls(("look", {})), calls(("pay", {"to": "secret_plans", "amount": 7})), "done"]

    def approve(question: ApprovalRequest) -> bool:
        asked.append(question)
        return False

    run(replies, approve, task="pay 7 to somebody")
    [question] = asked
    found = {one.arg: (one.badge, one.call_id) for one in question.sources}
    assert found == {"to": ("FOREIGN", "call_1"), "amount": ("YOURS", None)}
    assert (question.rule, len(question.policy), len(question.digest)) == ("write_out", 16, 64)


# Edits


def test_edited_arguments_are_held_to_the_rules_of_the_operator() -> None:
    policy = Policy(
        rules=(
            Rule(verdict="deny", tool="pay", args={"amount": {"min": 1000}}, name="too much"),
            Rule(verdict="ask", tool="pay", name="payments"),
        )
    )

    def approve(_: ApprovalRequest) -> ApprovalAnswer:
        return ApprovalAnswer(approved=True, args={"to": "ann", "amount": 5000})

    result = run([paying(5), "done"], approve, policy=policy)
    [refused] = facts(result, ApprovalRefused)
    assert (outputs(result), "too much" in refused.note) == ([], True)


def test_an_edited_call_counts_in_the_place_of_what_it_was() -> None:
    policy = Policy(
        rules=(
            Rule(verdict="deny", tool="pay", total_over={"amount": 10}, name="ten in all"),
            Rule(verdict="ask", tool="pay", name="payments"),
        )
    )
    edits = iter([9, 11])

    def approve(_: ApprovalRequest) -> ApprovalAnswer:
        return ApprovalAnswer(approved=True, args={"to": "ann", "amount": next(edits)})

    assert outputs(run([paying(8), "done"], approve, policy=policy)) == ["paid 9 to ann"]
    assert outputs(run([paying(8), "done"], approve, policy=policy)) == []


def test_edited_arguments_are_held_to_rules_in_python() -> None:
    def small(_trace: Trace, action: Any, _card: Any) -> Verdict | None:
        return Verdict(kind="deny") if action.tool == "pay" and action.args["amount"] > 10 else None

    def approve(_: ApprovalRequest) -> ApprovalAnswer:
        return ApprovalAnswer(approved=True, args={"to": "ann", "amount": 5000})

    assert outputs(run([paying(5), "done"], approve, rules=[small])) == []


# What the operator allowed ahead


def test_a_tier_allowed_ahead_answers_no_question_that_a_rule_of_the_operator_asks() -> None:
    policy = Policy(rules=(Rule(verdict="ask", tool="pay", args={"amount": {"min": 100}}, name="large"),))
    ahead: dict[str, Any] = {"policy": policy, "approved_tiers": ("write",)}
    assert outputs(run([paying(5), "done"], **ahead)) == ["paid 5 to ann"]
    assert run([paying(500), "done"], **ahead).status == "waiting"

    def ask(_trace: Trace, action: Any, _card: Any) -> Verdict | None:
        return Verdict(kind="ask") if action.tool == "pay" else None

    assert run([paying(5), "done"], rules=[ask], approved_tiers=("write",)).status == "waiting"


# Time

LATE = Policy(approval_timeout_s=0.02)


def test_a_question_that_nobody_answers_in_time_is_refused_and_the_run_goes_on() -> None:
    async def never(_: ApprovalRequest) -> bool:
        await asyncio.Event().wait()
        return True

    result = run([paying(5), "done"], never, policy=LATE)
    [refused] = facts(result, ApprovalRefused)
    assert (result.status, refused.by, "0.02 s" in refused.note) == ("blocked", "timeout", True)
    assert not facts(result, ActionStarted)


def test_a_yes_that_comes_too_late_is_none() -> None:
    def slow(_: ApprovalRequest) -> bool:
        deadline = asyncio.get_running_loop().time() + 0.05
        while asyncio.get_running_loop().time() < deadline:
            pass  # a callback that blocks cannot be cut off
        return True

    result = run([paying(5), "done"], slow, policy=LATE)
    assert [fact.by for fact in facts(result, ApprovalRefused)] == ["timeout"]


def test_a_timeout_of_the_approver_itself_is_no_answer() -> None:
    def breaks(_: ApprovalRequest) -> bool:
        raise TimeoutError("my own")

    assert run([paying(5), "done"], breaks, policy=Policy(approval_timeout_s=60)).status == "waiting"


def test_a_run_that_waited_too_long_refuses_at_the_resume() -> None:
    clock, journal = FakeClock(), MemoryJournal()
    script = ScriptedModel([paying(5), "done"])
    agent = Agent(model=script, tools=[pay], journal=journal, clock=clock, policy=Policy(approval_timeout_s=60))
    waiting = agent.run_sync("q")
    clock.advance(59)
    assert agent.resume_sync(waiting.run_id).status == "waiting", "a resume does not begin the time anew"
    clock.advance(2)
    done = agent.resume_sync(waiting.run_id)
    assert done.status == "blocked"
    assert [fact.by for fact in facts(done, ApprovalRefused)] == ["timeout"]
    assert all(one.same for one in replay(done.trace))


@pytest.mark.parametrize("jump", [-1e9, -61.0, 0.0, 59.0])
def test_a_clock_that_jumps_back_refuses_nothing_early(jump: float) -> None:
    clock, journal = FakeClock(), MemoryJournal()
    script = ScriptedModel([paying(5), "done"])
    agent = Agent(model=script, tools=[pay], journal=journal, clock=clock, policy=Policy(approval_timeout_s=60))
    waiting = agent.run_sync("q")
    clock.advance(jump)
    again = agent.resume_sync(waiting.run_id)
    assert (again.status, facts(again, ApprovalRefused), facts(again, ApprovalGiven)) == ("waiting", [], [])


def test_a_clock_that_went_back_before_the_pause_counts_from_the_request() -> None:
    spec = AgentSpec(tools=(pay.card,), policy=Policy(approval_timeout_s=60))
    asked = ActionRequested(step=1, call_id="call_1", tool="pay", args={}, tier="write", verdict="ask", digest="d")
    begun: list[Fact] = [RunStarted(task="t", agent=spec, nonce="n"), asked, Paused(reason="w")]
    trace = Trace(
        "r", [Event(seq, at, fact) for seq, (at, fact) in enumerate(zip((900, 1000, 500), begun, strict=True))]
    )
    assert open_since(trace, "call_1") == 1000
    assert seconds_left(trace, "call_1", 1050) == 10


def test_waiting_for_somebody_elses_question_does_not_cost_time() -> None:
    """Runs inside ask one after the other; the second question's time begins when it is put."""
    clock = FakeClock()

    def approve(_: ApprovalRequest) -> bool:
        clock.advance(70)
        return True

    inner = [
        Agent(
            name=name,
            model=ScriptedModel([paying(1), "ok"]),
            tools=[pay],
            policy=Policy(approval_timeout_s=60),
            clock=clock,
        ).as_tool(purpose="Pay.")
        for name in ("one", "two")
    ]
    both = calls(("one", {"task": "x"}), ("two", {"task": "x"}))
    result = Agent(model=ScriptedModel([both, "done"]), tools=inner, approve=approve).run_sync("q")
    assert [fact.output for fact in facts(result, Observed)] == ["ok", "ok"]


def test_an_approver_with_an_unknown_scope_has_not_answered() -> None:
    odd = ApprovalAnswer(approved=True, scope="everything")  # type: ignore[arg-type]  # what code may get wrong
    assert run([paying(5), "done"], lambda _: odd).status == "waiting"


def test_a_truthy_answer_that_is_no_true_has_refused() -> None:
    odd = ApprovalAnswer(approved="no")  # type: ignore[arg-type]  # likewise
    assert outputs(run([paying(5), "done"], lambda _: odd)) == []


def test_an_approval_is_used_once() -> None:
    keys: list[str] = []

    @tool(tier="write")
    def book(seat: str, call: ToolContext) -> str:
        """Book a seat.

        Args:
            seat: Which one.
        """
        keys.append(call.call_id)
        return "booked"

    once = calls(("book", {"seat": "1"}))
    answers = iter([True, False])
    agent = Agent(
        model=ScriptedModel([once, once, "ok"]), tools=[book], approve=lambda _: next(answers), policy="strict"
    )
    agent.run_sync("q")
    assert keys == ["call_1"], "the same call again is another call"
