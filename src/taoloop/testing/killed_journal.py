"""Journals of processes that die at a chosen append: before anything of it is stored, or right after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from taoloop.core.events import Event
from taoloop.journals.base import Artifact, Lease
from taoloop.journals.memory import MemoryJournal
from taoloop.journals.sqlite.journal import SqliteJournal

Moment = Literal["before", "after"]
"""On which side of an append a process dies."""


class Killed(BaseException):
    """The process died. No handler of errors catches it, as none runs in a process that is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillPoint:
    """Where a run is killed: an append is what the journal stores at once, one event or a few."""

    append: int
    """The number of the append, from 1; those of runs inside the run count as well."""
    moment: Moment
    """Whether the process dies before the append or after it."""
    events: tuple[str, ...] = ()
    """The kinds of the events of the append, as the undisturbed run had them; empty: not known."""

    def __str__(self) -> str:
        """For messages: `before append 5 (observed)`."""
        kinds = f" ({', '.join(self.events)})" if self.events else ""
        return f"{self.moment} append {self.append}{kinds}"


class Fate:
    """Counts appends, and ends the process at a point.

    Args:
        point: Where it ends; None: never.
        end_process: Called there; a process that is only noted as dead raises `Killed`.
    """

    def __init__(self, point: KillPoint | None, end_process: Callable[[], None]) -> None:
        self.appends: list[tuple[str, ...]] = []
        self._point, self._end_process = point, end_process

    def enter(self, events: Sequence[Event]) -> None:
        """Note an append before it is made."""
        self.appends.append(tuple(event.kind for event in events))
        self._meet("before")

    def leave(self) -> None:
        """Note that the append is stored."""
        self._meet("after")

    def _meet(self, moment: Moment) -> None:
        point = self._point
        if point is None:
            return
        count = len(self.appends)
        is_over = count > point.append  # a dead process writes nothing more
        if is_over or (count == point.append and (moment == point.moment)):
            self._end_process()


def raise_killed() -> NoReturn:
    """Die within a process that goes on."""
    raise Killed


class KillingJournal(MemoryJournal):
    """A journal in memory whose process dies at a point. What it holds then is what the next process finds.

    Args:
        point: Where the process dies; None: nowhere.
    """

    def __init__(self, point: KillPoint | None = None) -> None:
        super().__init__()
        self.fate = Fate(point, raise_killed)

    def revive(self) -> None:
        """Begin the next process, which does not die."""
        self.fate = Fate(None, raise_killed)

    async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        """As `MemoryJournal.append`.

        Raises:
            Killed: the process died here, or earlier.
            FenceLost: another worker has acquired the run; nothing was written.
        """
        self.fate.enter(events)
        await super().append(lease, events, artifacts)
        self.fate.leave()


class KillingSqliteJournal(SqliteJournal):
    """The journal of a real process that dies at a point.

    Args:
        path: The database.
        fate: Ends the process.
    """

    def __init__(self, path: Path, fate: Fate) -> None:
        super().__init__(path, synchronous="NORMAL")
        self._fate = fate

    async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        """As `SqliteJournal.append`, unless the process dies before or after it.

        Raises:
            FenceLost: another worker has acquired the run; nothing was written.
        """
        self._fate.enter(events)
        await super().append(lease, events, artifacts)
        self._fate.leave()
