"""A transaction of the SQLite journal that a tool writes in: effect and outcome are stored together or not at all.

The handler gets a connection of its own, behind a guard. It holds the lock of the file, so everybody else waits for it.
What would end the transaction, or touch the tables of the journal, is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from taoloop.core.cards.tool_card import JournalConnection
from taoloop.core.events import Event
from taoloop.errors import ToolError
from taoloop.journals.base import Artifact, Lease
from taoloop.journals.refusals import fence_lost
from taoloop.journals.sqlite.batch import Batch, look_up
from taoloop.journals.sqlite.errors import explain
from taoloop.journals.sqlite.file import execute_patiently
from taoloop.journals.sqlite.writer import Writer
from taoloop.journals.stored_append import encode

T = TypeVar("T")

OURS = frozenset(
    {
        *("run", "event", "artifact", "description", "run_log", "run_overview", "event_epoch"),
        *("spending", "spending_position", "run_by_status", "run_pruned", "run_unbegun", "sqlite_sequence"),
    }
)
"""The journal's own tables, views and indexes."""

_RETRY_S = 0.002

_NEVER = {
    sqlite3.SQLITE_TRANSACTION: "begin or end a transaction",
    sqlite3.SQLITE_SAVEPOINT: "use savepoints",
    sqlite3.SQLITE_ATTACH: "attach a database",
    sqlite3.SQLITE_DETACH: "detach a database",
    sqlite3.SQLITE_PRAGMA: "set a pragma",
    sqlite3.SQLITE_CREATE_TEMP_TABLE: "make a temporary table",  # it could hide one of the journal's
    sqlite3.SQLITE_CREATE_TEMP_VIEW: "make a temporary view",
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER: "make a temporary trigger",
    sqlite3.SQLITE_CREATE_TEMP_INDEX: "make a temporary index",
}
_CHANGES = frozenset(
    {
        *(sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE, sqlite3.SQLITE_ALTER_TABLE),
        *(sqlite3.SQLITE_DROP_TABLE, sqlite3.SQLITE_DROP_VIEW, sqlite3.SQLITE_DROP_INDEX, sqlite3.SQLITE_DROP_TRIGGER),
        *(sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_CREATE_TRIGGER),
    }
)


@runtime_checkable
class HasTransactions(Protocol):
    """A journal that a transactional tool can write in."""

    async def transaction(self, lease: Lease) -> Transaction:
        """Begin one; it must be committed or rolled back."""
        ...


class Transaction:
    """An open transaction of the journal. `connection` is what the tool gets."""

    def __init__(self, path: Path, lease: Lease, raw: sqlite3.Connection, release: Callable[[], None]) -> None:
        self._path, self._lease, self._raw, self._release = path, lease, raw, release
        self._guard = GuardedConnection(raw)
        self._over = False

    @property
    def connection(self) -> JournalConnection:
        """The connection as a tool may have it."""
        return self._guard

    async def commit(self, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        """Store what the tool wrote together with these events, or neither.

        Raises:
            FenceLost, JournalError: nothing was stored.
            ToolError: the tool's own statements have undone the transaction; nothing was stored.
        """
        await _in_thread(lambda: self._end(lambda: self._write(events, artifacts)))

    async def roll_back(self) -> None:
        """Undo what the tool wrote. A statement in progress is interrupted. Twice is harmless."""
        await _in_thread(lambda: self._end(lambda: None))
        raise_if_cancelled()

    def _write(self, events: Sequence[Event], artifacts: Sequence[Artifact]) -> None:
        if not self._raw.in_transaction:
            raise ToolError("A statement of the tool has undone the transaction; nothing was kept.", code="rolled_back")
        batch = Batch(self._raw, self._path, look_up(self._raw, [self._lease.run_id]))
        batch.decide(encode(self._lease, events, artifacts))
        batch.write()
        self._raw.execute("COMMIT")

    def _end(self, last: Callable[[], None]) -> None:
        if self._over:
            return
        self._over = True
        try:
            self._guard.take_back()
            last()
        except sqlite3.Error as error:
            raise explain(error, self._path) from error
        finally:
            self._raw.close()  # which undoes what was not committed
            self._release()


class GuardedConnection:
    """A connection without what could break the journal's transaction; closed for good when that is over."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw: sqlite3.Connection | None = raw
        self._using = threading.Lock()
        self._refused = ""
        raw.set_authorizer(self._judge)

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> StatementRows:
        """Run one statement."""
        own = dict(parameters) if isinstance(parameters, Mapping) else tuple(parameters)
        return self._run(lambda raw: raw.execute(sql, own))

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any] | Mapping[str, Any]]) -> StatementRows:
        """Run one statement with each of the parameters."""
        rows = list(parameters)  # read before the connection is taken: a generator may block, or use it too
        return self._run(lambda raw: raw.executemany(sql, rows))

    def __getattr__(self, name: str) -> Any:
        """Refuse every other attribute of a connection."""
        raise ToolError(
            f"The journal's connection has no {name!r}: its transaction is committed with the outcome of the call.",
            code="transaction",
            hint="A tool may only execute() and executemany() here.",
        )

    def _run(self, work: Callable[[sqlite3.Connection], sqlite3.Cursor]) -> StatementRows:
        with self._using:
            raw = self._raw
            if raw is None or not raw.in_transaction:
                raise ToolError("The transaction of this call is over.", code="transaction")
            self._refused = ""
            try:
                cursor = work(raw)
                return StatementRows(cursor.fetchall(), cursor.rowcount, cursor.lastrowid)
            except sqlite3.DatabaseError as error:
                if self._refused:
                    raise ToolError(f"A transactional tool may not {self._refused}.", code="transaction") from error
                raise

    def _judge(
        self, action: int, first: str | None, second: str | None, _database: str | None, _inner: str | None
    ) -> int:
        """Called by SQLite for every part of a statement before it runs."""
        if action in _NEVER:
            self._refused = _NEVER[action]
        elif action in _CHANGES and {first, second} & OURS:
            self._refused = f"change the journal's own {first if first in OURS else second!r}"
        else:
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    def take_back(self) -> None:
        """End the tool's use of the connection: a statement in progress is interrupted, later ones are refused."""
        raw = self._raw
        if raw is None:
            return
        while not self._using.acquire(timeout=0.01):
            raw.interrupt()
        try:
            self._raw = None
            raw.set_authorizer(None)
        finally:
            self._using.release()


class StatementRows:
    """The rows of one statement, read at once: no cursor leaves the guard."""

    def __init__(self, rows: list[Any], rowcount: int, lastrowid: int | None) -> None:
        self._rows, self.rowcount, self.lastrowid = iter(rows), rowcount, lastrowid

    def fetchone(self) -> Any:
        """The next row, or None."""
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        """The rows that are left."""
        return list(self._rows)

    def __iter__(self) -> Iterator[Any]:
        """The rows that are left, one by one."""
        return self._rows


async def begin(
    path: Path, lease: Lease, writer: Writer, connect: Callable[[], sqlite3.Connection], timeout_s: float
) -> Transaction:
    """Wait for the journal's turn and begin a transaction for this run.

    Raises:
        FenceLost: another worker has acquired the run.
        JournalError: the file cannot be locked.
    """
    # No thread waits for the lock: it could be the one that the transaction before needs for its end.
    while not writer.hold():  # noqa: ASYNC110  # the lock is for threads and event loops alike
        await asyncio.sleep(_RETRY_S)
    task = asyncio.ensure_future(asyncio.to_thread(_begin, path, lease, writer, connect, timeout_s))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with_result = await asyncio.gather(task, return_exceptions=True)  # else its lock would be held for ever
        for transaction in with_result:
            if isinstance(transaction, Transaction):
                await transaction.roll_back()
        raise


def _begin(
    path: Path, lease: Lease, writer: Writer, connect: Callable[[], sqlite3.Connection], timeout_s: float
) -> Transaction:
    raw: sqlite3.Connection | None = None
    try:
        raw = connect()
        raw.execute("PRAGMA busy_timeout = 0")
        execute_patiently(raw, "BEGIN IMMEDIATE", time.monotonic() + timeout_s)
        row = raw.execute("SELECT fence FROM run WHERE id = ?", (lease.run_id,)).fetchone()
        if row is None or row[0] != lease.fence:
            raise fence_lost(path, lease.run_id)
        return Transaction(path, lease, raw, writer.release)
    except BaseException as error:
        if raw is not None:
            raw.close()
        writer.release()
        if isinstance(error, sqlite3.Error):
            raise explain(error, path) from error
        raise


async def _in_thread(work: Callable[[], T]) -> T:
    """Run it in a thread, to its end: a cancellation waits until the result is known (`raise_if_cancelled`)."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    while not task.done():
        with contextlib.suppress(BaseException):  # reported below
            await asyncio.shield(task)
    return task.result()


def raise_if_cancelled() -> None:
    """Pass on a cancellation of this task that came while something had to be brought to its end."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
