"""Reading the events of a run, whole or in part."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from taoloop.core.events import Event, Fact
from taoloop.core.stored_events import decode_fact, description_digest, whole_body
from taoloop.errors import JournalCorrupt
from taoloop.journals.base import translate
from taoloop.journals.sqlite.errors import not_found
from taoloop.journals.sqlite.verify import description_of, event_rows
from taoloop.translation import mark

_AFTER = "SELECT seq, at, kind, body FROM event WHERE run_id = ? AND seq > ? AND seq < ? ORDER BY seq LIMIT ?"
_BEFORE = "SELECT seq, at, kind, body FROM event WHERE run_id = ? AND seq > ? AND seq < ? ORDER BY seq DESC LIMIT ?"
_MOST = 2**62  # above every seq


def load_events(path: Path, run_id: str, connection: sqlite3.Connection) -> list[Event]:
    """All events of a run.

    Raises:
        RunNotFound: there is no such run.
        JournalCorrupt: one is missing or cannot be read.
    """
    events: list[Event] = []
    for expected, (seq, *row) in enumerate(event_rows(path, run_id, "seq, at, kind, body", connection)):
        if seq != expected:
            raise JournalCorrupt(f"{path}: event {expected} of run {run_id!r} is missing.")
        events.append(_event(path, run_id, seq, row, connection))
    return events


def read_events(
    path: Path, run_id: str, after: int, before: int | None, limit: int, connection: sqlite3.Connection, *, last: bool
) -> list[Event]:
    """At most `limit` events between two places of a run, the first or the `last` of them.

    Raises:
        RunNotFound: there is no such run.
        JournalCorrupt: one is missing or cannot be read.
    """
    bounds = (run_id, after, _MOST if before is None else before, max(0, limit))
    rows = connection.execute(_BEFORE if last else _AFTER, bounds).fetchall()
    if last:
        rows.reverse()
    if not rows and connection.execute("SELECT 1 FROM run WHERE id = ?", (run_id,)).fetchone() is None:
        raise not_found(path, run_id, connection)
    for expected, (seq, *_) in enumerate(rows, start=rows[0][0] if last and rows else after + 1):
        if seq != expected:
            raise JournalCorrupt(f"{path}: event {expected} of run {run_id!r} is missing.")
    return [_event(path, run_id, seq, row, connection) for seq, *row in rows]


def read_fact(run_id: str, seq: int, kind: Any, body: Any, connection: sqlite3.Connection) -> Fact:
    """The fact of a row.

    Raises:
        JournalCorrupt: it cannot be read, or the description of its agent is missing.
    """
    description = description_of(connection, kind, body)
    if description:
        body = whole_body(body if isinstance(body, bytes) else body.encode(), description)
    elif kind == "run_started" and description_digest(str(body).encode()) is not None:
        text = mark("the agent's description that event {seq} of run {run_id!r} names is missing.")
        raise JournalCorrupt(translate(text, seq=seq, run_id=run_id), hint=translate("Restore a backup."))
    return decode_fact(kind, body)


def _event(path: Path, run_id: str, seq: int, row: list[Any], connection: sqlite3.Connection) -> Event:
    at, kind, body = row
    try:
        return Event(seq, at, read_fact(run_id, seq, kind, body, connection))
    except JournalCorrupt as error:
        text = f"{path}: event {seq} of run {run_id!r}: {error.message}"
        raise JournalCorrupt(text, hint=error.hint) from error
