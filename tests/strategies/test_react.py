"""The loop as a pure function: the same trace always gives the same effect."""

from __future__ import annotations

from dataclasses import replace

import pytest

from taoloop.core.agent_spec import AgentSpec, Limits
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call
from taoloop.core.effects import AskPerson, CallModel, Finish, Record, RequestCalls, RunTools
from taoloop.core.events import (
    ActionRequested,
    ActionStarted,
    ApprovalRefused,
    Event,
    Fact,
    Fault,
    Finished,
    InDoubt,
    LimitReached,
    ModelReplied,
    Noted,
    Observed,
    ReplyRejected,
    Resumed,
    RunStarted,
)
from taoloop.core.message import Usage
from taoloop.core.policy import Policy, VerdictKind
from taoloop.core.trace import Trace
from taoloop.errors import UnknownName
from taoloop.prompts import load_prompts
from taoloop.strategies import ACT_ONLY, REACT, REASON_ONLY, STANDARD, get_strategy

READ = ToolCard(name="look", purpose="Look.", tier="read")
WRITE = ToolCard(name="pay", purpose="Pay.", tier="write")
SPEC = AgentSpec(dialect="text", tools=(READ, WRITE), prompts=load_prompts("en"))
LOOK = Act(calls=(Call(tool="look", args={}),))


def trace_of(*facts: Fact, spec: AgentSpec = SPEC) -> Trace:
    start = RunStarted(task="the task", agent=spec, nonce="abc")
    return Trace("r", [Event(seq, float(seq), fact) for seq, fact in enumerate((start, *facts))])


def replied(step: int, decision: Act | Answer | None) -> ModelReplied:
    return ModelReplied(step=step, purpose="decide", text="raw", decision=decision)


def asked(number: int, tool: str = "look", verdict: VerdictKind = "allow") -> ActionRequested:
    return ActionRequested(
        step=1,
        call_id=f"call_{number}",
        tool=tool,
        args={},
        tier="read",
        verdict=verdict,
        digest=tool,
    )


def seen(number: int, output: str = "8") -> Observed:
    return Observed(call_id=f"call_{number}", ok=True, output=output)


def step(number: int, output: str | None = None) -> tuple[Fact, ...]:
    return replied(number, LOOK), asked(number), seen(number, output or f"result {number}")


def test_a_new_run_asks_the_model_with_the_tools() -> None:
    effect = REACT.next(SPEC, trace_of())
    assert isinstance(effect, CallModel)
    assert effect.request.tools == (READ, WRITE)
    assert (effect.step, effect.request.purpose, effect.request.turn) == (1, "decide", 0)


def test_a_decision_is_requested_before_it_is_run() -> None:
    trace = trace_of(replied(1, LOOK))
    assert REACT.next(SPEC, trace) == RequestCalls(act=LOOK, step=1)
    trace.append(Event(2, 2.0, asked(1)))
    assert REACT.next(SPEC, trace) == RunTools(calls=(trace.pending["call_1"],))


def test_an_answer_finishes_with_its_reason_in_the_trace() -> None:
    """S2-46: the printed loop loses the final decision and its reason."""
    trace = trace_of(replied(1, Answer(text="42", reason="it follows")))
    expected = Finished(status="completed", answer="42", reason="it follows")
    assert REACT.next(SPEC, trace) == Finish(fact=expected)


def test_the_prompt_only_grows() -> None:
    """Promise 6: each request's messages begin with the last one's."""
    facts: list[Fact] = []
    before: tuple[object, ...] = ()
    trace = trace_of()
    for number in range(1, 5):
        effect = REACT.next(SPEC, trace)
        assert isinstance(effect, CallModel)
        assert effect.request.messages[: len(before)] == before
        assert len(effect.request.messages) > len(before)
        before = effect.request.messages
        facts.extend(step(number))
        for fact in step(number):
            trace.append(Event(len(trace.events), 0.0, fact))
    rebuilt = REACT.next(SPEC, trace_of(*facts))
    assert isinstance(rebuilt, CallModel)
    assert rebuilt.request.messages[: len(before)] == before, "a resumed run sends the same bytes"


def test_the_step_limit_gives_one_last_turn_without_tools_and_names_itself() -> None:
    spec = replace(SPEC, limits=Limits(max_steps=2))
    trace = trace_of(*step(1), *step(2), spec=spec)
    reached = LimitReached(limit="max_steps", status="max_steps_exceeded", allowed=2, used=2)
    assert REACT.next(spec, trace) == Record(facts=(reached,))
    trace.append(Event(len(trace.events), 9.0, reached))
    effect = REACT.next(spec, trace)
    assert isinstance(effect, CallModel)
    assert (effect.request.purpose, effect.request.tools) == ("close", ())
    closing = ModelReplied(step=2, purpose="close", text="x", decision=Answer(text="so far"))
    trace.append(Event(len(trace.events), 9.0, closing))
    finish = REACT.next(spec, trace)
    assert isinstance(finish, Finish)
    assert (finish.fact.status, finish.fact.answer, finish.fact.limit) == (
        "max_steps_exceeded",
        "so far",
        "max_steps",
    )


def test_an_action_in_the_last_turn_is_never_run() -> None:
    spec = replace(SPEC, limits=Limits(max_steps=1))
    reached = LimitReached(limit="max_steps", status="max_steps_exceeded", allowed=1, used=1)
    closing = ModelReplied(step=1, purpose="close", text="x", decision=LOOK)
    effect = REACT.next(spec, trace_of(*step(1), reached, closing, spec=spec))
    assert isinstance(effect, Finish)
    assert (effect.fact.status, effect.fact.answer) == ("max_steps_exceeded", None)


def test_without_the_last_turn_the_answer_is_null() -> None:
    """S2-7 and S4-28."""
    spec = replace(SPEC, limits=Limits(max_steps=1), closing_turn=False)
    reached = LimitReached(limit="max_steps", status="max_steps_exceeded", allowed=1, used=1)
    effect = REACT.next(spec, trace_of(*step(1), reached, spec=spec))
    assert isinstance(effect, Finish)
    assert (effect.fact.status, effect.fact.answer) == ("max_steps_exceeded", None)
    assert "max loops reached without final" in effect.fact.reason
    assert "raise the limit" in effect.fact.reason


def test_an_unreadable_reply_gets_one_repair_turn_in_its_step_at_temperature_0() -> None:
    rejected = ReplyRejected(step=1, code="empty", message="nothing there")
    effect = REACT.next(SPEC, trace_of(replied(1, None), rejected))
    assert isinstance(effect, CallModel)
    assert (effect.step, effect.request.purpose, effect.request.temperature) == (1, "repair", 0.0)
    assert "nothing there" in effect.request.messages[-1].content
    again = REACT.next(SPEC, trace_of(replied(1, None), rejected, replied(1, None), rejected))
    assert isinstance(again, CallModel)
    assert (again.step, again.request.purpose) == (2, "decide"), "after the repair turn: the next step"


def test_three_unreadable_replies_end_as_unreadable() -> None:
    """S0-21: the reason says that the model output could not be parsed."""
    rejected = ReplyRejected(step=1, code="empty", message="nothing there")
    facts = (
        replied(1, None),
        rejected,
        replied(1, None),
        rejected,
        replied(2, None),
        replace(rejected, step=2),
    )
    trace = trace_of(*facts)
    effect = REACT.next(SPEC, trace)
    assert isinstance(effect, Record)
    trace.append(Event(len(trace.events), 9.0, effect.facts[0]))
    finish = REACT.next(SPEC, trace)
    assert isinstance(finish, Finish)
    assert finish.fact.status == "unreadable"
    assert "could not be parsed" in finish.fact.reason


def test_the_third_identical_result_is_told_and_the_fifth_ends_the_run() -> None:
    """S2-26."""
    spec = replace(SPEC, limits=Limits(max_steps=None))
    facts: list[Fact] = []
    told: list[int] = []
    for number in range(1, 6):
        facts.extend(step(number, "same"))
        effect = REACT.next(spec, trace_of(*facts, spec=spec))
        if isinstance(effect, Record) and isinstance(effect.facts[0], Noted):
            told.append(number)
            facts.append(effect.facts[0])
    assert told == [3]
    assert isinstance(effect, Record)
    assert effect.facts[0] == LimitReached(limit="repeat_stop", status="repeated_action", allowed=5, used=5)


def test_polling_that_returns_something_new_goes_on() -> None:
    spec = replace(SPEC, limits=Limits(max_steps=None))
    facts = [fact for number in range(1, 30) for fact in step(number)]
    assert isinstance(REACT.next(spec, trace_of(*facts, spec=spec)), CallModel)


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        (Limits(max_tokens=1), "max_tokens"),
        (Limits(max_cost_usd=0.5), "max_cost_usd"),
        (Limits(max_wall_s=3.0), "max_wall_s"),
        (Limits(max_working_s=1.0), "max_working_s"),
        (Limits(max_tool_calls=1), "max_tool_calls"),
        (Limits(max_total_errors=1), "max_total_errors"),
    ],
)
def test_every_budget_ends_the_deciding_and_is_named(limits: Limits, limit: str) -> None:
    """S4-12, S2-18."""
    spec = replace(SPEC, limits=limits)
    costly = replace(replied(1, LOOK), usage=Usage(input_tokens=5), cost_usd=1.0, latency_s=2.0)
    error = Observed(call_id="call_1", ok=False, output="", error=Fault(code="e", message="m"))
    refused = replace(error, error=Fault(code="tool_call_limit", message="none is left"))
    observed = {"max_total_errors": error, "max_tool_calls": refused}.get(limit, seen(1))
    effect = REACT.next(spec, trace_of(costly, asked(1), observed, spec=spec))
    assert isinstance(effect, Record)
    assert isinstance(effect.facts[0], LimitReached)
    assert effect.facts[0].limit == limit


def test_reads_of_one_decision_run_at_once_and_writes_one_by_one() -> None:
    both = Act(calls=(Call(tool="look", args={}), Call(tool="look", args={"a": 1}), Call(tool="pay", args={})))
    trace = trace_of(replied(1, both), asked(1), asked(2), asked(3, "pay"))
    assert REACT.next(SPEC, trace) == RunTools(calls=(trace.pending["call_1"], trace.pending["call_2"]))
    trace.append(Event(5, 5.0, seen(1)))
    trace.append(Event(6, 6.0, seen(2)))
    assert REACT.next(SPEC, trace) == RunTools(calls=(trace.pending["call_3"],))


def test_a_question_waits_until_what_needs_no_answer_has_run() -> None:
    both = Act(calls=(Call(tool="pay", args={}), Call(tool="look", args={})))
    trace = trace_of(replied(1, both), asked(1, "pay", "ask"), asked(2))
    assert REACT.next(SPEC, trace) == RunTools(calls=(trace.pending["call_2"],))
    trace.append(Event(4, 4.0, seen(2)))
    assert REACT.next(SPEC, trace) == AskPerson(calls=(trace.pending["call_1"],))


def test_a_refused_action_goes_back_to_the_model_with_the_reason() -> None:
    refused = ApprovalRefused(call_id="call_1", by="ann", note="too much money")
    effect = REACT.next(SPEC, trace_of(replied(1, LOOK), asked(1, "pay", "ask"), refused))
    assert isinstance(effect, Record)
    fact = effect.facts[0]
    assert isinstance(fact, Observed)
    assert fact.error is not None
    assert (fact.ok, fact.error.code) == (False, "refused")
    assert "too much money" in fact.error.message


def test_an_effect_that_was_under_way_when_the_process_died_is_in_doubt_and_not_repeated() -> None:
    """Promise 1; S0-38."""
    started = ActionStarted(call_id="call_1", idempotency_key="r:call_1")
    lost = (replied(1, LOOK), asked(1, "pay"), started, Resumed())
    assert REACT.next(SPEC, trace_of(*lost)) == Record(facts=(InDoubt(call_id="call_1", reason="no_outcome"),))
    trace = trace_of(*lost, InDoubt(call_id="call_1", reason="no_outcome"))
    assert REACT.next(SPEC, trace) == AskPerson(calls=(), doubts=(trace.pending["call_1"],))
    spec = replace(SPEC, policy=Policy(profile="headless"))
    effect = REACT.next(spec, trace_of(*lost, InDoubt(call_id="call_1", reason="no_outcome"), spec=spec))
    assert isinstance(effect, Record)
    fact = effect.facts[0]
    assert isinstance(fact, Observed)
    assert fact.error is not None
    assert fact.error.code == "in_doubt"


def test_an_idempotent_effect_is_repeated_under_its_key() -> None:
    spec = replace(SPEC, tools=(READ, replace(WRITE, idempotent=True)))
    started = ActionStarted(call_id="call_1", idempotency_key="r:call_1")
    trace = trace_of(replied(1, LOOK), asked(1, "pay"), started, Resumed(), spec=spec)
    assert REACT.next(spec, trace) == RunTools(calls=(trace.pending["call_1"],))


@pytest.mark.parametrize(
    ("strategy", "tools", "thought"),
    [(REACT, True, True), (ACT_ONLY, True, False), (REASON_ONLY, False, True), (STANDARD, False, False)],
)
def test_the_four_modes_differ_in_tools_and_reasoning_only(strategy: object, tools: bool, thought: bool) -> None:
    """S4-4 to S4-8: the same task, the same agent."""
    effect = strategy.next(SPEC, trace_of())  # type: ignore[attr-defined]  # parametrised over strategies
    assert isinstance(effect, CallModel)
    system, user = effect.request.messages[0].content, effect.request.messages[-1].content
    assert bool(effect.request.tools) is tools
    assert ("Look." in system) is tools
    assert ("Thought:" in system) is thought
    assert "the task" in user


def test_an_unknown_strategy_names_those_that_exist() -> None:
    with pytest.raises(UnknownName, match="react"):
        get_strategy("tree-of-thought")
    assert get_strategy("reason-only") is REASON_ONLY
