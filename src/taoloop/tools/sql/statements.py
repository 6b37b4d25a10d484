"""One statement of a model: its values bound, a page of its rows, or its change in a transaction.

`NAME.query` reads over a connection that can only read. `NAME.execute` makes a change that is kept whole or not at all;
with a table of calls, its key is kept in the same transaction, so that a repeated call changes nothing again.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any
from uuid import UUID

import pydantic_core
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError

from taoloop.core.text import replace_surrogates
from taoloop.errors import ToolError, ToolTimeout
from taoloop.tools.sql.engines import Server, StatementTimeout
from taoloop.tools.sql.errors import database_error, may_have_committed
from taoloop.tools.sql.texts import TEXTS

_PARTS = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?P<tag>\$\w*\$).*?(?P=tag)|(?<![:\w]):(?P<name>[A-Za-z_]\w*)""",
    re.DOTALL,
)
_MYSQL_PARTS = re.compile(  # there the values are put into the text by the driver: outside of quotes, or not at all
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|(?:--(?=\s)|\#)[^\n]*|/\*.*?\*/|(?<![:\w]):(?P<name>[A-Za-z_]\w*)""",
    re.DOTALL,
)


def bound(statement: str, params: Mapping[str, Any], style: str, kind: str = "") -> tuple[str, Any]:
    """The statement and its values as a driver with this `paramstyle` of PEP 249 takes them; no values: None.

    `kind` is the database, which decides what quotes and comments are.

    Only where a name stands is found here; what a statement may do is decided by the database.

    Raises:
        ToolError: `bad_params`; a value has no place in the statement.
    """
    if not params:
        return statement, None
    used: list[str] = []
    mark = {"pyformat": "%({})s", "format": "%s", "qmark": "?", "numeric": ":{number}", "numeric_dollar": "${number}"}

    def placed(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None or name not in params:
            return match[0]
        used.append(name)
        return mark.get(style, ":{}").format(name, number=len(used))

    escaped = statement.replace("%", "%%") if style in ("pyformat", "format") else statement
    text = (_MYSQL_PARTS if kind in ("mysql", "mariadb") else _PARTS).sub(placed, escaped)
    if unused := [name for name in params if name not in used]:
        raise TEXTS.error("unused_param", "bad_params", name=unused[0][:60])
    values: Any = tuple(params[name] for name in used) if style not in ("pyformat", "named") else dict(params)
    return text, values


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
                raise database_error("no_rows", "no_rows")
            rows = islice(fetch_rows(server, result, offset + limit + 1, stop), min(max(offset, 0), sys.maxsize), None)
            page, is_whole = _page(result, rows, server, limit)
    next_offset = None if is_whole else offset + len(page["rows"])
    note = {} if is_whole else {"note": TEXTS.run_text("more_rows", offset=next_offset)}
    return {**page, "next_offset": next_offset, **note}


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
        raise database_error("bad_params", "unsendable", reason=str(error)[:300].rstrip(".")) from None


def _page(result: sa.CursorResult[Any], rows: Iterable[Any], server: Server, limit: int) -> tuple[dict[str, Any], bool]:
    """The columns and those rows that have room in an answer, and whether these are all."""
    columns = [str(name)[:_MAX_NAME_CHARS] for name in result.keys()]  # noqa: SIM118  # a result's, not a mapping's
    page_rows: list[list[Any]] = []
    room = server.database.max_result_chars
    for row in rows:
        values, size = _row(row, server, room if not page_rows else None)
        if len(page_rows) == limit or (page_rows and size > room):
            return {"columns": columns, "rows": page_rows}, False
        page_rows.append(values)
        room -= size
    return {"columns": columns, "rows": page_rows}, True


def _row(row: Any, server: Server, room: int | None) -> tuple[list[Any], int]:
    """A row and its size as JSON; with `room`, values are cut until it fits: one row is always given."""
    most = server.database.max_value_chars
    while True:
        values = [plain(server.censored(value), most) for value in row]
        size = len(pydantic_core.to_json(values, inf_nan_mode="strings"))
        if room is None or size <= room or most <= 8:
            return values, size
        most //= 2


def fetch_rows(server: Server, result: sa.CursorResult[Any], count: int, stop: StatementTimeout) -> Iterator[Any]:
    """The first `count` rows, in batches that grow while they are small: one value may be as large as all memory."""
    size = 1
    while count > 0:
        batch = result.fetchmany(min(size, count))
        if stop.is_due:
            raise database_error("statement_timeout", "rows_late", seconds=stop.timeout_s)
        if not batch:
            return
        yield from batch
        chars = sum(len(value) for row in batch for value in row if isinstance(value, str | bytes))
        size = 1 if chars > _MOST_CHARS else min(size * 4, server.max_batch_rows)
        count -= len(batch)


_MAX_ITEMS = 200  # of one array or object
_DEEPEST = 8


def plain(value: Any, max_chars: int, depth: int = 0) -> Any:
    """One value: a number, a text, true, false or null as it is; what JSON does not have as a text or an object.

    A decimal is its digits, a date or time ISO 8601, bytes `{"bytes": SIZE, "base64": …}`. A text beyond `max_chars`
    is `{"text_start": …, "chars": SIZE}`, longer bytes have `base64_start`.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _text(value, max_chars)
    if isinstance(value, Decimal):
        return _text(f"{value:f}" if _is_short(value) else str(value), max_chars)
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _duration(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value), max_chars)
    if isinstance(value, UUID):
        return str(value)
    if depth < _DEEPEST and isinstance(value, Mapping):
        return {str(key): plain(item, max_chars, depth + 1) for key, item in islice(value.items(), _MAX_ITEMS)}
    if depth < _DEEPEST and isinstance(value, Sequence | set | frozenset):
        items = [plain(item, max_chars, depth + 1) for item in islice(value, _MAX_ITEMS)]
        return items if len(value) <= _MAX_ITEMS else {"items_start": items, "items": len(value)}
    return _text(str(value), max_chars)


def _is_short(value: Decimal) -> bool:
    """Whether the digits can be written without an exponent, and that is not absurdly long."""
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and abs(exponent) <= 100


def _text(value: str, max_chars: int) -> Any:
    value = replace_surrogates(value)
    return value if len(value) <= max_chars else {"text_start": value[:max_chars], "chars": len(value)}


def _bytes(value: bytes, max_chars: int) -> dict[str, Any]:
    most = max(max_chars // 4 * 3, 3)
    name = "base64" if len(value) <= most else "base64_start"
    return {"bytes": len(value), name: base64.b64encode(value[:most]).decode()}


def _duration(value: timedelta) -> str:
    """As ISO 8601, such as `P1DT2.5S` or `-P1D`; days and seconds only."""
    prefix, value = ("-", -value) if value < timedelta(0) else ("", value)
    seconds = f"{value.seconds}" + (f".{value.microseconds:06d}".rstrip("0") if value.microseconds else "")
    return f"{prefix}P{value.days}DT{seconds}S"


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
            raise database_error("database_busy", "carried_out") from None

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
        if calls is not None:
            if (before := calls.outcome(connection, key)) is not None:
                return before
            calls.claim(connection, key)
        outcome = _changed(server, connection, statement, params, stop)
        if calls is not None:
            calls.keep(connection, key, outcome)
        if stop.is_due:
            raise database_error("statement_timeout", "change_late")
        stop.arm(None)  # from here on it is only confirmed
        _commit(server, connection, is_repeatable=calls is not None)
        return outcome


def _changed(
    server: Server, connection: sa.Connection, statement: str, params: Mapping[str, Any], stop: StatementTimeout
) -> dict[str, Any]:
    server.may_run(connection)
    result = run(connection, statement, params)
    database = server.database
    page: dict[str, Any] = {}
    if result.returns_rows:
        rows = fetch_rows(server, result, database.max_rows + 1, stop)
        page, is_whole = _page(result, rows, server, database.max_rows)
        while not is_whole and not stop.is_due and result.fetchmany(50):
            pass  # a statement with RETURNING is through only when its last row was taken
        if stop.is_due:
            raise database_error("statement_timeout", "rows_late_changed")
        if not is_whole:
            page["note"] = TEXTS.run_text("rows_cut")
    rowcount = result.rowcount
    result.close()
    server.has_run(connection)
    count = server.changed(connection, rowcount)
    if count.in_all is not None and count.in_all > database.max_rows_changed:
        raise database_error("too_many_rows", "too_many_rows", count=count.in_all, limit=database.max_rows_changed)
    outcome: dict[str, Any] = {"rows_changed": count.itself}
    if count.in_all != count.itself:
        outcome["rows_changed_in_all"] = count.in_all
    return outcome | page


def _commit(server: Server, connection: sa.Connection, *, is_repeatable: bool) -> None:
    try:
        server.commit(connection)
    except DBAPIError as error:
        if not may_have_committed(error):
            raise
        hint = "" if is_repeatable else TEXTS.run_text("commit_lost_once_hint")
        raise TEXTS.error("commit_lost", error_type=ToolTimeout, retryable=is_repeatable, hint=hint) from None
