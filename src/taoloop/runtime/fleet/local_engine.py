"""The engine of one machine: workers share a small SQLite file beside the journal; nothing has to be started."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from taoloop.core.agent_spec import DEFAULT_QUEUE
from taoloop.errors import TaoError
from taoloop.runtime.fleet.engine import Advance
from taoloop.runtime.fleet.local_queue import LocalQueue, QueueCount, RunClaim
from taoloop.runtime.fleet.turn_tasks import DeferredRuns, advance_run, wait_for_turns

DEFAULT_LEASE_S = 10.0
"""How long a worker that says nothing keeps its runs. One that is gone loses them within `_LOOK_S`."""

_POLL_S = 0.05
"""How often an idle worker looks whether anything has changed: a few microseconds each time."""

_LOOK_S = 1.0
"""How often it looks for workers that are gone, and for runs whose time has come."""

_LOG = logging.getLogger("taoloop.fleet")


class _Work:
    """An advance under way."""

    def __init__(self, claim: RunClaim, task: asyncio.Task[None], lease_ends: float) -> None:
        self.claim, self.task, self.lease_ends = claim, task, lease_ends


class LocalEngine:
    """An `Engine` for the processes of one machine, over the file `path` (None: in memory, for this object alone).

    Args:
        path: The file; by convention that of the journal with `-queue`. It is made if it is missing.
        queues: The queues whose runs it advances.
        concurrency: How many runs at once.
        lease_s: How long a stopped worker keeps its runs.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        queues: Sequence[str] = (DEFAULT_QUEUE,),
        concurrency: int = 10,
        lease_s: float = DEFAULT_LEASE_S,
    ) -> None:
        self._queue = LocalQueue(path)
        self._queues, self._concurrency, self._lease_s = tuple(queues), concurrency, lease_s
        self._turns: dict[str, _Work] = {}
        self._deferred = DeferredRuns()
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Nothing more is to be opened."""
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close the file."""
        await self.close()

    async def close(self) -> None:
        """Close the file."""
        await asyncio.to_thread(self._queue.close)

    async def submit(self, run_id: str, at: float | None, queue: str, priority: int, tenant: str) -> None:
        """As `Engine.submit`."""
        now = time.time()
        await asyncio.to_thread(self._queue.submit, run_id, now if at is None else at, queue, priority, tenant)
        self._changed.set()

    async def wake(self, run_id: str) -> None:
        """As `Engine.wake`."""
        await asyncio.to_thread(self._queue.wake, run_id, time.time())
        self._deferred.resume(run_id)
        self._changed.set()

    async def cancel(self, run_id: str) -> None:
        """As `Engine.cancel`."""
        await asyncio.to_thread(self._queue.cancel, run_id, time.time())
        self._changed.set()

    async def counts(self) -> dict[str, QueueCount]:
        """How many runs are due, claimed and idle, by queue."""
        return await asyncio.to_thread(self._queue.counts, time.time())

    async def serve(self, advance: Advance) -> None:
        """As `Engine.serve`."""
        beating = asyncio.create_task(self._beat())
        try:
            while True:
                self._changed.clear()
                version = self._queue.version()
                await self._check_claims()
                await self._claim(advance)
                await self._wait_for_change(version)
        finally:
            try:
                await wait_for_turns(lambda: [turn.task for turn in self._turns.values()])
            finally:
                beating.cancel()
                await asyncio.gather(beating, return_exceptions=True)

    async def _claim(self, advance: Advance) -> None:
        free = self._concurrency - len(self._turns)
        if free <= 0:
            return
        # a claim that is made while this is cancelled ends with its lease
        claims = await asyncio.to_thread(
            self._queue.claim, self._queues, free, time.time(), self._lease_s, self._excluded()
        )
        ends = time.monotonic() + self._lease_s
        for claim in claims:
            task = asyncio.create_task(self._advance(claim, advance), name=f"taoloop-{claim.run_id}")
            self._turns[claim.run_id] = _Work(claim, task, ends)

    async def _advance(self, claim: RunClaim, advance: Advance) -> None:
        run_id = claim.run_id
        try:
            advanced = await advance_run(advance, run_id, self._deferred)
            try:
                await asyncio.to_thread(self._queue.end, claim, advanced, time.time())
            except TaoError as error:
                _LOG.warning("run %s: the end of its turn could not be noted: %s", run_id, error)
        finally:
            del self._turns[run_id]
            self._changed.set()

    def _excluded(self) -> list[str]:
        """The runs that this worker does not claim now: it drives them, or has left them to others."""
        return [*self._turns, *self._deferred.run_ids()]

    async def _beat(self) -> None:
        """Lengthen the leases of the turns under way; those that are over are cancelled."""
        while True:
            await asyncio.sleep(self._lease_s / 3)
            turns = list(self._turns.values())
            if not turns:
                continue
            now = time.monotonic()
            try:
                renewed = await asyncio.to_thread(
                    self._queue.renew, [turn.claim for turn in turns], time.time(), self._lease_s
                )
            except TaoError as error:
                _LOG.warning("the leases of %d runs could not be renewed: %s", len(turns), error)
                for turn in turns:
                    if turn.lease_ends <= time.monotonic():
                        turn.task.cancel()
                continue
            for turn in turns:
                turn.lease_ends = now + self._lease_s
                if turn.claim not in renewed:
                    turn.task.cancel()

    async def _check_claims(self) -> None:
        """Cancel the turns whose claims are over: the run was cancelled, or this process was stopped for a while."""
        turns = list(self._turns.values())
        if not turns:
            return
        standing = await asyncio.to_thread(self._queue.standing, [turn.claim for turn in turns])
        for turn in turns:
            if turn.claim not in standing and not turn.task.done():
                turn.task.cancel()

    async def _wait_for_change(self, version: int) -> None:
        """Wait until the file has changed, something of this process has, or a second has passed."""
        due = None
        if len(self._turns) < self._concurrency:
            due = await asyncio.to_thread(self._queue.next_at, self._queues, self._excluded())
        wait_s = _LOOK_S if due is None else min(_LOOK_S, max(0.0, due - time.time()))
        ends = time.monotonic() + wait_s
        while not self._changed.is_set() and self._queue.version() == version:
            left_s = ends - time.monotonic()
            if left_s <= 0:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(min(_POLL_S, left_s)):
                    await self._changed.wait()
