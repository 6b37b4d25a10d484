"""What only the memory journal does: forget runs that are over, if it is told to."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import Event, Finished, RunStarted
from taoloop.errors import RunNotFound
from taoloop.journals.memory import MemoryJournal
from taoloop.testing.journal_contract import STARTED, events


async def finished_run(journal: MemoryJournal, run_id: str) -> None:
    lease = await journal.create(run_id)
    start = RunStarted(task="t", agent=AgentSpec(), nonce="n")
    await journal.append(
        lease, [Event(0, 0.0, start), Event(1, 0.0, Finished(status="completed", answer="", reason=""))]
    )


def test_the_oldest_run_that_is_over_gives_way() -> None:
    async def fill() -> MemoryJournal:
        journal = MemoryJournal(keep=2)
        await journal.append(await journal.create("still running"), events(STARTED))
        for run_id in ("first", "second", "third"):
            await finished_run(journal, run_id)
        return journal

    journal = asyncio.run(fill())
    rows = asyncio.run(journal.runs())
    assert {row.run_id for row in rows} == {"still running", "third"}
    with pytest.raises(RunNotFound):
        asyncio.run(journal.load("first"))


def test_threads_that_create_list_and_forget_runs_do_not_disturb_one_another() -> None:
    journal = MemoryJournal(keep=100)
    failed: list[Exception] = []
    barrier = threading.Barrier(6)

    async def work(name: int) -> None:
        for number in range(300):
            await finished_run(journal, f"{name}.{number}")
            await journal.runs(limit=100)

    def thread(name: int) -> None:
        barrier.wait()
        try:
            asyncio.run(work(name))
        except Exception as error:  # noqa: BLE001  # whatever it is
            failed.append(error)

    threads = [threading.Thread(target=thread, args=(name,)) for name in range(6)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # they take turns as often as they can
    try:
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        sys.setswitchinterval(interval)
    assert failed == []
    assert len(asyncio.run(journal.runs(limit=200))) == 100
