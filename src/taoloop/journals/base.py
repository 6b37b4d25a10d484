"""The Protocol of a journal, the only place where anything about a run is stored, and that of its run locks.

Who may write to a run is decided by the fence of a lease; who is at work on it is shown by a lock on the lease.
`taoloop.journals.sqlite.run_locks` explains why these are two things.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from taoloop.core.events import Event, Fact, Finished, Paused, Resumed, RunStarted
from taoloop.core.stored_events import ChainReport
from taoloop.journals.process_identity import ProcessIdentity
from taoloop.journals.retention import PruneReport, Retention
from taoloop.translation import Translator

translate = Translator("journals")

KEY: Final = "key"
"""The label of a run that names the API key whose client asked for it."""

RUNNING: Final = "running"
WAITING: Final = "waiting"

STATUS_FACTS = frozenset({RunStarted, Resumed, Paused, Finished})
"""The facts that change the status of a run; nearly all others leave it as it was."""


def status_after(fact: Fact) -> str | None:
    """The status of a run once `fact` is stored, or None when the fact leaves it as it was."""
    if type(fact) not in STATUS_FACTS:  # nearly all
        return None
    match fact:
        case Finished():
            return fact.status
        case Paused():
            return WAITING
        case _:
            return RUNNING


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to append to one run."""

    run_id: str
    """The run."""

    fence: int
    """Its number. Every acquisition of the run raises it, and an append under an older one is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A complete output of which an event holds only a preview.

    The event names `ref` and the digest of `body`: an artifact that no event names counts as added by somebody else.
    """

    ref: str
    """Its name, unique within its run."""

    body: str
    """The output."""

    form: str = "text"
    """`text` or `json`; the media type of an image or a file, whose `body` is base64."""

    @property
    def is_binary(self) -> bool:
        """Whether it is an image or a file: then `ref` names its content, and storing it again changes nothing."""
        return "/" in self.form


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One line of the list of runs. Times are seconds since the epoch."""

    run_id: str
    """The run."""

    task: str
    """Its task."""

    agent: str
    """The name of its agent."""

    status: str
    """A finished status, `waiting`, or `running`. A run that is `running` while no process is at work on it was left by
    a process that died: it can be resumed."""

    started_at: float
    """When it was created."""

    updated_at: float
    """The time of its last event."""

    events: int
    """How many events it has."""

    parent: str | None = None
    """The run around it."""

    key: str = ""
    """The name of the API key whose client asked for it; of a run inside another one the outer run has it."""

    model: str = ""
    """The model of its agent."""


class Journal(Protocol):
    """Stores traces. Every method may be called from any task; one run has one writer at a time.

    What was appended survives the death of the process once `append` has returned, except in a journal that promises
    less, as the one in memory does. Implementations pass `taoloop.testing.journal_contract`.
    """

    async def create(self, run_id: str) -> Lease:
        """Begin an empty run and take it.

        A run without events is replaced, and every earlier lease of it is void: the process that created it died
        before the first append, or was too slow.

        Raises:
            RunExists: the run has events.
        """
        ...

    async def acquire(self, run_id: str, *, at: int | None = None) -> Lease:
        """Take an existing run for writing; every earlier lease of it is void from then on.

        `at` is how many events the caller knows: a run that has more by now is left to the worker that wrote them.

        Raises:
            FenceLost: the run does not have exactly `at` events; nothing was changed.
            RunNotFound: there is no such run.
            JournalTampered: the run is not as it was written; it cannot be continued.
        """
        ...

    async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        """Add events and artifacts to the run, all of them or none; returns when they are stored.

        `events` continue the run's seq without a gap. An artifact that the run has already is an error, except an
        image, which is then stored already.

        Raises:
            FenceLost: another worker has acquired the run; nothing was written.
            JournalFull, JournalLocked: nothing was written.
        """
        ...

    async def load(self, run_id: str) -> list[Event]:
        """All events of a run in order.

        Raises:
            RunNotFound: there is no such run.
        """
        ...

    async def artifact(self, run_id: str, ref: str) -> Artifact | None:
        """One artifact of a run, or None."""
        ...

    async def verify(self, run_id: str) -> ChainReport:
        """Whether the run is as it was written, and the head of its chain (`taoloop.core.stored_events.head_of`).

        A journal whose traces nobody else can reach (memory) reports only the head.

        Raises:
            RunNotFound: there is no such run.
        """
        ...

    async def runs(self, *, limit: int = 50, status: str | None = None) -> list[RunRow]:
        """The newest runs first, at most `limit` of them, only those of one `status` if it is given.

        A run without events is not among them.
        """
        ...

    async def prune(self, keep: Retention, *, now: float, is_dry_run: bool = False) -> PruneReport:
        """Remove the finished runs that `keep` no longer keeps at `now`, seconds since the epoch.

        Each goes with the runs inside it and keeps its record: `load`, `verify` and `acquire` raise RunPruned for it,
        and `create` RunExists. Other writes go on meanwhile. With `is_dry_run` nothing is changed.
        """
        ...

    async def close(self) -> None:
        """Write what is queued and release files and threads. Closing twice is harmless."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LockHolder:
    """The process that is at work on a run."""

    process: int | None = None
    """The number of the process; None where the system does not report it."""

    identity: ProcessIdentity | None = field(default=None, compare=False)
    """Which process that is, if it is one of this system that is alive and can be ended; else None."""

    def __str__(self) -> str:
        """For messages."""
        if self.process is None:
            return translate("another process")
        own = self.process == os.getpid()
        return translate("this process") if own else translate("the process {number}", number=self.process)


class RunLocks(Protocol):
    """Shows who is at work on the runs of a journal. A journal that can tell has it as its attribute `run_locks`.

    A lease is locked from its acquisition to the end of the work under it, and at most as long as its process lives. A
    lease that a newer one has voided locks nothing.
    """

    async def holder(self, run_id: str) -> LockHolder | None:
        """The holder of the newest lease of a run; None if there is none."""
        ...

    async def orphans(self) -> list[str]:
        """The runs that are `running` with no process at work on them any more, the oldest first.

        Runs inside other runs are not among them, because they are resumed with the runs around them; nor are forks
        that nobody has resumed yet, because no process died there; nor runs that were submitted, which are their
        workers' business.
        """
        ...

    async def is_new_fork(self, run_id: str) -> bool:
        """Whether a run is a fork that nobody has resumed yet."""
        ...

    async def was_elsewhere(self, run_id: str, /) -> bool:
        """Whether the newest lease was acquired on another machine, whose locks cannot be seen here."""
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
    reasons = (event.fact.reason for event in reversed(events) if isinstance(event.fact, Resumed))
    return is_unresumed_fork(origin, next(reasons, None))


def locks_of(journal: Journal) -> RunLocks | None:
    """The run locks of a journal; None where it has none."""
    run_locks: RunLocks | None = getattr(journal, "run_locks", None)
    return run_locks
