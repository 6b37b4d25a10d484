"""The Protocol of a journal: the only place where anything about a run is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from taoloop.core.events import Fact, Finished, Paused, Resumed, RunStarted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.events import Event
    from taoloop.core.stored_events import ChainReport


RUNNING: Final = "running"
WAITING: Final = "waiting"

TELLING = frozenset({RunStarted, Resumed, Paused, Finished})
"""The facts that say something of it; nearly all others leave it as it was."""


def status_after(fact: Fact) -> str | None:
    """The status of a run once `fact` is kept, or None when the fact leaves it as it was."""
    if type(fact) not in TELLING:  # nearly all
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
    """The right to append to one run. Taking a run again raises `fence`, and older leases are refused."""

    run_id: str
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """The whole of an output whose preview stands in an event, which names `ref` and the digest of `body`.

    `ref` is unique within its run. An artifact that no event names passes for one that somebody added.
    """

    ref: str
    body: str
    form: str = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One line of the list of runs. `status` is a finished status, `waiting`, or `running`.

    `running` with no process behind it is a run whose process died: it can be resumed. Times are seconds since
    the epoch.
    """

    run_id: str
    task: str
    agent: str
    status: str
    started_at: float
    updated_at: float
    events: int


class Journal(Protocol):
    """Keeps traces. Every method may be called from any task; one run has one writer at a time.

    What `append` has returned from survives the death of the process (as far as the journal promises; memory
    does not). Implementations pass `taoloop.testing.journal_contract`.
    """

    async def create(self, run_id: str) -> Lease:
        """Begin an empty run and take it.

        A run without events is begun anew, and every earlier lease of it is void: who created it died before the
        first append, or is beaten to it.

        Raises:
            RunExists: the run has events.
        """
        ...

    async def acquire(self, run_id: str, *, at: int | None = None) -> Lease:
        """Take an existing run for writing; every earlier lease of it is void from here on.

        `at` is how many events the taker has seen: a run that has gone on since is left to whoever is at work on it.

        Raises:
            FenceLost: the run has other than `at` events; nothing was changed.
            RunNotFound: there is no such run.
            JournalTampered: the run is not as it was written; nobody may go on from there.
        """
        ...

    async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        """Add events and artifacts to the run, all of them or none; returns when they are kept.

        `events` continue the run's seq without a gap.

        Raises:
            FenceLost: the run was taken by somebody else; nothing was written.
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

        A journal whose traces nobody else can reach (memory) has only the head to tell.

        Raises:
            RunNotFound: there is no such run.
        """
        ...

    async def runs(self, *, limit: int = 50, status: str | None = None) -> list[RunRow]:
        """The newest runs first, at most `limit` of them, only those of one `status` if it is given.

        A run without events is not among them.
        """
        ...

    async def close(self) -> None:
        """Write what is queued and let go of files and threads. Closing twice is harmless."""
        ...
