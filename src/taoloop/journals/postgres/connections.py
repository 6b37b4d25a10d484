"""Connections to the database: a pool for every event loop that uses a journal, opened at its first use.

A connection of the driver belongs to one event loop, and a journal may be used from any. No statement relies on the
state of a session, so connections go back to the pool as they are, and a pooler may lie between: `pooler=True` for one
in transaction mode, where a prepared statement does not outlive its transaction.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from taoloop.errors import JournalError, MissingExtra
from taoloop.journals.base import translate
from taoloop.journals.postgres import schema
from taoloop.journals.postgres.address import PostgresAddress
from taoloop.translation import mark

if TYPE_CHECKING:
    from taoloop.journals.postgres.driver import Pool, PostgresConnection

T = TypeVar("T")

_CLOSE_S = 5.0
"""How long work in progress may take before `close` cuts its connections."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
"""Between two attempts to reach a server that went away."""


def require_driver() -> None:
    """Refuse to go on without the driver.

    Raises:
        MissingExtra: the extra `postgres` is not installed.
    """
    try:
        import asyncpg  # noqa: F401, PLC0415  # an extra
    except ImportError as error:
        hint = translate("Install it with: pip install 'taoloop[postgres]'")
        raise MissingExtra(translate("The driver of PostgreSQL is not installed."), hint=hint) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the database is used."""

    schema: str = "taoloop"
    """The PostgreSQL schema that the tables are in."""

    pool_size: int = 8
    """The most connections that an event loop has open, one for `tail` not counted."""

    pooler: bool = False
    """Whether a pooler in transaction mode (PgBouncer) lies between."""

    connect_timeout_s: float = 10.0
    """How long to wait for a connection."""

    reconnect_s: float = 30.0
    """How long to try to reach a server again that went away during a call; 0 does not try."""

    read_only: bool = False
    """Whether nothing is changed: works on a standby, and with the right to read alone."""


class JournalDatabase:
    """One database, as a journal uses it."""

    def __init__(self, address: PostgresAddress, settings: Settings) -> None:
        require_driver()
        self.settings, self.location = settings, address.location
        self._address = address
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = WeakKeyDictionary()
        self._opening: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._endings: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncGenerator[None, None]] = WeakKeyDictionary()
        self._guard = threading.Lock()
        self._closed = False
        self._process: int | None = None  # from the first use on

    def sql(self, statement: str) -> str:
        """A statement for the schema of this journal."""
        return schema.in_schema(statement, self.settings.schema)

    async def open(self) -> None:
        """Connect now, and see that the journal is there and of this version; a missing one is made.

        Raises:
            JournalUnreachable, JournalTooNew, JournalError: it cannot be used; the text says why.
        """
        await self._pool()

    async def run(self, work: Callable[[PostgresConnection], Awaitable[T]]) -> T:
        """Do something that may be done twice, over a connection; once more where the server went away meanwhile.

        Raises:
            JournalError: what PostgreSQL says, in words.
        """
        return await self.retry(self.once, work)

    async def run_in_snapshot(self, work: Callable[[PostgresConnection], Awaitable[T]]) -> T:
        """As `run`, in a transaction that sees one moment and writes nothing."""

        async def attempt(work: Callable[[PostgresConnection], Awaitable[T]]) -> T:
            async with self.transaction(snapshot=True) as connection:
                return await work(connection)

        return await self.retry(attempt, work)

    async def run_in_transaction(self, work: Callable[[PostgresConnection], Awaitable[T]]) -> T:
        """As `run`, in a transaction: all of it is stored, or nothing."""

        async def attempt(work: Callable[[PostgresConnection], Awaitable[T]]) -> T:
            async with self.transaction() as connection:
                return await work(connection)

        return await self.retry(attempt, work)

    async def once(self, work: Callable[[PostgresConnection], Awaitable[T]]) -> T:
        """Do something over a connection; errors are those of the driver."""
        async with self.connection() as connection:
            return await work(connection)

    async def retry(
        self, attempt: Callable[[Callable[[PostgresConnection], Awaitable[T]]], Awaitable[T]], work: Any
    ) -> T:
        """Attempt something until the server is reached again, at most for `reconnect_s`.

        Raises:
            JournalError: what PostgreSQL says, in words.
        """
        from taoloop.journals.postgres.errors import explain, is_busy, is_lost  # noqa: PLC0415  # load the driver

        loop = asyncio.get_running_loop()
        deadline, pause_s = loop.time() + self.settings.reconnect_s, _FIRST_PAUSE_S
        was_open = loop in self._pools
        while True:
            try:
                return await attempt(work)
            except Exception as error:
                is_over = loop.time() >= deadline or self._closed
                if is_over or not (is_busy(error) or (was_open and is_lost(error))):
                    if (explained := explain(error, self.location)) is error:
                        raise
                    raise explained from error
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[PostgresConnection]:
        """A connection, in a transaction where a pooler would else give each statement another one."""
        pool = await self._pool()
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(pool.acquire())
            if self.settings.pooler:
                await stack.enter_async_context(connection.transaction())
            yield connection

    @asynccontextmanager
    async def transaction(self, *, snapshot: bool = False) -> AsyncIterator[PostgresConnection]:
        """A connection in a transaction; with `snapshot` all of it sees the same moment and writes nothing."""
        pool = await self._pool()
        async with pool.acquire() as connection:
            isolation: Any = "repeatable_read" if snapshot else "read_committed"
            async with connection.transaction(isolation=isolation, readonly=snapshot):
                yield connection

    async def connect(self) -> PostgresConnection:
        """A connection of its own, for LISTEN and for work that holds one for long. The caller closes it."""
        import asyncpg  # noqa: PLC0415  # an extra

        connection: PostgresConnection = await asyncpg.connect(**self._arguments())
        return connection

    async def close(self) -> None:
        """End all connections. Twice is harmless; a forked child does nothing."""
        if self._process not in (None, os.getpid()):
            return
        with self._guard:
            self._closed = True
            pools, self._pools = dict(self._pools), WeakKeyDictionary()
        for loop, pool in pools.items():
            if loop is asyncio.get_running_loop():
                await self._end(pool)
            elif not loop.is_closed():
                with suppress(RuntimeError):  # it was closed at this moment
                    loop.call_soon_threadsafe(pool.terminate)

    async def _end(self, pool: Pool) -> None:
        try:
            await asyncio.wait_for(pool.close(), _CLOSE_S)
        except TimeoutError:
            pool.terminate()

    def check_open(self) -> None:
        """Refuse a journal that is closed, or was opened by the parent of this process.

        Raises:
            JournalError: says which.
        """
        if self._closed:
            text = mark("{path}: the journal is closed.")
            raise JournalError(translate(text, path=self.location), hint=translate("Open another one."))
        process = os.getpid()
        if self._process is None:
            self._process = process
        elif self._process != process:
            text = mark("{path}: the journal was opened by another process, and this one is a fork of it.")
            hint = translate("Open another one in this process.")
            raise JournalError(translate(text, path=self.location), hint=hint)

    def check_writable(self) -> None:
        """Refuse to write to a journal that was opened for reading.

        Raises:
            JournalError: it was.
        """
        self.check_open()
        if self.settings.read_only:
            text = mark("{path}: the journal is open for reading only.")
            raise JournalError(translate(text, path=self.location), hint=translate("Open it for writing."))

    async def _pool(self) -> Pool:
        self.check_open()
        loop = asyncio.get_running_loop()
        if (pool := self._pools.get(loop)) is not None:
            return pool
        with self._guard:
            opening = self._opening.setdefault(loop, asyncio.Lock())
        async with opening:
            if (pool := self._pools.get(loop)) is None:
                pool = await self._open_pool()
                ending = self._end_with_loop(loop, pool)
                await anext(ending)
                with self._guard:
                    self._pools[loop], self._endings[loop] = pool, ending
        return pool

    async def _end_with_loop(self, loop: asyncio.AbstractEventLoop, pool: Pool) -> AsyncGenerator[None, None]:
        """End the connections of an event loop when it ends, which closes the generators that were begun in it."""
        try:
            yield
        finally:
            self._pools.pop(loop, None)
            await self._end(pool)

    async def _open_pool(self) -> Pool:
        import asyncpg  # noqa: PLC0415  # an extra

        from taoloop.journals.postgres.errors import explain  # noqa: PLC0415  # loads the driver

        pool: Pool | None = None
        try:
            pool = await asyncpg.create_pool(
                min_size=0, max_size=self.settings.pool_size, reset=_keep, **self._arguments()
            )
            async with pool.acquire() as connection:
                await self._check(connection)
        except BaseException as error:
            if pool is not None:
                pool.terminate()
            if isinstance(error, Exception) and (explained := explain(error, self.location)) is not error:
                raise explained from error
            raise
        return pool

    async def _check(self, connection: PostgresConnection) -> None:
        """See that the server and the journal in it can be used; make the journal where there is none."""
        import asyncpg  # noqa: PLC0415  # an extra

        settings, known = self.settings, len(schema.MIGRATIONS)
        async with AsyncExitStack() as stack:
            if settings.pooler:
                await stack.enter_async_context(connection.transaction())
            await schema.check_server(connection, self.location, read_only=settings.read_only)
            reached = await schema.version(connection, settings.schema)
            if not reached and settings.read_only:
                text = mark("{path}: there is no journal.")
                hint = translate("Name another database, or run a task first.")
                raise JournalError(translate(text, path=self.location), hint=hint)
            if reached:
                schema.refuse_version(self.location, reached, known=known)
        if settings.read_only:
            return
        if not reached:
            await schema.upgrade(connection, settings.schema)
            return
        with suppress(asyncpg.InsufficientPrivilegeError):  # its owner has made them in advance
            await schema.make_partitions(connection, settings.schema)

    def _arguments(self) -> dict[str, Any]:
        settings = self.settings
        arguments: dict[str, Any] = {"dsn": self._address.dsn, "timeout": settings.connect_timeout_s}
        if settings.pooler:
            arguments["statement_cache_size"] = 0
        else:
            arguments["server_settings"] = {"application_name": "taoloop", "jit": "off"}
        return arguments


async def _keep(_connection: object) -> None:
    """Give a connection back as it is: no statement changes the state of its session."""
