"""Runs driven by Temporal: take-over after `kill -9`, waking of waiting runs, history of a run, runs per second.

Run: python benchmarks/temporal_engine.py [--full] [--json]     --full: 10,000 waiting runs instead of 1,000
Needs the program `temporal` on the path (scripts/check-temporal installs it in .venv/check-temporal/packages/bin).
Targets: taken over within 8 s; a waiting run is at work again within 150 ms (p95); at most 2 KB of history per run.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.runtime.fleet.engine import WAITING, Advanced
from taoloop.runtime.fleet.engines import open_engine
from taoloop.runtime.fleet.temporal.connection import connect
from taoloop.runtime.fleet.temporal.engine import TemporalEngine
from taoloop.testing.engine_contract import Fleet
from taoloop.testing.fleet_processes import WorkerPlan

sys.path.insert(0, str(Path(__file__).parents[1]))

from checks.temporal.temporal_server import TemporalServer

RUNS, TAKE_OVERS, WOKEN = 500, 3, 200


class Turns:
    """An `advance` that notes when each run was advanced, and has runs wait the first time if `waits`."""

    def __init__(self, *, waits: bool) -> None:
        self._waits = waits
        self.times: dict[str, float] = {}
        self.counts = Counter[str]()

    async def __call__(self, run_id: str) -> Advanced:
        self.counts[run_id] += 1
        self.times[run_id] = time.perf_counter()
        return Advanced(WAITING if self._waits and self.counts[run_id] == 1 else "completed")

    async def until(self, turns: int) -> None:
        """Wait until there were so many turns."""
        while self.counts.total() < turns:  # noqa: ASYNC110  # the measurement is not to add work to each turn
            await asyncio.sleep(0.01)


class Served:
    """An engine that serves as long as the block runs."""

    def __init__(self, address: str, turns: Turns) -> None:
        self._address, self._turns = address, turns

    async def __aenter__(self) -> TemporalEngine:
        engine = TemporalEngine(await connect(self._address), concurrency=100)
        self._task = asyncio.create_task(engine.serve(self._turns))
        return engine

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


async def submit_all(engine: TemporalEngine, count: int) -> list[str]:
    """Submit so many runs, 20 at once."""
    run_ids, at_once = [f"run-{number}" for number in range(count)], asyncio.Semaphore(20)

    async def submit(run_id: str) -> None:
        async with at_once:
            await engine.submit(run_id, None, "default", 3, "")

    await asyncio.gather(*map(submit, run_ids))
    return run_ids


async def measure_throughput(address: str) -> dict[str, float]:
    """Runs that do nothing, per second, and the bytes of their history."""
    turns = Turns(waits=False)
    async with Served(address, turns) as engine:
        began = time.perf_counter()
        await submit_all(engine, RUNS)
        await turns.until(RUNS)
        took_s = time.perf_counter() - began
        client = await connect(address)
        await client.get_workflow_handle("run-0").result()
        description = await client.get_workflow_handle("run-0").describe()
        size = description.raw_description.workflow_execution_info.history_size_bytes
    return {"runs_per_s": RUNS / took_s, "history_bytes": size}


async def measure_waking(address: str, count: int) -> dict[str, float]:
    """Milliseconds from a wake to the turn that follows it, with `count` waiting runs."""
    turns, delays_ms = Turns(waits=True), list[float]()
    async with Served(address, turns) as engine:
        run_ids = await submit_all(engine, count)
        await turns.until(count)
        await asyncio.sleep(5)  # the server has yet to store that they wait
        for number, run_id in enumerate(run_ids[:: max(1, count // WOKEN)][:WOKEN], start=1):
            began = time.perf_counter()
            await engine.wake(run_id)
            await turns.until(count + number)
            delays_ms.append(1000 * (turns.times[run_id] - began))
    delays_ms.sort()
    return {"wake_p50_ms": delays_ms[len(delays_ms) // 2], "wake_p95_ms": delays_ms[int(len(delays_ms) * 0.95)]}


async def measure_take_over(address: str, folder: Path) -> float:
    """Seconds from `kill -9` of a worker to the turn of another one that lives."""
    plan = WorkerPlan(folder=folder, database=str(folder / "runs.db"), engine=address, lease_s=5)
    async with SqliteJournal(plan.database) as journal, open_engine(address, journal) as engine:
        fleet = Fleet(plan, journal, engine)
        try:
            fleet.world.hold()
            run_id = await fleet.submit("pay_keyed model")
            worker = fleet.start()
            await fleet.at("model")
            fleet.start()
            await asyncio.sleep(4)  # the other one is at work, too
            known, began = len(await fleet.trace(run_id)), time.perf_counter()
            worker.kill()
            while len(await fleet.trace(run_id)) == known:  # noqa: ASYNC110  # another process adds to it
                await asyncio.sleep(0.05)
            return time.perf_counter() - began
        finally:
            fleet.end()


def main() -> None:
    """Measure, and print the figures."""
    waiting = 10_000 if "--full" in sys.argv else 1_000
    figures: dict[str, Any] = {"waiting": waiting}
    with TemporalServer(["runs", "waits", *(f"dies-{number}" for number in range(TAKE_OVERS))], settings=()) as server:
        figures |= asyncio.run(measure_throughput(server.address("runs")))
        take_overs = []
        for number in range(TAKE_OVERS):
            with tempfile.TemporaryDirectory() as folder:
                take_overs.append(asyncio.run(measure_take_over(server.address(f"dies-{number}"), Path(folder))))
        figures["take_over_s"] = max(take_overs)
        figures |= asyncio.run(measure_waking(server.address("waits"), waiting))
    if "--json" in sys.argv:
        print(json.dumps(figures))
        return
    print(f"taken over after kill -9          {figures['take_over_s']:8.1f} s, the longest of {TAKE_OVERS}")
    p50, p95 = figures["wake_p50_ms"], figures["wake_p95_ms"]
    print(f"waking one of {waiting:6,} runs      {p50:8.0f} ms p50, {p95:.0f} ms p95")
    print(f"history of a run                  {figures['history_bytes']:8.0f} bytes")
    print(f"runs that do nothing, one worker  {figures['runs_per_s']:8.0f} per second")


if __name__ == "__main__":
    main()
