"""The gateway's own database, beside the journal: several processes of one gateway use it at once.

It is a file of its own, so that counting a request never waits for a journal that writes events to the disk, and so
that a journal stays what `tao verify` reads: runs alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taoloop.errors import JournalError
from taoloop.journals.sqlite.errors import explain

MEMORY = Path(":memory:")
"""The path of a database that ends with its process."""

_BUSY_S = 5.0
"""How long a statement waits for another process; a transaction here takes less than a millisecond."""

_KEY_TABLES = """
CREATE TABLE managed_key (
  name TEXT PRIMARY KEY, id TEXT UNIQUE, salt BLOB NOT NULL, hash BLOB NOT NULL, settings TEXT NOT NULL,
  created_at REAL NOT NULL, rotated_at REAL NOT NULL, deleted_at REAL
);
CREATE TABLE admin_act (
  number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, admin TEXT NOT NULL, action TEXT NOT NULL,
  key TEXT NOT NULL, changes TEXT NOT NULL, request_id TEXT NOT NULL
);
CREATE TABLE instance (id TEXT PRIMARY KEY, lease_ends REAL NOT NULL);
CREATE TABLE active (instance TEXT, key TEXT, runs INTEGER NOT NULL, PRIMARY KEY (key, instance)) WITHOUT ROWID;
CREATE TABLE usage (
  key TEXT, kind TEXT, slot INTEGER, last REAL NOT NULL, amount INTEGER NOT NULL, PRIMARY KEY (key, kind, slot)
) WITHOUT ROWID;
CREATE TABLE spending (key TEXT, day INTEGER, usd REAL NOT NULL, PRIMARY KEY (key, day)) WITHOUT ROWID;
"""

_REQUEST_TABLE = """
CREATE TABLE request (
  owner TEXT NOT NULL, key TEXT, body TEXT NOT NULL, run_id TEXT NOT NULL, at REAL NOT NULL, UNIQUE (owner, key)
);
CREATE INDEX request_body ON request (owner, body);
CREATE INDEX request_run ON request (run_id);
CREATE INDEX request_at ON request (at);
"""

_CONVERSATION_TABLE = """
CREATE TABLE conversation (
  owner TEXT, agent TEXT, name TEXT, run_id TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (owner, agent, name)
) WITHOUT ROWID;
CREATE INDEX conversation_at ON conversation (at);
"""

_PUSH_TABLE = """
CREATE TABLE a2a_push (
  owner TEXT, agent TEXT NOT NULL, run_id TEXT, id TEXT, settings TEXT NOT NULL, seq INTEGER NOT NULL,
  attempts INTEGER NOT NULL, due REAL, at REAL NOT NULL, PRIMARY KEY (owner, run_id, id)
) WITHOUT ROWID;
CREATE INDEX a2a_push_due ON a2a_push (due);
CREATE INDEX a2a_push_run ON a2a_push (run_id);
"""

_FORMATS = (_KEY_TABLES, _REQUEST_TABLE, _CONVERSATION_TABLE, _PUSH_TABLE)
"""What each version of the format adds to the one before it."""


def database_beside(journal: Path) -> Path:
    """The path of the gateway's database for a journal: `runs.db` has `runs.gateway.db` beside it."""
    return journal.with_name(f"{journal.stem}.gateway{journal.suffix}")


class GatewayDatabase:
    """The database, open until `close`. For one event loop; other processes may have the file open as well.

    A commit survives the end of the process. What was counted in the last moment before a power failure may be lost;
    what an administrator did (`durable`) is not.

    Args:
        path: The file, which is created where it is missing.

    Raises:
        JournalError: the file cannot be used, or a newer version wrote it.
    """

    def __init__(self, path: Path = MEMORY) -> None:
        self.path = path
        with self._explained():
            self._connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._create()

    def _create(self) -> None:
        with self.transaction():
            version = self.rows("PRAGMA user_version")[0][0]
            if version > len(_FORMATS):
                raise JournalError(
                    f"{self.path} was written by a newer version of taoloop (format {version}).",
                    hint="Update taoloop, or serve with another database (`db`).",
                )
            if version < len(_FORMATS):
                for statement in filter(str.strip, ";".join(_FORMATS[version:]).split(";")):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version = {len(_FORMATS)}")

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[None]:
        """Do the whole block or nothing of it, while no other process writes; not nested.

        `durable`: its commit also survives a power failure.

        Raises:
            JournalError: the file cannot be written now; nothing was changed.
        """
        with self._explained():
            if durable:
                self._connection.execute("PRAGMA synchronous = FULL")
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if durable:
                    self._connection.execute("PRAGMA synchronous = NORMAL")

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a statement; gives its rows.

        Raises:
            JournalError: the file cannot be read or written now.
        """
        with self._explained():
            return self._connection.execute(statement, values).fetchall()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as error:
            raise explain(error, self.path) from error
