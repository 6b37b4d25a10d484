"""`NAME.query`: one page of the rows that a statement gives, over a connection that can only read."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import pydantic_core
import sqlalchemy as sa

from taoloop.tools.sql.engines import Server
from taoloop.tools.sql.errors import describe_error
from taoloop.tools.sql.params import bound
from taoloop.tools.sql.settings import Database
from taoloop.tools.sql.statement_timeout import StatementTimeout
from taoloop.tools.sql.values import plain

_MOST_ROWS = 50
_MOST_CHARS = 250_000
_MAX_NAME_CHARS = 200
_OPTIONS = {"preserve_rowcount": True}


def read_page(
    server: Server, statement: str, params: Mapping[str, Any], limit: int, offset: int, stop: StatementTimeout
) -> dict[str, Any]:
    """`limit` rows after the first `offset` ones, and where to go on.

    Raises:
        ToolError: whatever the database says, in the codes of these tools.
    """
    with server.reading(stop) as connection:
        result = run(connection, statement, params)
        with contextlib.closing(result):
            if not result.returns_rows:
                raise describe_error("no_rows", "The statement gives no rows, and this tool can only read.")
            _skip(result, offset, stop)
            page = _page(result, server.database, limit, stop)
    return _answer(page, offset)


def run(connection: sa.Connection, statement: str, params: Mapping[str, Any]) -> sa.CursorResult[Any]:
    """Send the statement as it stands, its values beside it.

    Raises:
        SQLAlchemyError: the database refuses it.
        ToolError: `bad_params`.
    """
    text, values = bound(statement, params, connection.dialect.paramstyle, connection.dialect.name)
    try:
        if values is None:
            return connection.exec_driver_sql(text, execution_options={**_OPTIONS, "no_parameters": True})
        return connection.exec_driver_sql(text, values, execution_options=_OPTIONS)
    except (OverflowError, ValueError, TypeError) as error:  # numbers and texts that no database takes
        raise describe_error(
            "bad_params", f"A value of the statement cannot be sent: {str(error)[:300].rstrip('.')}."
        ) from None


class Page:
    """Rows that have room in an answer."""

    def __init__(self, columns: list[str]) -> None:
        self.columns = columns
        self.rows: list[list[Any]] = []
        self.is_whole = True


def _page(result: sa.CursorResult[Any], database: Database, limit: int, stop: StatementTimeout) -> Page:
    page = Page([str(name)[:_MAX_NAME_CHARS] for name in result.keys()])  # noqa: SIM118  # a result's, not a mapping's
    room = database.max_result_chars
    batches = _Batches(result, stop)
    while batch := batches.next(limit + 1 - len(page.rows)):
        for row in batch:
            values, size = _row(row, database, room if not page.rows else None)
            if len(page.rows) == limit or (page.rows and size > room):
                page.is_whole = False
                return page
            page.rows.append(values)
            room -= size
    return page


def _row(row: Any, database: Database, room: int | None) -> tuple[list[Any], int]:
    """A row and its size as JSON; with `room`, values are cut until it fits: one row is always given."""
    most = database.max_value_chars
    while True:
        values = [plain(value, most) for value in row]
        size = len(pydantic_core.to_json(values, inf_nan_mode="strings"))
        if room is None or size <= room or most <= 8:
            return values, size
        most //= 2


def _skip(result: sa.CursorResult[Any], offset: int, stop: StatementTimeout) -> None:
    remaining, batches = offset, _Batches(result, stop)
    while remaining > 0 and (gone := len(batches.next(remaining))):
        remaining -= gone


class _Batches:
    """Rows in batches that grow while they are small: one value may be as large as all of the memory."""

    def __init__(self, result: sa.CursorResult[Any], stop: StatementTimeout) -> None:
        self._result, self._stop, self._size = result, stop, 1

    def next(self, most: int) -> Sequence[Any]:
        batch = self._result.fetchmany(min(self._size, most))
        if self._stop.is_due:
            raise describe_error("statement_timeout", f"The rows took more than {self._stop.timeout_s:g} s to come.")
        chars = sum(len(value) for row in batch for value in row if isinstance(value, str | bytes))
        self._size = 1 if chars > _MOST_CHARS else min(self._size * 4, _MOST_ROWS)
        return batch


def _answer(page: Page, offset: int) -> dict[str, Any]:
    answer: dict[str, Any] = {"columns": page.columns, "rows": page.rows, "next_offset": None}
    if not page.is_whole:
        answer["next_offset"] = offset + len(page.rows)
        answer["note"] = (
            f"There are more rows: repeat the call with offset {offset + len(page.rows)} and the same statement."
            " Without ORDER BY, pages may overlap."
        )
    return answer


def first_rows(result: sa.CursorResult[Any], database: Database, stop: StatementTimeout) -> Page:
    """The rows that a changing statement gives back, as many as an answer has room for."""
    return _page(result, database, database.max_rows, stop)
