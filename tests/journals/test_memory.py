"""What only the memory journal does: forget runs that are over, if it is told to."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable

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


def in_threads(count: int, work: Callable[[int], object]) -> list[Exception]:
    """What went wrong where `count` threads do the work, which take turns as often as they can."""
    failed: list[Exception] = []

    def thread(number: int) -> None:
        try:
            work(number)
        except Exception as error:  # noqa: BLE001  # whatever it is
            failed.append(error)

    threads = [threading.Thread(target=thread, args=(number,)) for number in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        sys.setswitchinterval(interval)
    return failed


def test_threads_that_create_list_and_forget_runs_do_not_disturb_one_another() -> None:
    journal = MemoryJournal(keep=8)

    async def work(name: int) -> None:
        for number in range(150):
            await finished_run(journal, f"{name}.{number}")
            await journal.runs()

    assert in_threads(6, lambda name: asyncio.run(work(name))) == []
    assert {row.status for row in asyncio.run(journal.runs())} == {"completed"}


def test_of_threads_that_take_a_run_at_once_each_gets_a_fence_of_its_own() -> None:
    journal = MemoryJournal()
    fences: list[int] = []

    async def take() -> None:
        fences.extend([(await journal.acquire("r1")).fence for _ in range(2_000)])

    asyncio.run(finished_run(journal, "r1"))
    assert in_threads(4, lambda _: asyncio.run(take())) == []
    assert len(set(fences)) == 8_000
