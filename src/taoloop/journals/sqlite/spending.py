"""What was used per day, in a table that grows with days and not with runs: brought up to date by its readers.

Writers do nothing for it. Whoever asks adds the events after the position of the table and stores the sums, a bounded
number of events per transaction; a reader that must not write adds them in memory. Retention does the same before it
removes a run, in the same transaction, so its costs stay.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from taoloop.errors import JournalCorrupt
from taoloop.journals.base import translate
from taoloop.journals.sqlite import schema
from taoloop.journals.sqlite.file import execute_patiently
from taoloop.journals.sqlite.positions import START, Position, at, parse_position
from taoloop.journals.sqlite.run_queries import OLDER_RUNS
from taoloop.journals.stored_usage import UNREADABLE, add_counts, add_stored_event, usage_row
from taoloop.journals.usage import COUNTED_KINDS, FORKED, RunOrigin, UsageLedger, UsageRow
from taoloop.translation import mark

_AT_ONCE = 2_000
"""Events per transaction: others wait for it some hundredths of a second."""

_EVENTS = f"""
SELECT rowid, run_id, seq, at, kind, body FROM event WHERE rowid > ? AND kind IN ({", ".join("?" * len(COUNTED_KINDS))})
ORDER BY rowid LIMIT {_AT_ONCE}
"""  # noqa: S608  # no input
_ROW = "SELECT agent, model, key, parent FROM run WHERE id = ?"
_FORKED_FROM = "SELECT json_extract(body, '$.forked_from') FROM event WHERE run_id = ? AND seq = 0 AND json_valid(body)"
_OWN = f"""
SELECT seq, at FROM event WHERE run_id = ? AND kind = 'resumed' AND json_valid(body)
AND json_extract(body, '$.reason') LIKE '{FORKED}%' ORDER BY seq DESC LIMIT 1
"""  # noqa: S608  # no input


class _Position(NamedTuple):
    """How far events are added up, and which of them could not be read."""

    position: Position
    unread: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, connection: sqlite3.Connection) -> _Position:
        if schema.version(connection) < schema.INDEXED:
            return cls(START)
        row = connection.execute("SELECT position FROM spending_position").fetchone()
        if row is None:
            return cls(START)
        stored = json.loads(row[0])
        return cls(parse_position(stored["position"]), tuple((run_id, seq) for run_id, seq in stored["unread"]))

    def store(self, connection: sqlite3.Connection) -> None:
        text = json.dumps({"position": str(self.position), "unread": self.unread}, ensure_ascii=False)
        connection.execute("INSERT OR REPLACE INTO spending_position VALUES (1, ?)", (text,))


class UsageReader:
    """Brings the sums of one file up to date; `connection` is of the file that `path` names."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path, self._connection = path, connection
        self._origins: dict[str, RunOrigin] = {}
        self._older = "" if schema.version(connection) >= schema.INDEXED else OLDER_RUNS

    def read(self, since_day: str | None) -> list[UsageRow]:
        """All rows, without storing anything."""
        connection = self._connection
        connection.execute("BEGIN")
        try:
            ledger = UsageLedger() if self._older else UsageLedger(self._stored(since_day))
            reached, is_all = _Position.of(connection), False
            while not is_all:
                reached, is_all = self._add(ledger, reached)
        finally:
            connection.execute("ROLLBACK")
        self._refuse_unread(reached)
        return ledger.rows(since_day)

    def update(self, lock_timeout_s: float) -> bool:
        """Add some events and store the sums, in a transaction of its own. True: there were no more."""
        with _transaction(self._connection, lock_timeout_s):
            return self.update_within()

    def update_within(self) -> bool:
        """The same in the open transaction."""
        self._origins.clear()
        before, ledger = _Position.of(self._connection), UsageLedger()
        reached, is_all = self._add(ledger, before)
        for row in ledger.rows():
            self._store(row)
        if reached != before:
            reached.store(self._connection)
        return is_all

    def skip_to(self, position: Position) -> None:
        """Count nothing up to a position, in the open transaction: what lies there was counted before."""
        _Position.of(self._connection)._replace(position=position).store(self._connection)

    def _add(self, ledger: UsageLedger, reached: _Position) -> tuple[_Position, bool]:
        """Add the events after a position, at most `_AT_ONCE`; how far that went, and whether it was to the end."""
        connection, unread = self._connection, list[tuple[str, int]]()
        for run_id, seq in reached.unread:  # somebody may have restored it
            statement = "SELECT rowid, run_id, seq, at, kind, body FROM event WHERE run_id = ? AND seq = ?"
            row = connection.execute(statement, (run_id, seq)).fetchone()
            if row is not None and not self._add_event(ledger, *row[1:]):
                unread.append((run_id, seq))
        start = reached.position.resolve(connection)
        rows = connection.execute(_EVENTS, (start, *COUNTED_KINDS)).fetchall()
        unread += [(row[1], row[2]) for row in rows if not self._add_event(ledger, *row[1:])]
        is_all = len(rows) < _AT_ONCE
        (newest,) = connection.execute("SELECT coalesce(max(rowid), 0) FROM event").fetchone()
        position = at(connection, newest if is_all else rows[-1][0])
        return _Position(position, tuple(unread)), is_all

    def _add_event(self, ledger: UsageLedger, run_id: str, seq: int, at: float, kind: str, body: Any) -> bool:
        try:
            add_stored_event(ledger, self._origin(run_id), seq, at, kind, body)
        except UNREADABLE:  # it was edited
            return False
        return True

    def _origin(self, run_id: str) -> RunOrigin:
        if (origin := self._origins.get(run_id)) is None:
            agent, model, key, parent = self._row(run_id) or ("", "", "", None)
            seen = {run_id}
            while parent is not None and parent not in seen and (outer := self._row(parent)) is not None:
                seen.add(parent)  # in case somebody made the runs of a file each other's parents
                _, _, key, parent = outer
            own = None
            if (forked := self._connection.execute(_FORKED_FROM, (run_id,)).fetchone()) and forked[0] is not None:
                own = self._connection.execute(_OWN, (run_id,)).fetchone()
            origin = self._origins[run_id] = RunOrigin(key, agent, model, *(own or (0, None)))
        return origin

    def _row(self, run_id: str) -> tuple[str, str, str, str | None] | None:
        row: tuple[str, str, str, str | None] | None
        row = self._connection.execute(self._older + _ROW, (run_id,)).fetchone()
        return row

    def _stored(self, since_day: str | None) -> list[UsageRow]:
        statement = "SELECT day, key, agent, model, counts FROM spending WHERE day >= ?"
        rows = self._connection.execute(statement, (since_day or "",))
        return [usage_row(*row) for row in rows]

    def _store(self, added: UsageRow) -> None:
        group = (added.day, added.key, added.agent, added.model)
        statement = "SELECT counts FROM spending WHERE day = ? AND key = ? AND agent = ? AND model = ?"
        row = self._connection.execute(statement, group).fetchone()
        text = add_counts(added, None if row is None else row[0])
        self._connection.execute("INSERT OR REPLACE INTO spending VALUES (?, ?, ?, ?, ?)", (*group, text))

    def _refuse_unread(self, reached: _Position) -> None:
        if reached.unread:
            run_id, seq = reached.unread[0]
            text = mark("{path}: event {seq} of run {run_id!r}, which usage is summed from, cannot be read.")
            message = translate(text, path=self._path, seq=seq, run_id=run_id)
            raise JournalCorrupt(message, hint=translate("`tao verify` finds the run."))


@contextmanager
def _transaction(connection: sqlite3.Connection, timeout_s: float) -> Iterator[None]:
    (usual_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")  # else SQLite itself waits that long, whatever `timeout_s` is
    try:
        execute_patiently(connection, "BEGIN IMMEDIATE", time.monotonic() + timeout_s)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {usual_ms}")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
