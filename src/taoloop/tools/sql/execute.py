"""`NAME.execute`: one changing statement in a transaction, which is kept whole or not at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError

from taoloop.errors import ToolError, ToolTimeout
from taoloop.tools.sql.engines import Server
from taoloop.tools.sql.errors import describe_error, may_have_committed
from taoloop.tools.sql.statements import first_rows, run
from taoloop.tools.sql.statement_timeout import StatementTimeout

_KINDS = ("sqlite", "postgresql")  # elsewhere a statement may end the transaction that holds its key


class CallsTable:
    """A row for each call: its idempotency key, when, and what it gave. A call with a known key changes nothing."""

    def __init__(self, name: str, kind: str) -> None:
        if kind not in _KINDS:
            raise ToolError(
                f"A calls_table cannot be kept in {kind}: a statement may end its own transaction there.",
                code="calls_table",
                hint="Leave calls_table away; a call without an outcome is then put before a person.",
            )
        self._table = sa.Table(
            name,
            sa.MetaData(),
            sa.Column("call_key", sa.String(200), primary_key=True),
            sa.Column("called_at", sa.String(40), nullable=False),
            sa.Column("outcome", sa.Text),
        )
        self._is_made = False
        self._lock = threading.Lock()

    def make(self, server: Server, stop: StatementTimeout) -> None:
        """Make the table where there is none.

        Raises:
            ToolError: it cannot be made.
        """
        with self._lock:
            if self._is_made:
                return
            with server.writing(stop) as connection:
                self._table.create(connection, checkfirst=True)
                connection.commit()
            self._is_made = True

    def outcome(self, connection: sa.Connection, key: str) -> dict[str, Any] | None:
        """What the call with this key gave; None: it was not carried out."""
        outcome_text = connection.scalar(sa.select(self._table.c.outcome).where(self._table.c.call_key == key))
        return None if outcome_text is None else json.loads(outcome_text)

    def claim(self, connection: sa.Connection, key: str) -> None:
        """Take the key: a second call with it waits here until this one is through, and is then refused.

        Raises:
            ToolError: `database_busy`; the call was carried out meanwhile.
        """
        at = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            connection.execute(self._table.insert().values(call_key=key, called_at=at))
        except IntegrityError:
            raise describe_error(
                "database_busy", "This very call was being carried out elsewhere; ask again for it."
            ) from None

    def keep(self, connection: sa.Connection, key: str, outcome: dict[str, Any]) -> None:
        """Write down what the call gave."""
        text = json.dumps(outcome, ensure_ascii=False)
        connection.execute(self._table.update().where(self._table.c.call_key == key).values(outcome=text))


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
