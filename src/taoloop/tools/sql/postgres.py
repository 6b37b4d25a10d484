"""PostgreSQL: a READ ONLY transaction behind a server-side cursor, which takes one query and nothing else.

What arrives is counted while it arrives, and the connection cut where it is too much: a server-side cursor gives whole
rows, and one value of a row may have a gigabyte.

READ ONLY alone can be left by a text such as `commit; begin read write; …`. A server-side cursor is declared over the
extended protocol: several statements in one text, COMMIT, SET, DO and COPY are errors there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from taoloop.tools.sql.bounded_socket import BoundedSocket
from taoloop.tools.sql.engines import MAX_ARRIVAL_BYTES, Changed, Server, StatementTimeout, make_engine
from taoloop.tools.sql.errors import database_error
from taoloop.tools.sql.settings import Database
from taoloop.tools.sql.texts import TEXTS

_IN_TRANSACTION = 2  # of libpq
_COUNTED = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
_ROWS_ONLY = _COUNTED | {"SELECT"}
_POWERS = sa.text(  # a function may take any role that this one is a member of
    "select exists (select 1 from pg_roles p where pg_has_role(session_user, p.oid, 'member') and"
    " (p.rolsuper or p.rolreplication or p.rolname in ('pg_execute_server_program', 'pg_write_server_files',"
    " 'pg_read_server_files', 'pg_signal_backend')))"
)
_CHANGED = sa.text("select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) from pg_stat_xact_user_tables")


class Postgres(Server):
    """A server of PostgreSQL, over psycopg."""

    bounds_writes = True

    def __init__(self, database: Database, url: sa.URL) -> None:
        limit_ms = max(int(database.timeout_s * 1_000), 1)
        own = url.query.get("options", "")
        options = (
            f"{own if isinstance(own, str) else ' '.join(own)} -c statement_timeout={limit_ms}"
            " -c datestyle=ISO -c intervalstyle=iso_8601"
            f" -c lock_timeout={min(limit_ms, 2_000)} -c idle_in_transaction_session_timeout={limit_ms + 30_000}"
        )
        arguments = {
            "options": options.strip(),
            "prepare_threshold": 0,  # the extended protocol from the first time on: one statement per text
            "connect_timeout": max(int(min(database.timeout_s, 10)), 2),
        }
        engine = make_engine(url.difference_update_query(["options"]), connect_args=arguments)
        super().__init__(database, url, engine)
        sa.event.listen(self._engine, "do_connect", _connect)
        sa.event.listen(self._engine, "connect", _exact_values)
        sa.event.listen(self._engine, "after_cursor_execute", _keep_tag)

    @contextmanager
    def _opened(self, engine: sa.Engine, stop: StatementTimeout) -> Iterator[sa.Connection]:
        with super()._opened(engine, stop) as connection:
            bounded_socket = getattr(connection.connection.driver_connection, "bounded_socket", None)
            try:
                yield connection
            except SQLAlchemyError:
                if bounded_socket is None or not bounded_socket.is_cut:
                    raise
                raise database_error("value_too_large", "too_much", limit=MAX_ARRIVAL_BYTES) from None

    @contextmanager
    def looking(self, stop: StatementTimeout) -> Iterator[sa.Connection]:
        """Read-only, for the catalogs."""
        with self._opened(self._engine, stop) as connection:
            stop.arm(_canceller(connection))
            connection.execution_options(postgresql_readonly=True)
            self._check_role(connection)
            yield connection

    @contextmanager
    def reading(self, stop: StatementTimeout) -> Iterator[sa.Connection]:
        """Read-only, and every statement behind a server-side cursor."""
        with self.looking(stop) as connection:
            yield connection.execution_options(stream_results=True, max_row_buffer=1)

    @contextmanager
    def writing(self, stop: StatementTimeout) -> Iterator[sa.Connection]:
        """In a transaction."""
        with self._opened(self._engine, stop) as connection:
            stop.arm(_canceller(connection))
            connection.begin()
            self._check_role(connection)  # a program that a superuser ran could not be rolled back
            yield connection

    def may_run(self, connection: sa.Connection, /) -> None:
        """Count what the transaction has changed so far."""
        connection.info["changes"] = connection.scalar(_CHANGED)

    def has_run(self, connection: sa.Connection, /) -> None:
        """By the tag that the server gave: whether the transaction is still ours, and only rows were touched.

        Raises:
            ToolError: `not_allowed` or `structure_change`.
        """
        driver: Any = connection.connection.driver_connection
        if driver.info.transaction_status != _IN_TRANSACTION:
            raise database_error("not_allowed", "ended_transaction")
        tag = str(connection.info.get("tag") or "")
        if not self.database.structure and tag.partition(" ")[0] not in _ROWS_ONLY:
            raise database_error("structure_change", "structure", what=tag or TEXTS.run_text("this_statement"))

    def changed(self, connection: sa.Connection, rowcount: int, /) -> Changed:
        """By the server's count of this transaction, which has the rows that triggers changed too."""
        own = str(connection.info.get("tag") or "").partition(" ")[0] in _COUNTED
        count = int(connection.scalar(_CHANGED) or 0) - int(connection.info["changes"] or 0)
        return Changed(rowcount if own and rowcount >= 0 else count, count)

    def _power(self, connection: sa.Connection, /) -> str:
        """Whether the role is, or may become, one that reaches beyond the tables."""
        if not connection.scalar(_POWERS):
            return ""
        return "is a superuser, or may become one, or may use files, programs, replication or other sessions"


def _connect(_dialect: Any, _record: Any, arguments: Any, named: Any) -> Any:
    """A connection of the driver whose socket is bounded."""
    from psycopg import Connection  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415  # the user's own

    driver: Any = Connection.connect(*arguments, **named)
    if BoundedSocket.is_possible():
        driver.bounded_socket = BoundedSocket(driver.pgconn.socket, MAX_ARRIVAL_BYTES)
    return driver


def _canceller(connection: sa.Connection) -> Any:
    """Asks the server to end what it does on this connection."""
    driver: Any = connection.connection.driver_connection
    return getattr(driver, "cancel_safe", None) or driver.cancel


def _exact_values(driver: Any, _record: Any) -> None:
    """Leave what Python cannot say as the text that the server gives.

    Numbers of JSON keep all their digits, intervals their months, and dates may be `infinity` or before the year 1.
    """
    from psycopg.errors import DataError  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415  # the user's own
    from psycopg.types import datetime as times  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415  # likewise
    from psycopg.types.string import TextLoader  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415  # likewise

    def exact(base: Any) -> Any:
        class Kept(base):  # type: ignore[misc,unused-ignore]
            def load(self, data: Any) -> Any:
                try:
                    return super().load(data)
                except DataError:
                    return bytes(data).decode()

        return Kept

    for name in ("json", "jsonb", "interval"):
        driver.adapters.register_loader(name, TextLoader)
    for name in ("date", "time", "timetz", "timestamp", "timestamptz"):
        driver.adapters.register_loader(name, exact(getattr(times, f"{name.title()}Loader")))


def _keep_tag(connection: sa.Connection, cursor: Any, *_: Any) -> None:
    connection.info["tag"] = getattr(cursor, "statusmessage", None)
