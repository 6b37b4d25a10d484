"""The races of the PostgreSQL engine, each over a real server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import pytest

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import Event, RunStarted
from taoloop.errors import ConfigError
from taoloop.journals.postgres.journal import PostgresJournal
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.runtime.fleet.engine import RUNNING, WAITING, Advance, Advanced, Engine
from taoloop.runtime.fleet.engines import open_engine
from taoloop.runtime.fleet.postgres_engine import PostgresEngine
from taoloop.runtime.fleet.postgres_queue import PostgresQueue, Renewal, RowClaim
from taoloop.testing.postgres_server import PostgresServer

P = ParamSpec("P")
QUEUES = ("default",)
DONE = Advanced("completed")


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Runs a test in an event loop of its own."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


async def add_runs(journal: PostgresJournal, engine: Engine | PostgresQueue, *run_ids: str) -> None:
    """Store runs, and submit them."""

    async def add(run_id: str) -> None:
        started = RunStarted(task="t", agent=AgentSpec(), nonce="n" * 16)
        await journal.append(await journal.begin(run_id), [Event(0, 1.0, started)])
        await engine.submit(run_id, None, "default", 3, "")

    for first in range(0, len(run_ids), 50):
        await asyncio.gather(*map(add, run_ids[first : first + 50]))


@asynccontextmanager
async def serving(engine: Engine, advance: Advance) -> AsyncIterator[asyncio.Task[None]]:
    """Has an engine serve as long as the block runs."""
    task = asyncio.create_task(engine.serve(advance))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def claim_one(queue: PostgresQueue, lease_s: float = 60.0) -> RowClaim:
    (claim,) = await queue.claim(QUEUES, 10, lease_s, ())
    return claim


@in_loop
async def test_a_run_has_one_claim_and_a_claim_that_is_over_changes_nothing(url: str) -> None:
    async with PostgresJournal(url) as journal:
        queue = PostgresQueue(journal.database)
        await add_runs(journal, queue, "r1")
        stale = await claim_one(queue, lease_s=0.0)  # as of a worker that is cut off: over at once
        newer = await claim_one(queue)
        assert await queue.claim(QUEUES, 10, 60.0, ()) == []
        assert await queue.renew([stale], 60.0) == Renewal(frozenset(), frozenset({"r1"}))
        await queue.end(stale, DONE)  # late
        assert await queue.standing([stale, newer]) == {"r1"}
        assert await queue.renew([newer], 60.0) == Renewal(frozenset({"r1"}), frozenset())
        await queue.end(newer, DONE)
        await queue.wake("r1")  # it is forgotten
        assert await queue.claim(QUEUES, 10, 60.0, ()) == []


@pytest.mark.parametrize("advanced", [Advanced(WAITING), Advanced(WAITING, 4e9), DONE])
@in_loop
async def test_a_wake_while_a_turn_ends_makes_the_run_due_again(url: str, advanced: Advanced) -> None:
    async with PostgresJournal(url) as journal:
        queue = PostgresQueue(journal.database)
        await add_runs(journal, queue, "r1")
        for _ in range(10):  # whichever of the two comes first
            claim = await claim_one(queue)
            if advanced is DONE:  # after the end it would be no wake, but a new submission
                await queue.wake("r1")
                await queue.end(claim, advanced)
            else:
                await asyncio.gather(queue.end(claim, advanced), queue.wake("r1"))
            assert await queue.next_in(QUEUES, ()) == pytest.approx(0, abs=5)
        await queue.end(await claim_one(queue), advanced)
        assert await queue.claim(QUEUES, 10, 60.0, ()) == []


@in_loop
async def test_a_renewal_skips_rows_that_are_locked_and_says_that_they_stand(url: str) -> None:
    async with PostgresJournal(url) as journal:
        queue = PostgresQueue(journal.database)
        await add_runs(journal, queue, "r1", "r2")
        claims = await queue.claim(QUEUES, 10, 60.0, ())
        async with journal.database.transaction() as connection:
            await connection.execute(journal.database.sql("SELECT 1 FROM @.run WHERE id = 'r1' FOR UPDATE"))
            assert await queue.renew(claims, 60.0) == Renewal(frozenset({"r2"}), frozenset())
        assert await queue.renew(claims, 60.0) == Renewal(frozenset({"r1", "r2"}), frozenset())


@in_loop
async def test_the_clock_of_the_database_decides_what_is_due(url: str) -> None:
    async with PostgresJournal(url) as journal:
        queue = PostgresQueue(journal.database)
        await add_runs(journal, queue, "r1")
        await queue.end(await claim_one(queue), Advanced(WAITING, 1.0))  # the worker's clock stands at 1970
        assert await queue.claim(QUEUES, 10, 60.0, ()) == []  # it is not asked again and again
        assert await queue.next_in(QUEUES, ()) == pytest.approx(1, abs=1)


class SlowQueue(PostgresQueue):
    """A queue whose claims and renewals arrive late: they are done in the database, and their answer is held up."""

    def __init__(self, journal: PostgresJournal) -> None:
        super().__init__(journal.database)
        self.may_claim, self.may_renew = asyncio.Event(), asyncio.Event()
        self.has_claimed, self.is_renewing, self.has_renewed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def claim(
        self, queues: Sequence[str], limit: int, lease_s: float, passed_over: Collection[str]
    ) -> list[RowClaim]:
        claims = await super().claim(queues, limit, lease_s, passed_over)
        if claims:
            self.has_claimed.set()
        await self.may_claim.wait()
        return claims

    async def renew(self, claims: Sequence[RowClaim], lease_s: float) -> Renewal:
        renewal = await super().renew(claims, lease_s)
        if claims:
            self.is_renewing.set()
            await self.may_renew.wait()
            self.has_renewed.set()
        return renewal


@in_loop
async def test_a_run_that_is_claimed_during_a_heartbeat_is_not_judged_by_it(url: str) -> None:
    async with PostgresJournal(url) as journal:
        queue = SlowQueue(journal)
        queue.may_claim.set()
        engine = PostgresEngine(queue, lease_s=6.0)
        begun = {"r1": asyncio.Event(), "r2": asyncio.Event()}
        go_on, outcomes = asyncio.Event(), list[str]()

        async def advance(run_id: str) -> Advanced:
            begun[run_id].set()
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                outcomes.append(f"{run_id} cancelled")
                raise
            outcomes.append(run_id)
            return DONE

        async with serving(engine, advance):
            await add_runs(journal, engine, "r1")
            await begun["r1"].wait()
            await queue.is_renewing.wait()
            await add_runs(journal, engine, "r2")
            await begun["r2"].wait()
            queue.may_renew.set()
            await queue.has_renewed.wait()
            go_on.set()
        assert sorted(outcomes) == ["r1", "r2"]


@in_loop
async def test_what_was_claimed_while_a_worker_is_told_to_end_is_given_back_at_once(url: str) -> None:
    async with PostgresJournal(url) as journal:
        queue = SlowQueue(journal)
        await add_runs(journal, queue, "r1")

        async def never(run_id: str) -> Advanced:
            raise AssertionError(run_id)

        async with serving(PostgresEngine(queue), never) as task:
            await queue.has_claimed.wait()
            task.cancel()
            await asyncio.sleep(0)
            queue.may_claim.set()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert (await claim_one(PostgresQueue(journal.database))).run_id == "r1"


@in_loop
async def test_a_worker_whose_connections_are_cut_goes_on(url: str, server: PostgresServer) -> None:
    async with PostgresJournal(url) as journal:
        engine = PostgresEngine(PostgresQueue(journal.database))
        begun: asyncio.Queue[str] = asyncio.Queue()
        go_on, ended = asyncio.Event(), list[str]()

        async def advance(run_id: str) -> Advanced:
            begun.put_nowait(run_id)
            await go_on.wait()
            ended.append(run_id)
            return DONE

        async with serving(engine, advance):
            await add_runs(journal, engine, "r1")
            assert await begun.get() == "r1"
            server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'taoloop'")
            await add_runs(journal, engine, "r2")
            assert await begun.get() == "r2"
            go_on.set()
        assert sorted(ended) == ["r1", "r2"]
        assert await engine_is_empty(journal)


async def engine_is_empty(journal: PostgresJournal) -> bool:
    count = await journal.database.run(
        lambda c: c.fetchval(journal.database.sql("SELECT count(*) FROM @.run WHERE queue IS NOT NULL"))
    )
    return bool(count == 0)


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.nightly)])
@in_loop
async def test_two_workers_advance_each_run_once(url: str, count: int) -> None:
    turns: Counter[str] = Counter()
    all_done = asyncio.Event()

    async def advance(run_id: str) -> Advanced:
        turns[run_id] += 1
        await asyncio.sleep(0)
        if len(turns) == count:
            all_done.set()
        return DONE

    async with PostgresJournal(url) as journal, PostgresJournal(url) as other:
        engines = [PostgresEngine(PostgresQueue(each.database), concurrency=50) for each in (journal, other)]
        await add_runs(journal, engines[0], *(f"r{number}" for number in range(count)))
        async with serving(engines[0], advance), serving(engines[1], advance):
            await all_done.wait()
        assert await engine_is_empty(journal)
    assert set(turns.values()) == {1}


@in_loop
async def test_a_run_that_was_left_is_nobodys(url: str) -> None:
    async with PostgresJournal(url) as journal:
        queue = PostgresQueue(journal.database)
        await add_runs(journal, queue, "r1")
        claim = await claim_one(queue)
        journal.run_locks.lock(await journal.acquire("r1"))
        await queue.end(claim, Advanced(RUNNING))
        assert (await claim_one(queue)).number == claim.number + 1


@in_loop
async def test_the_journal_decides_which_engine_is_the_default(url: str, tmp_path: Path) -> None:
    async with PostgresJournal(url) as journal:
        for address in (None, "", "postgres"):
            async with open_engine(address, journal) as engine:
                assert isinstance(engine, PostgresEngine)
        with pytest.raises(ConfigError, match="local"):
            async with open_engine("local", journal):
                pass
    async with SqliteJournal(tmp_path / "runs.db") as journal_file:
        with pytest.raises(ConfigError, match="PostgreSQL journal"):
            async with open_engine("postgres", journal_file):
                pass
