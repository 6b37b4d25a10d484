from __future__ import annotations

import asyncio
import tracemalloc
from typing import TYPE_CHECKING

from taoloop.journals.memory import MemoryJournal
from taoloop.testing.journal_contract import STARTED, JournalContract, events, note

if TYPE_CHECKING:
    from taoloop.journals.base import Journal


class TestMemoryJournal(JournalContract):
    async def make_journal(self) -> Journal:
        return MemoryJournal()


def test_events_are_kept_as_the_objects_they_are() -> None:
    async def run() -> None:
        journal, (event,) = MemoryJournal(), events(STARTED)
        await journal.append(await journal.create("r1"), [event])
        assert (await journal.load("r1"))[0] is event

    asyncio.run(run())


def test_an_empty_run_is_dated_by_the_clock() -> None:
    async def run() -> None:
        journal = MemoryJournal(clock=lambda: 42.0)
        await journal.create("r1")
        (row,) = await journal.runs()
        assert (row.started_at, row.updated_at) == (42.0, 42.0)

    asyncio.run(run())


def test_a_thousand_runs_stay_small() -> None:
    async def run() -> None:
        journal, kept = MemoryJournal(), events(STARTED, *(note(number) for number in range(30)))
        tracemalloc.start()
        for number in range(1_000):
            lease = await journal.create(f"r{number}")
            for event in kept:
                await journal.append(lease, [event])
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held / 1_000 < 1_000  # bytes a run beside the events themselves

    asyncio.run(run())
