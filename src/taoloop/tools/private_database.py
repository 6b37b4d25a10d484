"""SQLite files that tools keep for themselves: their own kind, known by its application id, and readable by one user.

Each use opens the file by itself, so any thread or process may use it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple


class DatabaseKind(NamedTuple):
    """What a kind of database is known by, and what a new one contains."""

    application_id: int
    """Its `PRAGMA application_id`."""
    version: int
    """Its `PRAGMA user_version`; a file with a higher one comes from a newer taoloop."""
    tables: str
    """The statements that create its tables, with semicolons between them."""


@contextmanager
def open_database(
    path: Path, kind: DatabaseKind, busy_s: float, refusal: Callable[[str], Exception]
) -> Iterator[sqlite3.Connection]:
    """A connection in autocommit mode for a `with` statement; a missing file is created.

    Args:
        path: The file.
        kind: What the file must be.
        busy_s: How many seconds a call waits for another process that is writing.
        refusal: Gives the error for a file that is `newer`, or of `other` kind; it is not changed.

    Raises:
        sqlite3.Error, OSError: the file cannot be used.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):  # another process has created it
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with closing(sqlite3.connect(path, timeout=busy_s, isolation_level=None)) as database:
        database.execute("BEGIN")  # a consistent view of the file
        is_ready = _is_of_kind(database, kind, refusal)
        database.execute("COMMIT")
        if not is_ready:
            with transaction(database):  # of several processes with a new file, one creates the tables
                if not _is_of_kind(database, kind, refusal):
                    ids = f"PRAGMA application_id = {kind.application_id}; PRAGMA user_version = {kind.version}"
                    for statement in f"{kind.tables}; {ids}".split(";"):
                        database.execute(statement)
            database.execute("PRAGMA busy_timeout = 0")
            with suppress(sqlite3.OperationalError):  # another process has the file open; it also works without
                database.execute("PRAGMA journal_mode = WAL")
            database.execute(f"PRAGMA busy_timeout = {busy_s * 1000:.0f}")
        yield database


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """A transaction that writes, from its beginning; an error rolls it back."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _is_of_kind(database: sqlite3.Connection, kind: DatabaseKind, refusal: Callable[[str], Exception]) -> bool:
    """Whether the file has its tables already; False: it is empty."""
    application_id, version, tables = (
        int(database.execute(query).fetchone()[0])
        for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    is_of_kind = application_id == kind.application_id
    if is_of_kind and version > kind.version:
        raise refusal("newer")
    if not is_of_kind and (application_id or version or tables):
        raise refusal("other")
    return is_of_kind
