"""Which runs somebody is at work on: who drives a run holds its lease, and no longer than it lives."""

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
    """Who is at work on a run. `process` is its number, None where the system does not tell it."""

    process: int | None = None

    def __str__(self) -> str:
        """As it stands in messages."""
        if self.process is None:
            return "another process"
        return "this process" if self.process == os.getpid() else f"the process {self.process}"


class RunLocks(Protocol):
    """What a journal knows of who is at work on its runs. A journal that can tell has one as its attribute `holds`.

    A lease is held from its taking to the end of the work under it, and at most as long as its process lives. One
    that was voided by a newer lease holds nothing, whoever still has it.
    """

    async def holder(self, run_id: str) -> LockHolder | None:
        """Who holds the newest lease of a run; None: nobody."""
        ...

    async def left(self) -> list[str]:
        """The runs that are `running` with nobody at work on them any more, the oldest first.

        Runs inside other runs are not among them: those go on with the runs around them. Nor are forks that nobody
        has gone on with yet: no process died there.
        """
        ...

    async def is_new_fork(self, run_id: str) -> bool:
        """Whether a run is a fork that nobody has gone on with yet."""
        ...

    def hold(self, lease: Lease) -> None:
        """Begin to hold a lease that was just taken.

        Raises:
            JournalError: the system does not let us.
        """
        ...

    def let_go(self, lease: Lease) -> None:
        """End it. Again is harmless."""
        ...


def is_unresumed_fork(origin: str | None, taken_up: str | None) -> bool:
    """Whether a run is a fork of the run `origin` that nobody has gone on with yet.

    `taken_up` is the reason of its last `resumed`; the one that makes it a fork says so.
    """
    return origin is not None and (taken_up or "").startswith(f"fork of run {origin} at ")


def starts_as_fork(events: Sequence[Event]) -> bool:
    """`is_new_fork` of the events of a run."""
    origin = getattr(events[0].fact, "forked_from", None) if events else None
    if origin is None:
        return False
    return is_unresumed_fork(
        origin, next((e.fact.reason for e in reversed(events) if isinstance(e.fact, Resumed)), None)
    )


def locks_of(journal: Journal) -> RunLocks | None:
    """What the journal knows of who is at work; None where it cannot tell."""
    holds: RunLocks | None = getattr(journal, "holds", None)
    return holds


class _Kept(Protocol):
    """A run as the journal in memory keeps it."""

    fence: int
    status: str
    events: list[Event]


class MemoryRunLocks:
    """The same within one process, for the journal in memory."""

    def __init__(self, runs: Mapping[str, _Kept], lock: threading.Lock) -> None:
        self._runs, self._lock = runs, lock
        self._held: set[Lease] = set()

    async def holder(self, run_id: str) -> LockHolder | None:
        """Who holds the newest lease of a run; None: nobody."""
        with self._lock:
            run = self._runs.get(run_id)
            return LockHolder(process=os.getpid()) if run is not None and self._is_held(run_id, run) else None

    async def left(self) -> list[str]:
        """The runs that are `running` with nobody at work on them, the oldest first."""
        with self._lock:
            return [
                run_id
                for run_id, run in self._runs.items()
                if run.status == RUNNING
                and run.events
                and getattr(run.events[0].fact, "parent", None) is None
                and not starts_as_fork(run.events)
                and not self._is_held(run_id, run)
            ]

    async def is_new_fork(self, run_id: str) -> bool:
        """Whether a run is a fork that nobody has gone on with yet."""
        with self._lock:
            run = self._runs.get(run_id)
            return run is not None and starts_as_fork(run.events)

    def hold(self, lease: Lease) -> None:
        """Begin to hold a lease that was just taken."""
        with self._lock:
            self._held.add(lease)

    def let_go(self, lease: Lease) -> None:
        """End it. Again is harmless."""
        with self._lock:
            self._held.discard(lease)

    def _is_held(self, run_id: str, run: _Kept) -> bool:
        return Lease(run_id=run_id, fence=run.fence) in self._held
