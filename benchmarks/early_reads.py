"""What it saves to begin a read while the reply is still being written, and how fast a first token gets through.

Run: python benchmarks/early_reads.py [--json]
Targets: with the tool (200 ms) inside of the rest of the reply (300 ms) a step costs less than 1.1 times the model
alone; a piece of a reply is with its listener, and in a stream, within 1 ms.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from dataclasses import replace

from taoloop import Agent, Event, MemoryJournal, tool
from taoloop.core.effects import ModelRequest
from taoloop.core.message import Delta, ModelReply, ToolCallText

STEPS = 10
REST_S, TOOL_S = 0.3, 0.2


@tool(tier="read")
async def look(n: int) -> int:
    """Look, which takes a while."""
    await asyncio.sleep(TOOL_S)
    return n


class Slow:
    """Hands over a call at once and goes on writing for a while; answers after ten of them."""

    spec = "slow"
    dialect = "native"

    def __init__(self) -> None:
        self.sent_at: list[float] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = ModelReply(text="done")
        if request.turn < STEPS:
            call = ToolCallText(name="look", arguments=json.dumps({"n": request.turn}), id=f"c{request.turn}")
            reply = ModelReply(tool_calls=(call,))
            if request.on_delta is not None:
                self.sent_at.append(time.perf_counter())
                request.on_delta(Delta(kind="call", text=call.arguments, name=call.name))
                request.on_delta(Delta(kind="call", name=call.name, done=True))
        await asyncio.sleep(REST_S)
        return replace(reply, cost_usd=0.0)

    def check_used(self, replies: int) -> None:
        """Nothing to check."""

    async def close(self) -> None:
        """Nothing to let go of."""


def agent(model: Slow, *, early_reads: bool) -> Agent:
    """The same agent, with the switch."""
    return Agent(model=model, tools=[look], max_steps=STEPS + 1, early_reads=early_reads, journal=MemoryJournal())


async def seconds(*, early_reads: bool) -> float:
    """The time of a run of ten calls and an answer."""
    began = time.perf_counter()
    result = await agent(Slow(), early_reads=early_reads).run("Look.")
    assert result.status == "completed", result.reason
    return time.perf_counter() - began


async def delays_ms() -> tuple[float, float]:
    """From the model's hand to a listener, and to who iterates over a stream: medians in milliseconds."""
    model = Slow()
    heard: list[float] = []

    def hear(delta: Delta) -> None:
        if not delta.done:
            heard.append(time.perf_counter())

    await agent(model, early_reads=False).run("Look.", on_delta=hear)
    direct = statistics.median(b - a for a, b in zip(model.sent_at, heard, strict=True))
    model, heard = Slow(), []
    async for one in agent(model, early_reads=False).stream("Look.", deltas=True):
        if not isinstance(one, Event):
            hear(one)
    return 1e3 * direct, 1e3 * statistics.median(b - a for a, b in zip(model.sent_at, heard, strict=True))


async def measure() -> dict[str, float]:
    """All figures."""
    off, on = await seconds(early_reads=False), await seconds(early_reads=True)
    listener, stream = await delays_ms()
    return {
        "s per step, switched off": off / STEPS,
        "s per step, early reads": on / STEPS,
        "saved": 1 - on / off,
        "times the model alone": on / (REST_S * (STEPS + 1)),
        "ms to a listener": listener,
        "ms to a stream": stream,
    }


def main() -> None:
    """Print the figures."""
    figures = asyncio.run(measure())
    if "--json" in sys.argv:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:30} {value:8.3f}")


if __name__ == "__main__":
    main()
