"""Being told that something was added, rather than asking all the time: LISTEN and NOTIFY, off the write path.

A notification within the transaction of an append would make all commits of the database wait for each other. So the
writer sends one afterwards, over another connection, at most every few hundredths of a second, and only while somebody
listens: a listener holds an advisory lock that the writer sees. A notification says only "look": what is new is read
from the events, so one that is lost delays a reader, and costs nothing else.

Whether notifications arrive is tried: a pooler may take LISTEN and never deliver. Then `tail` asks at its interval.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import asyncpg

from taoloop.errors import JournalError

if TYPE_CHECKING:
    from taoloop.journals.postgres.connections import JournalDatabase
    from taoloop.journals.postgres.driver import PostgresConnection

TOLD_S: Final = 5.0
"""How often a reader looks that is told of what is new."""

_GATHER_S: Final = 0.02
"""Between two notifications."""

_UNHEARD = (JournalError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""What becomes of a notification or of LISTEN where the server is away: then what is new is found by looking."""

_PROBE_S = 1.0
"""How long a notification to oneself may take before LISTEN counts as not working."""

_LISTEN = "SELECT pg_advisory_lock_shared(hashtext($1), hashtext('listen'))"
_TELL = """
SELECT pg_notify($1, '') WHERE EXISTS (
  SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND classid::bigint = hashtext($2)::bigint & 4294967295 AND objid::bigint = hashtext('listen')::bigint & 4294967295
)
"""


def channel_of(database: JournalDatabase) -> str:
    """The name of the channel of a journal."""
    return f"taoloop {database.settings.schema}"[:63]


class Bell:
    """Tells readers in all processes that something was added."""

    def __init__(self, database: JournalDatabase) -> None:
        self._database = database
        self._task: asyncio.Task[None] | None = None
        self._is_due = False

    def ring(self) -> None:
        """Something was committed. Costs nothing here; the notification follows."""
        self._is_due = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._tell())

    async def close(self) -> None:
        """Stop; what was not told yet is found by looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _tell(self) -> None:
        channel = channel_of(self._database)
        while self._is_due:
            await asyncio.sleep(_GATHER_S)
            self._is_due = False
            with suppress(*_UNHEARD):
                await self._database.once(lambda connection: connection.execute(_TELL, channel, channel))


class Ear:
    """Hears of what was added, in one event loop, over a connection of its own. Use with `async with`.

    `channel` is another one than that of the journal; `listener` is called with each notification of it.
    """

    def __init__(
        self, database: JournalDatabase, channel: str = "", listener: Callable[[str], None] = lambda _: None
    ) -> None:
        self._database = database
        self._channel, self._listener = channel or channel_of(database), listener
        self._connection: PostgresConnection | None = None
        self._rung = asyncio.Event()
        self.hears = False
        """Whether notifications arrive."""

    async def __aenter__(self) -> Ear:
        """Listen, and see whether it works; where it does not, `hears` stays False."""
        if not self._database.settings.pooler and not self._database.settings.read_only:
            with suppress(*_UNHEARD, TimeoutError):
                await self._listen()
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Listen no more."""
        if self._connection is not None:
            self.hears = False
            with suppress(*_UNHEARD, TimeoutError):
                async with asyncio.timeout(_PROBE_S):
                    await self._connection.close()

    async def wait(self, interval_s: float) -> None:
        """Wait until there may be something new, or until it is time to look."""
        if not self.hears:
            await asyncio.sleep(interval_s)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(max(interval_s, TOLD_S)):
                await self._rung.wait()
        self._rung.clear()

    async def _listen(self) -> None:
        channel = self._channel
        self._connection = connection = await self._database.connect()
        token, arrived = secrets.token_hex(8), asyncio.Event()

        def hear(_connection: object, _process: int, _channel: str, payload: object) -> None:
            if payload == token:
                arrived.set()
                return
            self._rung.set()
            self._listener(str(payload))

        connection.add_termination_listener(self._lose)
        await connection.add_listener(channel, hear)
        await connection.execute(_LISTEN, channel)
        await self._database.once(lambda other: other.execute("SELECT pg_notify($1, $2)", channel, token))
        async with asyncio.timeout(_PROBE_S):
            await arrived.wait()
        self.hears = True

    def _lose(self, _connection: object) -> None:
        """The connection is gone: look at the interval from now on."""
        self.hears = False
        self._rung.set()
