"""What this package uses of the driver, which is an extra and has no types of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol


class PostgresConnection(Protocol):
    """A connection of asyncpg. Records are sequences, and mappings by the names of their columns."""

    async def execute(self, query: str, *values: object) -> str:
        """Run a statement, or several without values."""
        ...

    async def fetch(self, query: str, *values: object) -> list[Any]:
        """The rows."""
        ...

    async def fetchrow(self, query: str, *values: object) -> Any:
        """The first row; None without one."""
        ...

    async def fetchval(self, query: str, *values: object) -> Any:
        """The first column of the first row; None without one."""
        ...

    async def fetchmany(self, query: str, values: Iterable[Sequence[object]]) -> list[Any]:
        """The rows of a statement for each of many values, sent at once, in one transaction."""
        ...

    def transaction(
        self, *, isolation: str | None = None, readonly: bool = False
    ) -> AbstractAsyncContextManager[object]:
        """A transaction; within another one a savepoint."""
        ...

    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None:
        """LISTEN."""
        ...

    def add_termination_listener(self, callback: Callable[[Any], None]) -> None:
        """Call this when the connection ends."""
        ...

    async def close(self) -> None:
        """End the connection."""
        ...


class Pool(Protocol):
    """A pool of connections of one event loop."""

    def acquire(self) -> AbstractAsyncContextManager[PostgresConnection]:
        """A connection, for as long as a block runs."""
        ...

    async def close(self) -> None:
        """Wait for the connections that are in use, and end all."""
        ...

    def terminate(self) -> None:
        """Cut all connections."""
        ...
