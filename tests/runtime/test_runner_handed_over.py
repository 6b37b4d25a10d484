"""A tool whose result comes from outside: the run waits for it without a process, and goes on with it."""

from __future__ import annotations

from typing import Any

import pytest

from taoloop import Agent, tool
from taoloop.core.events import ActionStarted, Observed, Paused
from taoloop.errors import HandedOver
from taoloop.journals.memory import MemoryJournal
from taoloop.tools.tool import Tool

ASKS = {"tool_calls": [{"name": "weather", "args": {"city": "Rome"}}]}


def weather_from(found: dict[str, str], tier: Any = "read") -> Tool:
    @tool(tier=tier, egress=False)
    async def weather(city: str) -> str:
        """The weather in a city."""
        if city not in found:
            raise HandedOver("whoever asked looks it up")
        return found[city]

    return weather


def test_a_run_waits_for_a_result_and_goes_on_with_it() -> None:
    journal, found = MemoryJournal(), dict[str, str]()
    agent = Agent(model=[ASKS, "Sunny in Rome."], tools=[weather_from(found)], journal=journal, dialect="native")
    waiting = agent.run_sync("How is Rome?")
    assert waiting.status == "waiting"
    assert "weather" in waiting.reason
    assert "looks it up" in waiting.reason
    assert list(waiting.trace.pending) == ["call_1"]

    again = agent.resume_sync(waiting.run_id)  # there is still nothing
    assert again.status == "waiting"

    found["Rome"] = "sunny"
    done = agent.resume_sync(waiting.run_id)
    assert (done.status, done.answer) == ("completed", "Sunny in Rome.")
    facts = [event.fact for event in done.trace.events]
    assert [fact.output for fact in facts if isinstance(fact, Observed)] == ["sunny"]
    assert sum(isinstance(fact, Paused) for fact in facts) == 2
    assert not any(isinstance(fact, ActionStarted) for fact in facts)


def test_calls_beside_it_are_done_before_the_run_waits() -> None:
    @tool(tier="read")
    def double(number: int) -> int:
        """Twice a number."""
        return 2 * number

    both = {"tool_calls": [*ASKS["tool_calls"], {"name": "double", "args": {"number": 4}}]}
    agent = Agent(model=[both, "…"], tools=[weather_from({}), double], dialect="native")
    waiting = agent.run_sync("Double 4, and how is Rome?")
    assert waiting.status == "waiting"
    assert list(waiting.trace.pending) == ["call_1"]
    assert waiting.trace.calls["call_2"].observed is not None


@pytest.mark.parametrize("tier", ["write", "destructive"])
def test_a_tool_that_may_have_changed_something_cannot_hand_over(tier: str) -> None:
    agent = Agent(model=[ASKS, "It failed."], tools=[weather_from({}, tier)], dialect="native", policy="autonomous")
    done = agent.run_sync("How is Rome?")
    assert done.status == "completed"
    [observed] = [event.fact for event in done.trace.events if isinstance(event.fact, Observed)]
    assert observed.error is not None
    assert observed.error.code == "handed_over"
