"""Figures of the PostgreSQL engine, on a server that is started for it and commits as in production.

    python benchmarks/postgres_engine.py [--json] [--runs N] [--url URL]

1. From `submit` to the start of the advance, with idle workers; turns that do nothing per second, with one and with two
   worker processes, each run driven once; how long N runs take to be submitted.
2. What an idle worker costs: transactions per second and connections.
3. How long a run stays where it was when its worker is killed (lease 6 s), and when it is told to end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import statistics
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import Event, RunStarted
from taoloop.journals import PostgresJournal
from taoloop.runtime.fleet.engine import Advanced
from taoloop.runtime.fleet.engines import open_engine
from taoloop.testing.postgres_server import postgres_server

LEASE_S = 6.0
IDLE_S = 10.0

SETTLE_S = 12.0
"""Until idle connections of PostgreSQL have reported their transactions (at most 10 s)."""

REPORT = """\
submit to start, idle worker       p50 {start_p50_ms:6.1f} ms, p95 {start_p95_ms:.1f} ms (target: at most 20)
{runs:,} runs submitted            {submit_s:6.1f} s (target: 10 for 10,000), stored before in {store_s:.1f} s
turns that do nothing, one worker  {one:6,.0f} turns/s, {doubles_one} doubles
                       two workers {two:6,.0f} turns/s together, {doubles_two} doubles
an idle worker                     {idle_tx:6.2f} transactions/s (target: 1), {idle_connections} connections (2)
taken over after kill -9           {takeover_s:6.1f} s, with a lease of {lease_s:g} s (target: lease + 1)
handed over after SIGTERM          {handover_s:6.2f} s"""


def work(url: str, log: str, name: str, holds: bool) -> None:
    """A worker process: it writes a line for every advance; `holds`: its advances do not end by themselves."""
    asyncio.run(_work(url, log, name, holds))


async def _work(url: str, log: str, name: str, holds: bool) -> None:
    with Path(log).open("a", buffering=1, encoding="utf-8") as lines:  # noqa: ASYNC230  # short lines, a local file

        async def advance(run_id: str) -> Advanced:
            lines.write(f"{time.time()} {name} {run_id}\n")
            if holds:
                await stop.wait()
                return Advanced("running")
            return Advanced("completed")

        stop = asyncio.Event()
        async with (
            PostgresJournal(url) as journal,
            open_engine(None, journal, concurrency=50, lease_s=LEASE_S) as engine,
        ):
            serving = asyncio.create_task(engine.serve(advance))

            def end() -> None:
                stop.set()
                serving.cancel()

            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
            lines.write(f"{time.time()} {name} -\n")
            await asyncio.wait([serving])


class Bench:
    """A database, its workers, and what they wrote."""

    def __init__(self, url: str, folder: str) -> None:
        self.url, self.log = url, str(Path(folder) / f"log-{uuid4().hex}")
        self.workers: dict[str, Any] = {}

    async def start(self, name: str, *, holds: bool = False) -> None:
        """Start a worker, and wait until it serves."""
        process = multiprocessing.get_context("spawn").Process(target=work, args=(self.url, self.log, name, holds))
        process.start()
        self.workers[name] = process
        await self.until(lambda lines: any(line[1:] == (name, "-") for line in lines))

    def end(self, name: str, number: signal.Signals = signal.SIGTERM) -> float:
        """End a worker; gives when the signal was sent."""
        at = time.time()
        os.kill(self.workers[name].pid, number)
        self.workers.pop(name).join()
        return at

    def lines(self) -> list[tuple[float, str, str]]:
        """When, who, which run."""
        path = Path(self.log)
        parts = [line.split() for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
        return [(float(at), name, run_id) for at, name, run_id in (part for part in parts if len(part) == 3)]

    async def until(self, holds: Any) -> list[tuple[float, str, str]]:
        """The lines, once they are as wanted."""
        while not holds(lines := self.lines()):  # noqa: ASYNC110  # other processes write them
            await asyncio.sleep(0.05)
        return lines


async def store(journal: PostgresJournal, run_ids: list[str]) -> None:
    """Store runs with their first event, many at once."""
    started = RunStarted(task="t", agent=AgentSpec(), nonce="n" * 16)

    async def add(run_id: str) -> None:
        await journal.append(await journal.begin(run_id), [Event(0, time.time(), started)])

    for first in range(0, len(run_ids), 100):
        await asyncio.gather(*map(add, run_ids[first : first + 100]))


async def submit(journal: PostgresJournal, run_ids: list[str]) -> float:
    """Submit runs; gives how long that took."""
    began = time.perf_counter()
    async with open_engine(None, journal) as engine:
        for first in range(0, len(run_ids), 100):
            part = run_ids[first : first + 100]
            await asyncio.gather(*(engine.submit(run_id, None, "default", 3, "") for run_id in part))
    return time.perf_counter() - began


async def latency(journal: PostgresJournal, bench: Bench) -> dict[str, float]:
    """From the call of `submit` to the start of the advance."""
    await bench.start("w1")
    run_ids, sent = [f"l{number}" for number in range(100)], {}
    await store(journal, run_ids)
    for run_id in run_ids:
        await asyncio.sleep(0.02)
        sent[run_id] = time.time()
        await submit(journal, [run_id])
    lines = await bench.until(lambda lines: len(lines) > len(run_ids))
    bench.end("w1")
    waits = sorted((at - sent[run_id]) * 1000 for at, _, run_id in lines if run_id in sent)
    return {"start_p50_ms": statistics.median(waits), "start_p95_ms": waits[len(waits) * 95 // 100]}


async def throughput(journal: PostgresJournal, bench: Bench, count: int, names: list[str]) -> dict[str, float]:
    """Turns per second of runs that were submitted before the workers began, and how many were driven twice."""
    run_ids = [f"{'-'.join(names)}-{number}" for number in range(count)]
    began = time.perf_counter()
    await store(journal, run_ids)
    store_s, submit_s = time.perf_counter() - began, await submit(journal, run_ids)
    for name in names:
        await bench.start(name)
    lines = await bench.until(lambda lines: len({run_id for _, _, run_id in lines} & set(run_ids)) == count)
    for name in names:
        bench.end(name)
    turns = [(at, run_id) for at, _, run_id in lines if run_id in set(run_ids)]
    both_from = max(at for at, name, run_id in lines if run_id == "-" and name in names)
    late = [at for at, _ in turns if at >= both_from]
    doubles = sum(times - 1 for times in Counter(run_id for _, run_id in turns).values())
    rate = len(late) / (max(late) - both_from) if late else 0.0
    return {"rate": rate, "doubles": doubles, "store_s": store_s, "submit_s": submit_s}


async def idle(journal: PostgresJournal, bench: Bench) -> dict[str, float]:
    """Transactions per second and connections of a worker that has nothing to do."""
    await bench.start("idle")
    count = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    await asyncio.sleep(SETTLE_S)

    async def read(query: str) -> int:
        return int(await journal.database.run(lambda connection: connection.fetchval(query)))

    before, own = (
        await read(count),
        await read("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'taoloop'"),
    )
    await asyncio.sleep(IDLE_S)
    after = await read(count)
    bench.end("idle")
    await asyncio.sleep(0.5)
    left = await read("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'taoloop'")
    return {"idle_tx": max(0, after - before - 2) / IDLE_S, "idle_connections": own - left}


async def replacement(journal: PostgresJournal, bench: Bench, number: signal.Signals, name: str) -> float:
    """How long a run stays where it was after this signal to its worker."""
    run_id = f"held-{name}"
    await store(journal, [run_id])
    await bench.start(f"{name}-1", holds=True)
    await submit(journal, [run_id])
    await bench.until(lambda lines: any(line[2] == run_id for line in lines))
    await bench.start(f"{name}-2")
    at = bench.end(f"{name}-1", number)
    lines = await bench.until(lambda lines: any(line[1:] == (f"{name}-2", run_id) for line in lines))
    bench.end(f"{name}-2")
    return max(line[0] for line in lines if line[2] == run_id) - at


async def measure(url: str, runs: int) -> dict[str, float]:
    """All figures."""
    with TemporaryDirectory() as folder:
        bench = Bench(url, folder)
        async with PostgresJournal(url) as journal:
            figures = await latency(journal, bench)
            one = await throughput(journal, bench, runs, ["a"])
            two = await throughput(journal, bench, runs, ["b", "c"])
            figures |= await idle(journal, bench)
            figures["takeover_s"] = await replacement(journal, bench, signal.SIGKILL, "killed")
            figures["handover_s"] = await replacement(journal, bench, signal.SIGTERM, "told")
    figures |= {"runs": runs, "submit_s": one["submit_s"], "store_s": one["store_s"], "lease_s": LEASE_S}
    figures |= {"one": one["rate"], "two": two["rate"], "doubles_one": one["doubles"], "doubles_two": two["doubles"]}
    return figures


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--runs", type=int, default=10_000, help="runs for the rates")
    parser.add_argument("--url", help="an existing, empty database in place of a new server")
    options = parser.parse_args()
    if options.url:
        figures = asyncio.run(measure(options.url, options.runs))
    else:
        with postgres_server(fsync="on", full_page_writes="on", autovacuum="on") as server:
            figures = asyncio.run(measure(server.url(), options.runs))
    print(json.dumps(figures) if options.json else REPORT.format(**figures))


if __name__ == "__main__":
    main()
