"""MySQL and MariaDB: a statement inside of an XA transaction, which no statement can end without its secret name.

A READ ONLY transaction alone is no hold: `CALL`, and in MariaDB a block such as `BEGIN NOT ATOMIC COMMIT; …`, may end
it and begin another one. While an XA transaction is open the server refuses COMMIT, ROLLBACK, a new transaction and
all that commits by itself, as a change of the structure does; it ends with its name, or with the connection.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from taoloop.errors import ToolError
from taoloop.tools.sql.engines import MAX_ARRIVAL_BYTES, Changed, Server, StatementTimeout, make_engine
from taoloop.tools.sql.errors import database_error, fault_of
from taoloop.tools.sql.settings import Database

_GLOBAL = re.compile(r"GRANT (.*?) ON \*\.\* TO ")
_POWERS = frozenset({"ALL PRIVILEGES", "FILE", "SUPER", "SHUTDOWN", "RELOAD", "REPLICATION_APPLIER", "BINLOG REPLAY"})
_ROLE = re.compile(r"`(?:[^`]|``)*`(?:@`[^`]*`)?")
_ROLES = re.compile(rf"GRANT ((?:{_ROLE.pattern}(?:, ?)?)+) TO ")
_SECRET = re.compile(  # of an account: the hash of its password, as SHOW GRANTS and SHOW CREATE USER write it
    r"\b(AS|BY|USING|PASSWORD|SET)(\s+)(?:'(?:[^'\\]|''|\\.)*'|0x[0-9A-F]+)", re.IGNORECASE | re.DOTALL
)
_COUNTS = (
    "SHOW SESSION STATUS WHERE Variable_name IN ('Handler_write', 'Handler_update', 'Handler_delete')"  # with triggers
)
_UNKNOWN = 2**63  # what a driver says of rows that it has not read is above


class Mysql(Server):
    """A server of MySQL or MariaDB; one statement per text."""

    def __init__(self, database: Database, url: sa.URL) -> None:
        options: dict[str, Any] = {}
        self._is_pymysql = url.get_driver_name() == "pymysql"
        if self._is_pymysql:
            seconds = max(int(min(database.timeout_s, 10)), 1)
            patience = max(int(database.timeout_s) + 5, 1)
            options = {"connect_timeout": seconds, "read_timeout": patience, "write_timeout": patience}
            options["local_infile"] = False  # the server may ask for any file of this machine
        super().__init__(database, url, make_engine(url, connect_args=options))
        self._streaming = self._engine
        if self._is_pymysql:
            self._streaming = make_engine(url, connect_args={**options, "cursorclass": _cursor()})
            connection_class = _bounded_connection()
            for engine in (self._engine, self._streaming):
                sa.event.listen(
                    engine, "do_connect", lambda _dialect, _record, args, named: connection_class(*args, **named)
                )

    @contextmanager
    def looking(self, stop: StatementTimeout) -> Iterator[sa.Connection]:
        """Read-only by the session, and by the transaction."""
        with self._prepared(self._engine, stop) as connection:
            connection.exec_driver_sql("SET SESSION TRANSACTION READ ONLY")
            connection.exec_driver_sql("START TRANSACTION READ ONLY")
            yield connection

    @contextmanager
    def reading(self, stop: StatementTimeout) -> Iterator[sa.Connection]:
        """Read-only, in a transaction that the statement cannot end; what is not read of its rows is never sent."""
        with self._prepared(self._streaming, stop) as connection:
            connection.exec_driver_sql("SET SESSION TRANSACTION READ ONLY")
            if self.database.read_only_role:
                connection.exec_driver_sql("START TRANSACTION READ ONLY")
            else:
                self._hold(connection)
            _driver(connection).is_reading = True
            try:
                yield connection.execution_options(stream_results=not self._is_pymysql)
            finally:
                connection.invalidate()  # the transaction ends with the connection, and rows not read are not sent

    @contextmanager
    def writing(self, stop: StatementTimeout) -> Iterator[sa.Connection]:
        """In a transaction, which the statement can only end where `structure` permits it."""
        with self._prepared(self._streaming, stop) as connection:
            if not self.database.structure:
                self._hold(connection)
            yield connection

    def censored(self, value: Any, /) -> Any:
        """A value; where it defines an account, the hash of its password is hidden."""
        if not isinstance(value, str) or "IDENTIFIED" not in value:
            return value
        return _SECRET.sub(r"\1\2'***'", value)

    def may_run(self, connection: sa.Connection, /) -> None:
        """Count what the session has changed so far."""
        connection.info["changes"] = _count(connection)

    def has_run(self, connection: sa.Connection, /) -> None:
        """See whether all of the statement is through: what comes after its first rows is read as they are closed.

        Raises:
            ToolError: a later part of it failed.
        """
        if (broken := getattr(_driver(connection), "broken", None)) is not None:
            raise fault_of(broken, self.url)

    def changed(self, connection: sa.Connection, rowcount: int, /) -> Changed:
        """By the driver's count, and in MariaDB by the server's own, which has the rows of triggers and blocks too."""
        itself = rowcount if 0 <= rowcount < _UNKNOWN else None
        before, after = connection.info["changes"], _count(connection)
        if before is None or after is None:
            return Changed(itself, itself)
        return Changed(after - before if itself is None else itself, max(after - before, itself or 0))

    def commit(self, connection: sa.Connection, /) -> None:
        """End the transaction by its name."""
        if (name := connection.info.get("xa")) is None:
            connection.commit()
            return
        connection.exec_driver_sql(f"XA END '{name}'")
        connection.exec_driver_sql(f"XA COMMIT '{name}' ONE PHASE")

    @contextmanager
    def _prepared(self, engine: sa.Engine, stop: StatementTimeout) -> Iterator[sa.Connection]:
        """A connection whose role, time and way to write texts are known; no transaction is open on the server."""
        with self._opened(engine, stop) as connection:
            number = connection.exec_driver_sql("SELECT connection_id()").scalar()
            stop.arm(self._killer(int(number or 0)))
            self._check_role(connection)
            if getattr(connection.dialect, "is_mariadb", False):
                limit = f"max_statement_time={self.database.timeout_s:g}"
            else:
                limit = f"max_execution_time={max(int(self.database.timeout_s * 1_000), 1)}"
            connection.exec_driver_sql(
                f"SET SESSION {limit}, innodb_lock_wait_timeout=2, lock_wait_timeout=2,"
                " sql_mode=REPLACE(@@SESSION.sql_mode, 'NO_BACKSLASH_ESCAPES', '')"  # so that values are bound right
            )
            connection.rollback()
            yield connection

    def _killer(self, number: int) -> Callable[[], object]:
        """Ends the connection: a limit of the session may be lifted by the statement itself, and binds only SELECT."""

        def kill() -> None:
            with self._engine.connect() as other:
                other.exec_driver_sql(f"KILL {number}")

        return kill

    def _hold(self, connection: sa.Connection) -> None:
        name = secrets.token_hex(16)
        try:
            connection.exec_driver_sql(f"XA START '{name}'")
        except DBAPIError as error:
            error_text = fault_of(error, self.url)
            if error_text.code != "statement_failed":
                raise error_text from None
            raise ToolError(
                f"This server has no XA transactions, without which a statement could end its own: "
                f"{error_text.message}",
                code="not_read_only",
                hint="For reading, say read_only_role: true if you answer for the role; for writing, structure: true.",
            ) from None
        connection.info["xa"] = name

    def _power(self, connection: sa.Connection, /) -> str:
        """The first privilege on the whole server that reaches beyond the tables."""
        for line in _grants(connection):
            for power in map(str.strip, match[1].split(",") if (match := _GLOBAL.match(line)) else ()):
                if power in _POWERS or power.endswith(("_ADMIN", " ADMIN")):
                    return f"has, or can take, the privilege {power} on the whole server"
        return ""


def _grants(connection: sa.Connection) -> Iterator[str]:
    """What the role of a connection has been granted, and what the roles have that a statement could take by itself."""
    is_mariadb = getattr(connection.dialect, "is_mariadb", False)
    own = [line for (line,) in connection.exec_driver_sql("SHOW GRANTS").fetchall()]
    yield from own
    roles = [role for line in own if (match := _ROLES.match(line)) for role in _ROLE.findall(match[1])]
    if not roles:
        return
    before = connection.exec_driver_sql("SELECT current_role()").scalar()
    for role in (grant.replace("%", "%%") for grant in roles):
        if is_mariadb:  # which shows the grants of a role, and of those in it, only to who has taken it
            connection.exec_driver_sql(f"SET ROLE {role}")
        using = "" if is_mariadb else f" FOR CURRENT_USER() USING {role}"
        yield from (line for (line,) in connection.exec_driver_sql(f"SHOW GRANTS{using}").fetchall())
    if is_mariadb:
        name = str(before).replace("`", "``").replace("%", "%%")
        connection.exec_driver_sql("SET ROLE NONE" if before is None else f"SET ROLE `{name}`")


def _count(connection: sa.Connection) -> int | None:
    """Rows that this session has changed; None in MySQL, which counts its own helping tables there too."""
    if not getattr(connection.dialect, "is_mariadb", False):
        return None
    return sum(int(value) for _, value in connection.exec_driver_sql(_COUNTS).fetchall())


def _driver(connection: sa.Connection) -> Any:
    return connection.connection.driver_connection


def _bounded_connection() -> type[Any]:
    """Connections that end when more arrives for one batch of rows than `MAX_ARRIVAL_BYTES`."""
    from pymysql.connections import Connection  # type: ignore[import-untyped,import-not-found,unused-ignore]  # noqa: PLC0415  # it is the user's own

    class Bounded(Connection):  # type: ignore[misc,unused-ignore]
        arrived_bytes = 0

        def query(self, *args: Any, **named: Any) -> Any:
            self.arrived_bytes = 0
            return super().query(*args, **named)

        def _read_bytes(self, num_bytes: int) -> Any:  # the only place at which it reads from its socket
            self.arrived_bytes += num_bytes
            if self.arrived_bytes > MAX_ARRIVAL_BYTES:
                self._force_close()
                raise database_error("value_too_large", "too_much", limit=MAX_ARRIVAL_BYTES)
            return super()._read_bytes(num_bytes)

    return Bounded


def _cursor() -> type[Any]:
    """Rows as they come. At the end of reading the rest is cut off, at the end of writing it is awaited."""
    from pymysql.cursors import SSCursor  # type: ignore[import-untyped,import-not-found,unused-ignore]  # noqa: PLC0415  # it is the user's own

    class Rows(SSCursor):  # type: ignore[misc,unused-ignore]
        def fetchmany(self, size: int | None = None) -> Any:
            driver: Any = self.connection
            driver.arrived_bytes = 0
            return super().fetchmany(size)

        def close(self) -> None:
            driver: Any = self.connection
            result: Any = self._result
            if driver is None:
                return
            is_through = result is None or not (result.unbuffered_active or result.has_next)
            if getattr(driver, "is_reading", False) and not is_through:
                self._cut(driver, None)
                return
            try:
                super().close()
            except Exception as error:  # noqa: BLE001  # SQLAlchemy would only log it; `has_run` raises it
                self._cut(driver, error)

        __del__ = close

        def _cut(self, driver: Any, error: Exception | None) -> None:
            driver.broken, self.connection = error, None
            if self._result is not None:
                self._result.unbuffered_active = False
            driver._force_close()  # the only way not to read all rows: the protocol has none

    return Rows
