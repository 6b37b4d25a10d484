"""Figures of the PostgreSQL journal beside those of SQLite, in the same run, on a server that is started for it.

    python benchmarks/postgres_journal.py [--json] [--seconds N] [--at-once N] [--url URL]

1. Runs of 21 events per second and worker process, with the events of a turn appended together, as a process of its own
   writes them; with one and with two of them. The server commits as it does in production (fsync, synchronous_commit).
2. What an event takes in the database (tables, indexes, after a checkpoint) beside its body.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from uuid import uuid4

from journal import step

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import Event, Fact, Finished, RunStarted
from taoloop.core.stored_events import encode_stored
from taoloop.journals import PostgresJournal, SqliteJournal
from taoloop.testing.postgres_server import postgres_server

TURNS = 4
"""Each of 5 events, stored in 2 appends: what the model said and is to be done, and what came of it."""

REPORT = """\
runs of 21 events ({bytes_per_event:,.0f} bytes per event, {appends} appends), {at_once} at once, {seconds:g} s
  PostgreSQL, one worker    {one:8,.0f} runs/s (target: at least 200), CPU of the worker {cpu_ms:.2f} ms/run
  PostgreSQL, two workers   {two:8,.0f} runs/s together, {ratio:.2f} times one (target: 1.7)
  SQLite, one worker        {sqlite:8,.0f} runs/s
bytes per event in PostgreSQL {stored:,.0f}: {stored_ratio:.2f} times its body (target: at most 1.30)"""


def groups() -> list[list[Event]]:
    """What a run of 21 events appends: the start with the first reply, outcomes with the next reply, the end."""
    facts: list[Fact] = [RunStarted(task="How many posts?", agent=AgentSpec(), nonce="n" * 16)]
    parts: list[list[Fact]] = [facts]
    for number in range(1, TURNS + 1):
        intent, outcome = step(number)
        parts[-1] = [*parts[-1], *intent]
        parts.append(list(outcome))
    parts[-1] = [*parts[-1][:-1], Finished(status="completed", answer="1,024", reason="answered")]
    events, seq = [], 0
    for part in parts:
        events.append([Event(seq + place, 1_700_000_000.0 + seq, fact) for place, fact in enumerate(part)])
        seq += len(part)
    return events


async def write(journal: Any, seconds: float, at_once: int) -> dict[str, float]:
    """Runs per second, with so many at once."""
    parts, count = groups(), 0
    deadline = time.monotonic() + seconds

    async def drive() -> None:
        nonlocal count
        while time.monotonic() < deadline:
            lease = await journal.begin(uuid4().hex)
            for part in parts:
                await journal.append(lease, part)
            count += 1

    async with journal:
        began, cpu = time.monotonic(), time.process_time()
        await asyncio.gather(*(drive() for _ in range(at_once)))
        took, used = time.monotonic() - began, time.process_time() - cpu
    return {"runs_per_s": count / took, "cpu_ms_per_run": 1_000 * used / max(1, count), "runs": count}


def workers(target: str, count: int, seconds: float, at_once: int) -> list[dict[str, float]]:
    """What so many processes at once report."""
    command = [sys.executable, __file__, "--worker", target, "--seconds", str(seconds), "--at-once", str(at_once)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return [json.loads(process.communicate()[0]) for process in processes]


async def stored_bytes(url: str) -> tuple[float, float]:
    """Bytes per event in the database, and of its body."""
    sizes = (
        "SELECT (SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('{0}.event') WHERE isleaf)"
        " + pg_total_relation_size('{0}.run'), (SELECT count(*) FROM {0}.event),"
        " (SELECT sum(octet_length(body)) FROM {0}.event)"
    )
    async with PostgresJournal(url) as journal:
        row = await journal.database.run(lambda c: c.fetchrow(sizes.format(journal.database.settings.schema)))
    size, count, bodies = (float(value) for value in row)
    return size / count, bodies / count


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All figures."""
    started = (
        nullcontext(None)
        if options.url
        else postgres_server(
            fsync="on", full_page_writes="on", autovacuum="on", max_wal_size="1GB", shared_buffers="128MB"
        )
    )
    with started as server, tempfile.TemporaryDirectory() as folder:
        url = options.url or (server.new_database() if server is not None else "")
        workers(url, 1, 1.0, options.at_once)  # the tables, and the pages of the binaries
        (one,) = workers(url, 1, options.seconds, options.at_once)
        stored, body = asyncio.run(stored_bytes(url))
        both = workers(url, 2, options.seconds, options.at_once)
        (sqlite,) = workers(str(Path(folder) / "runs.db"), 1, options.seconds, options.at_once)
    two = sum(worker["runs_per_s"] for worker in both)
    bodies = [len(encode_stored(event.fact).body) for part in groups() for event in part]
    return {
        "bytes_per_event": sum(bodies) / len(bodies),
        "appends": len(groups()),
        "at_once": options.at_once,
        "seconds": options.seconds,
        "one": one["runs_per_s"],
        "cpu_ms": one["cpu_ms_per_run"],
        "two": two,
        "ratio": two / one["runs_per_s"],
        "sqlite": sqlite["runs_per_s"],
        "stored": stored,
        "stored_ratio": stored / body,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--seconds", type=float, default=8.0, help="how long each measurement takes")
    parser.add_argument("--at-once", type=int, default=64, help="runs at once in a worker")
    parser.add_argument("--url", help="a database of your own, in place of a server that is started")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        is_path = "://" not in options.worker
        journal = SqliteJournal(options.worker) if is_path else PostgresJournal(options.worker)
        print(json.dumps(asyncio.run(write(journal, options.seconds, options.at_once))))
        return
    figures = measure(options)
    print(json.dumps(figures) if options.json else REPORT.format(**figures))


if __name__ == "__main__":
    main()
