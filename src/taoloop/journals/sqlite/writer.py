"""Writes to the database: whatever waits goes into one transaction (group commit).

The problem: a commit waits for the disk, and costs as much CPU as what five runs write. A server with many runs would
spend its time on commits, and an event loop that waits for a disk stands still.

The idea: each write is a ticket in a queue. One thread takes all tickets that wait, decides each of them in memory
(`Batch`), writes those that are accepted in one transaction, and answers all of them once it is committed. A run that
is alone in the process needs no group: while commits are quick, its appends are committed where they are called, which
saves two thread switches (half the cost of a commit on a fast disk). As soon as a second run writes, a commit takes
long or another process holds the file, the thread does it and the event loop stays free.

The invariant: no write is answered before it is on disk, a refused write changes nothing and harms no other write of
its transaction, and the writes of one run are committed in the order of their calls. For the order, the calling thread
commits only while no ticket is pending; `_turn` is held by whoever uses the connection.

Tested in `tests/journals/sqlite/`: `test_writer_order.py`, `test_kill.py` (what was answered survives `kill -9`) and
`test_ctrl_c.py`; and in the contract suite, for example `test_a_refused_append_does_not_harm_its_neighbours`.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue

from taoloop.errors import JournalError, TaoError
from taoloop.journals.base import Lease
from taoloop.journals.sqlite.batch import Batch, RunHeads, Write
from taoloop.journals.sqlite.errors import explain, gone, locked, primary_code
from taoloop.journals.sqlite.file import OpenedFile, close_database, execute_patiently
from taoloop.translation import error_language, set_interface_language

QUICK_S = 0.001
"""Commits may hold up an event loop for this long, if no other run waits for its turn."""

_BUSY, _ENOUGH, _GATHER_S = 4, 16, 0.001
"""After a transaction of at least `_BUSY` writes, the next one waits for a moment so that more writes share its commit,
unless `_ENOUGH` of them wait already."""

_HARMLESS = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CONSTRAINT}


class Ticket:
    """One write in the queue: `prepare` makes its rows, `outcome` is its result."""

    __slots__ = ("future", "loop", "outcome", "prepare", "write")

    def __init__(self, prepare: Callable[[], Write]) -> None:
        self.prepare = prepare
        self.loop: asyncio.AbstractEventLoop | None = None  # this and `future` once it is queued
        self.future: asyncio.Future[Lease | None] | None = None
        self.write: Write | None = None
        self.outcome: Lease | Exception | None = None


class Writer:
    """Takes writes from any task, thread and event loop; answers when they are on disk.

    The thread starts at the first write and opens its connection with `connect` then; what `connect` raises is
    the answer to the writes that wait, and the next one tries again.
    """

    def __init__(self, path: Path, connect: Callable[[], sqlite3.Connection], *, lock_timeout_s: float) -> None:
        self._path, self._connect, self._lock_timeout_s = path, connect, lock_timeout_s
        self._queue: SimpleQueue[Ticket | None] = SimpleQueue()  # None: no more will come
        self._guard = threading.Lock()  # around `_pending`, and nothing is queued behind the None
        self._pending = 0  # how many tickets are queued, or taken from the queue and not yet committed
        self._thread: threading.Thread | None = None
        self._closed = False
        self._turn = threading.Lock()  # around the connection: who holds it, writes
        self._connection: sqlite3.Connection | None = None
        self._opened: OpenedFile | None = None  # the file of the connection
        self._heads = RunHeads()
        self._last_run = ""
        self._last_commit_s = math.inf
        self._held_s = 0.0  # how long commits have held up the event loop since it last had its turn

    async def submit(self, run_id: str, prepare: Callable[[], Write]) -> Lease | None:
        """Perform one write; returns when it is committed. Cancelling the caller does not undo it."""
        ticket = Ticket(prepare)
        alone, self._last_run = run_id == self._last_run, run_id
        if alone and self._last_commit_s < QUICK_S and self._commit_here(ticket):
            self._held_s += self._last_commit_s
            if self._held_s > QUICK_S:  # else a run that never waits would block all others
                self._held_s = 0.0
                await asyncio.sleep(0)
            if isinstance(ticket.outcome, Exception):
                raise ticket.outcome
            return ticket.outcome
        ticket.loop = asyncio.get_running_loop()
        ticket.future = ticket.loop.create_future()
        with self._guard:
            if self._closed:
                raise JournalError(f"{self._path}: the journal is closed.", hint="Open another one.")
            if self._thread is None:
                own = contextvars.Context()  # with nothing of the caller but the language, for its errors
                own.run(set_interface_language, error_language())
                self._thread = threading.Thread(
                    target=own.run, args=(self._serve,), name="taoloop-journal", daemon=True
                )
                self._thread.start()
            self._pending += 1
            self._queue.put(ticket)
        return await ticket.future

    def hold(self) -> bool:
        """Make all writes of this process wait until `release`. False: one is in progress, and nothing is held."""
        return self._turn.acquire(blocking=False)

    def release(self) -> None:
        """End what `hold` began; any thread may."""
        self._turn.release()

    def close(self) -> None:
        """Write what is queued and end the thread; blocks until then. Twice is harmless."""
        with self._guard:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
            thread = self._thread
        if thread is not None:
            thread.join()

    def _commit_here(self, ticket: Ticket) -> bool:
        """Write in the calling thread. False: not now, it must be queued; nothing was written.

        Never while a ticket is pending, which may be an earlier append of the same run: the thread may have taken
        it from the queue and not yet have its turn. Ctrl-C, or the `SystemExit` of a signal handler, does not undo it:
        it is raised when the write is done.
        """
        if not self._turn.acquire(blocking=False):
            return False
        try:
            if self._closed or self._connection is None or self._pending:
                return False
            return self._try_to_commit(ticket, self._connection)
        finally:
            self._turn.release()

    def _try_to_commit(self, ticket: Ticket, connection: sqlite3.Connection) -> bool:
        before = connection.total_changes
        try:
            if self._prepare(ticket):
                self._commit([ticket], patience_s=0)
        except (KeyboardInterrupt, SystemExit):
            is_written = not connection.in_transaction and connection.total_changes != before
            self._roll_back()
            if not is_written:
                self._try_to_commit(ticket, connection)
            raise
        except Exception as error:  # noqa: BLE001  # the caller raises it
            self._roll_back(error)
            if primary_code(error) == sqlite3.SQLITE_BUSY:
                return False
            ticket.outcome = self._explain(error)
        return True

    def _serve(self) -> None:
        open_for_more, last_size = True, 0
        while open_for_more:
            batch = [self._queue.get()]
            if last_size >= _BUSY and self._queue.qsize() < _ENOUGH:
                time.sleep(_GATHER_S)
            batch += [self._queue.get() for _ in range(self._queue.qsize())]
            last_size = len(batch)
            tickets = [ticket for ticket in batch if ticket is not None]
            open_for_more = len(tickets) == len(batch)
            with self._turn:
                self._perform([ticket for ticket in tickets if self._prepare(ticket)])
                with self._guard:
                    self._pending -= len(tickets)
            _answer(tickets)
        with self._turn:
            self._disconnect()

    def _prepare(self, ticket: Ticket) -> bool:
        try:
            if ticket.write is None:
                ticket.write = ticket.prepare()
        except Exception as error:  # noqa: BLE001  # it is raised where the caller waits
            ticket.outcome = explain(error, self._path)
            return False
        return True

    def _perform(self, tickets: Sequence[Ticket]) -> None:
        if not tickets:
            return
        try:
            self._commit(tickets, patience_s=self._lock_timeout_s)
        except Exception as error:  # noqa: BLE001  # as above
            self._roll_back(error)
            if len(tickets) == 1 or isinstance(error, JournalError) or primary_code(error) == sqlite3.SQLITE_BUSY:
                for ticket in tickets:
                    ticket.outcome = self._explain(error)
            else:  # the culprit must fail alone, so each gets a transaction of its own
                for ticket in tickets:
                    self._perform([ticket])

    def _commit(self, tickets: Sequence[Ticket], *, patience_s: float) -> None:
        """Commit all in one transaction. After an exception nothing of it is stored."""
        started = time.monotonic()
        if self._connection is None:
            self._connection = self._connect()
            self._connection.execute("PRAGMA busy_timeout = 0")  # `execute_patiently` waits instead, where it may
            self._opened = OpenedFile.at(self._path)
        elif self._opened is not None and self._opened.is_gone():
            raise gone(self._path)
        connection = self._connection
        execute_patiently(connection, "BEGIN IMMEDIATE", started + patience_s)
        writes = [(ticket, ticket.write) for ticket in tickets if ticket.write is not None]
        heads = self._heads.of(connection, [write.run_id for _, write in writes])
        batch = Batch(connection, self._path, heads)
        for ticket, write in writes:
            try:
                ticket.outcome = batch.decide(write)
            except TaoError as refusal:
                ticket.outcome = refusal
        batch.write()
        connection.execute("COMMIT")
        self._last_commit_s = time.monotonic() - started

    def _roll_back(self, error: Exception | None = None) -> None:
        """Undo the open transaction; `error` is the reason; None where it was only interrupted."""
        self._heads.forget()
        connection = self._connection
        if connection is None:
            return
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:  # a connection in an unknown state is not used again; closing it rolls back
            self._disconnect()
        if error is not None and primary_code(error) not in _HARMLESS:
            self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            close_database(connection, self._opened)

    def _explain(self, error: Exception) -> Exception:
        if primary_code(error) == sqlite3.SQLITE_BUSY:
            return locked(self._path, self._lock_timeout_s)
        return explain(error, self._path)


def _answer(tickets: Sequence[Ticket]) -> None:
    """Wake every event loop once, however many of its tasks wait."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Ticket]] = {}
    for ticket in tickets:
        if ticket.loop is not None:
            by_loop.setdefault(ticket.loop, []).append(ticket)
    for loop, group in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits there any more
            loop.call_soon_threadsafe(_settle, group)


def _settle(tickets: Sequence[Ticket]) -> None:
    for ticket in tickets:
        if ticket.future is None or ticket.future.done():  # cancelled: it is written, but nobody waits for it
            continue
        if isinstance(ticket.outcome, Exception):
            ticket.future.set_exception(ticket.outcome)
        else:
            ticket.future.set_result(ticket.outcome)
