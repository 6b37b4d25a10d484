"""SQLite: a file opened read-only, with SQLite's own authorizer over every statement of a model."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from taoloop.errors import ToolError
from taoloop.tools.sql.engines import Changed, Server, StatementTimeout, make_engine
from taoloop.tools.sql.errors import database_error
from taoloop.tools.sql.settings import Database

_RECURSIVE = 33  # the module has no name for it in Python 3.11
_LOOKS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, _RECURSIVE})
_CHANGES = _LOOKS | {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}
_NEVER = frozenset(
    {
        sqlite3.SQLITE_ATTACH,
        sqlite3.SQLITE_DETACH,
        sqlite3.SQLITE_PRAGMA,
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_SAVEPOINT,
    }
)
_ROWS = (sqlite3.SQLITE_READ, sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)
_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"})
_TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})
_SHADOWS = frozenset(
    ["data", "idx", "content", "docsize", "config", "segments", "segdir", "stat", "node", "parent", "rowid"]
)  # where virtual tables keep what is theirs
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 16 * 1024 * 1024,  # bytes of one value or row
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 256 * 1024,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 500,  # a pattern may take the power of its % signs
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,  # VACUUM INTO attaches the file that it writes
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_BUSY_S = 2.0
_STEPS = 1_000  # instructions of SQLite's machine between two looks at the clock

Judge = Callable[[int, str | None, str | None, str | None, str | None], int]


class Sqlite(Server):
    """A file. Neither reading nor writing ever makes one."""

    bounds_writes = True
    max_batch_rows = 1  # each may have values as large as `_LIMITS` permit, and nothing is sent over a network

    def __init__(self, database: Database, url: sa.URL) -> None:
        name = url.database or ""
        if name in ("", ":memory:") or name.startswith("file:") or url.query:
            raise ToolError(
                "SQLite needs the path of a file and nothing else: a database in memory is gone with its connection.",
                code="database_unusable",
                hint="Write sqlite:///shop.db, or sqlite:////absolute/path/shop.db.",
            )
        self.path = Path(name).absolute()
        super().__init__(database, url, self._make_engine("ro", database.timeout_s))
        self._writing_engine = self._make_engine("rw", database.timeout_s)

    def _make_engine(self, mode: str, timeout_s: float) -> sa.Engine:
        uri = f"{self.path.as_uri()}?mode={mode}"  # as_uri escapes what has a meaning in a URI
        patience_s = min(_BUSY_S, timeout_s)

        def connect() -> sqlite3.Connection:
            if not self.path.is_file():
                raise database_error("database_unavailable", "no_file", name=self.path.name)
            connection = sqlite3.connect(
                uri, uri=True, timeout=patience_s, isolation_level=None, check_same_thread=False
            )
            try:
                connection.text_factory = _text
                connection.execute("PRAGMA trusted_schema=0")
                connection.execute("PRAGMA query_only=1" if mode == "ro" else "PRAGMA foreign_keys=1")
                connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # fails where it is no database
                for limit, value in _LIMITS.items():
                    connection.setlimit(limit, value)
            except BaseException:
                connection.close()
                raise
            return connection

        return make_engine(sa.make_url("sqlite://"), creator=connect)

    @contextmanager
    def _opened(self, engine: sa.Engine, stop: StatementTimeout) -> Iterator[sa.Connection]:
        with super()._opened(engine, stop) as connection:
            raw = _raw(connection)
            raw.set_progress_handler(lambda: stop.is_due, _STEPS)
            stop.arm(raw.interrupt)  # one instruction may take long: looked at sooner than the clock
            yield connection

    @contextmanager
    def reading(self, stop: StatementTimeout) -> Iterator[sa.Connection]:
        """Read-only by the file's mode, and nothing but looking by the authorizer."""
        with self.looking(stop) as connection:
            raw = _raw(connection)
            raw.set_authorizer(self._judge(_LOOKS, _waken(raw)))
            yield connection

    @contextmanager
    def writing(self, stop: StatementTimeout) -> Iterator[sa.Connection]:
        """In a transaction that holds the file for writing from its beginning."""
        with self._opened(self._writing_engine, stop) as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield connection
            finally:
                _raw(connection).set_authorizer(None)  # it would deny the rollback too

    def may_run(self, connection: sa.Connection, /) -> None:
        """From here the authorizer looks at everything."""
        raw = _raw(connection)
        connection.info["changes"] = raw.total_changes
        raw.set_authorizer(self._judge(None if self.database.structure else _CHANGES, _waken(raw)))

    def parts(self, connection: sa.Connection) -> Callable[[str], bool]:
        """Whether a table is only a part of a virtual one, as those of full-text search."""
        virtual = _virtual(_raw(connection))
        return lambda table: _owner(table.lower(), virtual) != table.lower()

    def has_run(self, connection: sa.Connection, /) -> None:
        """What is not permitted has not run at all; the commit is ours again."""
        _raw(connection).set_authorizer(None)

    def changed(self, connection: sa.Connection, rowcount: int, /) -> Changed:
        """By SQLite's own count, which has the rows that triggers and foreign keys changed too."""
        raw = _raw(connection)
        count = raw.total_changes - int(connection.info["changes"])
        if rowcount == 0 and count:  # the driver counts before the rows of RETURNING come
            (rowcount,) = raw.execute("SELECT changes()").fetchone()
        return Changed(rowcount if rowcount > 0 else count, count)  # 0: a view whose triggers did all of it

    def _judge(self, allowed: frozenset[int] | None, virtual: frozenset[str]) -> Judge:
        own = {self.database.calls_table.lower()} if self.database.calls_table else set()
        is_partial = bool(self.database.tables or self.database.hidden)

        def judge(action: int, first: str | None, second: str | None, _base: str | None, _by: str | None) -> int:
            if action == sqlite3.SQLITE_PRAGMA and first == "data_version" and second is None:
                return sqlite3.SQLITE_OK  # full-text search asks for it by itself; it tells a number
            if action in _NEVER or (allowed is not None and action not in allowed):
                return sqlite3.SQLITE_DENY
            if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS:
                return sqlite3.SQLITE_DENY
            names = (first,) if action in _ROWS else (first, second)
            if own and any((name or "").lower() in own for name in names):
                return sqlite3.SQLITE_DENY
            table = _owner((first or "").lower(), virtual) if action in _ROWS else ""
            is_restricted = is_partial and action in _ROWS and table not in _TABLE_FUNCTIONS
            return sqlite3.SQLITE_DENY if is_restricted and not self.database.shows(table) else sqlite3.SQLITE_OK

        return judge


def _waken(raw: sqlite3.Connection) -> frozenset[str]:
    """Let virtual tables prepare what they need while nobody judges; gives their names in lower case."""
    virtual = _virtual(raw)
    for name in virtual | _TABLE_FUNCTIONS:
        with contextlib.suppress(sqlite3.Error):  # a module that is not there; the statement may need another table
            quoted = name.replace('"', '""')
            raw.execute(f'SELECT 1 FROM "{quoted}" LIMIT 0')  # noqa: S608  # a name, quoted
    return virtual


def _virtual(raw: sqlite3.Connection) -> frozenset[str]:
    rows = raw.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage = 0").fetchall()
    return frozenset(name.lower() for (name,) in rows)


def _owner(table: str, virtual: frozenset[str]) -> str:
    """The virtual table that a table is a part of, or the table itself; in lower case."""
    owner, _, part = table.rpartition("_")
    return owner if part in _SHADOWS and owner in virtual else table


def _text(raw: bytes) -> str | bytes:
    """A text as it is stored; bytes where somebody stored what is no UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _raw(connection: sa.Connection) -> sqlite3.Connection:
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)  # noqa: S101  # made above
    return raw
