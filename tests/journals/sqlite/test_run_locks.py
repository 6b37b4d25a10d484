"""Who is at work on a run: known at once, over processes, threads and journals, and over with the process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from taoloop import MemoryJournal, SqliteJournal
from taoloop.core.events import Paused
from taoloop.errors import JournalError
from taoloop.journals.base import Lease, LockHolder, locks_of
from taoloop.testing.journal_contract import STARTED, events

Open = Callable[[], AbstractAsyncContextManager[MemoryJournal | SqliteJournal]]

CHILD = """
import asyncio, sys
from taoloop.journals.base import Lease
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.testing.journal_contract import STARTED, events

async def main():
    async with SqliteJournal(sys.argv[1]) as journal:
        lease = await journal.create("r1")
        await journal.append(lease, events(STARTED))
        journal.run_locks.lock(lease)
        print(lease.fence, flush=True)
        sys.stdin.readline()
        journal.run_locks.release(lease)
        print("let go", flush=True)
        sys.stdin.readline()

asyncio.run(main())
"""


@pytest.fixture(params=["memory", "sqlite"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    @asynccontextmanager
    async def of() -> AsyncIterator[MemoryJournal | SqliteJournal]:
        journal = MemoryJournal() if request.param == "memory" else SqliteJournal(tmp_path / "r.db")
        yield journal
        await journal.close()

    return of


async def begun(journal: MemoryJournal | SqliteJournal, run_id: str, *, parent: str | None = None) -> Lease:
    lease = await journal.create(run_id)
    await journal.append(lease, events(replace(STARTED, parent=parent)))
    return lease


def test_a_run_is_held_until_it_is_let_go(opened: Open) -> None:
    async def play() -> None:
        async with opened() as journal:
            run_locks = journal.run_locks
            assert run_locks is not None
            assert locks_of(journal) is run_locks
            lease = await begun(journal, "r1")
            assert await run_locks.holder("r1") is None
            run_locks.lock(lease)
            assert await run_locks.holder("r1") == LockHolder(process=os.getpid())
            assert str(await run_locks.holder("r1")) == "this process"
            assert await run_locks.holder("nobody") is None
            run_locks.release(lease)
            run_locks.release(lease)
            assert await run_locks.holder("r1") is None

    asyncio.run(play())


def test_a_newer_lease_voids_the_hold_of_the_older_one(opened: Open) -> None:
    async def play() -> None:
        async with opened() as journal:
            run_locks = journal.run_locks
            assert run_locks is not None
            old = await begun(journal, "r1")
            run_locks.lock(old)
            new = await journal.acquire("r1")
            assert await run_locks.holder("r1") is None
            run_locks.lock(new)
            run_locks.release(old)
            assert await run_locks.holder("r1") is not None

    asyncio.run(play())


def test_left_are_the_runs_that_nobody_is_at_work_on(opened: Open) -> None:
    async def play() -> None:
        async with opened() as journal:
            run_locks = journal.run_locks
            assert run_locks is not None
            assert await run_locks.orphans() == []
            for run_id in ("b", "a", "held"):
                lease = await begun(journal, run_id)
            run_locks.lock(lease)
            await begun(journal, "a.1", parent="a")
            waiting = await begun(journal, "waiting")
            await journal.append(waiting, events(Paused(reason="person", waiting_for=(), status="waiting"), start=1))
            await journal.create("empty")
            assert await run_locks.orphans() == ["b", "a"]

    asyncio.run(play())


def test_another_process_holds_it_until_it_lets_go_or_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "r.db"

    async def holder() -> LockHolder | None:
        async with SqliteJournal(path, read_only=True) as journal:
            assert journal.run_locks is not None
            return await journal.run_locks.holder("r1")

    for dies in (False, True):
        path.unlink(missing_ok=True)
        command = [sys.executable, "-c", CHILD, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            assert child.stdout.readline() == "1\n"
            assert asyncio.run(holder()) == LockHolder(process=child.pid)
            if dies:
                child.kill()
                child.wait()
            else:
                print(file=child.stdin, flush=True)
                assert child.stdout.readline() == "let go\n"
            assert asyncio.run(holder()) is None
            child.kill()


def test_looking_and_closing_take_nothing_from_who_holds(tmp_path: Path) -> None:
    """Locks of this kind go with any descriptor of the file that is closed, so there may only be one."""
    path = tmp_path / "r.db"
    asking = (
        "import asyncio, sys\nfrom taoloop import SqliteJournal\n"
        "async def ask():\n"
        "    async with SqliteJournal(sys.argv[1]) as journal:\n"
        "        print(await journal.run_locks.holder('r1'), await journal.run_locks.holder('r2'))\n"
        "asyncio.run(ask())"
    )

    async def play() -> str:
        async with SqliteJournal(path) as journal:
            one, two = await begun(journal, "r1"), await begun(journal, "r2")
            assert journal.run_locks is not None
            journal.run_locks.lock(one)
            journal.run_locks.lock(two)
            (tmp_path / "link.db").symlink_to(path)
            (tmp_path / "link.db-held").symlink_to(f"{path}-held")
            for other in (path, tmp_path / "link.db"):
                async with SqliteJournal(other) as again:
                    assert again.run_locks is not None
                    assert not {"r1", "r2"} & set(await again.run_locks.orphans())
                    assert await again.run_locks.holder("r1") == LockHolder(process=os.getpid())
                    extra = await begun(again, f"r-{other.stem}")
                    again.run_locks.lock(extra)
                    again.run_locks.release(extra)
            journal.run_locks.release(two)
            done = await asyncio.to_thread(
                subprocess.run, [sys.executable, "-c", asking, str(path)], capture_output=True, text=True, check=True
            )
            journal.run_locks.release(one)
            return str(done.stdout)

    assert asyncio.run(play()) == f"the process {os.getpid()} None\n"


def test_of_two_that_begin_a_run_at_once_one_holds_it_and_the_other_goes_on(tmp_path: Path) -> None:
    """Neither has written anything, so their leases are equal; the later one learns it at its first append."""
    path = tmp_path / "r.db"
    beginning = (
        "import asyncio, sys\nfrom taoloop import SqliteJournal\n"
        "async def begin():\n"
        "    async with SqliteJournal(sys.argv[1]) as journal:\n"
        "        lease = await journal.begin('r1')\n"
        "        journal.run_locks.lock(lease)\n"
        "        journal.run_locks.release(lease)\n"
        "asyncio.run(begin())"
    )

    async def play() -> None:
        async with SqliteJournal(path) as journal:
            assert journal.run_locks is not None
            first, second = await journal.begin("r1"), await journal.begin("r1")
            journal.run_locks.lock(first)
            journal.run_locks.lock(second)
            journal.run_locks.release(second)
            await asyncio.to_thread(
                subprocess.run, [sys.executable, "-c", beginning, str(path)], check=True, timeout=60
            )
            await journal.append(first, events(STARTED))
            assert await journal.run_locks.holder("r1") == LockHolder(process=os.getpid())
            journal.run_locks.release(first)

    asyncio.run(play())


def test_what_the_system_refuses_is_told_with_the_file(tmp_path: Path) -> None:
    async def play() -> None:
        async with SqliteJournal(tmp_path / "r.db") as journal:
            assert journal.run_locks is not None
            (tmp_path / "r.db-held").mkdir()
            with pytest.raises(JournalError, match=r"r\.db-held"):
                journal.run_locks.lock(await begun(journal, "r1"))

    asyncio.run(play())
