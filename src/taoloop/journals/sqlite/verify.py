"""Whether a run in a SQLite journal is as it was written: its events, its artifacts and its row in the list."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from taoloop.core.attachments.files import is_remote
from taoloop.core.events import Observed, RunStarted
from taoloop.core.stored_events import (
    LOG_ORIGIN,
    ChainedEvent,
    ChainError,
    ChainReport,
    LogReport,
    check,
    description_digest,
    genesis_hash,
    log_hash,
)
from taoloop.core.trace import attachments_of
from taoloop.errors import JournalCorrupt, JournalTampered
from taoloop.journals.base import RUNNING, status_after, translate
from taoloop.journals.retention import record_digest
from taoloop.journals.sqlite import schema
from taoloop.journals.sqlite.batch import row_values
from taoloop.journals.sqlite.errors import not_found
from taoloop.translation import mark

_STATUS_KINDS = frozenset({"run_started", "paused", "resumed", "finished"})
"""The kinds of events that the row of a run is made from."""


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
        ChainedEvent(seq, at, str(kind), _bytes(body), _bytes(link), description_of(connection, kind, body))
        for seq, at, kind, body, link in rows
    ]


def description_of(connection: sqlite3.Connection, kind: Any, body: Any) -> bytes:
    """The stored description that the body of an event names; b"" if it names none, or there is none."""
    if kind != RunStarted.kind or (digest := description_digest(_bytes(body))) is None:
        return b""
    statement = "SELECT body FROM description WHERE digest = ?"
    row = connection.execute(statement, (bytes.fromhex(digest),)).fetchone()
    return b"" if row is None else _bytes(row[0])


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
        flaws = check(run_id, rows, _bytes(row[0]) or genesis_hash(run_id))
        flaws += _row_flaws(rows, row[2:])
        if rows:  # else it is replaced when it is created again
            flaws += _artifact_flaws(run_id, rows, connection)
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
            LogEntry(number, str(run_id), _bytes(first), later, _bytes(link), None if record is None else str(record))
            for number, run_id, first, later, link, record in connection.execute(statement)
        ]
        begun = connection.execute("SELECT run_id, link, min(seq) FROM event GROUP BY run_id")  # the link of that row
        firsts = {str(run_id): _bytes(link) for run_id, link, _ in begun}
    finally:
        connection.execute("ROLLBACK")
    flaws = [*_log_flaws(rows, end), *_run_flaws(rows, firsts)]
    links = tuple(row.link.hex() for row in rows)
    later = sum(1 for row in rows if row.sealed_later)
    removed = sum(1 for row in rows if row.record is not None)
    return LogReport(run_ids=tuple(run_ids), links=links, flaws=tuple(flaws), sealed_later=later, pruned=removed)


class LogEntry(NamedTuple):
    """An entry of the log of runs as it is stored: a run began, or was removed by retention."""

    number: int
    """Its place, from 1."""

    run_id: str
    """The run."""

    first: bytes
    """The link of the run's first event; of a run that was removed, the digest of the record."""

    sealed_later: Any
    """Whether it was entered when the database was upgraded."""

    link: bytes
    """Its link in the chain of the log."""

    record: str | None
    """What is kept of a run that was removed; None: the run began."""


def _log_flaws(rows: Sequence[LogEntry], end: int) -> Iterator[ChainError]:
    """Where the chain of the log is broken. Each entry is compared with the link stored before it."""
    before, expected = LOG_ORIGIN, 1
    for row in rows:
        if row.number != expected:
            yield _log_gap(expected, row.number - 1)
        elif _log_link(before, row) != row.link or (row.record is not None and record_digest(row.record) != row.first):
            text = mark("entry {number} of the log of runs (run {run_id}) was changed")
            yield ChainError(None, "log", translate(text, number=row.number, run_id=row.run_id))
        before, expected = row.link, row.number + 1
    if end >= expected:
        yield _log_gap(expected, end)


def _log_gap(first: int, last: int) -> ChainError:
    text = mark("the log of runs lacks the entries {first} to {last}")
    return ChainError(None, "log", translate(text, first=first, last=last))


def _log_link(before: bytes, row: LogEntry) -> bytes | None:
    if row.sealed_later not in (0, 1):
        return None
    try:
        return log_hash(before, row.number, row.run_id, row.first, is_sealed_later=bool(row.sealed_later))
    except struct.error:  # a number that no entry can have
        return None


def _run_flaws(rows: Sequence[LogEntry], firsts: dict[str, bytes]) -> Iterator[ChainError]:
    """Runs that are logged but not stored, stored with another beginning, stored but not logged, or not removed."""
    removed = {row.run_id for row in rows if row.record is not None}
    for number, run_id, first, _, _, record in rows:
        if record is not None:
            if run_id in firsts:
                text = mark("run {run_id} is stored, but entry {number} of the log of runs says that it was removed")
                yield ChainError(None, "run_replaced", translate(text, run_id=run_id, number=number))
        elif run_id not in firsts and run_id not in removed:
            text = mark("run {run_id}, entry {number} of the log of runs, was removed")
            yield ChainError(None, "run_missing", translate(text, run_id=run_id, number=number))
        elif run_id not in removed and firsts[run_id] != first:
            text = mark("run {run_id} does not begin with the event that entry {number} of the log of runs names")
            yield ChainError(None, "run_replaced", translate(text, run_id=run_id, number=number))
    for run_id in sorted(firsts.keys() - {row.run_id for row in rows}):
        text = mark("the log of runs lacks run {run_id}")
        yield ChainError(None, "run_unlogged", translate(text, run_id=run_id))


def require_whole(path: Path, run_id: str, connection: sqlite3.Connection) -> None:
    """Refuse a run that somebody edited: no run may continue from a history that did not happen.

    Raises:
        JournalTampered: it is not as it was written; the message names the first event that is not.
        RunNotFound: there is no such run.
    """
    report = verify(path, run_id, connection)
    if (flaw := report.first) is not None:
        hint = mark("It cannot be continued. `tao verify {run_id}` lists what was found; restore a backup.")
        text = mark("{path}: run {run_id!r} was changed after it was written: {flaw}.")
        message = translate(text, path=path, run_id=run_id, flaw=flaw.text)
        raise JournalTampered(message, hint=translate(hint, run_id=run_id))


def _bytes(value: Any) -> bytes:
    """The value of a column, whatever type somebody gave it."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def _row_flaws(rows: Sequence[ChainedEvent], stored: tuple[Any, ...]) -> Iterator[ChainError]:
    """Where the row of the run differs from its events."""
    first: dict[str, Any]
    status, first = RUNNING, {"task": "", "agent": "", "started_at": None}
    try:
        for row in rows:
            if row.kind not in _STATUS_KINDS:
                continue
            fact = row.decode()
            status = status_after(fact) or status
            if isinstance(fact, RunStarted):
                task, agent, parent, key, model = row_values(fact)
                first = {"task": task, "agent": agent, "started_at": row.at, "parent": parent, "key": key}
                first |= {"model": model, "description": (description_digest(row.body) or "").upper()}
    except JournalCorrupt as error:
        text = mark("event {seq} ({kind}) cannot be read: {problem}")
        values = {"seq": row.seq, "kind": row.kind, "problem": _line(error.message)}
        yield ChainError(row.seq, "unreadable", translate(text, **values))
        return
    derived = {"status": status, **first}
    for (name, expected), value in zip(derived.items(), stored, strict=False):  # an older file has fewer columns
        if value != expected and (name != "started_at" or expected is not None):
            text = mark("the list of runs gives another {name} than the events do ({value})")
            yield ChainError(None, "run_row", translate(text, name=name, value=f"{value!r:.80}"))


def _artifact_flaws(run_id: str, rows: Sequence[ChainedEvent], connection: sqlite3.Connection) -> Iterator[ChainError]:
    """Artifacts that were edited, removed, or added without an event that names them."""
    expected: dict[str, tuple[int, str, str]] = {}
    for row in rows:
        if b'"images":[{' in row.body or b'"files":[{' in row.body:
            expected |= _attachments_named(row)
        if row.kind != Observed.kind or b'"artifact":"' not in row.body:
            continue
        try:
            body = json.loads(row.body)
            expected[str(body["artifact"])] = (row.seq, str(body["output_digest"]), str(body["form"]))
        except (ValueError, KeyError, TypeError):  # the chain shows that it was edited
            continue
    statement = "SELECT ref, form, body FROM artifact WHERE run_id = ? ORDER BY ref"
    for ref, form, body in connection.execute(statement, (run_id,)):
        seq, digest, recorded_form = expected.pop(ref, (None, "", ""))
        if seq is None:
            yield ChainError(None, "artifact", translate("no event names the artifact {ref!r}: it was added", ref=ref))
        elif (digest and _digest(_bytes(body), form) != digest) or form != recorded_form:
            text = mark("the artifact {ref!r} is not the output that event {seq} names")
            yield ChainError(seq, "artifact", translate(text, ref=ref, seq=seq))
    for ref, (seq, _, _) in expected.items():
        text = mark("the artifact {ref!r} that event {seq} names is missing")
        yield ChainError(seq, "artifact", translate(text, ref=ref, seq=seq))


def _attachments_named(row: ChainedEvent) -> dict[str, tuple[int, str, str]]:
    """The images and files that an event names; none of one that the chain shows as edited."""
    try:
        fact = row.decode()
    except JournalCorrupt:
        return {}
    infos = (info for info in attachments_of(fact) if not is_remote(info))
    return {info.ref: (row.seq, info.digest, info.media_type) for info in infos}


def _digest(body: bytes, form: str) -> str:
    """The digest of what an artifact holds: of an image or a file, its bytes."""
    if "/" in form:
        try:
            body = base64.b64decode(body, validate=True)
        except ValueError:
            return ""
    return hashlib.sha256(body).hexdigest()


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
