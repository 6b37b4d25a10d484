"""Who is at work on the runs of a PostgreSQL journal: leases on the clock of the database, kept up by heartbeats.

The problem: a worker that dies on another machine leaves no trace; one that hangs, or whose network is cut, looks the
same from here. Clocks of machines differ.

The idea: a run that is worked on has a time in its row until which it belongs to its worker, by the clock of the
database. One task per event loop moves this time on for all runs that are locked there, in one statement, each under
its fence, three times in the length of a lease. When a worker dies, its runs are free once their time is over.

The invariant: who may write is decided by the fence alone (`writer`), so a worker that lost its run without noticing
stores nothing. A heartbeat moves only rows with its own fence: it never prolongs the lease of another worker. What it
finds lost is judged by what it asked for: a lease that was locked, or released, while the statement was on its way is
not its business.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from taoloop.errors import JournalError
from taoloop.journals.base import Lease, LockHolder, is_unresumed_fork
from taoloop.journals.postgres.reading import OF_RUN
from taoloop.journals.process_identity import ProcessIdentity, parse_identity

if TYPE_CHECKING:
    from taoloop.journals.postgres.connections import JournalDatabase
    from taoloop.journals.postgres.driver import PostgresConnection

BEATS: Final = 3
"""How often a lease is renewed in its length."""

_BEAT = """
WITH held AS (SELECT * FROM unnest($1::text[], $2::bigint[]) AS held(id, fence)), kept AS (
  UPDATE @.run SET wake_at = now() + $3::float8 * interval '1 second' FROM held
  WHERE run.id = held.id AND run.fence = held.fence AND run.status = 'running'
)
SELECT held.id FROM held JOIN @.run USING (id) WHERE run.fence > held.fence
"""
_RELEASE = """
UPDATE @.run SET wake_at = now() FROM unnest($1::text[], $2::bigint[]) AS held(id, fence)
WHERE run.id = held.id AND run.fence = held.fence AND run.status = 'running' AND run.wake_at > now()
"""
_HOLDER = "SELECT holder, status = 'running' AND wake_at > now() FROM @.run WHERE id = $1"
_ORPHANS = """
SELECT id FROM @.run WHERE status = 'running' AND events > 0 AND parent IS NULL AND wake_at <= now() ORDER BY number
"""
_START = f"""
SELECT body::json ->> 'forked_from', (
  SELECT body::json ->> 'reason' FROM @.event WHERE {OF_RUN} AND kind = 'resumed' ORDER BY seq DESC LIMIT 1
) FROM @.event WHERE {OF_RUN} AND seq = 0 AND body LIKE '%"forked_from"%'
"""  # noqa: S608  # no input


class LeaseLocks:
    """The run locks of one journal.

    Args:
        database: Where the runs are.
        lease_s: How long a run stays a worker's that is not heard of any more.
        is_running: Whether a run is still running under a lease, for all that this process knows.
    """

    def __init__(self, database: JournalDatabase, lease_s: float, is_running: Callable[[Lease], bool]) -> None:
        self.lease_s = lease_s
        self.lost: set[Lease] = set()
        """The locked leases that a heartbeat found lost; they leave it when they are released."""
        self._database, self._is_running = database, is_running
        self._guard = threading.Lock()
        self._beats: WeakKeyDictionary[asyncio.AbstractEventLoop, _Beats] = WeakKeyDictionary()
        self._locked: dict[tuple[str, int], int] = {}  # how often each lease is locked

    async def holder(self, run_id: str) -> LockHolder | None:
        """The holder of the newest lease of a run; None if there is none, or its time is over, or it is surely gone."""
        row = await self._database.run(lambda connection: connection.fetchrow(self._database.sql(_HOLDER), run_id))
        if row is None or not row[1]:
            return None
        identity = parse_identity(row[0])
        if identity is not None and identity.is_gone:
            return None
        if identity is None or identity.is_elsewhere or not identity.process.isdecimal():
            return LockHolder()
        return LockHolder(process=int(identity.process), identity=identity if identity.is_identified else None)

    async def was_elsewhere(self, run_id: str) -> bool:
        """As `RunLocks.was_elsewhere`: a worker whose lease is over may still be alive there, cut off from here."""
        identity = await self._identity(run_id)
        return identity is not None and identity.is_elsewhere

    async def orphans(self) -> list[str]:
        """As `RunLocks.orphans`."""

        async def find(connection: PostgresConnection) -> list[str]:
            rows = await connection.fetch(self._database.sql(_ORPHANS))
            return [run_id for (run_id,) in rows if not await self._is_fork(run_id, connection)]

        return await self._database.run(find)

    async def is_new_fork(self, run_id: str) -> bool:
        """Whether a run is a fork that nobody has resumed yet."""
        return await self._database.run(lambda connection: self._is_fork(run_id, connection))

    def lock(self, lease: Lease) -> None:
        """Lock a lease that was just acquired, in the event loop whose task works under it."""
        loop = asyncio.get_running_loop()
        with self._guard:
            key = (lease.run_id, lease.fence)
            self._locked[key] = self._locked.get(key, 0) + 1
            beats = self._beats.get(loop)
            if beats is None:
                beats = self._beats[loop] = _Beats(self)
        beats.add(lease)

    def release(self, lease: Lease) -> None:
        """Unlock a lease. Doing it twice is harmless."""
        with self._guard:
            owners = [beats for beats in self._beats.values() if beats.has(lease)]
            if not owners:
                return
            key = (lease.run_id, lease.fence)
            count = self._locked.pop(key) - 1
            if count:
                self._locked[key] = count
            self.lost.discard(lease)
        owners[0].remove(lease, is_running=not count and self._is_running(lease))

    def lease_of(self, run_id: str, fence: int) -> float | None:
        """How long a lease goes on from now: a length if it is locked, None if it is not."""
        return self.lease_s if (run_id, fence) in self._locked else None

    async def close(self) -> None:
        """Let go of what is held in this event loop."""
        beats = self._beats.pop(asyncio.get_running_loop(), None)
        if beats is not None:
            await beats.close()

    async def renew(self, leases: list[Lease]) -> None:
        """Move the time of these leases on, and note those that are lost."""
        ids, fences = [lease.run_id for lease in leases], [lease.fence for lease in leases]
        rows = await self._database.once(
            lambda connection: connection.fetch(self._database.sql(_BEAT), ids, fences, self.lease_s)
        )
        lost = {row[0] for row in rows}
        with self._guard:
            self.lost |= {
                lease for lease in leases if lease.run_id in lost and (lease.run_id, lease.fence) in self._locked
            }

    async def free(self, leases: list[Lease]) -> None:
        """End the time of leases that were released while their runs go on."""
        ids, fences = [lease.run_id for lease in leases], [lease.fence for lease in leases]
        await self._database.once(lambda connection: connection.execute(self._database.sql(_RELEASE), ids, fences))

    async def _identity(self, run_id: str) -> ProcessIdentity | None:
        row = await self._database.run(lambda connection: connection.fetchrow(self._database.sql(_HOLDER), run_id))
        return None if row is None else parse_identity(row[0])

    async def _is_fork(self, run_id: str, connection: PostgresConnection) -> bool:
        row = await connection.fetchrow(self._database.sql(_START), run_id)
        return row is not None and is_unresumed_fork(*row)


class _Beats:
    """The heartbeats of one event loop."""

    def __init__(self, locks: LeaseLocks) -> None:
        self._locks = locks
        self._leases: dict[int, Lease] = {}  # by identity: two that begin one run have equal leases
        self._new: list[Lease] = []
        self._freed: list[Lease] = []
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def has(self, lease: Lease) -> bool:
        return id(lease) in self._leases

    def add(self, lease: Lease) -> None:
        self._leases[id(lease)] = lease
        if type(lease) is Lease:  # else its row is written with its first append, and its time with it
            self._new.append(lease)
            self._changed.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._beat())

    def remove(self, lease: Lease, *, is_running: bool) -> None:
        self._leases.pop(id(lease), None)
        if is_running:
            self._freed.append(lease)
            self._changed.set()

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        freed = [*self._freed, *self._leases.values()]
        self._leases.clear()
        if freed:
            await self._attempt(self._locks.free, freed)

    async def _beat(self) -> None:
        """Renew at once what is new, and all of it from time to time."""
        loop = asyncio.get_running_loop()
        pause_s = self._locks.lease_s / BEATS
        due = loop.time() + pause_s
        while True:
            try:
                async with asyncio.timeout(max(0.0, due - loop.time())):
                    await self._changed.wait()
            except TimeoutError:
                due = loop.time() + pause_s
                self._new = list(self._leases.values())
            self._changed.clear()
            new, self._new = [lease for lease in self._new if id(lease) in self._leases], []
            freed, self._freed = self._freed, []
            if freed:
                await self._attempt(self._locks.free, freed)
            if new:
                await self._attempt(self._locks.renew, new)

    async def _attempt(self, work: Callable[[list[Lease]], object], leases: list[Lease]) -> None:
        """Without the server there is nothing to do: the next heartbeat comes, and the fence protects the runs."""
        import asyncpg  # noqa: PLC0415  # an extra

        try:
            await work(leases)  # type: ignore[misc]  # a coroutine function
        except (JournalError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            return
