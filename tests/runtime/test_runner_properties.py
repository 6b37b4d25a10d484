"""What holds for every run, whatever a model says and whichever limits it meets."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, strategies as st
from tests.sizes import examples

from taoloop import Agent, Limits, MemoryJournal, ScriptedModel, ToolError, tool
from taoloop.core.effects import ModelRequest
from taoloop.core.events import ActionRequested, Finished, ModelReplied, Observed
from taoloop.core.message import Message, ModelReply
from taoloop.core.stored_events import decode_fact, encode_fact
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result, step_summaries, transcript
from taoloop.runtime.after.replay import replay


@tool(tier="read")
async def add(a: int, b: int = 1) -> int:
    """Add two integers."""
    return a + b


@tool(tier="draft")
async def shaky(text: str) -> str:
    """Fail for some texts."""
    if "o" in text:
        raise ToolError("no o, please", code="has_o")
    if "x" in text:
        raise ValueError(text)
    return text * 3


@tool(tier="write")
async def pay(amount: float) -> str:
    """Pay."""
    return f"paid {amount}"


ARGS = st.one_of(
    st.fixed_dictionaries({"a": st.integers(-3, 3)}),
    st.fixed_dictionaries({"text": st.text('oxyz中\n"', max_size=5)}),
    st.fixed_dictionaries({"amount": st.floats(allow_nan=False, allow_infinity=False)}),
    st.dictionaries(st.text(max_size=3), st.none() | st.integers() | st.text(max_size=3), max_size=2),
    st.just("{broken"),
)
CALLS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["add", "shaky", "pay", "nobody"]), "args": ARGS}), max_size=3
)
TEXTS = st.sampled_from(
    [
        "",
        "done",
        'Thought: t\nAction: add\nAction Input: {"a": 1}',
        "Action: shaky: yes",
        "Thought: t\nFinal Answer: 完成",
        "Action: add: 1\nObservation: 2\nFinal Answer: 2",
        '{"thought": "t", "action": "add", "action_input": {"a": 2}}',
        '{"thought": "t", "action": "final", "action_input": "42"}',
        '{"type": "tool_call", "tool": "pay", "args": {"amount": 1}, "answer": null, "reason_summary": "r"}',
        "<think>never closed",
        "\ud800",
    ]
)
REPLIES = st.lists(st.fixed_dictionaries({"text": TEXTS, "tool_calls": CALLS}), max_size=8)
LIMITS = st.builds(
    Limits,
    max_steps=st.none() | st.integers(1, 5),
    max_tool_calls=st.none() | st.integers(1, 3),
    max_consecutive_errors=st.none() | st.integers(1, 3),
    max_total_errors=st.none() | st.integers(1, 4),
    repeat_tell=st.none() | st.integers(1, 3),
    repeat_stop=st.none() | st.integers(1, 4),
)


class Watching(ScriptedModel):
    """A script that also keeps what it was shown, and does not mind replies left over."""

    def __init__(self, replies: list[Any]) -> None:
        super().__init__(replies, strict=False)
        self.prompts: list[tuple[Message, ...]] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.prompts.append(request.messages)
        return await super().complete(request)


def run(replies: list[Any], **options: Any) -> tuple[Result, Watching]:
    model = Watching(replies)
    agent = Agent(model=model, tools=[add, shaky, pay], journal=MemoryJournal(), **options)
    return asyncio.run(agent.run("do it")), model


OPTIONS = st.fixed_dictionaries(
    {
        "limits": LIMITS,
        "dialect": st.sampled_from(["native", "text", "json"]),
        "strategy": st.sampled_from(["react", "act_only", "reason_only", "standard"]),
        "closing_turn": st.booleans(),
        "repair_turns": st.integers(0, 2),
        "approve": st.sampled_from([None, lambda _question: True, lambda _question: False]),
    }
)


@examples(150)
@given(REPLIES, OPTIONS)
def test_every_run_ends_once_and_stays_true_to_its_trace(replies: list[Any], options: dict[str, Any]) -> None:
    result, model = run(replies, **options)
    trace = result.trace
    facts = [event.fact for event in trace.events]
    finished = [fact for fact in facts if isinstance(fact, Finished)]
    assert len(finished) == (0 if result.status == "waiting" else 1)
    assert result.status == "waiting" or facts[-1] is finished[0]
    assert [event.seq for event in trace.events] == list(range(len(facts)))
    asked = [fact.call_id for fact in facts if isinstance(fact, ActionRequested)]
    seen = [fact.call_id for fact in facts if isinstance(fact, Observed)]
    assert len(set(asked)) == len(asked)
    assert sorted(seen) == sorted(call for call in asked if call not in trace.pending)
    assert result.status == "waiting" or not trace.pending
    assert all(one.same for one in replay(trace)), "a replay decides the same"
    for before, after in zip(model.prompts, model.prompts[1:], strict=False):
        assert after[: len(before)] == before, "the prompt only grows"
    assert transcript(trace)[-1:] == [] or [e.number for e in transcript(trace)] == list(range(len(transcript(trace))))
    assert len(step_summaries(trace)) >= len(trace.steps)


@examples(60)
@given(REPLIES, OPTIONS)
def test_every_event_survives_storage(replies: list[Any], options: dict[str, Any]) -> None:
    result, _ = run(replies, **options)
    for event in result.trace.events:
        stored = encode_fact(event.fact)
        again = decode_fact(event.kind, stored)
        assert encode_fact(again) == stored
        if not isinstance(event.fact, ModelReplied | ActionRequested):  # their arguments may be no JSON
            assert again == event.fact


@examples(60)
@given(REPLIES, OPTIONS, st.integers(1, 30))
def test_a_trace_folds_the_same_in_one_go_and_in_pieces(replies: list[Any], options: dict[str, Any], cut: int) -> None:
    result, _ = run(replies, **options)
    events = result.trace.events
    trace = Trace(result.run_id, events[:cut])
    for event in events[cut:]:
        trace.append(event)
    whole = Trace(result.run_id, events)
    names = ("phase", "tool_calls", "total_errors", "consecutive_errors", "repeats", "working_s", "wall_s", "status")
    assert [getattr(trace, name) for name in names] == [getattr(whole, name) for name in names]
