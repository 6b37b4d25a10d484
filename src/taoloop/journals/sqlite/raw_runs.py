"""Runs as a SQLite file stores them: taken out for archives and moves, and put back."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from taoloop.journals.raw_runs import RawEvent, RawRun
from taoloop.journals.run_check import LogEntry, stored_bytes
from taoloop.journals.sqlite.batch import enter_in_log
from taoloop.journals.sqlite.errors import not_found
from taoloop.journals.sqlite.positions import end
from taoloop.journals.sqlite.spending import UsageReader

_ROW = """
SELECT status, fence, sealed_later, started_at, coalesce((SELECT max(at) FROM event WHERE run_id = run.id AND seq =
  (SELECT max(seq) FROM event WHERE run_id = run.id)), started_at), task, agent, parent, key, model,
  (SELECT body FROM description WHERE digest = run.description)
FROM run WHERE id = ?
"""
_EVENTS = "SELECT seq, at, kind, fence, body, hex(link) FROM event WHERE run_id = ? ORDER BY seq"
_ARTIFACTS = "SELECT ref, form, body FROM artifact WHERE run_id = ? ORDER BY ref"
_ADD = """
INSERT INTO run (id, status, fence, holder, task, agent, started_at, parent, key, model, description, sealed_later,
  head, begun) VALUES (?, ?, ?, '', ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)
"""
_LOG = "SELECT number, run_id, first, sealed_later, link, pruned FROM run_log ORDER BY number"


def raw_run(path: Path, run_id: str, connection: sqlite3.Connection) -> RawRun:
    """A run as it is stored, at one moment of the file.

    Raises:
        RunNotFound: there is no such run.
    """
    connection.execute("BEGIN")
    try:
        row = connection.execute(_ROW, (run_id,)).fetchone()
        if row is None:
            raise not_found(path, run_id, connection)
        status, fence, later, started_at, updated_at, task, agent, parent, key, model, description = row
        events = tuple(
            RawEvent(seq, at, kind, event_fence, _text(body), link.lower())
            for seq, at, kind, event_fence, body, link in connection.execute(_EVENTS, (run_id,))
        )
        artifacts = tuple((ref, form, _text(body)) for ref, form, body in connection.execute(_ARTIFACTS, (run_id,)))
    finally:
        connection.execute("ROLLBACK")
    return RawRun(
        run_id=run_id,
        status=status,
        fence=fence,
        sealed_later=later,
        started_at=started_at,
        updated_at=updated_at,
        task=task,
        agent=agent,
        parent=parent,
        key=key,
        model=model,
        description="" if description is None else _text(description),
        events=events,
        artifacts=artifacts,
    )


def add_raw_runs(path: Path, runs: Sequence[RawRun], connection: sqlite3.Connection) -> list[str]:
    """Store runs that are not there, in the open transaction; what they used is not counted again."""
    usage, added = UsageReader(path, connection), list[str]()
    while not usage.update_within():
        pass
    for run in runs:
        if connection.execute("SELECT 1 FROM run WHERE id = ?", (run.run_id,)).fetchone() is not None:
            continue
        added.append(run.run_id)
        digest = _add_description(run, connection)
        head = bytes.fromhex(run.head)
        values = (
            run.run_id,
            run.status,
            run.fence,
            run.task,
            run.agent,
            run.started_at,
            run.parent,
            run.key,
            run.model,
        )
        connection.execute(_ADD, (*values, digest, run.sealed_later, head))
        connection.executemany(
            "INSERT INTO event (run_id, seq, at, kind, fence, body, link) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(run.run_id, *event[:5], bytes.fromhex(event.link)) for event in run.events],
        )
        rows = [(run.run_id, *artifact) for artifact in run.artifacts]
        connection.executemany("INSERT INTO artifact (run_id, ref, form, body) VALUES (?, ?, ?, ?)", rows)
        if run.events:
            enter_in_log(connection, [(run.run_id, bytes.fromhex(run.events[0].link), None)])
    usage.skip_to(end(connection))
    return added


def log_entries(connection: sqlite3.Connection) -> list[LogEntry]:
    """The log of runs."""
    return [
        LogEntry(number, str(run_id), stored_bytes(first), later, stored_bytes(link), pruned)
        for number, run_id, first, later, link, pruned in connection.execute(_LOG)
    ]


def _add_description(run: RawRun, connection: sqlite3.Connection) -> bytes | None:
    from taoloop.core.stored_events import description_digest  # noqa: PLC0415  # one use

    digest = description_digest(run.events[0].body.encode("utf-8", "surrogatepass")) if run.events else None
    if digest is None or not run.description:
        return None
    connection.execute("INSERT OR IGNORE INTO description VALUES (?, ?)", (bytes.fromhex(digest), run.description))
    return bytes.fromhex(digest)


def _text(value: Any) -> str:
    return stored_bytes(value).decode("utf-8", "surrogatepass")
