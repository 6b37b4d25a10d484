"""The keys of calls that were carried out, kept in the database that they changed and in the same transaction."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from taoloop.errors import ToolError
from taoloop.tools.sql.engines import Server
from taoloop.tools.sql.errors import describe_error
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
