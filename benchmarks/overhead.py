"""CPU per step above the model and the tool, in memory: 10 steps and 1,000 steps, beside a bare loop.

Run: python benchmarks/overhead.py [--json]
Targets: at most 60 µs per step at 10 steps, for an async tool and for an inline one alike; at 1,000 steps at most 1.3
times that. `add_in_thread`, a plain sync tool, shows what the change of thread costs.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from minimal import minimal_loop

from taoloop import Agent, Limits, MemoryJournal, RunContext, ScriptedModel, tool
from taoloop.core.events import RunStarted
from taoloop.core.message import ModelReply, ToolCallText
from taoloop.core.trace import Trace
from taoloop.runtime.approvals.input_requests import InputRequests
from taoloop.runtime.engine.call_context import CallContexts
from taoloop.runtime.engine.clock import SystemClock
from taoloop.runtime.engine.run_artifacts import RunArtifacts
from taoloop.tools.tool import Tool

UNLIMITED = Limits(max_steps=None, repeat_tell=None, repeat_stop=None)


@tool(tier="read")
async def add_async(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@tool(tier="read", inline=True)
def add_inline(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@tool(tier="draft")
async def add_draft(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@tool(tier="read")
def add_in_thread(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@tool
async def with_context(ctx: RunContext[int]) -> int:
    """Take a context."""
    return ctx.deps


TOOLS = (add_async, add_inline, add_draft, add_in_thread)


def script(steps: int, name: str) -> list[ModelReply]:
    """`steps` calls with different arguments, then the answer."""
    calls = [
        ModelReply(tool_calls=(ToolCallText(name=name, arguments=json.dumps({"a": n, "b": 2}), id=f"c{n}"),))
        for n in range(steps)
    ]
    return [*calls, ModelReply(text="done")]


async def cpu_per_step_us(run: Callable[[], Awaitable[Any]], steps: int, repeats: int) -> float:
    """Median CPU of one step in microseconds over `repeats` runs, after one that does not count."""
    await run()
    costs = []
    for _ in range(repeats):
        began = time.process_time()
        await run()
        costs.append((time.process_time() - began) / steps * 1e6)
    return statistics.median(costs)


def taoloop_run(one: Tool, steps: int, *, fresh: bool = False) -> Callable[[], Awaitable[Any]]:
    """A run of one agent with its traces in memory, as a program makes many; `fresh`: with a new agent every time."""
    model = ScriptedModel(script(steps, one.name))
    made = Agent(model=model, tools=[one], limits=UNLIMITED)

    async def run() -> None:
        agent = Agent(model=model, tools=[one], limits=UNLIMITED, journal=MemoryJournal()) if fresh else made
        result = await agent.run("add numbers", deps=1)
        assert result.status == "completed", result.reason

    return run


def bare_run(steps: int) -> Callable[[], Awaitable[Any]]:
    """The bare loop on the same script."""
    replies = script(steps, "add")

    async def ask(_messages: Sequence[Any], turn: int) -> ModelReply:
        return replies[turn]

    async def run() -> None:
        await minimal_loop("add numbers", ask, {"add": lambda a, b: a + b})

    return run


def context_us() -> float:
    """CPU of making the context of one call, in microseconds."""
    trace = Trace("r")
    trace.add(RunStarted(task="add numbers", agent=Agent(model=["x"]).spec_for("add numbers"), nonce="n"), 0.0)
    inputs, artifacts = InputRequests(trace, None, SystemClock()), RunArtifacts(trace, MemoryJournal())
    contexts = CallContexts(trace, artifacts, inputs, deps=1, on_delta=None, clean=None)
    record: Any = (None, None)
    costs = []
    for _ in range(20):
        began = time.process_time()
        for _ in range(1000):
            contexts.of_call(with_context, "call_1", record)
        costs.append((time.process_time() - began) * 1e3)
    return statistics.median(costs)


async def measure() -> dict[str, float]:
    """All figures, in microseconds of CPU per step."""
    figures = {
        "bare loop, 10 steps": await cpu_per_step_us(bare_run(10), 10, 200),
        "bare loop, 1000 steps": await cpu_per_step_us(bare_run(1000), 1000, 5),
    }
    for one in TOOLS:
        for steps, repeats in ((10, 200), (1000, 5)):
            figures[f"{one.name}, {steps} steps"] = await cpu_per_step_us(taoloop_run(one, steps), steps, repeats)
    fresh = taoloop_run(add_async, 10, fresh=True)
    figures["the context of a call"] = context_us()
    figures["add_async, 10 steps, a new agent"] = await cpu_per_step_us(fresh, 10, 200)
    return figures


def main() -> None:
    """Print the figures."""
    figures = asyncio.run(measure())
    if "--json" in sys.argv:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:33} {value:8.1f} µs CPU{'' if name == 'the context of a call' else ' per step'}")
    for one in TOOLS:
        ratio = figures[f"{one.name}, 1000 steps"] / figures[f"{one.name}, 10 steps"]
        print(f"{one.name:33} {ratio:8.2f} times as much per step at 1,000 steps as at 10")


if __name__ == "__main__":
    main()
