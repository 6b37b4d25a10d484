"""The journal in one SQLite file: nothing to install, nothing to start, safe against `kill -9`."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from taoloop.core.events import Event
from taoloop.core.stored_events import ChainedEvent, ChainReport, LogReport
from taoloop.errors import JournalError, JournalFull, JournalLocked
from taoloop.journals.base import Artifact, Lease, RunRow
from taoloop.journals.queries import POLL_S, Growth, RunPage, RunPart, RunQuery, parse_number
from taoloop.journals.raw_runs import RawRun
from taoloop.journals.retention import PruneReport, Retention
from taoloop.journals.run_check import LogEntry
from taoloop.journals.sqlite import schema
from taoloop.journals.sqlite.batch import Acquire, Begin, Create, Write
from taoloop.journals.sqlite.errors import explain, removed
from taoloop.journals.sqlite.file import (
    DatabaseFile,
    OpenedFile,
    Synchronous,
    check_storage,
    close_database,
    default_path,
    execute_patiently,
    open_database,
)
from taoloop.journals.sqlite.positions import end, parse_position
from taoloop.journals.sqlite.prune import prune
from taoloop.journals.sqlite.raw_runs import add_raw_runs, log_entries, raw_run
from taoloop.journals.sqlite.reading import load_events, read_events
from taoloop.journals.sqlite.run_locks import run_locks_beside
from taoloop.journals.sqlite.run_queries import BEYOND, count_runs, find_runs, growth_since, page_of
from taoloop.journals.sqlite.search import RunSearch
from taoloop.journals.sqlite.spending import UsageReader
from taoloop.journals.sqlite.transaction import Transaction, begin
from taoloop.journals.sqlite.verify import linked_rows, require_whole, verify, verify_log
from taoloop.journals.sqlite.writer import Writer
from taoloop.journals.stored_append import FIRST_FENCE, encode
from taoloop.journals.usage import UsageRow

T = TypeVar("T")

_PAUSE = 4.0
"""How many times as long as a part of its work the preparation of the search rests: it takes a fifth of the time."""

_STORE_S = 0.1
"""How long `usage` waits for other processes, to store what it added up; other questions wait for it meanwhile."""


class _UnwrittenLease(Lease):
    """The lease of a run that is written with its first append."""

    __slots__ = ()


class SqliteJournal:
    """Keeps traces in the SQLite file `path` (by default `taoloop.journals.default_path()`).

    Nothing is opened before the first use (`async with` opens at once, so that errors come early). Any number of
    tasks, threads and event loops may share one journal; several processes may share one file. A journal that was
    used before a fork is refused in the child process, which must open another one.

    Args:
        path: the file; it and its folder are created when they are missing.
        synchronous: FULL (default): what `append` returned from survives a power cut. NORMAL: it survives the
            death of the process, a power cut may cost the last moments; never the file. Several times faster alone.
        lock_timeout_s: how long to wait for another process that holds the file, before JournalLocked.
        max_bytes: JournalFull once the file would grow beyond this; None for as much as the disk holds.
        read_only: look at a file that exists, without changing it; also works where it cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        synchronous: Synchronous = "FULL",
        lock_timeout_s: float = 5.0,
        max_bytes: int | None = None,
        read_only: bool = False,
    ) -> None:
        self.path = Path(path) if path is not None else default_path()
        self._file = DatabaseFile(
            path=self.path,
            synchronous=synchronous,
            lock_timeout_s=lock_timeout_s,
            max_bytes=max_bytes,
            read_only=read_only,
        )
        self._writer = Writer(self.path, partial(open_database, self._file), lock_timeout_s=lock_timeout_s)
        self.run_locks = run_locks_beside(self.path, self._run_query)
        self._reading = threading.Lock()  # around the connection that reads
        self._reader: sqlite3.Connection | None = None
        self._read_from: OpenedFile | None = None
        self._search = RunSearch(self.path)
        self._closed = False
        self._process: int | None = None  # the process that uses it, from the first use on

    async def __aenter__(self) -> Self:
        """Open the file now."""
        await self.open()
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close it."""
        await self.close()

    async def open(self) -> None:
        """Open the file now, so that errors come early. Twice is harmless."""
        await self._run_query(lambda _: None)

    async def create(self, run_id: str) -> Lease:
        """Begin an empty run and take it; RunExists if it has events."""
        return await self._take(Create(run_id))

    async def begin(self, run_id: str) -> Lease:
        """A lease for a new run that is written with its first append: one commit less than with `create`.

        Until then nothing of it is in the file. That append raises RunExists if there is such a run by then.
        """
        self._check_writable()
        if self._reader is None:
            await self.open()
        return _UnwrittenLease(run_id=run_id, fence=FIRST_FENCE)

    async def acquire(self, run_id: str, *, at: int | None = None) -> Lease:
        """Take an existing run (RunNotFound); earlier leases of it are void from then on, in every process.

        Raises:
            FenceLost: the run has other than `at` events; the worker that holds it keeps it.
            JournalTampered: somebody edited the run; it is not taken. Reads the whole run, once.
        """
        self._check_writable()
        await self._run_query(partial(require_whole, self.path, run_id))
        return await self._take(Acquire(run_id, at))

    async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        """Add events and artifacts, all of them or none; returns when they are on disk.

        A caller that is cancelled while waiting must assume that they were written. `events` must not change before.

        Raises:
            FenceLost, RunNotFound, IllegalEvent, JournalFull, JournalLocked, JournalError: nothing was written.
        """
        prepare = partial(encode, lease, events, artifacts)
        if isinstance(lease, _UnwrittenLease) and events and not events[0].seq:
            await self._write(lease.run_id, lambda: Begin(lease.run_id, prepare()))
            return
        await self._write(lease.run_id, prepare)

    async def load(self, run_id: str) -> list[Event]:
        """All events of a run in order.

        Raises:
            RunNotFound: there is no such run.
            JournalCorrupt: an event is missing or cannot be read; the message says which.
        """
        return await self._run_query(partial(load_events, self.path, run_id))

    async def artifact(self, run_id: str, ref: str) -> Artifact | None:
        """One artifact of a run, or None."""
        return await self._run_query(partial(_artifact, run_id, ref))

    async def verify(self, run_id: str) -> ChainReport:
        """Whether the run is as it was written: events, artifacts, and its row in the list.

        Raises:
            RunNotFound: there is no such run.
        """
        return await self._run_query(partial(verify, self.path, run_id))

    async def verify_log(self) -> LogReport:
        """Whether the runs that began are those that are stored; their events are checked by `verify`."""
        return await self._run_query(verify_log)

    async def linked(self, run_id: str) -> list[ChainedEvent]:
        """The events of a run as they are stored, with their links, readable or not; RunNotFound."""
        return await self._run_query(partial(linked_rows, self.path, run_id))

    async def runs(self, *, limit: int = 50, status: str | None = None) -> list[RunRow]:
        """The newest runs first, at most `limit` of them, only those of one `status` if it is given."""
        query = RunQuery(statuses=() if status is None else (status,))
        rows, _ = await self._run_query(partial(find_runs, query, BEYOND, limit, None))
        return rows

    async def read(
        self,
        run_id: str,
        *,
        after: int = -1,
        before: int | None = None,
        limit: int = 500,
        last: bool = False,
        kinds: Collection[str] | None = None,
        call_ids: Collection[str] | None = None,
    ) -> list[Event]:
        """A part of a run: as `JournalQueries.read`."""
        part = RunPart(run_id, after, before, limit, last, kinds, call_ids)
        return await self._run_query(partial(read_events, self.path, part))

    async def find(self, query: RunQuery, *, cursor: str | None = None, limit: int = 50) -> RunPage:
        """A page of runs: as `JournalQueries.find`. A text is looked for in the file `NAME-search` beside this one.

        The search first adds to it what is new since the last one; a large database takes a while the first time.
        """
        below = BEYOND if cursor is None else parse_number(cursor, "cursor")
        hits = self._search.hits(query.text) if await self._prepare_search(query) else None
        return page_of(*await self._run_query(partial(find_runs, query, below, limit, hits)))

    async def count(self, query: RunQuery) -> dict[str, int]:
        """How many runs there are, by status: as `JournalQueries.count`."""
        numbers = partial(self._search.numbers, query.text) if await self._prepare_search(query) else None
        return await self._run_query(partial(count_runs, query, numbers))

    async def position(self) -> str:
        """The place after the newest event of all runs."""
        return str(await self._run_query(end))

    async def tail(self, after: str | None = None, *, interval_s: float = POLL_S) -> AsyncGenerator[Growth, None]:
        """What is added, by any process: as `JournalQueries.tail`. `PRAGMA data_version` tells whether to look."""
        position = parse_position(await self.position() if after is None else after)
        known: tuple[object, int] | None = None
        while True:
            version = await self._run_query(_data_version)
            if version != known:
                is_other = known is not None and version[0] is not known[0]
                known, growth = version, await self._run_query(partial(growth_since, position))
                position = parse_position(growth.position)
                if is_other:
                    yield Growth(position=growth.position)
                if growth.runs:
                    yield growth
            await asyncio.sleep(interval_s)

    async def prepare_search(self) -> None:
        """Bring the index of the search up to date in short parts, with pauses in which other questions are answered.

        A search does the same at once. Of 100,000 runs it takes a minute the first time.

        Raises:
            JournalError: there is no full-text search.
        """
        is_complete = False
        while not is_complete:
            began = time.monotonic()
            is_complete = await self._run_query(self._search.update)
            await asyncio.sleep(_PAUSE * (time.monotonic() - began))

    async def usage(self, since_day: str | None = None) -> list[UsageRow]:
        """What was used and how it went: as `JournalQueries.usage`. A journal that is open for writing stores the sums.

        Raises:
            JournalCorrupt: an event that counts cannot be read.
        """
        with suppress(JournalLocked, JournalFull):  # then the sums are not stored this time
            while not self._file.read_only and not await self._run_query(
                lambda connection: UsageReader(self.path, connection).update(_STORE_S)
            ):
                pass
        return await self._run_query(lambda connection: UsageReader(self.path, connection).read(since_day))

    async def transaction(self, lease: Lease) -> Transaction:
        """Begin a transaction that a tool may write in, and that keeps its outcome; every other write waits for it.

        Raises:
            FenceLost, JournalLocked, JournalError: there is none.
        """
        self._check_process()
        self._check_writable()
        connect = partial(open_database, self._file)
        return await begin(self.path, lease, self._writer, connect, self._file.lock_timeout_s)

    async def prune(self, keep: Retention, *, now: float, is_dry_run: bool = False) -> PruneReport:
        """Remove the finished runs that `keep` no longer keeps at `now`, in a thread; reads and writes go on meanwhile.

        Runs that are not as they were written stay, and the report names them. Disk space is given back where a file
        was created by this version; in older ones it serves new runs.

        Raises:
            JournalLocked, JournalFull, JournalError: the rest was not removed.
        """
        self._check_process()
        if not is_dry_run:
            self._check_writable()
        is_over = threading.Event()
        try:
            work = partial(prune, self._file, keep, now, is_dry_run=is_dry_run, is_stopped=is_over.is_set)
            return await asyncio.to_thread(work)
        except sqlite3.Error as error:
            raise explain(error, self.path) from error
        finally:
            is_over.set()  # else a caller that is cancelled would leave it at work to the end

    async def raw_run(self, run_id: str) -> RawRun:
        """A run as it is stored, for archives and moves; RunNotFound."""
        return await self._run_query(partial(raw_run, self.path, run_id))

    async def add_raw_runs(self, runs: Sequence[RawRun]) -> list[str]:
        """Store runs that are not there, all of them or none; returns the ids of those that were added.

        Raises:
            JournalLocked, JournalFull, JournalError: nothing was stored.
        """
        self._check_process()
        self._check_writable()
        return await asyncio.to_thread(self._add_raw_runs, runs)

    async def log_entries(self) -> list[LogEntry]:
        """The log of runs, for a move."""
        return await self._run_query(log_entries)

    async def is_current(self) -> bool:
        """Whether the file has the current form; one that is open for writing has."""
        return await self._run_query(lambda connection: schema.version(connection) == len(schema.MIGRATIONS))

    async def check_storage(self) -> None:
        """Write the version of the file's format anew, over a connection of its own, to see whether that works.

        Raises:
            JournalLocked, JournalFull, JournalError: nothing can be stored now; the text says why.
        """
        self._check_process()
        self._check_writable()
        await asyncio.to_thread(check_storage, self._file)

    async def close(self) -> None:
        """Write what is queued, end the thread, close the file. Twice is harmless; a forked child does nothing."""
        await asyncio.to_thread(self._close)

    async def _take(self, write: Create | Acquire) -> Lease:
        lease = await self._write(write.run_id, lambda: write)
        assert lease is not None  # noqa: S101  # these two writes give one
        return lease

    async def _write(self, run_id: str, prepare: Callable[[], Write]) -> Lease | None:
        self._check_process()
        self._check_writable()
        return await self._writer.submit(run_id, prepare)

    async def _prepare_search(self, query: RunQuery) -> bool:
        """Whether a text is looked for; its index has everything then."""
        if not query.text.strip():
            return False
        while not await self._run_query(self._search.update):
            pass
        return True

    async def _run_query(self, query: Callable[[sqlite3.Connection], T]) -> T:
        self._check_process()
        return await asyncio.to_thread(self._query, query)

    def _check_writable(self) -> None:
        if self._file.read_only:
            raise JournalError(f"{self.path}: the journal is open for reading only.", hint="Open it for writing.")

    def _check_process(self) -> None:
        """Refuse a forked child: it has neither the thread nor the locks of SQLite, only copies that look like them."""
        process = os.getpid()
        if self._process is None:
            self._process = process
        elif self._process != process:
            raise JournalError(
                f"{self.path}: the journal was opened by another process, and this one is a fork of it.",
                hint="Open another one in this process.",
            )

    def _query(self, query: Callable[[sqlite3.Connection], T]) -> T:
        with self._reading:
            if self._closed:
                raise JournalError(f"{self.path}: the journal is closed.", hint="Open another one.")
            if self._reader is not None and self._read_from is not None and self._read_from.is_gone():
                self._reader.close()
                self._reader = None
            if self._reader is None:
                if self._read_from is not None and not self.path.exists():
                    raise removed(self.path)  # a new file here would be in the way of a backup that is put back
                self._reader, self._read_from = open_database(self._file), OpenedFile.at(self.path)
            try:
                return query(self._reader)
            except sqlite3.Error as error:
                raise explain(error, self.path) from error

    def _add_raw_runs(self, runs: Sequence[RawRun]) -> list[str]:
        connection = open_database(self._file)
        try:
            execute_patiently(connection, "BEGIN IMMEDIATE", time.monotonic() + self._file.lock_timeout_s)
            added = add_raw_runs(self.path, runs, connection)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise explain(error, self.path) from error
        finally:
            close_database(connection, OpenedFile.at(self.path))
        return added

    def _close(self) -> None:
        if self._process not in (None, os.getpid()):
            return  # the files are the parent's
        self._writer.close()
        self._search.close()
        with self._reading:
            self._closed = True
            if self._reader is not None:
                close_database(self._reader, self._read_from)
                self._reader = None


def _artifact(run_id: str, ref: str, connection: sqlite3.Connection) -> Artifact | None:
    row = connection.execute("SELECT body, form FROM artifact WHERE run_id = ? AND ref = ?", (run_id, ref)).fetchone()
    return Artifact(ref=ref, body=row[0], form=row[1]) if row else None


def _data_version(connection: sqlite3.Connection) -> tuple[object, int]:
    """What differs once another connection has committed; the first part, if another file was opened."""
    return connection, connection.execute("PRAGMA data_version").fetchone()[0]
