"""What only the memory journal does: forget runs that are over, if it is told to."""

from __future__ import annotations

import asyncio

import pytest

from taoloop.core.events import Event, Finished, RunStarted
from taoloop.core.spec import AgentSpec
from taoloop.errors import RunNotFound
from taoloop.journals.memory import MemoryJournal


async def finished_run(journal: MemoryJournal, run_id: str) -> None:
    lease = await journal.create(run_id)
    start = RunStarted(task="t", agent=AgentSpec(), nonce="n")
    await journal.append(
        lease, [Event(0, 0.0, start), Event(1, 0.0, Finished(status="completed", answer="", reason=""))]
    )


def test_the_oldest_run_that_is_over_gives_way() -> None:
    async def fill() -> MemoryJournal:
        journal = MemoryJournal(keep=2)
        await journal.create("still running")
        for run_id in ("first", "second", "third"):
            await finished_run(journal, run_id)
        return journal

    journal = asyncio.run(fill())
    rows = asyncio.run(journal.runs())
    assert {row.run_id for row in rows} == {"still running", "third"}
    with pytest.raises(RunNotFound):
        asyncio.run(journal.load("first"))
