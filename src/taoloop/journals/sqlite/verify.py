"""Whether a run in a SQLite journal is as it was written: its events, its artifacts and its row in the list."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from taoloop.core.events import RunStarted
from taoloop.core.stored_events import (
    ChainedEvent,
    ChainError,
    ChainReport,
    LogReport,
    check,
    description_digest,
    genesis_hash,
)
from taoloop.journals.base import translate
from taoloop.journals.refusals import run_tampered
from taoloop.journals.run_check import LogEntry, artifact_flaws, log_flaws, row_flaws, run_flaws, stored_bytes
from taoloop.journals.sqlite import schema
from taoloop.journals.sqlite.errors import not_found
from taoloop.translation import mark

_ARTIFACTS = "SELECT ref, form, body FROM artifact WHERE run_id = ? ORDER BY ref"


def event_rows(path: Path, run_id: str, columns: str, connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """These columns of a run's events, in their order.

    Raises:
        RunNotFound: there is no such run.
    """
    statement = f"SELECT {columns} FROM event WHERE run_id = ? ORDER BY seq"  # noqa: S608  # no input
    rows = connection.execute(statement, (run_id,)).fetchall()
    if not rows and connection.execute("SELECT 1 FROM run WHERE id = ?", (run_id,)).fetchone() is None:
        raise not_found(path, run_id, connection)
    return rows


def linked_rows(path: Path, run_id: str, connection: sqlite3.Connection) -> list[ChainedEvent]:
    """The events of a run as they are stored, readable or not.

    Raises:
        RunNotFound: there is no such run.
    """
    link = "link" if schema.version(connection) >= schema.CHAINED else "x''"
    rows = event_rows(path, run_id, f"seq, at, kind, body, {link}", connection)
    return [
        ChainedEvent(seq, at, str(kind), stored_bytes(body), stored_bytes(link), description_of(connection, kind, body))
        for seq, at, kind, body, link in rows
    ]


def description_of(connection: sqlite3.Connection, kind: Any, body: Any) -> bytes:
    """The stored description that the body of an event names; b"" if it names none, or there is none."""
    if kind != RunStarted.kind or (digest := description_digest(stored_bytes(body))) is None:
        return b""
    statement = "SELECT body FROM description WHERE digest = ?"
    row = connection.execute(statement, (bytes.fromhex(digest),)).fetchone()
    return b"" if row is None else stored_bytes(row[0])


def verify(path: Path, run_id: str, connection: sqlite3.Connection) -> ChainReport:
    """Look through one run, at one moment of the file. Linear in its size; nothing is changed.

    Raises:
        RunNotFound: there is no such run.
    """
    connection.execute("BEGIN")
    try:
        rows = linked_rows(path, run_id, connection)
        head = (rows[-1].link if rows else genesis_hash(run_id)).hex()
        if schema.version(connection) < schema.CHAINED:
            text = mark(
                "the database is of an older taoloop that stored no hashes; any run that writes to it adds them"
            )
            flaw = ChainError(None, "unchained", translate(text))
            return ChainReport(run_id=run_id, events=len(rows), head="", flaws=(flaw,))
        more = ", parent, key, model, hex(description)" if schema.version(connection) >= schema.INDEXED else ""
        columns = f"head, sealed_later, status, task, agent, started_at{more}"
        row = connection.execute(f"SELECT {columns} FROM run WHERE id = ?", (run_id,)).fetchone()  # noqa: S608  # no input
        if row is None:
            flaws = [*check(run_id, rows), ChainError(None, "run_row", translate("the list of runs lacks this run"))]
            return ChainReport(run_id=run_id, events=len(rows), head=head, flaws=tuple(flaws))
        flaws = check(run_id, rows, stored_bytes(row[0]) or genesis_hash(run_id))
        flaws += row_flaws(rows, row[2:])
        if rows:  # else it is replaced when it is created again
            flaws += artifact_flaws(rows, connection.execute(_ARTIFACTS, (run_id,)))
        return ChainReport(run_id=run_id, events=len(rows), head=head, flaws=tuple(flaws), sealed_later=row[1])
    finally:
        connection.execute("ROLLBACK")


def verify_log(connection: sqlite3.Connection) -> LogReport:
    """Compare the log of runs with the runs that are stored, at one moment of the file. Nothing is changed."""
    connection.execute("BEGIN")
    try:
        run_ids = [str(run_id) for (run_id,) in connection.execute("SELECT id FROM run UNION SELECT run_id FROM event")]
        if schema.version(connection) < schema.LOGGED:
            text = mark(
                "the database is of an older taoloop that kept no log of runs; any run that writes to it adds it"
            )
            return LogReport(run_ids=tuple(run_ids), flaws=(ChainError(None, "unlogged", translate(text)),))
        end, _ = connection.execute(schema.LOG_END).fetchone()
        pruned = "pruned" if schema.version(connection) >= schema.PRUNED else "NULL"
        statement = f"SELECT number, run_id, first, sealed_later, link, {pruned} FROM run_log ORDER BY number"  # noqa: S608  # no input
        rows = [
            LogEntry(
                number,
                str(run_id),
                stored_bytes(first),
                later,
                stored_bytes(link),
                None if record is None else str(record),
            )
            for number, run_id, first, later, link, record in connection.execute(statement)
        ]
        begun = connection.execute("SELECT run_id, link, min(seq) FROM event GROUP BY run_id")  # the link of that row
        firsts = {str(run_id): stored_bytes(link) for run_id, link, _ in begun}
    finally:
        connection.execute("ROLLBACK")
    flaws = [*log_flaws(rows, end), *run_flaws(rows, firsts)]
    links = tuple(row.link.hex() for row in rows)
    later = sum(1 for row in rows if row.sealed_later)
    removed = sum(1 for row in rows if row.record is not None)
    return LogReport(run_ids=tuple(run_ids), links=links, flaws=tuple(flaws), sealed_later=later, pruned=removed)


def require_whole(path: Path, run_id: str, connection: sqlite3.Connection) -> None:
    """Refuse a run that somebody edited: no run may continue from a history that did not happen.

    Raises:
        JournalTampered: it is not as it was written; the message names the first event that is not.
        RunNotFound: there is no such run.
    """
    report = verify(path, run_id, connection)
    if (flaw := report.first) is not None:
        raise run_tampered(path, run_id, flaw)
