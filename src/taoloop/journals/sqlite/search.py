"""Search over the runs of a SQLite journal: an index in a file beside it, brought up to date by whoever searches.

Writers do nothing for it, and the journal's own file is not changed. A reader adds what has changed since the position
of the index, a bounded number of events at a time, each time in one transaction: a search that is cancelled, or killed,
loses only the part in progress, and several processes may search at once. Where the folder cannot be written, or the
journal is of an older version, the index is in memory and ends with the process.

A run that is at work is found by its task; all of it once it waits or is over.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from taoloop.journals.base import RUNNING
from taoloop.journals.search_index import INDEXED_KINDS, VERSION, Document, SearchIndex, document_of
from taoloop.journals.sqlite import schema
from taoloop.journals.sqlite.errors import primary_code
from taoloop.journals.sqlite.positions import START, at, parse_position

_AT_ONCE = 2_000
"""Events that are looked at in one part."""

_TIMEOUT_S = 5.0

_GREW = "SELECT run_id, max(rowid) FROM event WHERE rowid > ? AND rowid <= ? GROUP BY run_id ORDER BY 2"
_NEWEST = "SELECT rowid FROM event WHERE run_id = ? ORDER BY seq DESC LIMIT 1"
_RUN = "SELECT number, status, task FROM run WHERE id = ?"
_EVENTS = f"""
SELECT seq, kind, body FROM event WHERE run_id = ? AND kind IN ({", ".join("?" * len(INDEXED_KINDS))}) ORDER BY seq
"""  # noqa: S608  # no input
_PRUNED = """
SELECT run_id FROM run_log WHERE number > ? AND pruned IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM run WHERE run.id = run_log.run_id)
"""
_LOG_LINK = "SELECT hex(link) FROM run_log WHERE number = ?"


class _Change(NamedTuple):
    """A part of what the index lacks."""

    removed: list[str]
    documents: list[tuple[int, str, Document]]
    notes: dict[str, str]
    is_anew: bool  # the index is of another file, or of an earlier state of this one
    is_last: bool


class RunSearch:
    """The search of one journal. Its methods are called in threads, one at a time per object."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(f"{path.name}-search")
        self._lock = threading.Lock()
        self._index: SearchIndex | None = None

    def update(self, connection: sqlite3.Connection) -> bool:
        """Add a part of what the index lacks; `connection` is to the journal. True: nothing is left.

        Raises:
            JournalError: there is no full-text search.
        """
        with self._lock:
            try:
                return self._update(self._open(connection), connection)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError) and primary_code(error) == sqlite3.SQLITE_BUSY:
                    raise
                self._close()  # it is damaged, or of another version of SQLite: it is made anew
                self._unlink()
                return self._update(self._open(connection), connection)

    def forget(self, run_ids: Sequence[str]) -> None:
        """Remove runs from the file, if there is one; what it lacks is not added."""
        with self._lock:
            if not self.path.exists() or (own := self._open_file()) is None:
                return
            try:
                index = SearchIndex(own)
                own.execute("BEGIN IMMEDIATE")
                index.remove(run_ids)
                own.execute("COMMIT")
            except sqlite3.DatabaseError as error:
                if primary_code(error) == sqlite3.SQLITE_BUSY:
                    raise
                self._unlink()  # it is damaged
            finally:
                own.close()

    def hits(self, text: str) -> Callable[[int, int], list[tuple[int, str]]]:
        """What finds the newest runs with all words of a text, after `update`."""

        def find(below: int, limit: int) -> list[tuple[int, str]]:
            with self._lock:
                return [] if self._index is None else self._index.hits(text, below, limit)

        return find

    def numbers(self, text: str) -> str:
        """The numbers of all runs with all words of a text, as a JSON array, after `update`."""
        with self._lock:
            return "[]" if self._index is None else self._index.numbers(text)

    def close(self) -> None:
        """Close the file. Twice is harmless."""
        with self._lock:
            self._close()

    def _open(self, connection: sqlite3.Connection) -> SearchIndex:
        if self._index is None:
            is_older = schema.version(connection) < schema.INDEXED
            own = None if is_older else self._open_file()
            self._index = SearchIndex(own or sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False))
            if self._index.about("version") != str(VERSION):
                self._close()
                self._unlink()
                return self._open(connection)
        return self._index

    def _open_file(self) -> sqlite3.Connection | None:
        """None: it cannot be written."""
        own: sqlite3.Connection | None = None
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))  # it has what the journal has
            own = sqlite3.connect(self.path, timeout=_TIMEOUT_S, isolation_level=None, check_same_thread=False)
            own.execute("PRAGMA synchronous = OFF")  # it can be made anew
            own.execute("BEGIN IMMEDIATE")
            own.execute("ROLLBACK")
        except OSError:
            return None
        except sqlite3.OperationalError as error:
            if own is not None:
                own.close()
            if primary_code(error) in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}:
                return None
            raise
        return own

    def _update(self, index: SearchIndex, connection: sqlite3.Connection) -> bool:
        known = index.about("position"), index.about("log")
        change = _change(index, connection, *known)
        if (change.notes["position"], change.notes.get("log")) == known:
            return True
        own = index.connection
        own.execute("BEGIN IMMEDIATE")
        try:
            if (index.about("position"), index.about("log")) == known:  # else another process has done it
                if change.is_anew:
                    index.clear()
                index.remove(change.removed)
                for number, run_id, document in change.documents:
                    index.put(number, run_id, document)
                for key, value in change.notes.items():
                    index.note(key, value)
            own.execute("COMMIT")
        finally:
            if own.in_transaction:
                own.execute("ROLLBACK")
        return change.is_last

    def _close(self) -> None:
        if self._index is not None:
            self._index.connection.close()
            self._index = None

    def _unlink(self) -> None:
        with suppress(FileNotFoundError):
            self.path.unlink()


def _change(index: SearchIndex, connection: sqlite3.Connection, position: str | None, log: str | None) -> _Change:
    """What the index lacks, at one moment of the journal."""
    connection.execute("BEGIN")
    try:
        is_anew = position is None or not _is_same_log(connection, log)
        start = (START if is_anew or position is None else parse_position(position)).resolve(connection)
        (newest,) = connection.execute("SELECT coalesce(max(rowid), 0) FROM event").fetchone()
        reached = min(newest, start + _AT_ONCE)
        documents = []
        for run_id, last in connection.execute(_GREW, (start, reached)).fetchall():
            if _goes_on(connection, run_id, last):
                continue  # else a long run would be read anew for each part that has events of it
            row = connection.execute(_RUN, (run_id,)).fetchone()
            if row is None:
                continue
            number, status, task = row
            if status != RUNNING:
                documents.append((number, run_id, _document(run_id, connection)))
            elif is_anew or not index.has(run_id):
                documents.append((number, run_id, Document(task)))
        removed, notes = [], {"position": str(at(connection, reached))}
        if schema.version(connection) >= schema.PRUNED:
            logged = 0 if is_anew or log is None else int(log.partition(" ")[0])
            removed = [run_id for (run_id,) in connection.execute(_PRUNED, (logged,))]
            notes["log"] = _log_mark(connection)
        return _Change(removed, documents, notes, is_anew, reached == newest)
    finally:
        connection.execute("ROLLBACK")


def _goes_on(connection: sqlite3.Connection, run_id: str, rowid: int) -> bool:
    """Whether a run has events after this one, which a later part has."""
    row = connection.execute(_NEWEST, (run_id,)).fetchone()
    return row is not None and row[0] > rowid


def _document(run_id: str, connection: sqlite3.Connection) -> Document:
    facts = []
    for _, kind, body in connection.execute(_EVENTS, (run_id, *INDEXED_KINDS)):
        with suppress(ValueError, RecursionError):  # edited, which `tao verify` shows: it is not found by this event
            fields: Any = json.loads(body)
            if isinstance(fields, dict):
                facts.append((kind, fields))
    return document_of(facts)


def _log_mark(connection: sqlite3.Connection) -> str:
    row = connection.execute("SELECT number, hex(link) FROM run_log ORDER BY number DESC LIMIT 1").fetchone()
    return "0 " if row is None else f"{row[0]} {row[1]}"


def _is_same_log(connection: sqlite3.Connection, mark: str | None) -> bool:
    """Whether the log of runs still has the entry that was its last one: another file has not."""
    if schema.version(connection) < schema.PRUNED or mark is None:
        return mark is None
    number, _, link = mark.partition(" ")
    if number == "0":
        return True
    row = connection.execute(_LOG_LINK, (int(number),)).fetchone()
    return row is not None and row[0] == link
