"""`NAME.execute`: one changing statement in a transaction, which is kept whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from taoloop.errors import ToolTimeout
from taoloop.tools.sql.engines import Server
from taoloop.tools.sql.errors import describe_error, may_have_committed
from taoloop.tools.sql.idempotency_table import CallsTable
from taoloop.tools.sql.query import first_rows, run
from taoloop.tools.sql.statement_timeout import StatementTimeout


def change(
    server: Server,
    calls: CallsTable | None,
    statement: str,
    params: Mapping[str, Any],
    key: str,
    stop: StatementTimeout,
) -> dict[str, Any]:
    """Carry out the statement once for this `key`; gives how many rows it changed, and those that it gives back.

    Raises:
        ToolError: it was refused or failed; nothing was changed.
        ToolTimeout: the connection broke during the commit: nobody can tell.
    """
    if calls is not None:
        calls.make(server, stop)
    with server.writing(stop) as connection:
        if calls is not None and (before := calls.outcome(connection, key)) is not None:
            return before
        if calls is not None:
            calls.claim(connection, key)
        outcome = _changed(server, connection, statement, params, stop)
        if calls is not None:
            calls.keep(connection, key, outcome)
        if stop.is_due:
            raise describe_error(
                "statement_timeout", "The time was over before the change was made; it was rolled back."
            )
        stop.arm(None)  # from here on it is only confirmed
        _commit(server, connection, is_repeatable=calls is not None)
        return outcome


def _changed(
    server: Server, connection: sa.Connection, statement: str, params: Mapping[str, Any], stop: StatementTimeout
) -> dict[str, Any]:
    server.may_run(connection)
    result = run(connection, statement, params)
    page = first_rows(result, server.database, stop) if result.returns_rows else None
    while page is not None and not page.is_whole and not stop.is_due and result.fetchmany(50):
        pass  # a statement with RETURNING is through only when its last row was taken
    if page is not None and stop.is_due:
        raise describe_error("statement_timeout", "The time was over before all rows had come; nothing was changed.")
    rowcount = result.rowcount
    result.close()
    server.has_run(connection)
    count = server.changed(connection, rowcount)
    most = server.database.max_rows_changed
    if count.in_all is not None and count.in_all > most:
        raise describe_error(
            "too_many_rows", f"It would change {count.in_all:,} rows, and at most {most:,} may change in one call."
        )
    outcome: dict[str, Any] = {"rows_changed": count.itself}
    if count.in_all != count.itself:
        outcome["rows_changed_in_all"] = count.in_all
    if page is not None:
        outcome |= {"columns": page.columns, "rows": page.rows}
        if not page.is_whole:
            outcome["note"] = "Not all rows that the statement gave back are shown; all were changed."
    return outcome


def _commit(server: Server, connection: sa.Connection, *, is_repeatable: bool) -> None:
    try:
        server.commit(connection)
    except DBAPIError as error:
        if not may_have_committed(error):
            raise
        raise ToolTimeout(
            "The connection broke while the change was being confirmed. It may or may not have happened.",
            retryable=is_repeatable,
            hint="" if is_repeatable else "Find out with a query whether it happened before you try again.",
        ) from None
