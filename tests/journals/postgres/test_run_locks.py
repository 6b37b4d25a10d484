"""Leases by heartbeats: who is at work, who is not any more, and what a heartbeat may not do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from taoloop import Agent
from taoloop.core.events import Finished, Paused, Resumed
from taoloop.errors import FenceLost, RunHeld
from taoloop.journals.base import Lease
from taoloop.journals.postgres.journal import PostgresJournal
from taoloop.testing.journal_contract import STARTED, events, note, refused, start_run

NewJournal = Callable[..., PostgresJournal]
OVER = Finished(status="completed", answer="5", reason="answered")


def run_with(journal: PostgresJournal, body: Callable[[PostgresJournal], Any]) -> None:
    async def run() -> None:
        async with journal:
            await body(journal)

    asyncio.run(run())


async def ask(journal: PostgresJournal, statement: str, *values: Any) -> Any:
    return await journal.database.run(lambda c: c.fetchval(journal.database.sql(statement), *values))


async def until(journal: PostgresJournal, run_id: str, *, held: bool) -> None:
    """Wait until a run is held, or not any more, as the database sees it."""
    while (await journal.run_locks.holder(run_id) is not None) != held:
        pass


def test_a_locked_run_is_held_until_it_is_released(new_journal: NewJournal) -> None:
    async def body(journal: PostgresJournal) -> None:
        lease = await start_run(journal)
        assert await journal.run_locks.orphans() == ["r1"]  # nobody locked it
        locks = journal.run_locks
        locks.lock(lease)
        await until(journal, "r1", held=True)
        holder = await locks.holder("r1")
        assert holder is not None
        assert "this process" in str(holder)
        async with new_journal() as other:
            assert await other.run_locks.orphans() == []
        assert not await locks.was_elsewhere("r1")
        locks.release(lease)
        locks.release(lease)
        await until(journal, "r1", held=False)
        assert await locks.orphans() == ["r1"]
        assert await locks.holder("nobody") is None

    run_with(new_journal(), body)


def test_a_new_run_is_held_from_its_first_event_and_free_with_its_last(new_journal: NewJournal) -> None:
    async def body(journal: PostgresJournal) -> None:
        lease = await journal.begin("r1")
        journal.run_locks.lock(lease)
        await journal.append(lease, events(STARTED))
        assert await journal.run_locks.holder("r1") is not None
        await journal.append(lease, events(Paused(reason="p"), start=1))
        assert await journal.run_locks.holder("r1") is None
        assert await ask(journal, "SELECT wake_at = 'infinity' FROM @.run")
        await journal.append(lease, events(Resumed(), start=2))
        assert await journal.run_locks.holder("r1") is not None
        await journal.append(lease, events(OVER, start=3))
        journal.run_locks.release(lease)
        assert await journal.run_locks.orphans() == []

    run_with(new_journal(), body)


def test_heartbeats_keep_a_run_and_never_prolong_the_lease_of_another_worker(new_journal: NewJournal) -> None:
    """The time of the row is set back, as by a worker that was stopped; the next heartbeat moves it on, once."""

    async def body(journal: PostgresJournal) -> None:
        first = await start_run(journal)
        locks = journal.run_locks
        locks.lock(first)
        for _ in range(3):
            await ask(journal, "UPDATE @.run SET wake_at = '-infinity' RETURNING 1")
            await until(journal, "r1", held=True)
        async with new_journal(lease_s=0.3) as other:
            second = await other.acquire("r1")
            await ask(journal, "UPDATE @.run SET wake_at = '-infinity' RETURNING 1")
            while first not in locks.lost:
                await ask(journal, "SELECT 1")
            assert await ask(journal, "SELECT wake_at = '-infinity' FROM @.run")  # it was not touched
            await refused(FenceLost, journal.append(first, events(note(1), start=1)))
            other.run_locks.lock(second)  # a claim while the heartbeats of the first go on
            await until(journal, "r1", held=True)
            await locks.renew([first])
            await locks.free([first])
            assert await locks.holder("r1") is not None
            locks.release(first)
            assert await locks.holder("r1") is not None
            await other.append(second, events(note(1), start=1))

    run_with(new_journal(lease_s=0.3), body)


def test_a_lease_that_was_locked_during_a_heartbeat_is_not_lost_by_it(new_journal: NewJournal) -> None:
    """What a heartbeat did not ask for is not judged by it: the run was claimed anew while it was on its way."""

    async def body(journal: PostgresJournal) -> None:
        lease = await start_run(journal)
        journal.run_locks.lock(lease)
        newer = await journal.acquire("r1")
        journal.run_locks.lock(newer)
        await journal.run_locks.renew([lease])
        assert journal.run_locks.lost == {lease}
        await journal.append(newer, events(note(1), start=1))
        journal.run_locks.release(lease)
        assert journal.run_locks.lost == set()
        await until(journal, "r1", held=True)  # the first heartbeat of the newer lease may still be on its way

    run_with(new_journal(), body)


def test_inner_runs_and_new_forks_are_no_orphans(new_journal: NewJournal) -> None:
    async def body(journal: PostgresJournal) -> None:
        await start_run(journal, "r1")
        await journal.append(await journal.create("r1.1"), events(replace(STARTED, parent="r1")))
        fork = replace(STARTED, forked_from="r1", forked_at=1)
        lease = await journal.create("r2")
        await journal.append(lease, events(fork, Resumed(reason="fork of run r1 at step 1")))
        assert await journal.run_locks.orphans() == ["r1"]
        assert await journal.run_locks.is_new_fork("r2")
        await journal.append(lease, events(Resumed(), start=2))
        assert not await journal.run_locks.is_new_fork("r2")

    run_with(new_journal(), body)


def test_a_run_of_a_live_worker_is_left_to_it(new_journal: NewJournal) -> None:
    async def body(journal: PostgresJournal) -> None:
        agent = Agent(model=["Final Answer: yes"], journal=journal)
        lease = await start_run(journal)
        journal.run_locks.lock(lease)
        await until(journal, "r1", held=True)
        await refused(RunHeld, agent.resume("r1"))
        assert Lease(run_id="r1", fence=1) == lease

    run_with(new_journal(), body)
