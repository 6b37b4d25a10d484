"""The claim of a worker to a run: an attempt of an activity that its heartbeats keep.

The problem: the server takes a run from a worker that says nothing for `HEARTBEAT_S`, and gives it to another one. The
worker may only have been stopped, or cut off, or may get an attempt from a connection that was frozen for a while. It
must not take the run's fence from the new owner, and must let go by itself, for nobody can tell it.

The idea: `activity.heartbeat()` only queues; a heartbeat by the attempt's token is answered, and refused for an old
attempt. One is answered before the run is touched. After that a claim stands until `HEARTBEAT_S` after the last one
that was answered was sent, on the clock of this machine; the server's count began later.

The invariant: a task that is driven under a claim is cancelled no later than the server may give the run to another
worker, unless the whole process stands still; then the fence of the journal refuses what it still writes.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from temporalio import activity
from temporalio.client import AsyncActivityCancelledError, AsyncActivityHandle
from temporalio.service import RPCError, RPCStatusCode

from taoloop.runtime.fleet.temporal.workflow import HEARTBEAT_S

_BEAT_S = 1.0
"""How often a heartbeat is sent; so long may a cancel take to arrive."""


class AttemptClaim:
    """The claim of the activity that makes it, by its handle."""

    def __init__(self, handle: AsyncActivityHandle) -> None:
        self._handle = handle
        self._ends = time.monotonic() + HEARTBEAT_S

    async def stands(self) -> bool:
        """Whether the server says that the run is ours. Where it does not answer: not once the claim is over."""
        sent = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, self._ends - sent)):
                await self._handle.heartbeat()
        except AsyncActivityCancelledError:
            return False
        except (RPCError, TimeoutError) as error:
            is_refused = isinstance(error, RPCError) and error.status is RPCStatusCode.NOT_FOUND
            return not is_refused and time.monotonic() < self._ends
        self._ends = sent + HEARTBEAT_S
        activity.heartbeat()  # the SDK ends activities of which it hears nothing itself
        return True

    async def keep(self, task: asyncio.Task[Any]) -> None:
        """Send heartbeats until the task has ended; it is cancelled once the claim is lost."""
        while not task.done():
            await asyncio.wait([task], timeout=_BEAT_S)
            if not task.done() and not await self.stands():
                task.cancel()
                await asyncio.wait([task])
