"""The tables of a SQLite journal, and how an older file becomes a current one.

`PRAGMA application_id` says that a file is a journal, `PRAGMA user_version` how many migrations it has had. A
migration that was released is never changed; a new one is added at the end.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence

from taoloop.core.stored_events import LOG_ORIGIN, event_hash, genesis_hash, hashed_bytes, log_hash

APPLICATION_ID = 0x54414F4C  # "TAOL"

Migration = Sequence["str | Callable[[sqlite3.Connection], None]"]
"""SQL statements, and functions where SQL does not suffice, that bring a file from one version to the next.

All of it runs in one transaction.
"""

_V1: Migration = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    # `number` gives the order of creation; a bare rowid would not survive VACUUM.
    """
    CREATE TABLE run (
      number INTEGER PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      status TEXT NOT NULL,
      fence INTEGER NOT NULL,
      task TEXT NOT NULL,
      agent TEXT NOT NULL,
      started_at REAL NOT NULL
    )
    """,
    "CREATE INDEX run_by_status ON run (status, number)",
    # Not WITHOUT ROWID: appended rows then share pages across runs, which measured 4 times faster with 64 runs.
    """
    CREATE TABLE event (
      run_id TEXT NOT NULL,
      seq INTEGER NOT NULL,
      at REAL NOT NULL,
      kind TEXT NOT NULL,
      fence INTEGER NOT NULL,
      body TEXT NOT NULL,
      PRIMARY KEY (run_id, seq)
    )
    """,
    """
    CREATE TABLE artifact (
      run_id TEXT NOT NULL,
      ref TEXT NOT NULL,
      form TEXT NOT NULL,
      body TEXT NOT NULL,
      PRIMARY KEY (run_id, ref)
    )
    """,
    # Time of the last event and number of events are read from the events: an append touches no second table.
    """
    CREATE VIEW run_overview AS
    SELECT number, id, task, agent, status, started_at,
      coalesce((SELECT at FROM event WHERE run_id = run.id ORDER BY seq DESC LIMIT 1), started_at) AS updated_at,
      coalesce((SELECT max(seq) + 1 FROM event WHERE run_id = run.id), 0) AS events
    FROM run
    """,
)


def _seal(connection: sqlite3.Connection) -> None:
    """Give every event that is there a link, and every run its head. Linear; one event in memory at a time."""
    runs = connection.execute("SELECT id FROM run").fetchall()
    for (run_id,) in runs:
        last, count = genesis_hash(run_id), 0
        rows = connection.execute(
            "SELECT rowid, seq, at, kind, body FROM event WHERE run_id = ? ORDER BY seq", (run_id,)
        )
        for rowid, seq, at, kind, body in rows.fetchall():
            last, count = event_hash(last, hashed_bytes(seq, at, kind, _bytes(body))), count + 1
            connection.execute("UPDATE event SET link = ? WHERE rowid = ?", (last, rowid))
        connection.execute("UPDATE run SET head = ?, sealed_later = ? WHERE id = ?", (last, count, run_id))


def _bytes(body: str | bytes) -> bytes:
    return body if isinstance(body, bytes) else body.encode()


_V2: Migration = (
    # The hash chain (`core/hash_chain.py`). `head` is the link of the last event; empty: the origin of the run.
    "ALTER TABLE event ADD COLUMN link BLOB NOT NULL DEFAULT x''",
    "ALTER TABLE run ADD COLUMN head BLOB NOT NULL DEFAULT x''",
    # How many events, from the first, were there before the chain was.
    "ALTER TABLE run ADD COLUMN sealed_later INTEGER NOT NULL DEFAULT 0",
    _seal,
)

_V3: Migration = (
    # Which process acquired the newest lease (`process_identity.py`); empty: by an older version.
    "ALTER TABLE run ADD COLUMN holder TEXT NOT NULL DEFAULT ''",
)


def _log_runs(connection: sqlite3.Connection) -> None:
    """Enter the runs that are there, in the order of their creation."""
    statement = "SELECT id, link FROM run JOIN event ON run_id = id AND seq = 0 ORDER BY run.number"
    last = LOG_ORIGIN
    for number, (run_id, first) in enumerate(connection.execute(statement).fetchall(), start=1):
        last = log_hash(last, number, run_id, _bytes(first), is_sealed_later=True)
        connection.execute("INSERT INTO run_log VALUES (?, ?, ?, 1, ?)", (number, run_id, first, last))


_V4: Migration = (
    # Which runs began, so that a removed one is missed. `first` is the link of the first event. AUTOINCREMENT: the
    # number of a removed entry is not given again.
    """
    CREATE TABLE run_log (
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      run_id TEXT NOT NULL,
      first BLOB NOT NULL,
      sealed_later INTEGER NOT NULL,
      link BLOB NOT NULL
    )
    """,
    _log_runs,
)

_V5: Migration = (
    # The record of a run that retention removed (`retention.py`), as an entry of its own whose `first` is its digest.
    "ALTER TABLE run_log ADD COLUMN pruned TEXT",
    "CREATE INDEX run_pruned ON run_log (run_id) WHERE pruned IS NOT NULL",
)


def _fill_rows(connection: sqlite3.Connection) -> None:
    """Enter into the row of each run what its first event says of it. Linear; one event in memory at a time."""
    firsts = connection.cursor().execute(
        "SELECT run.number, CAST(body AS TEXT) FROM run JOIN event ON run_id = id AND seq = 0"
    )
    for number, body in firsts:
        parent, key, model = _first_values(body)
        connection.execute(
            "UPDATE run SET begun = 1, parent = ?, key = ?, model = ? WHERE number = ?", (parent, key, model, number)
        )


def _first_values(body: str) -> tuple[str | None, str, str]:
    """The run around a run, its API key and its model, by the body of its first event."""
    try:
        fields = json.loads(body)
        parent, key, model = fields.get("parent"), fields["labels"].get("key", ""), fields["agent"]["model"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None, "", ""  # it was edited, which `tao verify` shows
    return (None if parent is None else str(parent)), str(key), str(model)


_V6: Migration = (
    # What lists of runs are filtered by; `begun`: the run has events.
    "ALTER TABLE run ADD COLUMN begun INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE run ADD COLUMN parent TEXT",
    "ALTER TABLE run ADD COLUMN key TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE run ADD COLUMN model TEXT NOT NULL DEFAULT ''",
    _fill_rows,
    "CREATE INDEX run_unbegun ON run (status) WHERE NOT begun",
    # The descriptions of agents by their SHA-256, each once; `run.description` keeps those that are in use.
    "CREATE TABLE description (digest BLOB NOT NULL PRIMARY KEY, body TEXT NOT NULL)",
    "ALTER TABLE run ADD COLUMN description BLOB",
    # Rowids of events that retention removed at the end of the table are given again: `last` is the newest that was
    # not, at the time of an epoch. See `positions.py`.
    "CREATE TABLE event_epoch (number INTEGER PRIMARY KEY, last INTEGER NOT NULL)",
    "INSERT INTO event_epoch VALUES (1, 0)",
    # What was used per day (`spending.py`), up to a position among the events.
    """
    CREATE TABLE spending (
      day TEXT NOT NULL,
      key TEXT NOT NULL,
      agent TEXT NOT NULL,
      model TEXT NOT NULL,
      counts TEXT NOT NULL,
      PRIMARY KEY (day, key, agent, model)
    ) WITHOUT ROWID
    """,
    "CREATE TABLE spending_position (only INTEGER PRIMARY KEY CHECK (only = 1), position TEXT NOT NULL)",
)

_V7: Migration = (
    # With the other two indexes of statuses, runs that are not inside another are counted without reading their rows.
    "CREATE INDEX run_inner ON run (status, parent) WHERE parent IS NOT NULL",
)

_V8: Migration = (
    # A list by agent, model or key, and its counters, without reading the rows of other runs.
    "CREATE INDEX run_by_agent ON run (agent, number, status, parent, begun)",
    "CREATE INDEX run_by_model ON run (model, number, status, parent, begun)",
    "CREATE INDEX run_by_key ON run (key, number, status, parent, begun, started_at)",
)

MIGRATIONS: tuple[Migration, ...] = (_V1, _V2, _V3, _V4, _V5, _V6, _V7, _V8)

READABLE = 1
"""From this version on, a file can be looked at without being brought up to date."""

CHAINED = 2
"""From this version on, events are chained."""

HELD = 3
"""From this version on, a run names the process that acquired it."""

LOGGED = 4
"""From this version on, there is a log of the runs that began."""

PRUNED = 5
"""From this version on, the log has the records of the runs that retention removed."""

INDEXED = 6
"""From this version on, runs can be queried, descriptions are stored once, and there are read models."""

COUNTED = 7
"""From this version on, there is an index of the runs inside others."""

LOG_END = """
SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'run_log'), 0),
  coalesce((SELECT max(number) FROM run_log), 0)), (SELECT link FROM run_log ORDER BY number DESC LIMIT 1)
"""
"""Reads the number of the newest entry of the log, also after that entry was removed, and the last link."""


def version(connection: sqlite3.Connection) -> int:
    """How many migrations the file has had; 0 for a new file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def application(connection: sqlite3.Connection) -> int:
    """The application that the file says it belongs to; 0 when it says nothing."""
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def is_blank(connection: sqlite3.Connection) -> bool:
    """True when the file holds nothing at all."""
    return not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def file_identity(connection: sqlite3.Connection) -> str | None:
    """Which file it says it is (see `file`); None if it says nothing, as one that older versions wrote."""
    row = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'view' AND name = 'file_identity'").fetchone()
    return None if row is None else str(row[0])


def upgrade(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Apply the migrations that the file has not had, each in its own transaction.

    Harmless when two processes do it at once. A step that fails leaves the file at the version before it.
    """
    while version(connection) < len(migrations):
        connection.execute("BEGIN IMMEDIATE")
        try:
            reached = version(connection)  # again, now that nobody else can change it
            if reached < len(migrations):
                for statement in migrations[reached]:
                    if isinstance(statement, str):
                        connection.execute(statement)
                    else:
                        statement(connection)
                connection.execute(f"PRAGMA user_version = {reached + 1}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
