"""A journal in memory: for tests, for throw-away runs and as the smallest example of the Protocol."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence

from taoloop.core.events import Event, RunStarted
from taoloop.core.stored_events import ChainReport, head_of
from taoloop.errors import FenceLost, IllegalEvent, JournalError, RunExists, RunNotFound
from taoloop.journals.base import (
    RUNNING,
    STATUS_FACTS,
    WAITING,
    Artifact,
    Lease,
    LockHolder,
    RunRow,
    starts_as_fork,
    status_after,
)
from taoloop.journals.memory_queries import MemoryQueries, MemoryRun, row_of
from taoloop.journals.queries import RunQuery
from taoloop.journals.retention import (
    PrunedRun,
    PruneReport,
    Retention,
    StoredRun,
    due_groups,
    has_open_calls,
    pruned_error,
)


class MemoryRunLocks:
    """The run locks of a journal in memory, within this process."""

    def __init__(self, runs: Mapping[str, MemoryRun], lock: threading.Lock) -> None:
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

    async def was_elsewhere(self, _run_id: str) -> bool:
        """Never: all of it is in this process."""
        return False

    def lock(self, lease: Lease) -> None:
        """Lock a lease that was just acquired."""
        with self._lock:
            self._locked.add(lease)

    def release(self, lease: Lease) -> None:
        """Unlock a lease. Doing it twice is harmless."""
        with self._lock:
            self._locked.discard(lease)

    def _is_locked(self, run_id: str, run: MemoryRun) -> bool:
        return Lease(run_id=run_id, fence=run.fence) in self._locked


class MemoryJournal(MemoryQueries):
    """Keeps traces as the event objects themselves; nothing survives the process.

    Any number of tasks, threads and event loops may share one journal.

    Args:
        keep: How many runs are kept. Beyond that the oldest run that is over gives way to a new one. None keeps all.
    """

    def __init__(self, *, keep: int | None = None) -> None:
        self._keep = keep
        self._lock = threading.Lock()  # around every change, and the list of runs
        self._runs: dict[str, MemoryRun] = {}  # in the order of creation
        self._pruned: dict[str, PrunedRun] = {}
        self.run_locks = MemoryRunLocks(self._runs, self._lock)
        self._closed = False
        self._created = 0  # how many runs
        MemoryQueries.__init__(self)

    async def create(self, run_id: str) -> Lease:
        """Begin an empty run and take it; RunExists if it has events."""
        with self._lock:
            self._check_open()
            known = self._runs.get(run_id)
            if run_id in self._pruned or (known is not None and known.events):
                raise RunExists(f"There is a run {run_id!r} already.", hint="Choose another id, or resume that run.")
            fence = 1
            if known is not None:  # it never began
                fence = known.fence + 1
                del self._runs[run_id]
            elif self._keep is not None and len(self._runs) >= self._keep:
                self._forget_oldest()
            self._created += 1
            self._runs[run_id] = MemoryRun(fence, self._created)
        return Lease(run_id=run_id, fence=fence)

    async def acquire(self, run_id: str, *, at: int | None = None) -> Lease:
        """Take an existing run; earlier leases are void from then on. FenceLost if it has other than `at` events."""
        with self._lock:
            run = self._find(run_id)
            if at is not None and at != len(run.events):
                raise FenceLost(f"Run {run_id!r} has new events by now.", hint="Another worker is at work on it.")
            run.fence += 1
            return Lease(run_id=run_id, fence=run.fence)

    async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        """Add events and artifacts, all of them or none. Costs the same however long the run is."""
        with self._lock:
            run = self._find(lease.run_id)
            if run.fence != lease.fence:
                raise FenceLost(
                    f"Run {lease.run_id!r} was taken by another worker.",
                    hint="Stop working on it; nothing was written.",
                )
            status, seq = run.status, len(run.events)
            for event in events:
                if event.seq != seq:
                    raise IllegalEvent(f"Run {lease.run_id!r} expects event {seq}, not {event.seq}.")
                if type(event.fact) in STATUS_FACTS:
                    status = status_after(event.fact) or status
                seq += 1
            if artifacts:
                run.artifacts = _with_artifacts(lease.run_id, run.artifacts or {}, artifacts)
            run.events.extend(events)
            run.status = status
            if events:
                self._grow(lease.run_id, len(events))

    async def load(self, run_id: str) -> list[Event]:
        """All events of a run in order, as a list of its own."""
        return list(self._find(run_id).events)

    async def artifact(self, run_id: str, ref: str) -> Artifact | None:
        """One artifact of a run, or None."""
        self._check_open()
        run = self._runs.get(run_id)
        return run.artifacts.get(ref) if run is not None and run.artifacts else None

    async def verify(self, run_id: str) -> ChainReport:
        """The head of the run's chain; nobody can edit what is in memory, so there is nothing else to find."""
        events = list(self._find(run_id).events)
        return ChainReport(run_id=run_id, events=len(events), head=head_of(run_id, events))

    async def runs(self, *, limit: int = 50, status: str | None = None) -> list[RunRow]:
        """The newest runs first, at most `limit` of them, only those of one `status` if it is given."""
        query = RunQuery(statuses=() if status is None else (status,))
        return list((await self.find(query, limit=limit)).rows)

    async def prune(self, keep: Retention, *, now: float, is_dry_run: bool = False) -> PruneReport:
        """Remove the finished runs that `keep` no longer keeps at `now`; nothing can be damaged in memory."""
        pruned: list[PrunedRun] = []
        with self._lock:
            self._check_open()
            rows = [_stored_run(run_id, run) for run_id, run in self._runs.items() if run.events]
            for group, rule in due_groups(rows, keep, now):
                runs = {row.run_id: self._runs[row.run_id] for row in group}
                if any(has_open_calls(event.fact for event in run.events) for run in runs.values()):
                    continue
                pruned += (_record(run_id, run, now, rule) for run_id, run in runs.items())
            if not is_dry_run:
                for record in pruned:
                    self._pruned[record.run_id] = record
                    self._remove(record.run_id)
        return PruneReport(pruned=tuple(pruned))

    async def close(self) -> None:
        """Refuse further work. The traces go with the object."""
        self._closed = True

    def _forget_oldest(self) -> None:
        over = next((run_id for run_id, run in self._runs.items() if run.status not in (RUNNING, WAITING)), None)
        if over is not None:
            self._remove(over)

    def _find(self, run_id: str) -> MemoryRun:
        run = None if self._closed else self._runs.get(run_id)
        if run is None:
            self._check_open()
            if (record := self._pruned.get(run_id)) is not None:
                raise pruned_error("memory", record)
            raise RunNotFound(f"There is no run {run_id!r} in this journal (in memory).")
        return run

    def _check_open(self) -> None:
        if self._closed:
            raise JournalError("The journal in memory is closed.", hint="Open another one.")


def _with_artifacts(run_id: str, stored: dict[str, Artifact], added: Sequence[Artifact]) -> dict[str, Artifact]:
    merged = dict(stored)
    for artifact in added:
        if artifact.ref in merged:
            if artifact.is_binary:
                continue
            raise IllegalEvent(f"Run {run_id!r} has an artifact {artifact.ref!r} already.")
        merged[artifact.ref] = artifact
    return merged


def _stored_run(run_id: str, run: MemoryRun) -> StoredRun:
    outer, fact = None, run.events[0].fact
    if isinstance(fact, RunStarted):
        outer = fact.undoes.run_id if fact.undoes is not None else fact.parent
    return StoredRun(run_id, outer, run.status not in (RUNNING, WAITING), run.events[-1].at)


def _record(run_id: str, run: MemoryRun, now: float, rule: str) -> PrunedRun:
    row = row_of(run_id, run)
    return PrunedRun(
        run_id=run_id,
        agent=row.agent,
        status=row.status,
        started_at=row.started_at,
        ended_at=row.updated_at,
        events=row.events,
        head=head_of(run_id, run.events),
        pruned_at=now,
        rule=rule,
    )
