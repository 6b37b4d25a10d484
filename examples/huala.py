"""Look up the post count of huala, then add 2: the smallest complete run, with a scripted model.

The model is a function of the goal and the trace so far. The trace has exactly eight entries. For another name the
lookup fails, and the model says that the task cannot be done instead of inventing a number.
Run: python examples/huala.py [NAME]
"""

from __future__ import annotations

import re
import sys

from taoloop import Agent, Limits, Result, ScriptedModel, ToolError, Trace, tool

POSTS = {"huala.post_count": 8}


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


def decide(task: str, trace: Trace) -> str:
    """The scripted model: what it writes next follows from the goal and from what was observed so far."""
    name, number = re.findall(r"post count of (\S+?), then add (\d+)", task)[0]
    observed = [call.observed for call in trace.calls.values() if call.observed]
    if not observed:
        return f"Thought: I need the post count of {name} first.\nAction: lookup: {name}.post_count"
    if error := observed[-1].error:
        return f"Thought: The call failed; I must not invent a number.\nFinal: The task cannot be done: {error.message}"
    if len(observed) == 1:
        value = observed[0].output
        return f"Thought: It is {value}; now I add {number}.\nAction: add: {value},{number}"
    return f"Thought: The sum is known.\nFinal: {observed[1].output}"


def run(script: list[str] | None = None, limits: Limits | None = None, name: str = "huala") -> Result:
    """The demo for one name; a script in place of the model shows what happens when a model goes wrong."""
    agent = Agent(
        model=decide if script is None else ScriptedModel(script),
        tools=[lookup, add],
        dialect="text",
        limits=limits or Limits(max_steps=8),
    )
    return agent.run_sync(f"Look up the post count of {name}, then add 2.")


if __name__ == "__main__":
    for entry in run(name=sys.argv[1] if len(sys.argv) > 1 else "huala").entries:
        print(entry)
