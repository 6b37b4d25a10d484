"""The engine of a PostgreSQL journal: workers on any number of machines share its runs; nothing else has to be started.

The problem: idle workers must cost next to nothing and still start a run at once; a worker whose connection is cut must
let go of its runs before another one takes them; and a worker that ends must hand over what it has, also what it was
just about to get.

The idea: `PostgresQueue` decides, in single statements on the clock of the database. A worker is told of what is due by
a notification, knows from the database when the next run is due, and looks every few seconds all the same; behind a
pooler, which delivers no notifications, every second. Its leases it counts from before each statement that renews them,
so it believes in none that the database sees ended.

The invariant: an advance is begun only under a claim that stands, and cancelled when its claim is lost, or was not
renewed for the length of a lease. A heartbeat judges only what it asked for: a run that was claimed while its statement
was on its way is not its business.

Journal and engine share the database, and yet an answer and the wake that follows it are two transactions: the journal
appends, and knows no engine. Whoever dies between them leaves a run that nobody was told of, and the sweeper finds it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

from taoloop.core.agent_spec import DEFAULT_QUEUE
from taoloop.errors import JournalLocked, JournalUnreachable, TaoError
from taoloop.runtime.fleet.engine import RUNNING, Advance, Advanced
from taoloop.runtime.fleet.local_engine import DEFAULT_LEASE_S
from taoloop.runtime.fleet.postgres_queue import CHECK, PostgresQueue, RowClaim
from taoloop.runtime.fleet.turn_tasks import DeferredRuns, advance_run, wait_for_turns

_BEATS = 3
"""How often a lease is renewed in its length."""

_TOLD_LOOK_S, _LOOK_S = 5.0, 1.0
"""How often an idle worker looks: one that is told of what is due, and one that is not."""

_BUSY_LOOK_S = 0.02
"""When a worker looks again for what was due and locked by another one at this moment."""

_RETRY_S = 1.0
"""How long to wait before the next attempt to reach a server that went away."""

_LOG = logging.getLogger("taoloop.fleet")


class _Work:
    """An advance under way."""

    def __init__(self, claim: RowClaim, lease_ends: float) -> None:
        self.claim, self.lease_ends = claim, lease_ends
        self.task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()


class PostgresEngine:
    """An `Engine` over the database of a PostgreSQL journal, whose connections it uses; closing the journal ends it.

    Args:
        queue: The queue in the database of the journal.
        queues: The queues whose runs it advances.
        concurrency: How many runs at once.
        lease_s: How long a worker that says nothing keeps its runs.
    """

    def __init__(
        self,
        queue: PostgresQueue,
        *,
        queues: Sequence[str] = (DEFAULT_QUEUE,),
        concurrency: int = 10,
        lease_s: float = DEFAULT_LEASE_S,
    ) -> None:
        self._queue = queue
        self._queues, self._concurrency, self._lease_s = tuple(queues), concurrency, lease_s
        self._turns: dict[str, _Work] = {}
        self._deferred = DeferredRuns()
        self._changed = asyncio.Event()
        self._is_told = False  # whether notifications arrive
        self._has_tried = asyncio.Event()  # set once that is known
        self._must_check = False

    async def submit(self, run_id: str, at: float | None, queue: str, priority: int, tenant: str) -> None:
        """As `Engine.submit`."""
        await self._queue.submit(run_id, at, queue, priority, tenant)
        self._changed.set()

    async def wake(self, run_id: str) -> None:
        """As `Engine.wake`."""
        await self._queue.wake(run_id)
        self._deferred.resume(run_id)
        self._changed.set()

    async def cancel(self, run_id: str) -> None:
        """As `Engine.cancel`."""
        await self._queue.cancel(run_id)
        self._must_check = True
        self._changed.set()

    async def serve(self, advance: Advance) -> None:
        """As `Engine.serve`. A server that went away is waited for; what it refuses for good is raised."""
        helpers = [asyncio.create_task(self._beat()), asyncio.create_task(self._listen())]
        try:
            with suppress(TimeoutError):  # one after the other they need one connection of the pool
                async with asyncio.timeout(_RETRY_S):
                    await self._has_tried.wait()
            while True:
                self._changed.clear()
                try:
                    await self._check_claims()
                    pause_s = await self._claim(advance)
                except (JournalUnreachable, JournalLocked, TimeoutError) as error:
                    self._must_check = True
                    _LOG.warning("no run could be claimed: %s", str(error) or "the server does not answer")
                    await asyncio.sleep(_RETRY_S)
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await self._changed.wait()
        finally:
            try:
                await wait_for_turns(lambda: [work.task for work in self._turns.values() if work.task is not None])
            finally:
                for task in helpers:
                    task.cancel()
                await asyncio.gather(*helpers, return_exceptions=True)

    async def _claim(self, advance: Advance) -> float:
        """Begin what is due, as much as there is room for; gives how long to wait for a change before the next look."""
        longest_s = _TOLD_LOOK_S if self._is_told else _LOOK_S
        free = self._concurrency - len(self._turns)
        if free <= 0:
            return longest_s
        ends = time.monotonic() + self._lease_s
        claims = await self._claim_or_return(free)
        for claim in claims:
            work = self._turns[claim.run_id] = _Work(claim, ends)
            work.task = asyncio.create_task(self._advance(work, advance), name=f"taoloop-{claim.run_id}")
        if len(claims) == free or not self._is_told:  # it looks so often that it need not know when
            return longest_s
        async with asyncio.timeout(self._lease_s):
            due_s = await self._queue.next_in(self._queues, self._excluded())
        return longest_s if due_s is None else min(longest_s, max(_BUSY_LOOK_S, due_s))

    async def _claim_or_return(self, limit: int) -> list[RowClaim]:
        """Claim runs. If this is cancelled meanwhile, what was claimed is given to others at once."""

        async def claim() -> list[RowClaim]:
            async with asyncio.timeout(self._lease_s):
                return await self._queue.claim(self._queues, limit, self._lease_s, self._excluded())

        claiming = asyncio.create_task(claim())
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            with suppress(TaoError, TimeoutError):  # then it ends with its lease
                for claimed in await claiming:
                    await self._queue.end(claimed, Advanced(RUNNING))
            raise

    async def _advance(self, work: _Work, advance: Advance) -> None:
        run_id = work.claim.run_id
        try:
            if time.monotonic() >= work.lease_ends:  # this process stood still: the run may be another worker's
                return
            advanced = await advance_run(advance, run_id, self._deferred)
            try:
                await self._queue.end(work.claim, advanced)
            except TaoError as error:
                _LOG.warning("run %s: the end of its turn could not be noted: %s", run_id, error)
        finally:
            del self._turns[run_id]
            self._changed.set()

    def _excluded(self) -> list[str]:
        """The runs that this worker does not claim now: it drives them, or has left them to others."""
        return [*self._turns, *self._deferred.run_ids()]

    async def _beat(self) -> None:
        """Renew the leases of the turns under way; those whose claims are lost, or whose leases are over, are ended."""
        pause_s = self._lease_s / _BEATS
        while True:
            await asyncio.sleep(pause_s)
            works = list(self._turns.values())  # what is claimed from here on is not judged
            ends = time.monotonic() + self._lease_s
            try:
                async with asyncio.timeout(pause_s):
                    await self._renew(works, ends)
            except (TaoError, TimeoutError) as error:
                text = "the leases of %d runs could not be renewed: %s"
                _LOG.warning(text, len(works), str(error) or "the server does not answer")
            for work in works:
                if work.lease_ends <= time.monotonic():
                    work.cancel()

    async def _renew(self, works: Iterable[_Work], ends: float) -> None:
        """Renew leases, until `ends` by the clock of this process; rows that are locked just now are tried again."""
        remaining = list(works)
        while remaining:
            renewal = await self._queue.renew([work.claim for work in remaining], self._lease_s)
            for work in remaining:
                if work.claim.run_id in renewal.renewed:
                    work.lease_ends = ends
                elif work.claim.run_id in renewal.lost:
                    work.cancel()
            known = renewal.renewed | renewal.lost
            remaining = [work for work in remaining if work.claim.run_id not in known]
            if remaining:
                await asyncio.sleep(_BUSY_LOOK_S)

    async def _check_claims(self) -> None:
        """Cancel the turns whose claims were ended from outside: the runs were cancelled."""
        works = list(self._turns.values())
        if not works or (self._is_told and not self._must_check):
            return
        self._must_check = False
        async with asyncio.timeout(self._lease_s):
            standing = await self._queue.standing([work.claim for work in works])
        for work in works:
            if work.claim.run_id not in standing:
                work.cancel()

    async def _listen(self) -> None:
        """Be told of what is due, and try again where that ends."""
        from taoloop.journals.postgres.listening import Ear  # noqa: PLC0415  # loads the driver

        while True:
            async with Ear(self._queue.database, self._queue.channel, self._hear) as ear:
                self._is_told = ear.hears
                self._has_tried.set()
                self._must_check = True  # what was not heard meanwhile
                self._changed.set()
                while ear.hears:
                    await ear.wait(_TOLD_LOOK_S)
            self._is_told = False
            self._changed.set()
            await asyncio.sleep(_TOLD_LOOK_S)

    def _hear(self, payload: str) -> None:
        if payload == CHECK:
            self._must_check = True
        if payload == CHECK or payload in self._queues:
            self._changed.set()
