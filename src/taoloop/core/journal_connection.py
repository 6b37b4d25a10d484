"""The connection of the journal, as a transactional tool is given it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol


class ResultRows(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed; -1 where it changed none."""
        ...

    @property
    def lastrowid(self) -> int | None:
        """The row that it inserted last."""
        ...

    def fetchone(self) -> Any:
        """The next row, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """The rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """The rows that are left, one by one."""
        ...


class JournalConnection(Protocol):
    """A connection to the journal's own database, inside the transaction that keeps the outcome of the call.

    What is written through it is there exactly if the outcome is. The transaction is the journal's: it cannot be
    ended from here, and the journal's own tables cannot be changed. It holds up every other run, so be quick.
    """

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> ResultRows:
        """Run one statement."""
        ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any] | Mapping[str, Any]]) -> ResultRows:
        """Run one statement with each of the parameters."""
        ...
