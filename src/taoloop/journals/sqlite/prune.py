"""Removing runs from a SQLite journal: their rows go, their records enter the log of runs, and space is given back.

It has a connection of its own, so that neither reads nor the writer wait for more than one short transaction.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from taoloop.errors import JournalCorrupt
from taoloop.journals.base import RUNNING, WAITING, translate
from taoloop.journals.retention import (
    PrunedRun,
    PruneReport,
    Retention,
    StoredRun,
    due_groups,
    encode_record,
    has_open_calls,
    record_digest,
)
from taoloop.journals.sqlite.batch import enter_in_log
from taoloop.journals.sqlite.file import DatabaseFile, OpenedFile, close_database, execute_patiently, open_database
from taoloop.journals.sqlite.positions import begin_epoch, end
from taoloop.journals.sqlite.search import RunSearch
from taoloop.journals.sqlite.spending import UsageReader
from taoloop.journals.sqlite.verify import linked_rows, verify

_ROWS = """
SELECT run.id, coalesce(
    json_extract(CAST(first.body AS TEXT), '$.undoes.run_id'), json_extract(CAST(first.body AS TEXT), '$.parent')
  ), run.status, (SELECT at FROM event WHERE run_id = run.id ORDER BY seq DESC LIMIT 1)
FROM run JOIN event AS first ON first.run_id = run.id AND first.seq = 0 ORDER BY run.number
"""
_STATE = """
SELECT agent, status, started_at, (SELECT max(seq) + 1 FROM event WHERE run_id = run.id),
  (SELECT hex(link) FROM event WHERE run_id = run.id ORDER BY seq DESC LIMIT 1)
FROM run WHERE id = ?
"""

_PAUSE_S = 0.01
"""Between two transactions, so that writes of other connections come in between."""

_FREED_PAGES = 64
"""Pages of 4 KB that are given back in one transaction."""


def prune(
    file: DatabaseFile, keep: Retention, now: float, *, is_dry_run: bool, is_stopped: Callable[[], bool]
) -> PruneReport:
    """Remove what is due, a run with those inside it at a time; between two of them `is_stopped` may end it.

    Raises:
        JournalError: the file cannot be read or written; what was removed until then has its records.
    """
    pruned: list[PrunedRun] = []
    damaged: list[str] = []
    connection, opened = open_database(file), OpenedFile.at(file.path)
    try:
        for group, rule in _due(file.path, keep, now, connection):
            if is_stopped():
                break
            run_ids = [row.run_id for row in group]
            reports = [verify(file.path, run_id, connection) for run_id in run_ids]
            if bad := [report.run_id for report in reports if not report.whole]:
                damaged += bad
                continue
            heads = {report.run_id: report.head for report in reports}
            if _has_open_calls(file.path, run_ids, connection):
                continue
            if is_dry_run:
                pruned += _records(run_ids, heads, rule, now, connection) or ()
            else:
                pruned += _remove(file, run_ids, heads, rule, now, connection)
                time.sleep(_PAUSE_S)
        if pruned and not is_dry_run:
            _remove_descriptions(file, connection)
            RunSearch(file.path).forget([record.run_id for record in pruned])
            if not is_stopped():
                _give_back_space(connection)
    finally:
        close_database(connection, opened)
    return PruneReport(pruned=tuple(pruned), damaged=tuple(damaged))


def _due(
    path: Path, keep: Retention, now: float, connection: sqlite3.Connection
) -> Iterator[tuple[list[StoredRun], str]]:
    try:
        rows = [
            StoredRun(run_id, outer, status not in (RUNNING, WAITING), at)
            for run_id, outer, status, at in connection.execute(_ROWS)
        ]
    except sqlite3.OperationalError as error:
        if "malformed JSON" not in str(error):
            raise
        message = translate("{path}: the first event of a run is not JSON; nothing was removed.", path=path)
        raise JournalCorrupt(message, hint=translate("`tao verify --all` finds the run.")) from error
    return due_groups(rows, keep, now)


def _has_open_calls(path: Path, run_ids: Sequence[str], connection: sqlite3.Connection) -> bool:
    return any(has_open_calls(row.decode() for row in linked_rows(path, run_id, connection)) for run_id in run_ids)


def _remove(
    file: DatabaseFile,
    run_ids: Sequence[str],
    heads: dict[str, str],
    rule: str,
    now: float,
    connection: sqlite3.Connection,
) -> list[PrunedRun]:
    """Remove these runs in one transaction, unless one of them was continued since it was looked at."""
    execute_patiently(connection, "BEGIN IMMEDIATE", time.monotonic() + file.lock_timeout_s)
    try:
        records = _records(run_ids, heads, rule, now, connection)
        if records is None:
            return []
        texts = [encode_record(record) for record in records]
        usage = UsageReader(file.path, connection)
        while not usage.update_within():  # what they cost stays
            pass
        before = end(connection)
        entries = [(run_id, record_digest(text), text) for run_id, text in zip(run_ids, texts, strict=True)]
        enter_in_log(connection, entries)
        keys = [(run_id,) for run_id in run_ids]
        for statement in (
            "DELETE FROM event WHERE run_id = ?",
            "DELETE FROM artifact WHERE run_id = ?",
            "DELETE FROM run WHERE id = ?",
        ):
            connection.executemany(statement, keys)
        begin_epoch(connection, before)
        connection.execute("COMMIT")
        return records
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _remove_descriptions(file: DatabaseFile, connection: sqlite3.Connection) -> None:
    """Remove the descriptions of agents that no run names any more."""
    execute_patiently(connection, "BEGIN IMMEDIATE", time.monotonic() + file.lock_timeout_s)
    try:
        used = "SELECT description FROM run WHERE description IS NOT NULL"
        connection.execute(f"DELETE FROM description WHERE digest NOT IN ({used})")  # noqa: S608  # no input
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _records(
    run_ids: Sequence[str], heads: dict[str, str], rule: str, now: float, connection: sqlite3.Connection
) -> list[PrunedRun] | None:
    """The records of these runs; None if one of them is not as it was when it was looked at."""
    records: list[PrunedRun] = []
    for run_id in run_ids:
        row = connection.execute(_STATE, (run_id,)).fetchone()
        if row is None or row[1] in (RUNNING, WAITING) or str(row[4]).lower() != heads[run_id]:
            return None
        last = "SELECT at FROM event WHERE run_id = ? ORDER BY seq DESC LIMIT 1"
        records.append(
            PrunedRun(
                run_id=run_id,
                agent=row[0],
                status=row[1],
                started_at=row[2],
                ended_at=connection.execute(last, (run_id,)).fetchone()[0],
                events=row[3],
                head=heads[run_id],
                pruned_at=now,
                rule=rule,
            )
        )
    return records


def _give_back_space(connection: sqlite3.Connection) -> None:
    """Shrink the file by the free pages, a few at a time. One of an older version keeps them for new runs."""
    (is_shrinkable,) = connection.execute("PRAGMA auto_vacuum").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    for _ in range(-(-free // _FREED_PAGES) if is_shrinkable else 0):
        # As a script: `execute` takes one step, which frees a single page.
        connection.executescript(f"PRAGMA incremental_vacuum({_FREED_PAGES})")
        time.sleep(_PAUSE_S)
