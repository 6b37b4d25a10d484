"""The journal in a PostgreSQL database: for any number of workers on any number of machines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

from taoloop.core.events import Event
from taoloop.core.stored_events import ChainedEvent, ChainReport, LogReport
from taoloop.errors import ConfigError, JournalError, RunNotFound
from taoloop.journals.base import Artifact, Lease, RunRow, translate
from taoloop.journals.postgres import schema
from taoloop.journals.postgres.address import PostgresAddress
from taoloop.journals.postgres.connections import JournalDatabase, Settings
from taoloop.journals.postgres.positions import SNAPSHOT, parse_position, position_of
from taoloop.journals.postgres.run_locks import LeaseLocks
from taoloop.journals.postgres.statements import ACQUIRE, CREATE
from taoloop.journals.process_identity import own_identity
from taoloop.journals.queries import POLL_S, Growth, RunPage, RunPart, RunQuery, parse_number
from taoloop.journals.raw_runs import RawRun
from taoloop.journals.refusals import run_exists, run_grew, run_tampered
from taoloop.journals.retention import PruneReport, Retention
from taoloop.journals.stored_append import FIRST_FENCE, encode
from taoloop.journals.usage import UsageRow
from taoloop.translation import mark

if TYPE_CHECKING:
    from taoloop.journals.postgres.driver import PostgresConnection
    from taoloop.journals.postgres.workers import LoopWorkers

LEASE_S = 15.0
"""How long a run stays a worker's that is not heard of any more, unless the journal says otherwise."""

_BEYOND = 2**62


class UnwrittenLease(Lease):
    """The lease of a run that is written with its first append."""

    __slots__ = ()


class PostgresJournal:
    """Keeps traces in a PostgreSQL database (13 or newer), which any number of workers on any machines may share.

    Nothing is connected before the first use (`async with` connects at once, so that errors come early). The tables are
    made where there are none; those of an older version are refused, and `tao db migrate` brings them up to date. Any
    number of tasks, threads and event loops may share one journal; each event loop has connections of its own. Needs
    the extra `postgres`.

    Args:
        dsn: `postgresql://USER@HOST:PORT/DATABASE`; the password is best in PGPASSWORD or a passfile. `schema`,
            `pool_size`, `pooler` and `lease_s` may also be parameters in its query.
        schema: the PostgreSQL schema that the tables are in.
        pool_size: the most connections that an event loop has open, one for `tail` not counted.
        pooler: whether a pooler in transaction mode lies between, such as PgBouncer: no prepared statement is kept,
            each statement has a transaction of its own, and `tail` asks rather than being told.
        lease_s: how long a run stays a worker's that is not heard of any more; it is renewed three times as often.
        connect_timeout_s: how long to wait for a connection.
        reconnect_s: how long a call tries to reach a server again that went away meanwhile, before JournalUnreachable.
        read_only: look at a journal that exists, without changing it; also works on a standby.

    Raises:
        ConfigError: the address is none; the message does not contain it.
        MissingExtra: the driver is not installed.
    """

    def __init__(
        self,
        dsn: str | PostgresAddress,
        *,
        schema: str = "taoloop",
        pool_size: int = 8,
        pooler: bool = False,
        lease_s: float = LEASE_S,
        connect_timeout_s: float = 10.0,
        reconnect_s: float = 30.0,
        read_only: bool = False,
    ) -> None:
        address = PostgresAddress(dsn) if isinstance(dsn, str) else dsn
        options = _checked(address.options)
        settings = Settings(
            schema=options.get("schema", schema),
            pool_size=options.get("pool_size", pool_size),
            pooler=options.get("pooler", pooler),
            connect_timeout_s=connect_timeout_s,
            reconnect_s=reconnect_s,
            read_only=read_only,
        )
        self.database = JournalDatabase(address, settings)
        self.location = address.location
        self._workers: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopWorkers] = WeakKeyDictionary()
        self.run_locks = LeaseLocks(self.database, options.get("lease_s", lease_s), self._is_running)

    def __repr__(self) -> str:
        """Without the password."""
        return f"PostgresJournal({self.location!r})"

    async def __aenter__(self) -> Self:
        """Connect now."""
        await self.open()
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close it."""
        await self.close()

    async def open(self) -> None:
        """Connect now, so that errors come early. Twice is harmless."""
        await self.database.open()

    async def create(self, run_id: str) -> Lease:
        """Begin an empty run and take it; RunExists if it has events."""
        self.database.check_writable()
        values = (run_id, str(own_identity()))
        fence = await self.database.run(lambda c: c.fetchval(self.database.sql(CREATE), *values))
        if fence is None:
            raise run_exists(self.location, run_id)
        lease = Lease(run_id=run_id, fence=fence)
        self._own.writer.learn(lease, 0, b"")
        return lease

    async def begin(self, run_id: str) -> Lease:
        """A lease for a new run that is written with its first append: one statement less than with `create`.

        Until then nothing of it is in the database. That append raises RunExists if there is such a run by then.
        """
        self.database.check_writable()
        await self.database.open()
        return UnwrittenLease(run_id=run_id, fence=FIRST_FENCE)

    async def acquire(self, run_id: str, *, at: int | None = None) -> Lease:
        """Take an existing run (RunNotFound); earlier leases of it are void from then on, on every machine.

        Raises:
            FenceLost: the run has other than `at` events; the worker that holds it keeps it.
            JournalTampered: somebody edited the run; it is not taken. Reads the whole run, once.
        """
        self.database.check_writable()
        if (flaw := (await self.verify(run_id)).first) is not None:
            raise run_tampered(self.location, run_id, flaw)
        values = (run_id, str(own_identity()), at, self.run_locks.lease_s)
        row = await self.database.run(lambda c: c.fetchrow(self.database.sql(ACQUIRE), *values))
        if row is None:
            await self._require(run_id)
            raise run_grew(self.location, run_id)
        lease = Lease(run_id=run_id, fence=row[0])
        self._own.writer.learn(lease, row[1], row[2])
        return lease

    async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        """Add events and artifacts, all of them or none, in one statement; returns when they are committed.

        If the server goes away meanwhile, the journal finds out whether they are there, and stores them if not. A
        caller that is cancelled while waiting must assume that they were written. `events` must not change before.

        Raises:
            FenceLost, RunNotFound, IllegalEvent, JournalFull, JournalLocked, JournalError: nothing was written.
            JournalUnreachable: the server did not come back; whether it was written is not known.
        """
        self.database.check_writable()
        try:
            append = encode(lease, events, artifacts)
        except (ValueError, TypeError) as error:
            from taoloop.journals.postgres.errors import explain  # noqa: PLC0415  # loads the driver

            raise explain(error, self.location) from error
        workers = self._own
        is_new = isinstance(lease, UnwrittenLease) and append.first == 0
        try:
            await workers.writer.append(append, is_new=is_new)
        except RunNotFound:
            await self._require(lease.run_id)
            raise
        workers.added(is_start=append.first == 0)

    async def load(self, run_id: str) -> list[Event]:
        """All events of a run in order.

        Raises:
            RunNotFound: there is no such run.
            JournalCorrupt: an event is missing or cannot be read; the message says which.
        """
        from taoloop.journals.postgres.reading import load_events  # noqa: PLC0415  # as all below: what it needs

        return await self.database.run(partial(load_events, self.database, run_id))

    async def artifact(self, run_id: str, ref: str) -> Artifact | None:
        """One artifact of a run, or None."""
        from taoloop.journals.postgres.reading import read_artifact  # noqa: PLC0415

        return await self.database.run(partial(read_artifact, self.database, run_id, ref))

    async def verify(self, run_id: str) -> ChainReport:
        """Whether the run is as it was written: events, artifacts, and its row in the list.

        Raises:
            RunNotFound: there is no such run.
        """
        from taoloop.journals.postgres.reading import verify  # noqa: PLC0415

        return await self.database.run_in_snapshot(partial(verify, self.database, run_id))

    async def verify_log(self) -> LogReport:
        """Whether the runs that began are those that are stored; their events are checked by `verify`."""
        from taoloop.journals.postgres import run_log  # noqa: PLC0415

        await self._bring_up_to_date(partial(run_log.enter_begun, self.database))
        return await self.database.run_in_snapshot(partial(run_log.verify_log, self.database))

    async def linked(self, run_id: str) -> list[ChainedEvent]:
        """The events of a run as they are stored, with their links, readable or not; RunNotFound."""
        from taoloop.journals.postgres.reading import linked_rows  # noqa: PLC0415

        return await self.database.run(partial(linked_rows, self.database, run_id))

    async def runs(self, *, limit: int = 50, status: str | None = None) -> list[RunRow]:
        """The newest runs first, at most `limit` of them, only those of one `status` if it is given."""
        query = RunQuery(statuses=() if status is None else (status,))
        return list((await self.find(query, limit=limit)).rows)

    async def read(
        self,
        run_id: str,
        *,
        after: int = -1,
        before: int | None = None,
        limit: int = 500,
        last: bool = False,
        kinds: Collection[str] | None = None,
        call_ids: Collection[str] | None = None,
    ) -> list[Event]:
        """A part of a run: as `JournalQueries.read`."""
        from taoloop.journals.postgres.reading import read_events  # noqa: PLC0415

        part = RunPart(run_id, after, before, limit, last, kinds, call_ids)
        return await self.database.run(partial(read_events, self.database, part))

    async def find(self, query: RunQuery, *, cursor: str | None = None, limit: int = 50) -> RunPage:
        """A page of runs: as `JournalQueries.find`.

        The search for a text first adds to its index what is new since the last one; a large database takes a while
        the first time. On a standby, and without the right to write, it finds what others have added.
        """
        from taoloop.journals.postgres.run_queries import find_runs, page_of  # noqa: PLC0415

        below = _BEYOND if cursor is None else parse_number(cursor, "cursor")
        await self._update_search(query)
        return page_of(*await self.database.run(partial(find_runs, self.database, query, below, limit)))

    async def count(self, query: RunQuery) -> dict[str, int]:
        """How many runs there are, by status: as `JournalQueries.count`."""
        from taoloop.journals.postgres.run_queries import count_runs  # noqa: PLC0415

        await self._update_search(query)
        return await self.database.run(partial(count_runs, self.database, query))

    async def position(self) -> str:
        """The place after the newest event of all runs."""
        return str(position_of(*await self.database.run(lambda c: c.fetchrow(self.database.sql(SNAPSHOT)))))

    async def tail(self, after: str | None = None, *, interval_s: float = POLL_S) -> AsyncGenerator[Growth, None]:
        """What is added, by any process: as `JournalQueries.tail`. Where LISTEN works it is told, else it asks."""
        from taoloop.journals.postgres.listening import Ear  # noqa: PLC0415
        from taoloop.journals.postgres.run_queries import growth_since  # noqa: PLC0415

        position = parse_position(await self.position() if after is None else after)
        async with Ear(self.database) as ear:
            while True:
                growth = await self.database.run_in_snapshot(partial(growth_since, self.database, position))
                if growth is None:  # a backup was restored: what was seen is not there
                    growth = Growth(position=await self.position())
                    yield growth
                position = parse_position(growth.position)
                if growth.runs:
                    yield growth
                await ear.wait(interval_s)

    async def prepare_search(self) -> None:
        """Bring the index of the search up to date, as a search does."""
        await self._update_search(RunQuery(text="."))

    async def usage(self, since_day: str | None = None) -> list[UsageRow]:
        """What was used and how it went: as `JournalQueries.usage`. A journal that is open for writing stores the sums.

        Raises:
            JournalCorrupt: an event that counts cannot be read.
        """
        from taoloop.journals.postgres.spending import UsageSums  # noqa: PLC0415

        database = self.database
        while not database.settings.read_only and not await database.run_in_transaction(
            lambda connection: UsageSums(database, connection).update()
        ):
            pass
        return await database.run_in_snapshot(lambda connection: UsageSums(database, connection).read(since_day))

    async def prune(self, keep: Retention, *, now: float, is_dry_run: bool = False) -> PruneReport:
        """Remove the finished runs that `keep` no longer keeps at `now`; reads and writes go on meanwhile.

        Runs that are not as they were written stay, and the report names them. A past month whose runs are all gone is
        dropped, which gives its space back at once; else autovacuum makes it usable again. Makes the partitions of the
        next months.

        Raises:
            JournalLocked, JournalFull, JournalError: the rest was not removed.
        """
        from taoloop.journals.postgres.errors import explain  # noqa: PLC0415  # loads the driver
        from taoloop.journals.postgres.prune import prune  # noqa: PLC0415

        self.database.check_open() if is_dry_run else self.database.check_writable()
        try:
            return await prune(self.database, keep, now, is_dry_run=is_dry_run)
        except Exception as error:
            if (explained := explain(error, self.location)) is error:
                raise
            raise explained from error

    async def raw_run(self, run_id: str) -> RawRun:
        """A run as it is stored, for archives and moves; RunNotFound."""
        from taoloop.journals.postgres.raw_runs import raw_run  # noqa: PLC0415

        return await self.database.run_in_snapshot(partial(raw_run, self.database, run_id))

    async def add_raw_runs(self, runs: Sequence[RawRun]) -> list[str]:
        """Store runs that are not there, all of them or none; returns the ids of those that were added.

        Raises:
            JournalLocked, JournalFull, JournalError: nothing was stored.
        """
        from taoloop.journals.postgres.raw_runs import add_raw_runs  # noqa: PLC0415

        self.database.check_writable()
        return await self.database.run_in_transaction(partial(add_raw_runs, self.database, runs))

    async def is_current(self) -> bool:
        """Whether the journal has the current form; one that can be opened has."""
        await self.open()
        return True

    async def check_storage(self) -> None:
        """Note something that changes nothing, to see whether that works.

        Raises:
            JournalLocked, JournalFull, JournalError: nothing can be stored now; the text says why.
        """
        self.database.check_writable()
        name = self.database.settings.schema
        await self.database.run(lambda c: schema.note(c, name, "checked", ""))

    async def close(self) -> None:
        """Store what is queued and end all connections. Twice is harmless; a forked child does nothing."""
        workers = self._workers.pop(asyncio.get_running_loop(), None)
        if workers is not None:
            await workers.close()
        await self.run_locks.close()
        await self.database.close()

    @property
    def _own(self) -> LoopWorkers:
        """What writes in this event loop."""
        from taoloop.journals.postgres.workers import LoopWorkers  # noqa: PLC0415  # loads the driver

        loop = asyncio.get_running_loop()
        if (workers := self._workers.get(loop)) is None:
            workers = self._workers[loop] = LoopWorkers(self.database, self.run_locks.lease_of)
        return workers

    def _is_running(self, lease: Lease) -> bool:
        return all(workers.writer.is_running(lease) for workers in list(self._workers.values()))

    async def _require(self, run_id: str) -> None:
        from taoloop.journals.postgres.reading import require_run  # noqa: PLC0415

        await self.database.run(partial(require_run, self.database, run_id))

    async def _update_search(self, query: RunQuery) -> None:
        from taoloop.journals.postgres.search import update_search  # noqa: PLC0415

        if query.text.strip():
            await self._bring_up_to_date(partial(update_search, self.database))

    async def _bring_up_to_date(self, update: Callable[[PostgresConnection], Awaitable[bool]]) -> None:
        """Do the rest of what readers do; one that may not write goes without it."""
        try:
            while not await self.database.run_in_transaction(update):
                pass
        except JournalError:
            if not self.database.settings.read_only:
                raise


def _checked(options: dict[str, str]) -> dict[str, Any]:
    """The parameters of ours in an address, as values.

    Raises:
        ConfigError: one has a value that means nothing.
    """
    values: dict[str, Any] = {}
    for name, text in options.items():
        try:
            match name:
                case "pool_size":
                    values[name] = int(text)
                case "lease_s":
                    values[name] = float(text)
                case "pooler":
                    values[name] = {"0": False, "1": True}[text]
                case _:
                    values[name] = text
        except (ValueError, KeyError):
            problem = mark("The address of the database has {name}={value}, which means nothing.")
            hint = mark("Write a number for pool_size and lease_s, and 0 or 1 for pooler.")
            raise ConfigError(translate(problem, name=name, value=text), hint=translate(hint)) from None
    return values
