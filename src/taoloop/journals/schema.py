"""The tables of a SQLite journal, and how an older file becomes a current one.

`PRAGMA application_id` says that a file is a journal, `PRAGMA user_version` how many migrations it has had. A
migration that was released is never changed; a new one is added at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

APPLICATION_ID = 0x54414F4C  # "TAOL"

Migration = Sequence[str]
"""SQL statements that bring a file from one version to the next, run in one transaction."""

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

MIGRATIONS: tuple[Migration, ...] = (_V1,)


def version(connection: sqlite3.Connection) -> int:
    """How many migrations the file has had; 0 for a new file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def application(connection: sqlite3.Connection) -> int:
    """The application that the file says it belongs to; 0 when it says nothing."""
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def is_blank(connection: sqlite3.Connection) -> bool:
    """True when the file holds nothing at all."""
    return not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


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
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {reached + 1}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
