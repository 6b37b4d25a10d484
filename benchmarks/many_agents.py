"""1,000 agents at once, 10 steps each, with a model that takes 50 ms, in one process and one thread.

Run: python benchmarks/many_agents.py [--json]
Targets: within 2 times the ideal wall time (11 model calls of 50 ms) and at most 60 KB each, beside a bare loop.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from minimal import minimal_loop
from overhead import UNLIMITED, add_async, script

from taoloop import Agent, MemoryJournal, ScriptedModel
from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply

AGENTS, STEPS, MODEL_S = 1000, 10, 0.05
IDEAL_S = (STEPS + 1) * MODEL_S


class SlowModel(ScriptedModel):
    """A scripted model that takes its time."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The script's reply, 50 ms later."""
        await asyncio.sleep(MODEL_S)
        return await super().complete(request)


async def run_all(one: Callable[[], Awaitable[Any]]) -> tuple[float, list[Any]]:
    """Wall seconds for all agents at once, and what they gave back (kept alive)."""
    began = time.perf_counter()
    results = await asyncio.gather(*(one() for _ in range(AGENTS)))
    return time.perf_counter() - began, list(results)


def taoloop_one() -> Callable[[], Awaitable[Any]]:
    """One run of one shared agent, with its trace kept."""
    agent = Agent(
        model=SlowModel(script(STEPS, "add_async")),
        tools=[add_async],
        limits=UNLIMITED,
        journal=MemoryJournal(),
    )
    return lambda: agent.run("add numbers")


def bare_one() -> Callable[[], Awaitable[Any]]:
    """One bare loop with the same waiting."""
    replies = script(STEPS, "add")

    async def ask(_messages: Sequence[Any], turn: int) -> ModelReply:
        await asyncio.sleep(MODEL_S)
        return replies[turn]

    return lambda: minimal_loop("add numbers", ask, {"add": lambda a, b: a + b})


def memory_kb(make: Callable[[], Callable[[], Awaitable[Any]]]) -> float:
    """KB per agent at the peak, by tracemalloc (so without its own cost in time)."""
    one = make()
    asyncio.run(one())  # type: ignore[arg-type]  # a coroutine, whatever its type says
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    asyncio.run(run_all(one))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - before) / AGENTS / 1024


def main() -> None:
    """Print the figures."""
    figures: dict[str, float] = {"ideal_s": IDEAL_S}
    for name, make in (("bare", bare_one), ("taoloop", taoloop_one)):
        wall_s = min(asyncio.run(run_all(make()))[0] for _ in range(3))
        figures |= {
            f"{name}_s": wall_s,
            f"{name}_times_ideal": wall_s / IDEAL_S,
            f"{name}_kb": memory_kb(make),
        }
    if "--json" in sys.argv:
        print(json.dumps(figures))
        return
    for name in ("bare", "taoloop"):
        print(
            f"{name:8} {figures[name + '_s']:.3f} s, {figures[name + '_times_ideal']:.2f} times the ideal "
            f"{IDEAL_S:.2f} s, {figures[name + '_kb']:.1f} KB per agent"
        )


if __name__ == "__main__":
    main()
