"""How each kind of database is opened, for reading so that nothing can be changed, and for writing; and for how long.

Every call has a connection of its own, closed when it ends: what a statement sets in its session is gone with it, and
nothing is left open. It runs in a thread of its own, which ends when its time is over or nobody waits for it any more.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, InvalidRequestError, NoSuchModuleError, SQLAlchemyError

from taoloop.errors import ToolError, ToolSourceError
from taoloop.tools.sql.errors import fault_of
from taoloop.tools.sql.settings import Database
from taoloop.tools.tool import run_in_thread

T = TypeVar("T")

PATIENCE_S = 1.5
"""How long a cancelled call waits for its statement to be undone; below what the runtime leaves for cleaning up."""

MARGIN_S = 1.0
"""How much later than its own limit a statement is interrupted from outside, in seconds."""


class StatementTimeout:
    """Says to a statement when it has to end, and interrupts it. The thread at work and the one that waits share it."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.deadline = time.monotonic() + timeout_s
        self.is_cancelled = False
        self._interrupt: Callable[[], object] | None = None
        self._lock = threading.Lock()

    @property
    def is_due(self) -> bool:
        """Whether the statement has to end."""
        return self.is_cancelled or time.monotonic() > self.deadline

    def arm(self, interrupt: Callable[[], object] | None) -> None:
        """From now on `interrupt` ends what is under way; None: nothing is."""
        with self._lock:
            self._interrupt = interrupt
            missed = self.is_cancelled
        if missed and interrupt is not None:
            _quietly(interrupt)

    def now(self) -> None:
        """Time is over. Does not wait: an interrupt may have to ask the server first."""
        with self._lock:
            self.is_cancelled, interrupt = True, self._interrupt
        if interrupt is not None:
            threading.Thread(target=_quietly, args=(interrupt,), name="taoloop-sql-stop", daemon=True).start()


def _quietly(interrupt: Callable[[], object]) -> None:
    with suppress(Exception):  # the statement may have ended, or the server: then nothing is left to stop
        interrupt()


async def run_statement(work: Callable[[StatementTimeout], T], timeout_s: float, margin_s: float = MARGIN_S) -> T:
    """The result of `work(stop)`, run in a thread of its own; it is interrupted `margin_s` after its time limit.

    If the caller is cancelled, the statement is interrupted, and has `PATIENCE_S` seconds to be undone.

    Raises:
        ToolError: `no_free_thread`; the work was not begun.
    """
    stop = StatementTimeout(timeout_s)
    timer = asyncio.get_running_loop().call_later(timeout_s + margin_s, stop.now)
    try:
        return await run_in_thread(partial(work, stop), stop.now, name="taoloop-sql", patience_s=PATIENCE_S)
    finally:
        timer.cancel()


MAX_ARRIVAL_BYTES = 32 * 1024 * 1024
"""How much a server may send for one batch of rows; beyond it the connection is cut: one value may have gigabytes."""

DRIVERS = {"postgresql": "psycopg", "mysql": "pymysql", "mariadb": "pymysql", "sqlite": "pysqlite"}
"""The driver of each kind of database for which a read-only connection was tried out."""

_PACKAGES = {"psycopg": "psycopg[binary]", "mysqldb": "mysqlclient", "cx_oracle": "cx_Oracle", "psycopg2": "psycopg2"}


class Changed(NamedTuple):
    """How many rows a statement changed."""

    itself: int | None
    """Those that it changed by itself; None: unknown."""
    in_all: int | None
    """These and those of triggers; None: unknown."""


class Server:
    """One database. Its methods may be called from several threads at once.

    As it is here, the role of the connection alone keeps statements from changing anything, and the operator guarantees
    that; a subclass for a kind of database restricts the statements itself.
    """

    bounds_writes = False
    """It can tell what a statement did, so that a change of more than rows is rolled back."""

    max_batch_rows = 50
    """How many rows are fetched at once while they are small."""

    def __init__(self, database: Database, url: sa.URL, engine: sa.Engine) -> None:
        self.database, self.url, self._engine = database, url, engine
        self._role_is_fine = database.read_only_role

    def looking(self, stop: StatementTimeout) -> AbstractContextManager[sa.Connection]:
        """A connection for what the code itself asks of the schema; no statement of a model goes there."""
        return self._opened(self._engine, stop)

    @contextmanager
    def reading(self, stop: StatementTimeout) -> Iterator[sa.Connection]:
        """A connection that cannot change anything, with rows as they come."""
        with self.looking(stop) as connection:
            yield connection.execution_options(stream_results=True, max_row_buffer=50)

    @contextmanager
    def writing(self, stop: StatementTimeout) -> Iterator[sa.Connection]:
        """A connection in a transaction, which the caller commits; otherwise it is rolled back."""
        with self._opened(self._engine, stop) as connection:
            connection.begin()
            yield connection

    def _check_role(self, connection: sa.Connection) -> None:
        """Refuse a role that no transaction restricts; asked once.

        Raises:
            ToolError: `role_too_powerful`.
        """
        if not self._role_is_fine and (power := self._power(connection)):
            raise ToolError(
                f"The role {self.url.username or 'of the connection'!r} {power}; a read-only transaction does not keep"
                " it from that.",
                code="role_too_powerful",
                hint="Use a role with SELECT on these tables only, or say read_only_role: true and answer for it.",
            )
        self._role_is_fine = True

    def _power(self, _connection: sa.Connection, /) -> str:
        """What the role of a connection may do whatever its transaction is; empty: nothing."""
        return ""

    def parts(self, _connection: sa.Connection, /) -> Callable[[str], bool]:
        """Whether a table of this name is only a part of another one, and no table to anybody else."""
        return lambda _table: False

    def censored(self, value: Any, /) -> Any:
        """A value of a result without what the database says of passwords."""
        return value

    def may_run(self, _connection: sa.Connection, /) -> None:
        """The statement of the model comes next on a writing connection."""

    def has_run(self, _connection: sa.Connection, /) -> None:
        """The statement of the model is through; refuses what it may not have done.

        Raises:
            ToolError: `structure_change` or `not_allowed`; nothing is kept.
        """

    def changed(self, _connection: sa.Connection, rowcount: int, /) -> Changed:
        """How many rows the statement changed; `rowcount` is what the driver says, -1 where it does not know.

        The driver's count does not have the rows that triggers changed.
        """
        count = rowcount if rowcount >= 0 else None
        return Changed(count, count)

    def commit(self, connection: sa.Connection, /) -> None:
        """Keep what was changed."""
        connection.commit()

    @contextmanager
    def _opened(self, engine: sa.Engine, stop: StatementTimeout) -> Iterator[sa.Connection]:
        """A connection, rolled back and closed at the end.

        Raises:
            ToolError: whatever the database says, while it is opened or inside the block.
        """
        try:
            connection = engine.connect()
        except (DBAPIError, OSError) as error:
            raise fault_of(error, self.url, stop.timeout_s, is_cancelled=stop.is_cancelled, connecting=True) from None
        except RuntimeError as error:  # the word of pymysql for a package that it has not
            raise ToolError(
                f"The driver {self.url.get_driver_name()!r} cannot log in: {error}.",
                code="driver_missing",
                hint="Install it: pip install 'pymysql[rsa]'."
                if "cryptography" in str(error)
                else "Install what it asks for.",
            ) from None
        try:
            yield connection
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise fault_of(error, self.url, stop.timeout_s, is_cancelled=stop.is_cancelled) from None
        finally:
            stop.arm(None)
            try:
                if connection.in_transaction():
                    connection.rollback()
            except DBAPIError:
                connection.invalidate()  # the connection is broken, and with it the transaction is gone
            finally:
                connection.close()


def url_of(database: Database) -> sa.URL:
    """The URL of a database with a driver that can be used here.

    Raises:
        ToolSourceError: it is no URL, or names a driver that these tools cannot use.
    """
    source = f"database {database.name!r}"
    try:
        url = sa.make_url(database.url)
        dialect = url.get_dialect()
    except NoSuchModuleError:
        raise ToolSourceError(
            f"SQLAlchemy knows no kind of database {database.url.partition(':')[0][:60]!r}.",
            source=source,
            hint="Write sqlite:///FILE, postgresql://USER:PASSWORD@HOST/NAME or mysql+pymysql://…",
        ) from None
    except (ArgumentError, ValueError, TypeError):  # their texts show the URL, password and all
        raise ToolSourceError(
            "The url cannot be read.",
            source=source,
            hint="Signs such as @ : / in a password are written as %40 %3A %2F.",
        ) from None
    if dialect.is_async:
        raise ToolSourceError(
            f"{url.drivername} is a driver for asyncio, which these tools do not use.",
            source=source,
            hint=f"Write the URL as {url.get_backend_name()}+{DRIVERS.get(url.get_backend_name(), 'DRIVER')}://…",
        )
    if url.get_backend_name() in DRIVERS and "+" not in url.drivername:
        url = url.set(drivername=f"{url.get_backend_name()}+{DRIVERS[url.get_backend_name()]}")
    return url


def make_engine(url: sa.URL, **options: Any) -> sa.Engine:
    """An engine that keeps no connections.

    Raises:
        ToolError: `driver_missing`; names what to install.
    """
    try:
        return sa.create_engine(url, poolclass=sa.NullPool, hide_parameters=True, **options)
    except ImportError as error:
        driver = url.get_driver_name()
        package = _PACKAGES.get(driver, (error.name or driver).partition(".")[0])
        raise ToolError(
            f"The driver {driver!r} for {url.get_backend_name()} is not installed.",
            code="driver_missing",
            hint=f"Install it: pip install '{package}'.",
        ) from None
    except InvalidRequestError as error:  # such as one that is too old
        raise ToolError(
            f"The driver {url.get_driver_name()!r} cannot be used: {error}.",
            code="driver_missing",
            hint="Install a newer one.",
        ) from None


def held_by_role(database: Database, url: sa.URL) -> None:
    """Refuse a kind of database for which no read-only connection is known, unless its role is answered for.

    Raises:
        ToolError: `not_read_only`.
    """
    kind, driver = url.get_backend_name(), url.get_driver_name()
    if database.read_only_role or DRIVERS.get(kind) == driver:
        return
    raise ToolError(
        f"No connection of {url.drivername} is known to keep statements from changing anything.",
        code="not_read_only",
        hint=f"Write the URL as {kind}+{DRIVERS[kind]}://…"
        if kind in DRIVERS
        else "Use a role that may only read, and say read_only_role: true if you answer for it that it can only read.",
    )
