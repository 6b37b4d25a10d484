"""A run as it was: the prompts are those that the model got, and the limits those of that moment."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from taoloop import Agent, Limits, ScriptedModel, Trace, tool
from taoloop.core.effects import ModelRequest
from taoloop.core.events import ModelReplied
from taoloop.core.message import Message, ModelReply
from taoloop.models.scripted import Reply
from taoloop.strategies.past_state import limit_use, next_request


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
        request = next_request(Trace(trace.run_id, trace.events[:seq]))
        assert request is not None
        assert request.messages == prompt


def test_limits_say_what_was_used_and_left_at_the_moment() -> None:
    limits = Limits(max_steps=5, max_tool_calls=3)
    trace = Agent(model=ScriptedModel(SCRIPT), tools=[price], limits=limits).run_sync("What is tea?").trace
    start, end = (limit_use(Trace("r", events)) for events in (trace.events[:1], trace.events))
    left = {limit.name: limit.left for limit in start}
    assert (left["max_steps"], left["max_tool_calls"], left["max_tokens"]) == (5, 3, None)
    used = {limit.name: limit.used for limit in end}
    assert (used["max_steps"], used["max_tool_calls"]) == (trace.step_count, 2)


def test_no_prompt_is_next_while_a_call_is_open_or_the_run_is_over() -> None:
    trace = Agent(model=ScriptedModel(SCRIPT), tools=[price]).run_sync("What is tea?").trace
    seq = next(event.seq for event in trace if event.kind == "action_requested")
    assert next_request(Trace("r", trace.events[: seq + 1])) is None
    assert next_request(trace) is None
