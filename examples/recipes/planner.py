"""A planner with two agents as its tools, and one budget for all three: tokens and money count wherever they are spent.

The plan is made first, as data; each step of it is a run of its own (`docs/patterns.md`).
Run: python examples/recipes/planner.py ["TASK"] [--max-tokens 5000] [--model openai:gpt-4o-mini]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from taoloop import Agent, Limits, Result, tool
from taoloop.models import Reply

TASK = "Where and when should the team in Oslo have its summer meeting, on Friday or on Saturday?"


@tool(tier="read")
def forecast(city: str) -> str:
    """Give the forecast of the next days for a city."""
    return {"Oslo": "Friday: rain, 6 °C. Saturday: sunny, 11 °C."}.get(city, "no forecast for this city")


@tool(tier="read")
def free_places(city: str) -> list[str]:
    """List the meeting places of a city that are free."""
    return {"Oslo": ["Friday: hall", "Saturday: garden, hall"]}.get(city, [])


def reply(text: str = "", *calls: dict[str, Any]) -> Reply:
    """A scripted reply that counts for the budget as one of a provider does."""
    return {"text": text, "tool_calls": calls, "usage": {"input_tokens": 300, "output_tokens": 50}}


PLAN = [
    {
        "number": 1,
        "goal": "The weather",
        "calls": [{"tool": "weather", "args": {"task": "Oslo on Friday and Saturday?"}}],
    },
    {"number": 2, "goal": "The places", "calls": [{"tool": "places", "args": {"task": "What is free in Oslo?"}}]},
]
SCRIPTS: dict[str, list[Reply]] = {
    "planner": [
        reply("", {"name": "make_plan", "args": {"steps": PLAN}}),
        reply("On Saturday in the garden: it will be sunny at 11 °C, and the garden is free."),
    ],
    "weather": [
        reply("", {"name": "forecast", "args": {"city": "Oslo"}}),
        reply("Rain at 6 °C on Friday, sun at 11 °C on Saturday."),
    ],
    "places": [
        reply("", {"name": "free_places", "args": {"city": "Oslo"}}),
        reply("The hall on both days, the garden on Saturday."),
    ],
}


def planner(*, model: str | None = None, max_tokens: int = 5_000, journal: Path | str | None = None) -> Agent:
    """The planning agent. What the agents below it use is taken from its `max_tokens`."""
    weather = Agent(name="weather", model=model or SCRIPTS["weather"], tools=[forecast])
    places = Agent(name="places", model=model or SCRIPTS["places"], tools=[free_places])
    return Agent(
        name="planner",
        model=model or SCRIPTS["planner"],
        strategy="plan_execute",
        tools=[
            weather.as_tool(purpose="Knows the weather.", use_when="The weather matters for a decision."),
            places.as_tool(purpose="Knows meeting places.", use_when="A place is needed."),
        ],
        limits=Limits(max_tokens=max_tokens),
        journal=journal,
    )


def describe(result: Result) -> str:
    """How the run ended, and what it used of its budget."""
    used, limit = result.usage.total_tokens, result.trace.limits.max_tokens
    return f"{result.answer or result.reason}\n{result.status}, {used} of {limit} tokens"


def main() -> None:
    """Plan the task of the command line, and carry the plan out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", nargs="?", default=TASK)
    parser.add_argument("--max-tokens", type=int, default=5_000, help="the budget of all agents together")
    parser.add_argument("--model", help="a real model, such as openai:gpt-4o-mini; default: scripts")
    options = parser.parse_args()
    print(describe(planner(model=options.model, max_tokens=options.max_tokens).run_sync(options.task)))


if __name__ == "__main__":
    main()
