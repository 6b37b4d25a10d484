"""Look up the post count of huala, then add 2: the smallest complete run, with a scripted model.

The trace has exactly eight entries. Run: python examples/huala.py
"""

from __future__ import annotations

from taoloop import Agent, Limits, Result, ScriptedModel, ToolError, tool

POSTS = {"huala.post_count": 8}

SCRIPT = [
    "Thought: I need the post count of huala first.\nAction: lookup: huala.post_count",
    "Thought: It is 8; now I add 2.\nAction: add: 8,2",
    "Thought: The sum is known.\nFinal: 10",
]


@tool(tier="read", max_input_bytes=1024)
def lookup(key: str) -> int:
    """Look up one value by its exact key."""
    if key not in POSTS:
        raise ToolError(f"There is no key {key!r}.", code="missing_key", hint=f"Known keys: {', '.join(POSTS)}.")
    return POSTS[key]


@tool(tier="read", max_input_bytes=1024)
def add(numbers: str) -> int:
    """Add exactly two integers, written as `8,2`."""
    try:
        first, second = (int(part) for part in numbers.split(","))
    except ValueError:
        raise ToolError(f"{numbers!r} are not two integers.", code="bad_input", hint="Write them as: 8,2") from None
    return first + second


def run(script: list[str] | None = None, limits: Limits | None = None) -> Result:
    """The demo; another script shows what happens when a model goes wrong."""
    agent = Agent(
        model=ScriptedModel(SCRIPT if script is None else script),
        tools=[lookup, add],
        dialect="text",
        limits=limits or Limits(max_steps=8),
    )
    return agent.run_sync("Look up the post count of huala, then add 2.")


if __name__ == "__main__":
    for entry in run().entries:
        print(entry)
