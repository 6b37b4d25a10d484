"""The connection of the journal, as a transactional tool gets it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol


class ResultRows(Protocol):
    """The result of a statement."""

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
        """The remaining rows."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """The remaining rows, one by one."""
        ...


class JournalConnection(Protocol):
    """A connection to the journal's own database, inside the transaction that stores the outcome of the call.

    What is written through it exists exactly if the outcome does. The transaction is the journal's: it cannot be ended
    from here, and the journal's own tables cannot be changed. It blocks every other run, so be quick.
    """

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> ResultRows:
        """Run one statement."""
        ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any] | Mapping[str, Any]]) -> ResultRows:
        """Run one statement with each of the parameters."""
        ...
