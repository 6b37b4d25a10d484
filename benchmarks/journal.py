"""Figures of the SQLite journal, each beside raw sqlite3 that writes the same rows in as many transactions.

    python benchmarks/journal.py [--json] [--repeat N] [--folder FOLDER] [--no-pin]

1. One run alone, FULL: wall time over raw (target: at most 1.3), CPU beside it. Raw gets its rows ready made. It runs
   twice: as SQLite comes, which is the yardstick, and with the journal's checkpoints, which helps it too.
   Both are held on the same CPU, which changes from repetition to repetition; the ratio is that of the time spent
   in all repetitions (beside the CPU that serves the disk a commit is quicker, so single ratios fall in two heaps).
2. 64 runs at once through group commit, FULL (target: at least 5,000 events/s).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.decision import Act, Call
from taoloop.core.events import (
    ActionRequested,
    ActionStarted,
    Event,
    Fact,
    ModelReplied,
    Observed,
    RunStarted,
)
from taoloop.core.message import ToolCallText, Usage
from taoloop.core.stored_events import encode_fact
from taoloop.journals.sqlite.file import CHECKPOINT_PAGES
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.journals.sqlite.schema import upgrade

REPORT = """\
one run alone, FULL, 2-3 events of {bytes_per_event:,.0f} bytes per append
  raw sqlite3    {raw_commit_us:8.0f} us per append, CPU {raw_cpu_us_per_event:5.1f} us/event
  SqliteJournal  {alone_append_us:8.0f} us per append, CPU {alone_cpu_us_per_event:5.1f} us/event
  ratio          {alone_over_raw:8.2f} (target: at most 1.30; of the repetitions alone {alone_over_raw_quartiles[0]:.2f} to {alone_over_raw_quartiles[1]:.2f}, the quartiles)
  raw sqlite3 with the journal's checkpoints {tuned_commit_us:.0f} us per append (ratio to that {alone_over_tuned:.2f})
{runs_at_once} runs at once, FULL, group commit
  SqliteJournal  {events_per_s:8,.0f} events/s, CPU {cpu_us_per_event:5.1f} us/event (target: at least 5,000)"""  # noqa: E501  # a table

APPENDS_ALONE = 400
RUNS = 64
APPENDS_EACH = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Of one repetition: seconds of wall time and of CPU (all threads of this process), and what was written."""

    wall_s: float
    cpu_s: float
    events: int
    bytes: int

    @property
    def rate(self) -> float:
        return self.events / self.wall_s


def step(number: int) -> list[list[Fact]]:
    """The two appends of one step of a run, 1 KB an event on average: reply with intent, then the outcome."""
    thought, found = "I look the number up before I say it. " * 20, "Bezirk Huala: 1,024 posts. " * 40
    call_id, args = f"c{number}", {"table": "posts", "key": "huala", "note": "n" * 200}
    replied = ModelReplied(
        step=number,
        purpose="decide",
        text=thought,
        decision=Act(calls=(Call(tool="lookup", args=args),), reason=thought),
        tool_calls=(ToolCallText(name="lookup", arguments=json.dumps(args), id="call_1"),),
        model="some-model",
        usage=Usage(input_tokens=900, output_tokens=80),
    )
    requested = ActionRequested(
        step=number,
        call_id=call_id,
        tool="lookup",
        args=args,
        tier="read",
        verdict="allow",
        digest="d" * 64,
        reasons=("reads only",),
    )
    started = ActionStarted(call_id=call_id, idempotency_key="k" * 32)
    observed = Observed(call_id=call_id, ok=True, output=found)
    return [[replied, requested, started], [observed, observed]]


def appends(count: int) -> list[list[Event]]:
    """What a run appends: the start, then steps, of 2 or 3 events each."""
    groups: list[list[Fact]] = [[RunStarted(task="How many posts?", agent=AgentSpec(), nonce="n" * 16)]]
    while len(groups) < count:
        groups += step(len(groups))
    events, seq = [], 0
    for group in groups[:count]:
        events.append([Event(seq + i, 1_700_000_000.0 + seq, fact) for i, fact in enumerate(group)])
        seq += len(group)
    return events


def raw(path: Path, groups: list[list[Event]], checkpoint_pages: int | None = None) -> Timing:
    """The floor: rows that are ready, one connection, no thread, no check. SQLite's own checkpoints, or others."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    if checkpoint_pages is not None:
        connection.execute(f"PRAGMA wal_autocheckpoint = {checkpoint_pages}")
    upgrade(connection)
    rows = [
        [("raw", event.seq, event.at, event.kind, 1, encode_fact(event.fact).decode(), bytes(32)) for event in group]
        for group in groups
    ]
    wall, cpu = time.perf_counter(), time.process_time()
    for group_rows in rows:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?)", group_rows)
        connection.execute("COMMIT")
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    connection.close()
    return timing(wall, cpu, [groups])


async def ours(path: Path, work: list[list[list[Event]]]) -> Timing:
    """The journal, one task per run, each waiting for its append before the next."""
    async with SqliteJournal(path) as journal:
        leases = [await journal.create(f"run-{number}") for number in range(len(work))]

        async def run(number: int) -> None:
            for group in work[number]:
                await journal.append(leases[number], group)

        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(run(number) for number in range(len(work))))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return timing(wall, cpu, work)


def timing(wall: float, cpu: float, work: list[list[list[Event]]]) -> Timing:
    events = [event for groups in work for group in groups for event in group]
    size = sum(len(encode_fact(event.fact)) for event in events)
    return Timing(wall_s=wall, cpu_s=cpu, events=len(events), bytes=size)


@contextmanager
def on_one_cpu(number: int) -> Iterator[None]:
    """Hold the process on one CPU, another one for each `number`; does nothing where the system cannot.

    The interrupts of a disk go to one CPU and a commit from another takes a quarter longer, whoever makes it:
    left to itself the scheduler keeps raw sqlite3 beside the disk and sends a process with two threads elsewhere.
    """
    if sys.platform != "linux":
        yield
        return
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(cpus)[number % len(cpus)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)


def measure(folder: Path, repeat: int, *, pin: bool) -> dict[str, Any]:
    alone, many = appends(APPENDS_ALONE), [appends(APPENDS_EACH) for _ in range(RUNS)]
    floors, tuned, singles, groups = [], [], [], []
    for number in range(repeat):  # interleaved: a noisy moment hits all four
        with on_one_cpu(number) if pin else nullcontext():
            floors.append(raw(folder / f"raw{number}.db", alone))
            tuned.append(raw(folder / f"tuned{number}.db", alone, CHECKPOINT_PAGES))
            singles.append(asyncio.run(ours(folder / f"alone{number}.db", [alone])))
        groups.append(asyncio.run(ours(folder / f"many{number}.db", many)))
    ratios = [one.wall_s / floor.wall_s for one, floor in zip(singles, floors, strict=True)]
    return {
        "raw_commit_us": statistics.mean(t.wall_s for t in floors) / APPENDS_ALONE * 1e6,
        "tuned_commit_us": statistics.mean(t.wall_s for t in tuned) / APPENDS_ALONE * 1e6,
        "alone_append_us": statistics.mean(t.wall_s for t in singles) / APPENDS_ALONE * 1e6,
        "alone_over_raw": sum(t.wall_s for t in singles) / sum(t.wall_s for t in floors),
        "alone_over_tuned": sum(t.wall_s for t in singles) / sum(t.wall_s for t in tuned),
        "alone_over_raw_quartiles": statistics.quantiles(ratios, n=4)[::2],
        "raw_cpu_us_per_event": statistics.median(t.cpu_s / t.events for t in floors) * 1e6,
        "alone_cpu_us_per_event": statistics.median(t.cpu_s / t.events for t in singles) * 1e6,
        "runs_at_once": RUNS,
        "events_per_s": statistics.median(t.rate for t in groups),
        "cpu_us_per_event": statistics.median(t.cpu_s / t.events for t in groups) * 1e6,
        "bytes_per_event": singles[0].bytes / singles[0].events,
        "repetitions": [[asdict(t) for t in row] for row in zip(floors, singles, groups, strict=True)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--no-pin", action="store_true", help="let the scheduler choose the CPU in part 1")
    parser.add_argument("--folder", type=Path, help="where the files lie (the disk decides much); default: temporary")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        figures = measure(Path(folder), options.repeat, pin=not options.no_pin)
    if options.json:
        print(json.dumps(figures))
        return
    print(REPORT.format(**figures))


if __name__ == "__main__":
    main()
