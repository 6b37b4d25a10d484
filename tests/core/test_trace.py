"""The trace: folded one event at a time, append-only, refusing what does not fit."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from taoloop.core.agent_spec import AgentSpec, Limits
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call
from taoloop.core.events import (
    ActionRequested,
    ApprovalGiven,
    Event,
    Fact,
    Fault,
    Finished,
    LimitReached,
    ModelReplied,
    Noted,
    Observed,
    Paused,
    ReplyRejected,
    Resumed,
    RunStarted,
)
from taoloop.core.message import Usage
from taoloop.core.trace import Trace
from taoloop.errors import IllegalEvent

SPEC = AgentSpec(tools=(ToolCard(name="add", purpose="Add.", tier="read"),))
START = RunStarted(task="t", agent=SPEC, nonce="n")
ACT = Act(calls=(Call(tool="add", args={}),), reason="because")


def trace_of(*facts: Fact, at: float = 0.0, every_s: float = 1.0) -> Trace:
    """A trace of these facts, one every `every_s` seconds."""
    return Trace("r", [Event(seq, at + seq * every_s, fact) for seq, fact in enumerate(facts)])


def replied(step: int = 1, decision: Act | Answer | None = ACT, **more: object) -> ModelReplied:
    return ModelReplied(step=step, purpose="decide", text="x", decision=decision, **more)  # type: ignore[arg-type]  # test data


def requested(call_id: str = "call_1", digest: str = "d", **more: object) -> ActionRequested:
    return ActionRequested(
        step=1,
        call_id=call_id,
        tool="add",
        args={},
        tier="read",
        verdict="allow",
        digest=digest,
        **more,  # type: ignore[arg-type]  # test data
    )


def ok(call_id: str = "call_1", output: str = "8") -> Observed:
    return Observed(call_id=call_id, ok=True, output=output, latency_s=0.5)


def failed(call_id: str = "call_1") -> Observed:
    return Observed(call_id=call_id, ok=False, output="", error=Fault(code="e", message="no"))


def test_a_gap_in_the_sequence_is_refused_and_changes_nothing() -> None:
    trace = trace_of(START)
    with pytest.raises(IllegalEvent, match="event 5 after 1"):
        trace.append(Event(5, 0.0, replied()))
    assert len(trace.events) == 1


@pytest.mark.parametrize("fact", [replied(), Finished(status="completed", answer="a", reason="r")])
def test_nothing_comes_before_the_start(fact: Fact) -> None:
    with pytest.raises(IllegalEvent, match="as event 0"):
        Trace("r").append(Event(0, 0.0, fact))


def test_a_finished_run_takes_nothing_but_a_resume() -> None:
    trace = trace_of(START, Finished(status="stopped", answer=None, reason="r"))
    with pytest.raises(IllegalEvent, match="is finished"):
        trace.append(Event(2, 0.0, replied()))
    trace.append(Event(2, 0.0, Resumed()))
    assert trace.status == "running"


def test_an_observation_for_a_call_that_is_not_pending_is_refused() -> None:
    """S0-31: each observation refers to exactly one call."""
    trace = trace_of(START, replied(), requested(), ok())
    with pytest.raises(IllegalEvent, match="call_1"):
        trace.append(Event(4, 0.0, ok()))


def test_phases_follow_the_facts() -> None:
    trace = trace_of(START)
    seen = [trace.phase]
    for fact in (replied(), requested(), ok(), replied(2, Answer(text="8"))):
        trace.append(Event(len(trace.events), 0.0, fact))
        seen.append(trace.phase)
    assert seen == ["thinking", "decided", "acting", "thinking", "answered"]


def test_consecutive_errors_start_again_after_a_success_and_total_errors_do_not() -> None:
    """S0-45: the printed counter is never reset; ours counts both."""
    trace = trace_of(START, replied(), requested(), failed(), replied(2), requested("call_2"), ok("call_2"))
    assert (trace.consecutive_errors, trace.total_errors) == (0, 1)


def test_unreadable_replies_and_failed_calls_count_together() -> None:
    """S0-20."""
    rejected = ReplyRejected(step=1, code="empty", message="m")
    trace = trace_of(START, replied(decision=None), rejected, replied(1), requested(), failed())
    assert (trace.consecutive_errors, trace.consecutive_unreadable) == (2, 1)


def test_a_repair_belongs_to_its_step() -> None:
    rejected = ReplyRejected(step=1, code="empty", message="m")
    trace = trace_of(START, replied(1, None), rejected, replied(1))
    assert [len(step.replies) for step in trace.steps] == [2]


def test_the_same_result_of_the_same_action_is_counted_and_a_new_one_starts_again() -> None:
    """S2-26: honest polling is not punished."""
    facts: list[Fact] = [START]
    for n, output in enumerate(["same", "same", "same", "new", "new"], 1):
        facts += [replied(n), requested(f"call_{n}"), ok(f"call_{n}", output)]
    counts = []
    trace = Trace("r")
    for seq, fact in enumerate(facts):
        trace.append(Event(seq, 0.0, fact))
        if isinstance(fact, Observed):
            counts.append((trace.repeats, list(trace.repeat_notices)))
    assert counts[2] == (3, [("add", 3)])
    assert [count for count, _ in counts] == [1, 2, 3, 1, 2]


def test_the_notice_is_given_once() -> None:
    facts: list[Fact] = [START]
    for n in range(1, 4):
        facts += [replied(n), requested(f"call_{n}"), ok(f"call_{n}")]
    trace = trace_of(*facts, Noted(by="guard", text="again"))
    assert trace.repeat_notices == []


def test_usage_and_cost_add_up_and_an_unknown_price_is_not_zero() -> None:
    usage = Usage(input_tokens=10, output_tokens=5, cached_tokens=4)
    trace = trace_of(START, replied(1, usage=usage, cost_usd=0.25), requested(), ok(), replied(2, usage=usage))
    assert trace.usage == Usage(input_tokens=20, output_tokens=10, cached_tokens=8)
    assert (trace.cost_usd, trace.unpriced_calls) == (0.25, 1)


def test_wall_time_leaves_out_the_time_between_a_stop_and_a_resume() -> None:
    trace = trace_of(START, Finished(status="stopped", answer=None, reason="r"), every_s=2.0)
    trace.append(Event(2, 1_000.0, Resumed()))
    trace.append(Event(3, 1_003.0, replied(1)))
    assert trace.wall_s == 5.0


def test_wall_time_leaves_out_the_time_that_a_dead_process_was_dead() -> None:
    trace = trace_of(START, replied(1), every_s=2.0)
    trace.append(Event(2, 1_000.0, Resumed()))
    assert trace.wall_s == 2.0


def test_working_time_counts_model_and_tools_only() -> None:
    trace = trace_of(START, replied(1, latency_s=2.0), requested(), ok(), every_s=100.0)
    assert trace.working_s == 2.5


def test_a_resume_after_a_limit_takes_new_limits_and_thinks_again() -> None:
    reached = LimitReached(limit="max_steps", status="max_steps_exceeded", allowed=1, used=1)
    closing = ModelReplied(step=1, purpose="close", text="x", decision=Answer(text="so far"))
    done = Finished(status="max_steps_exceeded", answer="so far", reason="r", limit="max_steps")
    trace = trace_of(START, replied(), requested(), ok(), reached, closing, done, Resumed(limits=Limits(max_steps=9)))
    assert (trace.phase, trace.limits.max_steps, trace.answer, trace.limit_reached) == (
        "thinking",
        9,
        None,
        None,
    )
    assert len(trace.steps) == 1, "the closing turn is no step"


def test_an_approval_answers_one_waiting_call_once() -> None:
    asked = ActionRequested(step=1, call_id="call_1", tool="add", args={}, tier="write", verdict="ask", digest="d")
    given = ApprovalGiven(call_id="call_1", digest="d", by="ann", args={"a": 2})
    trace = trace_of(START, replied(), asked, Paused(reason="w", waiting_for=("call_1",)), given)
    assert trace.status == "waiting", "until it is resumed: no process is there"
    assert trace.calls["call_1"].args == {"a": 2}
    with pytest.raises(IllegalEvent, match="waits for no answer"):
        trace.append(Event(5, 0.0, given))


def test_an_approval_of_another_call_is_none() -> None:
    asked = ActionRequested(step=1, call_id="call_1", tool="add", args={}, tier="write", verdict="ask", digest="d")
    with pytest.raises(IllegalEvent, match="another call"):
        trace_of(START, replied(), asked, ApprovalGiven(call_id="call_1", digest="e", by="ann"))


@dataclass
class Counting:
    """A view that counts what it is shown."""

    seen: list[int] = field(default_factory=list)

    def fold(self, event: Event) -> None:
        self.seen.append(event.seq)


def test_a_view_sees_every_event_once_however_often_it_is_asked_for() -> None:
    trace = trace_of(START, replied())
    first = trace.view("counting", Counting)
    trace.append(Event(2, 0.0, requested()))
    assert trace.view("counting", Counting) is first
    assert first.seen == [0, 1, 2]


def test_a_view_of_a_run_that_is_over_is_made_anew() -> None:
    """A trace that is kept holds no prompt; who asks for one still gets all of it, and what comes later."""
    trace = trace_of(START, replied())
    first = trace.view("counting", Counting)
    trace.append(Event(2, 0.0, Finished(status="stopped", answer=None, reason="stopped")))
    again = trace.view("counting", Counting)
    assert again is not first
    assert again.seen == [0, 1, 2]
    trace.append(Event(3, 0.0, Resumed()))
    assert trace.view("counting", Counting).seen == [0, 1, 2, 3]


def test_a_fact_is_added_as_the_next_event() -> None:
    trace = Trace("r")
    with pytest.raises(IllegalEvent, match="model_replied as event 0"):
        trace.add(replied(), 1.0)
    event = trace.add(START, 1.0)
    assert type(event) is Event
    assert event == Event(0, 1.0, START) == trace.events[0]
    with pytest.raises(IllegalEvent, match="run_started as event 1"):
        trace.add(START, 2.0)
    assert trace.events == [event]
    assert trace.add(replied(), 2.0).seq == 1
