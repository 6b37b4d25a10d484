"""What a journal does in one event loop: its writer, and what follows a write without holding it up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import asyncpg

from taoloop.errors import JournalError
from taoloop.journals.postgres import run_log
from taoloop.journals.postgres.listening import Bell
from taoloop.journals.postgres.writer import AppendWriter

if TYPE_CHECKING:
    from taoloop.journals.postgres.connections import JournalDatabase

_LOG_S: Final = 1.0
"""How long after its beginning a run is entered into the log of runs, at most, while the process lives."""


class LoopWorkers:
    """The writer of one event loop, and those who follow it."""

    def __init__(self, database: JournalDatabase, lease_s: Callable[[str, int], float | None]) -> None:
        self.writer = AppendWriter(database, lease_s)
        self._database = database
        self._bell = Bell(database)
        self._logging: asyncio.Task[None] | None = None
        self._has_begun = False  # runs that are not in the log yet

    def added(self, *, is_start: bool) -> None:
        """An append was committed."""
        self._bell.ring()
        if is_start:
            self._has_begun = True
            if self._logging is None or self._logging.done():
                self._logging = asyncio.get_running_loop().create_task(self._log())

    async def close(self) -> None:
        """Store what is queued, and enter the runs that began into the log."""
        await self.writer.drain()
        await self._bell.close()
        if self._logging is not None:
            self._logging.cancel()
            await asyncio.gather(self._logging, return_exceptions=True)
        await self._enter()

    async def _log(self) -> None:
        while self._has_begun:
            await asyncio.sleep(_LOG_S)
            await self._enter()

    async def _enter(self) -> None:
        """Enter the runs that began. Where that fails, whoever reads the log does it."""
        is_done = not self._has_begun
        self._has_begun = False
        with suppress(JournalError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            while not is_done:
                async with self._database.transaction() as connection:
                    is_done = await run_log.enter_begun(self._database, connection, wait=False)
