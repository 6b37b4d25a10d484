"""Opening the file of a SQLite journal: checked before it is touched, then brought to the current version.

A copy that was made while the file was in use, without its write-ahead log, lacks the latest events. Two marks tell
it. The header of the file says WAL while a connection is open: the last one that closes changes that, and a process
that was killed leaves its log. And the view `file_identity` says which file it is: a journal that was not closed, or
whose log another program wrote back (the `sqlite3` shell), is still that file.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Literal, NamedTuple

from taoloop.errors import JournalError, JournalTooNew
from taoloop.journals.base import translate
from taoloop.journals.postgres.address import is_postgres
from taoloop.journals.sqlite import schema
from taoloop.journals.sqlite.errors import corrupt, explain, primary_code
from taoloop.journals.sqlite.schema import MIGRATIONS, Migration
from taoloop.translation import mark

ENV_VARIABLE = "TAOLOOP_DB"


def default_path(environ: Mapping[str, str] | None = None) -> Path:
    """The path of the database: `TAOLOOP_DB` if it is set, else `taoloop/runs.db` in the user's data folder.

    Nothing is created. `environ` is the process environment by default; a leading `~` is expanded. Where `TAOLOOP_DB`
    is the address of a PostgreSQL database, it is the one in the user's data folder.
    """
    chosen = (os.environ if environ is None else environ).get(ENV_VARIABLE, "").strip()
    if chosen and not is_postgres(chosen):
        return Path(os.path.expanduser(chosen))  # noqa: PTH111  # that of pathlib raises if there is no such user
    import platformdirs  # noqa: PLC0415  # only those without a path of their own pay for it

    return platformdirs.user_data_path("taoloop", appauthor=False) / "runs.db"


Synchronous = Literal["FULL", "NORMAL"]

CHECKPOINT_PAGES = 256
"""Pages of 4 KB in the write-ahead log after which SQLite copies them into the file and writes over them again.

A commit that makes the log longer takes a quarter longer than one that overwrites, and every process begins a new log.
Fewer pages make long runs slower, because each time costs two waits for the disk (`benchmarks/journal.py`; the 1,000 of
SQLite cost a fifth more for the first 400 appends, and a twentieth less for thousands).
"""

_RETRY_S = 0.002

_CHECK_S = 1.0
"""How long `check_storage` waits for another process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFile:
    """Which file, and how it is opened."""

    path: Path
    """The file."""

    synchronous: Synchronous = "FULL"
    """FULL: a commit survives a power cut. NORMAL: it survives only the death of the process."""

    lock_timeout_s: float = 5.0
    """How long to wait for another process that holds the file."""

    max_bytes: int | None = None
    """The size that the file may grow to; None for the whole disk."""

    read_only: bool = False
    """Whether the file must exist and is not changed."""


class OpenedFile(NamedTuple):
    """Which file a connection has open. A file that is removed stays open, and what is written to it is lost."""

    path: str
    """Its absolute path."""

    device: int
    """The device that it is on."""

    node: int
    """Its inode."""

    @classmethod
    def at(cls, path: Path) -> OpenedFile | None:
        """The file that is at the path now; None where that is not known."""
        absolute = os.path.abspath(path)  # noqa: PTH100  # the folder may be another one later
        try:
            status = os.stat(absolute)  # noqa: PTH116  # three times as fast as `Path.stat`, and done for every commit
        except OSError:
            return None
        return cls(absolute, status.st_dev, status.st_ino)

    def is_gone(self) -> bool:
        """Whether it was removed, or another one has taken its file."""
        try:
            status = os.stat(self.path)  # noqa: PTH116  # as above
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return status.st_ino != self.node or status.st_dev != self.device


def open_database(file: DatabaseFile, migrations: Sequence[Migration] = MIGRATIONS) -> sqlite3.Connection:
    """A connection in autocommit mode, usable from any thread (one at a time), to a file of the current version.

    A missing file and its folder are created, unless `read_only`.

    Raises:
        JournalTooNew, JournalCorrupt: the file is not ours to read; it was not touched.
        JournalLocked, JournalFull, JournalError: it cannot be opened; the text says why.
    """
    try:
        return _open_to_read(file, migrations) if file.read_only else _open_to_write(file, migrations)
    except (sqlite3.Error, OSError) as error:
        raise explain(error, file.path) from error


def check_storage(file: DatabaseFile) -> None:
    """Write the version of the format to the file anew: a commit that changes nothing, over a connection of its own.

    Raises:
        JournalLocked, JournalFull, JournalError: that is not possible now; the text says why.
    """
    file = replace(file, lock_timeout_s=min(file.lock_timeout_s, _CHECK_S))
    connection = open_database(file)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA user_version = {schema.version(connection)}")
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise explain(error, file.path) from error
    finally:
        connection.close()


def _open_to_write(file: DatabaseFile, migrations: Sequence[Migration]) -> sqlite3.Connection:
    file.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # traces are private
    _refuse_emptied(file.path)
    has_log = _log_beside(file.path).exists()
    connection = _connect(file, "rwc")
    try:
        reached = _refuse_foreign(connection, file.path, len(migrations))
        if reached:
            _refuse_copy(connection, file.path, has_log=has_log)
            _enter_identity(connection, file.path)  # before the header says WAL: others may be opening the file
        else:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before the first page: `prune` gives space back
        execute_patiently(connection, "PRAGMA journal_mode = WAL", time.monotonic() + file.lock_timeout_s)
        connection.execute(f"PRAGMA synchronous = {file.synchronous}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        if file.max_bytes is not None:
            page_size = connection.execute("PRAGMA page_size").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {max(1, file.max_bytes // page_size)}")
        schema.upgrade(connection, migrations)
        if not reached:
            _enter_identity(connection, file.path)
    except BaseException:
        connection.close()
        raise
    return connection


def _open_to_read(file: DatabaseFile, migrations: Sequence[Migration]) -> sqlite3.Connection:
    if not file.path.is_file():
        hint = translate("Name another path with --db or TAOLOOP_DB, or run a task first.")
        raise JournalError(translate("{path}: there is no journal.", path=file.path), hint=hint)
    _refuse_emptied(file.path)
    has_log, is_wal = _log_beside(file.path).exists(), False
    connection = _connect(file, "rw")  # falls back to reading where the file cannot be written
    try:
        try:
            reached = _refuse_foreign(connection, file.path, len(migrations))
        except sqlite3.OperationalError as error:
            # A WAL database in a folder that cannot be written: without a -wal file nobody else is at work in it.
            if _log_beside(file.path).exists() or primary_code(error) not in {
                sqlite3.SQLITE_CANTOPEN,
                sqlite3.SQLITE_READONLY,
            }:
                raise
            connection.close()
            connection, is_wal = _connect(file, "ro&immutable=1"), True
            reached = _refuse_foreign(connection, file.path, len(migrations))
        _refuse_copy(connection, file.path, has_log=has_log, is_wal=is_wal)
        if reached < schema.READABLE:
            text = mark("{path}: the journal has the older schema {reached} (current: {current}).")
            raise JournalError(
                translate(text, path=file.path, reached=reached, current=len(migrations)),
                hint=translate("Any run that writes to it brings it up to date."),
            )
        connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def close_database(connection: sqlite3.Connection, opened: OpenedFile | None) -> None:
    """Close a connection that `open_database` made; if it is the last one, the file is marked as whole."""
    if opened is None or not opened.is_gone():  # else the names beside it may be those of another database
        with suppress(sqlite3.Error):  # others have it open (only the last one may), or the disk is full
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


def _connect(file: DatabaseFile, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{file.path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=file.lock_timeout_s,
        isolation_level=None,
        check_same_thread=False,
    )


def _refuse_emptied(path: Path) -> None:
    """Refuse a file of 0 bytes that was a journal; SQLite would begin a new one and drop the write-ahead log.

    The file beside it that holds the locks of runs, and a log with content, exist only once the first page of the
    database is written. A file without them may be one that was only just created.

    Raises:
        JournalCorrupt: it was a journal.
    """

    def size(file: Path) -> int | None:
        try:
            return file.stat().st_size
        except FileNotFoundError:  # also a log that another process has just removed
            return None

    def has_trail() -> bool:
        return path.with_name(f"{path.name}-held").exists() or bool(size(_log_beside(path)))

    if size(path) == 0 and has_trail() and size(path) == 0:  # again: another process may just have created it
        text = translate("the file is empty, but it was a journal: its content is lost or was cut off")
        raise corrupt(path, text)


def _refuse_copy(connection: sqlite3.Connection, path: Path, *, has_log: bool, is_wal: bool = False) -> None:
    """Refuse a file that was copied while in use, without its log. What SQLite's own backup made is whole.

    Raises:
        JournalCorrupt: it is such a copy; it was not touched.
    """
    if has_log or not (is_wal or connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"):
        return
    entered = schema.file_identity(connection)
    is_backup = connection.execute("PRAGMA schema_version").fetchone()[0] == 1  # it counts from the beginning there
    if entered is not None and entered != _identity(path) and not is_backup:
        text = mark("copied while it was in use and without {name}-wal, so it lacks the latest events")
        hint = mark(
            "Copy all of {name}* while nothing runs. If the rest is lost: "
            "`sqlite3 {name} 'PRAGMA journal_mode = DELETE'` accepts the file as it is; "
            "a run that is resumed in it may then repeat calls."
        )
        raise corrupt(path, translate(text, name=path.name), hint=translate(hint, name=path.name))


def _enter_identity(connection: sqlite3.Connection, path: Path) -> None:
    """Enter which file this is, unless it says so."""
    identity = _identity(path)
    if schema.file_identity(connection) != identity:
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute("DROP VIEW IF EXISTS file_identity")
            connection.execute(identity)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")  # into the file itself, as are the tables of a new one


def _identity(path: Path) -> str:
    """What enters this file: the inodes of file and folder, and the name, which no copy shares."""
    whole = path.resolve()
    key = f"{whole.stat().st_ino} {whole.parent.stat().st_ino} {whole.name}"
    return f"CREATE VIEW file_identity AS SELECT '{blake2b(os.fsencode(key), digest_size=8).hexdigest()}' AS digest"


def _log_beside(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _refuse_foreign(connection: sqlite3.Connection, path: Path, known: int) -> int:
    """The version of the file, if it is ours to read."""
    connection.execute("BEGIN")  # what is read is of one moment: another connection may be making the tables
    application, reached = schema.application(connection), schema.version(connection)
    blank = schema.is_blank(connection)
    connection.execute("COMMIT")
    if application != schema.APPLICATION_ID and (application or reached or not blank):
        raise corrupt(path, translate("a SQLite database, but of another application"))
    if reached > known:
        text = mark(
            "{path}: written by a newer taoloop (schema {reached}; this one knows {known}). Nothing was touched."
        )
        raise JournalTooNew(
            translate(text, path=path, reached=reached, known=known),
            hint=translate("Upgrade taoloop, or choose another path with --db or TAOLOOP_DB."),
        )
    return reached


def execute_patiently(connection: sqlite3.Connection, statement: str, deadline: float) -> None:
    """Execute a statement for which SQLite does not wait by itself: for other processes, until `deadline`.

    Raises:
        sqlite3.OperationalError: the file was busy until then, or something else is wrong.
    """
    while True:
        try:
            connection.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_S)
