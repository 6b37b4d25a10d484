"""`read_observation` joins the prompt with the first observation that was cut."""

from __future__ import annotations

import pytest

from taoloop import Agent, Limits, MemoryJournal, ScriptedModel, tool
from taoloop.core.decision import Act, Answer, Call
from taoloop.core.effects import ModelRequest
from taoloop.core.events import Observed
from taoloop.core.message import ModelReply
from taoloop.dialects import get_dialect


@tool(tier="read")
async def look(size: int) -> str:
    """Look at a text."""
    return "tea " * size


class Watching(ScriptedModel):
    """Keeps the prompts, and the names of the tools on offer."""

    prompts: tuple[str, ...] = ()
    offered: tuple[tuple[str, ...], ...] = ()

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.offered += (tuple(card.name for card in request.tools),)
        self.prompts += ("\n".join(message.content for message in request.messages),)
        return await super().complete(request)


@pytest.mark.parametrize("dialect", ["text", "json", "fenced"])
def test_the_card_comes_with_the_first_cut(dialect: str) -> None:
    sizes = (1, 5_000, 6_000)
    decisions: list[Act | Answer] = [
        *(Act(calls=(Call(tool="look", args={"size": size}),)) for size in sizes),
        Answer(text="It is tea."),
    ]
    model = Watching([get_dialect(dialect).write(decision) for decision in decisions])
    agent = Agent(model=model, dialect=dialect, tools=[look], journal=MemoryJournal())
    assert agent.run_sync("Look.").status == "completed"
    assert [prompt.count("## read_observation") for prompt in model.prompts] == [0, 0, 1, 1]


def test_a_native_request_offers_it_from_the_first_cut_on() -> None:
    steps = [{"tool_calls": [{"name": "look", "args": {"size": size}}]} for size in (1, 5_000, 1)]
    read = {"tool_calls": [{"name": "read_observation", "args": {"artifact": "obs_call_2", "search": "tea"}}]}
    model = Watching([*steps, read, "It is tea."])
    result = Agent(model=model, tools=[look], journal=MemoryJournal()).run_sync("Look.")
    assert result.status == "completed"
    without, whole = ("look",), ("look", "read_observation")
    assert model.offered == (without, without, whole, whole, whole)
    assert all("read_observation" not in prompt for prompt in model.prompts[:2])
    last = [event.fact for event in result.trace.events if isinstance(event.fact, Observed)][-1]
    assert last.ok, last


def test_a_preview_of_a_compaction_is_a_cut() -> None:
    steps = [{"tool_calls": [{"name": "look", "args": {"size": 900 + n}}]} for n in range(12)]
    model = Watching([*steps, "It is tea."])
    agent = Agent(model=model, tools=[look], context_tokens=9_000, limits=Limits(max_steps=None))
    assert agent.run_sync("Look.").status == "completed"
    assert model.offered[0] == ("look",)
    assert model.offered[-1] == ("look", "read_observation")
    assert "obs_call_1" in model.prompts[-1]


def test_a_tool_that_is_asked_for_by_its_name_alone_is_on_offer_at_once() -> None:
    model = Watching(["It is tea."])
    assert Agent(model=model, tools=["read_observation"]).run_sync("Look.").status == "completed"
    assert model.offered == (("read_observation",),)
