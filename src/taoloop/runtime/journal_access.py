"""How a run gets its journal: opened once per file and process, acquired under a lease, and locked while it is driven.

A lease decides which worker may write to a run; it carries a fence, which the journal checks at each append (how and
why: `taoloop.journals.base`). A lock shows that the lease's process is alive, so that no other worker acquires the run
by mistake.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from taoloop.core.trace import Trace
from taoloop.errors import RunHeld, RunNotResumable
from taoloop.journals.base import Journal, Lease, LockHolder, locks_of
from taoloop.journals.postgres.address import DatabaseAddress, PostgresAddress
from taoloop.journals.process_identity import end_process
from taoloop.runtime.texts import TEXTS
from taoloop.runtime.threads import require_asyncio

if TYPE_CHECKING:
    from taoloop.journals.postgres.journal import PostgresJournal
    from taoloop.journals.sqlite.journal import SqliteJournal


EarlierHolder = Literal["", "alive", "elsewhere", "unknown"]
"""As `Resumed.earlier_holder`."""


async def acquire_run(
    journal: Journal, run_id: str, *, at: int | None, take_over: bool, kill_holder: bool = False
) -> tuple[Lease, EarlierHolder]:
    """Acquire an existing run (`Journal.acquire`); the second value tells whether who had it may still be at work.

    A call of a live process goes on whoever has the run, so such a process is ended first (`kill_holder`) or the run is
    left to it. `take_over` acquires the run nevertheless where that process cannot be ended from here: it is this one,
    or its number is not known, as in another container. A run that its process had to be ended for is acquired with
    any number of events: it may have recorded its end.

    Raises:
        RunHeld: another process is at work on it.
        FenceLost: the run has other than `at` events: another worker acquired it at this moment.
    """
    run_locks = locks_of(journal)
    if run_locks is None:
        return await journal.acquire(run_id, at=at), "unknown"
    earlier: EarlierHolder = "elsewhere" if await run_locks.was_elsewhere(run_id) else ""
    if kill_holder and await end_holder(journal, run_id):
        at = None
    elif (holder := await run_locks.holder(run_id)) is not None:
        if not take_over or _can_be_ended(holder):
            raise TEXTS.run_error(RunHeld, "run_held", {"run_id": run_id, "holder": holder})
        earlier = "alive"
    return await journal.acquire(run_id, at=at), earlier


async def end_holder(journal: Journal, run_id: str) -> bool:
    """End the process that is at work on a run, and wait until it is gone; returns whether there was one.

    Raises:
        RunHeld: it cannot be ended from here.
    """
    run_locks = locks_of(journal)
    holder = None if run_locks is None else await run_locks.holder(run_id)
    if holder is None:
        return False
    hint = TEXTS.run_text("run_held_unknown_hint")
    if holder.identity is None or not _can_be_ended(holder):
        raise TEXTS.run_error(RunHeld, "run_held", {"run_id": run_id, "holder": holder}, hint=hint)
    problem = TEXTS.run_text("run_held_survived")
    try:
        if await asyncio.to_thread(end_process, holder.identity):
            return True
    except OSError as error:
        problem = str(error.strerror or error)
    values = {"run_id": run_id, "holder": holder, "problem": problem}
    raise TEXTS.run_error(RunHeld, "run_held_kill", values, hint=hint)


def _can_be_ended(holder: LockHolder) -> bool:
    return holder.identity is not None and holder.process != os.getpid()


async def require_unlocked(journal: Journal, run_id: str) -> None:
    """Refuse a run that a process is at work on, if the journal can tell.

    Raises:
        RunHeld: names the process.
    """
    run_locks = locks_of(journal)
    if run_locks is not None and (holder := await run_locks.holder(run_id)) is not None:
        raise TEXTS.run_error(RunHeld, "run_held", {"run_id": run_id, "holder": holder})


def require_open(trace: Trace) -> None:
    """Refuse a run that nothing can follow.

    Raises:
        RunNotResumable: it is completed, or somebody abandoned it.
    """
    ended = trace.finished
    if ended is not None and ended.abandoned_by:
        raise RunNotResumable(f"Run {trace.run_id} was abandoned by {ended.abandoned_by}.", hint="Start a new run.")
    if trace.is_over:
        raise RunNotResumable(f"Run {trace.run_id} is completed.", hint="Start a new run.")


def is_left(journal: Journal) -> bool:
    """Whether a worker has let go of what it drives over this journal: it goes on elsewhere, and nothing is written."""
    return bool(getattr(journal, "is_left", False))


class _Driver(NamedTuple):
    """A task of this process that drives a run."""

    journal: Journal
    task: asyncio.Task[Any] | None


_DRIVERS: dict[str, _Driver] = {}
"""The drivers of this process, by run."""

_STOP_LOOK_S = 0.02


@contextmanager
def run_lock(journal: Journal, lease: Lease) -> Iterator[None]:
    """Lock a lease that was just acquired, as long as the block runs and the process lives.

    Meanwhile `stop_run` finds the task that runs the block.
    """
    run_locks = locks_of(journal)
    driver = _DRIVERS[lease.run_id] = _Driver(journal, asyncio.current_task())
    if run_locks is not None:
        run_locks.lock(lease)
    try:
        yield
    finally:
        if _DRIVERS.get(lease.run_id) is driver:  # else it was taken over
            del _DRIVERS[lease.run_id]
        if run_locks is not None:
            run_locks.release(lease)


def is_driven_here(journal: Journal, run_id: str) -> bool:
    """Whether this process is at work on a run of this journal, so that `stop_run` can stop it."""
    return _driver_of(journal, run_id) is not None


async def stop_run(journal: Journal, run_id: str, *, wait_s: float = 10.0) -> bool:
    """Stop a run that this process drives, in any thread: the task that awaits it is cancelled.

    The run records that it was stopped, and can be resumed. Returns whether it is driven here; waits at most `wait_s`
    seconds for its end, which may come later where a tool does not let go.
    """
    driver = _driver_of(journal, run_id)
    if driver is None or driver.task is None:
        return False
    driver.task.get_loop().call_soon_threadsafe(driver.task.cancel)
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            while _DRIVERS.get(run_id) is driver:  # noqa: ASYNC110  # the run may be in another thread and loop
                await asyncio.sleep(_STOP_LOOK_S)
    return True


def _driver_of(journal: Journal, run_id: str) -> _Driver | None:
    """The driver of a run in this journal, or in another one on the same file."""
    driver = _DRIVERS.get(run_id)
    if driver is None:
        return None
    where = _where(journal)
    is_same = driver.journal is journal or (where is not None and where == _where(driver.journal))
    return driver if is_same else None


def _where(journal: Journal) -> object:
    """The file or the database of a journal; None for others."""
    return getattr(journal, "path", None) or getattr(journal, "location", None)


class SharedJournals:
    """The journals in use, by resolved path or address, however many runs use each. For any thread and event loop.

    Several journals on one file would compete for its lock, and each would have a thread and two connections.
    """

    def __init__(self) -> None:
        self._before_forks: list[dict[DatabaseAddress, tuple[SqliteJournal | PostgresJournal, int]]] = []
        self._open: dict[DatabaseAddress, tuple[SqliteJournal | PostgresJournal, int]] = {}  # with the number of users
        self._lock = threading.Lock()

    @asynccontextmanager
    async def use(self, database: str | DatabaseAddress) -> AsyncIterator[SqliteJournal | PostgresJournal]:
        """The journal in a file, or in a PostgreSQL database; opened by its first user, closed by the last.

        Raises:
            ConfigError: it begins like the address of a PostgreSQL database and is none.
            JournalError: it cannot be opened; the text says why.
        """
        from taoloop.journals.addresses import database_address, journal_at  # noqa: PLC0415  # only where one is named

        address = database_address(database)
        if isinstance(address, Path):  # unlike Path.resolve it never raises: opening the file will
            address = Path(os.path.realpath(address))  # noqa: ASYNC240  # quick
        with self._lock:
            journals = self._open  # a forked child has others
            journal, users = journals.get(address) or (journal_at(address), 0)
            journals[address] = journal, users + 1
        try:
            await journal.open()
            yield journal
        finally:
            with self._lock:
                _, users = journals.pop(address)
                if users > 1:
                    journals[address] = journal, users - 1
            if users == 1:
                await journal.close()

    def forget(self) -> None:
        """Drop all journals: for a forked child, which may not even close those of its parent."""
        self._before_forks.append(self._open)
        self._open, self._lock = {}, threading.Lock()


JOURNALS = SharedJournals()
"""The journals of this process that agents with a path have open."""

if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=JOURNALS.forget)
    os.register_at_fork(after_in_child=_DRIVERS.clear)


@asynccontextmanager
async def open_journal(journal: Journal | str | DatabaseAddress) -> AsyncIterator[Journal]:
    """A journal, or the one in a file or a PostgreSQL database, open as long as the block runs.

    Raises:
        ConfigError: no asyncio event loop is running.
        JournalError: the file cannot be opened.
    """
    require_asyncio()
    if isinstance(journal, str | Path | PostgresAddress):
        async with JOURNALS.use(journal) as opened:
            yield opened
    else:
        yield journal
