"""Which runs a process is at work on: it locks the lease of each run that it drives, as long as it lives."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from taoloop.core.events import Resumed
from taoloop.journals.base import RUNNING, Lease

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping, Sequence

    from taoloop.core.events import Event
    from taoloop.journals.base import Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class LockHolder:
    """The process that is at work on a run."""

    process: int | None = None
    """The number of the process; None where the system does not tell it."""

    def __str__(self) -> str:
        """As in messages."""
        if self.process is None:
            return "another process"
        return "this process" if self.process == os.getpid() else f"the process {self.process}"


class RunLocks(Protocol):
    """Tells who is at work on the runs of a journal. A journal that can tell has one as its attribute `run_locks`.

    A lease is locked from its acquisition to the end of the work under it, and at most as long as its process lives. A
    lease that a newer one has voided locks nothing.
    """

    async def holder(self, run_id: str) -> LockHolder | None:
        """The holder of the newest lease of a run; None if there is none."""
        ...

    async def orphans(self) -> list[str]:
        """The runs that are `running` with no process at work on them any more, the oldest first.

        Runs inside other runs are not among them, because they are resumed with the runs around them; nor are forks
        that nobody has resumed yet, because no process died there.
        """
        ...

    async def is_new_fork(self, run_id: str) -> bool:
        """Whether a run is a fork that nobody has resumed yet."""
        ...

    def lock(self, lease: Lease) -> None:
        """Lock a lease that was just acquired.

        Raises:
            JournalError: the system refuses.
        """
        ...

    def release(self, lease: Lease) -> None:
        """Unlock a lease. Doing it twice is harmless."""
        ...


def is_unresumed_fork(origin: str | None, last_reason: str | None) -> bool:
    """Whether a run is a fork of the run `origin` that nobody has resumed yet.

    `last_reason` is the reason of its last `resumed` event; that of the event that makes it a fork names the origin.
    """
    return origin is not None and (last_reason or "").startswith(f"fork of run {origin} at ")


def starts_as_fork(events: Sequence[Event]) -> bool:
    """`is_new_fork` of the events of a run."""
    origin = getattr(events[0].fact, "forked_from", None) if events else None
    if origin is None:
        return False
    return is_unresumed_fork(
        origin, next((e.fact.reason for e in reversed(events) if isinstance(e.fact, Resumed)), None)
    )


def locks_of(journal: Journal) -> RunLocks | None:
    """The run locks of a journal; None where it has none."""
    run_locks: RunLocks | None = getattr(journal, "run_locks", None)
    return run_locks


class _MemoryRun(Protocol):
    """A run of the journal in memory."""

    fence: int
    status: str
    events: list[Event]


class MemoryRunLocks:
    """The same within one process, for the journal in memory."""

    def __init__(self, runs: Mapping[str, _MemoryRun], lock: threading.Lock) -> None:
        self._runs, self._lock = runs, lock
        self._locked: set[Lease] = set()

    async def holder(self, run_id: str) -> LockHolder | None:
        """The holder of the newest lease of a run; None if there is none."""
        with self._lock:
            run = self._runs.get(run_id)
            return LockHolder(process=os.getpid()) if run is not None and self._is_locked(run_id, run) else None

    async def orphans(self) -> list[str]:
        """The runs that are `running` with no one at work on them, the oldest first."""
        with self._lock:
            return [
                run_id
                for run_id, run in self._runs.items()
                if run.status == RUNNING
                and run.events
                and getattr(run.events[0].fact, "parent", None) is None
                and not starts_as_fork(run.events)
                and not self._is_locked(run_id, run)
            ]

    async def is_new_fork(self, run_id: str) -> bool:
        """Whether a run is a fork that nobody has resumed yet."""
        with self._lock:
            run = self._runs.get(run_id)
            return run is not None and starts_as_fork(run.events)

    def lock(self, lease: Lease) -> None:
        """Lock a lease that was just acquired."""
        with self._lock:
            self._locked.add(lease)

    def release(self, lease: Lease) -> None:
        """Unlock a lease. Doing it twice is harmless."""
        with self._lock:
            self._locked.discard(lease)

    def _is_locked(self, run_id: str, run: _MemoryRun) -> bool:
        return Lease(run_id=run_id, fence=run.fence) in self._locked
