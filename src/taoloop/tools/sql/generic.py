"""Databases for which no read-only connection is known: all is left to the role of the connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from taoloop.tools.sql.engines import Changed, Server, held_by_role, make_engine
from taoloop.tools.sql.settings import Database
from taoloop.tools.sql.statement_timeout import StatementTimeout


class GenericDialect(Server):
    """A database whose role alone keeps statements from changing anything: the operator answers for it."""

    def __init__(self, database: Database, url: sa.URL, **options: Any) -> None:
        super().__init__(database, url)
        held_by_role(database, url)
        self._engine = make_engine(url, **options)

    @contextmanager
    def looking(self, stop: StatementTimeout) -> Iterator[sa.Connection]:
        """A connection in a transaction that is never committed."""
        with self._opened(self._engine, stop) as connection:
            yield connection

    @contextmanager
    def reading(self, stop: StatementTimeout) -> Iterator[sa.Connection]:
        """The same, with rows as they come."""
        with self.looking(stop) as connection:
            yield connection.execution_options(stream_results=True, max_row_buffer=50)

    @contextmanager
    def writing(self, stop: StatementTimeout) -> Iterator[sa.Connection]:
        """In a transaction."""
        with self._opened(self._engine, stop) as connection:
            connection.begin()
            yield connection

    def may_run(self, _connection: sa.Connection, /) -> None:
        """Nothing holds the statement but the role."""

    def has_run(self, _connection: sa.Connection, /) -> None:
        """Nothing is known of what it did but the number of rows."""

    def changed(self, _connection: sa.Connection, rowcount: int, /) -> Changed:
        """By the driver's count, which does not have the rows that triggers changed."""
        count = rowcount if rowcount >= 0 else None
        return Changed(count, count)
