"""Reads of one run: short whatever its length, and never failing for one bad event."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.serve.panel.run_samples import answered, put, started, steps

from taoloop import MemoryJournal
from taoloop.core.events import Event, Observed
from taoloop.core.views.run_totals import RunTotals
from taoloop.journals.base import Artifact
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.serve.panel.run_reading import (
    KnownViews,
    UnreadableEvent,
    find_citation,
    find_row,
    find_step,
    inner_runs,
    last_seq,
    read_events,
)


class CountingJournal(MemoryJournal):
    """Counts the events that were read."""

    events_read = 0

    async def read(self, run_id: str, **limits: Any) -> list[Event]:
        events = await super().read(run_id, **limits)
        self.events_read += len(events)
        return events


def test_each_step_is_found_by_few_short_reads() -> None:
    async def main() -> None:
        journal = CountingJournal()
        await put(journal, "r1", [started(), *steps(2_000), *answered(2_001)])
        last = await last_seq(journal, "r1", None)
        for step in (1, 2, 3, 999, 1_999, 2_000, 2_001):
            journal.events_read = 0
            assert await find_step(journal, "r1", step, last) == 3 * step - 2
            assert journal.events_read < 400
        assert await find_step(journal, "r1", 2_002, last) is None
        assert await find_step(journal, "r1", 1, -1) is None

    asyncio.run(main())


def test_calls_without_a_step_of_their_own_hide_no_step() -> None:
    """Many observations may lie between two events that belong to steps."""

    async def main() -> None:
        journal = MemoryJournal()
        observations = [Observed(call_id=f"call_{number}", ok=True, output="") for number in range(300)]
        await put(journal, "r1", [started(), *list(steps(1))[:2], *observations, *steps(2, first=2)])
        assert await find_step(journal, "r1", 2, 308) == 303
        assert await find_step(journal, "r1", 3, 308) == 306

    asyncio.run(main())


def test_an_event_that_cannot_be_read_is_said_in_its_place(tmp_path: Path) -> None:
    async def main() -> None:
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            await put(journal, "r1", [started(), *steps(3)])
        with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
            connection.execute("UPDATE event SET kind = 'dreamt' WHERE seq = 5")
            connection.commit()
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            events = await read_events(journal, "r1", 3, 100)
            assert [event.seq for event in events] == list(range(3, 10))
            (bad,) = [event for event in events if isinstance(event, UnreadableEvent)]
            assert bad.seq == 5
            assert "dreamt" in bad.reason
            assert (await KnownViews(journal).of("r1", RunTotals)).steps == 3
            assert await last_seq(journal, "r1", await find_row(journal, "r1")) == 9

    asyncio.run(main())


def test_a_run_is_told_from_those_inside_it_and_from_longer_names() -> None:
    async def main() -> None:
        journal = MemoryJournal()
        for run_id in ("r1", "r1.1", "r1.2", "r10"):
            await put(journal, run_id, [started(run_id)])
        row = await find_row(journal, "r1")
        assert row is not None
        assert row.task == "r1"
        assert [inner.run_id for inner in await inner_runs(journal, "r1")] == ["r1.1", "r1.2"]
        assert await find_row(journal, "r2") is None

    asyncio.run(main())


def test_a_passage_is_found_in_an_output_that_was_cut() -> None:
    async def main() -> None:
        journal = MemoryJournal()
        cut = Observed(call_id="call_9", ok=True, output="Page …", artifact="obs_call_9", size_chars=99)
        whole = Artifact(ref="obs_call_9", body="Page 9 [doc:abcdefghijkl]")
        await put(journal, "r1", [started(), *steps(2), cut], [whole])
        assert await find_citation(journal, "r1", "doc:abcdefghijkl") == 7
        assert await find_citation(journal, "r1", "doc:000000000002") == 6
        assert await find_citation(journal, "r1", "doc:zzzzzzzzzzzz") is None

    asyncio.run(main())
