"""The statements of the PostgreSQL engine: the row of a run is its place in the queue.

The problem: workers on many machines share the runs of one database. Two must not advance one run at once; a worker
that is gone, or cut off, must lose its runs, and no clock but that of the database may decide when.

The idea: `due_at` is when a run is due; while a worker has it (`claimed`), the end of that worker's lease. So one
condition finds both what is due and what was left by the dead. `attempts` counts who had it: a claim raises it, and
every later statement of that worker names its number. `wakes` counts wakes: an end that finds more of them than its
claim saw makes the run due again. The fence of the journal is another matter: it decides who writes.

The invariant: each statement decides and changes under the lock of its rows, which PostgreSQL takes on their newest
version; what another transaction changed meanwhile no longer fits the condition and is left alone. Those that take many
rows skip what is locked, so none of them waits for another, and none can be part of a deadlock.

A notification tells workers to look (payload: the queue), or to see whether their claims stand (payload: empty). One
that is lost costs a delay. It is sent after the commit: within it, all commits that notify would wait for each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from taoloop.runtime.fleet.engine import RUNNING, WAITING, Advanced

if TYPE_CHECKING:
    from taoloop.journals.postgres.connections import JournalDatabase
    from taoloop.journals.postgres.driver import PostgresConnection

T = TypeVar("T")

CHECK: Final = ""
"""The payload of a notification that a claim was ended from outside."""

_PRIORITIES: Final = [1, 2, 3, 4, 5]

_SUBMIT = """
WITH new AS (
  UPDATE @.run SET queue = $2, priority = $3, tenant = $4, claimed = false,
    due_at = CASE WHEN $5::float8 IS NULL THEN now() ELSE to_timestamp($5::float8) END
  WHERE id = $1 AND queue IS NULL RETURNING queue, due_at
)
SELECT queue FROM new WHERE due_at <= now()
"""
_WAKE = """
WITH woken AS (
  UPDATE @.run SET wakes = wakes + 1, due_at = CASE WHEN claimed THEN due_at ELSE least(due_at, now()) END
  WHERE id = $1 AND queue IS NOT NULL RETURNING queue, claimed
)
SELECT queue FROM woken WHERE NOT claimed
"""
_CANCEL = """
WITH ended AS (
  UPDATE @.run SET wakes = wakes + 1, attempts = attempts + 1, claimed = false, due_at = now()
  WHERE id = $1 AND queue IS NOT NULL RETURNING queue
)
SELECT queue FROM ended UNION ALL SELECT '' FROM ended
"""
# The first of each queue and priority come from the index in order, however many runs wait. The condition is there
# twice: the second one is asked again of a row that another worker has changed since.
_CLAIM = """
WITH first AS (
  SELECT number FROM unnest($1::text[]) AS own(name), unnest($2::smallint[]) AS level(priority), LATERAL (
    SELECT number, due_at FROM @.run
    WHERE queue = own.name AND run.priority = level.priority AND due_at <= now() AND NOT id = ANY($3::text[])
    ORDER BY due_at LIMIT 2 * $4
  ) AS due ORDER BY level.priority, due_at LIMIT 2 * $4
), due AS (
  SELECT run.number FROM first JOIN @.run USING (number) WHERE run.queue IS NOT NULL AND run.due_at <= now()
  ORDER BY run.priority, run.due_at LIMIT $4 FOR NO KEY UPDATE OF run SKIP LOCKED
)
UPDATE @.run SET claimed = true, attempts = attempts + 1, due_at = now() + $5::float8 * interval '1 second'
FROM due WHERE run.number = due.number RETURNING id, attempts, wakes, priority
"""
_NEXT = """
SELECT extract(epoch FROM min(due_at) - now())::float8
FROM unnest($1::text[]) AS own(name), unnest($2::smallint[]) AS level(priority), LATERAL (
  SELECT due_at FROM @.run
  WHERE queue = own.name AND run.priority = level.priority AND due_at IS NOT NULL AND NOT id = ANY($3::text[])
  ORDER BY due_at LIMIT 1
) AS first
"""
_RENEW = """
WITH held AS (SELECT * FROM unnest($1::text[], $2::int[]) AS held(id, number)), free AS (
  SELECT run.number FROM held JOIN @.run ON run.id = held.id AND attempts = held.number AND claimed
  FOR NO KEY UPDATE OF run SKIP LOCKED
), renewed AS (
  UPDATE @.run SET due_at = now() + $3::float8 * interval '1 second' FROM free WHERE run.number = free.number
  RETURNING id
)
SELECT held.id, renewed.id IS NOT NULL, run.id IS NOT NULL
FROM held LEFT JOIN renewed ON renewed.id = held.id
LEFT JOIN @.run ON run.id = held.id AND attempts = held.number AND claimed
"""
_STANDING = """
SELECT held.id FROM unnest($1::text[], $2::int[]) AS held(id, number)
JOIN @.run ON run.id = held.id AND attempts = held.number AND claimed
"""
# A time that has passed by the clock of the database, and not by that of the worker, comes again a second later. A run
# that was left is nobody's any more, whatever is left of a lease in the journal: who asks for its holder is told so.
# Nobody waits for the disk: an end that a crash of the server undoes is made up for by the next claim.
_END = """
WITH ended AS (
  UPDATE @.run SET claimed = false, wake_at = CASE WHEN status = 'running' THEN least(wake_at, now()) ELSE wake_at END,
    queue = CASE WHEN $4::bool AND wakes = $3 THEN NULL ELSE queue END,
    due_at = CASE WHEN wakes <> $3 THEN now() WHEN $4 THEN NULL
      WHEN NOT $5::bool THEN coalesce(to_timestamp($6::float8), now())
      WHEN to_timestamp($6::float8) <= now() THEN now() + interval '1 second' ELSE to_timestamp($6::float8) END
  WHERE id = $1 AND attempts = $2 AND claimed RETURNING queue, due_at
)
SELECT CASE WHEN due_at <= now() THEN queue END, set_config('synchronous_commit', 'off', true) FROM ended
"""
_TELL = "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payloads(payload)"


class RowClaim(NamedTuple):
    """A run that this worker has until its lease ends."""

    run_id: str
    """The run."""

    number: int
    """The number of the claim; a later one voids it."""

    wakes: int
    """How often the run had been woken when it was claimed."""


class Renewal(NamedTuple):
    """What became of claims that were to be renewed."""

    renewed: frozenset[str]
    """The runs that are this worker's for another lease."""

    lost: frozenset[str]
    """Those that are not its own any more. The others were locked at this moment, and stand."""


class PostgresQueue:
    """The runs of one journal as a queue. Everything is done over the connections of the journal."""

    def __init__(self, database: JournalDatabase) -> None:
        self.database = database
        self.channel = f"taoloop queue {database.settings.schema}"[:63]
        self._untold: set[str] = set()
        self._telling = asyncio.Lock()

    async def submit(self, run_id: str, at: float | None, queue: str, priority: int, tenant: str) -> None:
        """Have a run driven, unless it has a queue already."""
        await self._write(_SUBMIT, run_id, queue, priority, tenant, at)

    async def wake(self, run_id: str) -> None:
        """Make a run due, or have it looked at once more after the turn under way."""
        await self._write(_WAKE, run_id)

    async def cancel(self, run_id: str) -> None:
        """Take a run from whoever has it, and make it due."""
        await self._write(_CANCEL, run_id)

    async def claim(
        self, queues: Sequence[str], limit: int, lease_s: float, passed_over: Collection[str]
    ) -> list[RowClaim]:
        """Claim runs that are due, at most `limit`, by priority and then by time; none of `passed_over`.

        It is not repeated by itself: a claim of which nobody has heard ends with its lease.
        """
        values = (list(queues), _PRIORITIES, list(passed_over), limit, lease_s)
        rows = await self._once(lambda connection: connection.fetch(self.database.sql(_CLAIM), *values))
        rows.sort(key=lambda row: row[3])
        return [RowClaim(run_id, number, wakes) for run_id, number, wakes, _ in rows]

    async def next_in(self, queues: Sequence[str], passed_over: Collection[str]) -> float | None:
        """In how many seconds the next run is due, or the next lease ends; None: nothing will be by itself."""
        values = (list(queues), _PRIORITIES, list(passed_over))
        seconds: float | None = await self._once(lambda c: c.fetchval(self.database.sql(_NEXT), *values))
        return seconds

    async def renew(self, claims: Sequence[RowClaim], lease_s: float) -> Renewal:
        """Lengthen the leases of these claims."""
        values = ([claim.run_id for claim in claims], [claim.number for claim in claims], lease_s)
        rows = await self._once(lambda connection: connection.fetch(self.database.sql(_RENEW), *values))
        return Renewal(
            frozenset(run_id for run_id, is_renewed, _ in rows if is_renewed),
            frozenset(run_id for run_id, is_renewed, stands in rows if not is_renewed and not stands),
        )

    async def standing(self, claims: Sequence[RowClaim]) -> set[str]:
        """The runs of those of these claims that still hold."""
        values = ([claim.run_id for claim in claims], [claim.number for claim in claims])
        rows = await self._once(lambda connection: connection.fetch(self.database.sql(_STANDING), *values))
        return {run_id for (run_id,) in rows}

    async def end(self, claim: RowClaim, advanced: Advanced) -> None:
        """End a claim as the advance says; a run that was woken meanwhile is due again. A void claim ends nothing."""
        is_over = advanced.status not in (RUNNING, WAITING)
        values = (*claim, is_over, advanced.status == WAITING, advanced.wake_at)
        await self._write(_END, *values)

    async def _write(self, statement: str, *values: object) -> None:
        """Run a statement that may be run twice, once more where the server went away meanwhile; notify its queues."""
        rows = await self.database.run(lambda connection: connection.fetch(self.database.sql(statement), *values))
        payloads = {str(row[0]) for row in rows if row[0] is not None}
        if payloads:
            await self._tell(payloads)

    async def _tell(self, payloads: set[str]) -> None:
        """Notify workers; those who come while a notification is on its way share the next one."""
        self._untold |= payloads
        async with self._telling:
            if not self._untold & payloads:  # another one has done it
                return
            untold, self._untold = list(self._untold), set()
            await self.database.run(lambda connection: connection.execute(_TELL, self.channel, untold))

    async def _once(self, work: Callable[[PostgresConnection], Awaitable[T]]) -> T:
        """Do something now or not at all: what it says is of this moment.

        Raises:
            JournalError: what PostgreSQL says, in words.
        """
        from taoloop.journals.postgres.errors import explain  # noqa: PLC0415  # loads the driver

        try:
            return await self.database.once(work)
        except Exception as error:
            if (explained := explain(error, self.database.location)) is error:
                raise
            raise explained from error
