"""A run as it was: the prompts are those that the model got, and the counts those of that moment."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from taoloop import Agent, Limits, ScriptedModel, tool
from taoloop.core.effects import ModelRequest
from taoloop.core.events import ModelReplied
from taoloop.core.message import Message, ModelReply
from taoloop.errors import IllegalEvent
from taoloop.models.scripted import Reply
from taoloop.strategies.past_state import past_state


@tool(tier="read")
def price(item: str) -> str:
    """The price of an item."""
    return f"{item}: " + "3 " * 400


SCRIPT = (
    {"text": "How much?", "tool_calls": [{"name": "price", "args": {"item": "tea"}}]},
    "",  # unreadable, so it is repaired
    {"text": "And milk?", "tool_calls": [{"name": "price", "args": {"item": "milk"}}]},
    "Tea is 3.",
)


TEXT_SCRIPT = (
    'Thought: How much?\nAction: price\nAction Input: {"item": "tea"}',
    "hm",
    "Thought: I know.\nFinal Answer: Tea is 3.",
)


class Eavesdropper(ScriptedModel):
    """A scripted model that keeps every prompt it gets."""

    def __init__(self, script: Sequence[Reply]) -> None:
        super().__init__(script)
        self.prompts: list[tuple[Message, ...]] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.prompts.append(request.messages)
        return await super().complete(request)


@pytest.mark.parametrize(("dialect", "script"), [("native", SCRIPT), ("text", TEXT_SCRIPT)])
def test_each_prompt_is_the_one_that_the_model_got(dialect: str, script: Sequence[Reply]) -> None:
    model = Eavesdropper(script)
    trace = Agent(model=model, tools=[price], dialect=dialect).run_sync("What is tea?").trace
    replies = [event.seq for event in trace if isinstance(event.fact, ModelReplied)]
    assert len(replies) == len(model.prompts) == len(script)
    for seq, prompt in zip(replies, model.prompts, strict=True):
        request = past_state(trace.run_id, trace.events[:seq]).request
        assert request is not None
        assert request.messages == prompt


def test_the_counts_are_those_of_the_moment_and_say_what_was_left() -> None:
    limits = Limits(max_steps=5, max_tool_calls=3)
    trace = Agent(model=ScriptedModel(SCRIPT), tools=[price], limits=limits).run_sync("What is tea?").trace
    start, end = past_state(trace.run_id, trace.events[:1]), past_state(trace.run_id, trace.events)
    assert (start.step, start.model_calls, start.tool_calls, start.status) == (0, 0, 0, "running")
    assert (end.step, end.tool_calls, end.status) == (trace.step_count, trace.tool_calls, "completed")
    left = {limit.name: limit.left for limit in start.limits}
    assert (left["max_steps"], left["max_tool_calls"], left["max_tokens"]) == (5, 3, None)
    assert {limit.name: limit.used for limit in end.limits}["max_tool_calls"] == 2
    assert end.request is None


def test_between_a_request_and_its_outcome_the_call_is_pending_and_no_prompt_is_next() -> None:
    trace = Agent(model=ScriptedModel(SCRIPT), tools=[price]).run_sync("What is tea?").trace
    seq = next(event.seq for event in trace if event.kind == "action_requested")
    state = past_state(trace.run_id, trace.events[: seq + 1])
    assert [call.requested.tool for call in state.pending] == ["price"]
    assert state.request is None


def test_events_that_are_no_beginning_are_refused() -> None:
    trace = Agent(model=ScriptedModel(SCRIPT), tools=[price]).run_sync("What is tea?").trace
    with pytest.raises(IllegalEvent):
        past_state(trace.run_id, trace.events[1:])
