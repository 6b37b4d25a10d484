"""`read_observation` joins the prompt with the first observation that was cut."""

from __future__ import annotations

import pytest

from taoloop import Agent, MemoryJournal, ScriptedModel, tool
from taoloop.core.decision import Act, Answer, Call
from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply
from taoloop.dialects import get_dialect


@tool(tier="read")
async def look(size: int) -> str:
    """Look at a text."""
    return "tea " * size


class Watching(ScriptedModel):
    """Keeps the prompts."""

    prompts: tuple[str, ...] = ()

    async def complete(self, request: ModelRequest) -> ModelReply:
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
