"""What a database says of its tables: columns, types, keys and comments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import CompileError, SQLAlchemyError

from taoloop.core.search import suggest_names
from taoloop.tools.sql.engines import DRIVERS, Server, StatementTimeout
from taoloop.tools.sql.statements import fetch_rows, plain
from taoloop.tools.sql.texts import TEXTS

MAX_DETAILED = 100
"""Tables whose columns are read for a card."""

MAX_NAMES = 1_000
MAX_COLUMNS = 500
_MAX_COMMENT_CHARS = 200
_MAX_VALUES = 100  # of an enumeration
_SAMPLES = 3
_SAMPLE_ROWS = 30  # among which different values are looked for
_MAX_SAMPLE_CHARS = 60
_PATTERN = re.compile(r"[*?\[]")  # of `fnmatch`


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table or view. What the database did not say is empty."""

    name: str
    """Its name as a statement writes it."""
    is_view: bool
    """Whether it is a view."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The types of its columns by their names as a statement writes them, as all names here."""
    keys: tuple[str, ...] = ()
    """The columns of the primary key."""
    references: Mapping[str, str] = field(default_factory=dict)
    """For a column of a foreign key the `TABLE.COLUMN` that it refers to."""
    comment: str = ""
    """Its comment in the database."""


class _Relation(NamedTuple):
    """A table or view: its full name with and without quotes, its schema (None: the default one) and its name there."""

    written_name: str
    name: str
    schema: str | None
    plain_name: str
    is_view: bool


def read_schema(server: Server, stop: StatementTimeout) -> tuple[Table, ...]:
    """The tables and views that are shown, with the columns of the first of them.

    Raises:
        ToolError: the database cannot be reached or read.
    """
    with server.looking(stop) as connection:
        inspector = sa.inspect(connection)
        relations = list(_relations(inspector, server, connection))
        return tuple(
            _table(inspector, connection.dialect, relation)
            if number < MAX_DETAILED and not stop.is_due
            else Table(name=relation.written_name, is_view=relation.is_view)
            for number, relation in enumerate(relations[: MAX_NAMES * 10])
        )


def unknown_names(server: Server, names: Iterable[str], stop: StatementTimeout) -> list[str]:
    """Which of the names in `tables` and `hidden` no table or view has; patterns may wait for tables to come.

    Raises:
        ToolError: the database cannot be reached or read.
    """
    plain_names = [name for name in names if not _PATTERN.search(name)]
    if not plain_names:
        return []
    with server.looking(stop) as connection:
        inspector = sa.inspect(connection)
        known = {
            name.lower()
            for _, plain_name, full_name, _ in _all_names(inspector, server)
            for name in (plain_name, full_name)
        }
    return [name for name in plain_names if name.lower() not in known]


def describe(server: Server, name: str, stop: StatementTimeout, *, samples: bool = False) -> dict[str, Any]:
    """All about one table; `samples`: also some values of each column.

    Raises:
        ToolError: `no_such_table`, or the database cannot be reached or read.
    """
    with server.looking(stop) as connection:
        inspector = sa.inspect(connection)
        relations = list(_relations(inspector, server, connection))
        known = {relation.written_name: relation for relation in relations}
        known |= {relation.name: relation for relation in relations}
        if name not in known:
            near = suggest_names(name, [relation.written_name for relation in relations], at_most=3)
            hint = TEXTS.run_text("did_you_mean", names=TEXTS.run_text("or").join(near)) if near else None
            raise TEXTS.error("no_such_table", "no_such_table", hint=hint, name=name[:80])
        described = _description(inspector, connection.dialect, known[name])
    if samples:
        values = _sample_values(server, known[name], stop)
        for column in described["columns"]:
            column["samples"] = values.get(column["name"], [])
    return described


def list_tables(server: Server, stop: StatementTimeout) -> dict[str, Any]:
    """The names of all tables and views that are shown.

    Raises:
        ToolError: the database cannot be reached or read.
    """
    with server.looking(stop) as connection:
        names = [relation.written_name for relation in _relations(sa.inspect(connection), server, connection)]
    more = {"more": len(names) - MAX_NAMES} if len(names) > MAX_NAMES else {}
    return {"tables": names[:MAX_NAMES], **more}


def one_line(text: object, most: int = _MAX_COMMENT_CHARS) -> str:
    """What a database wrote, on one line and bounded: it is data, and shall look like nothing else."""
    line = " ".join("".join(char if char.isprintable() else " " for char in str(text or "")).split())
    return line if len(line) <= most else line[:most] + "…"


def write_name(dialect: sa.Dialect, *parts: str) -> str:
    """A name as a statement writes it: in the quotes of the database where it needs them."""
    preparer = dialect.identifier_preparer
    # capitals need quotes where they would be folded; SQLite, MySQL and MariaDB keep or ignore them
    is_folding = dialect.name not in DRIVERS or dialect.name == "postgresql"
    doubles_percent = preparer.quote_identifier("%").count("%") > 1  # for a driver that formats statements
    written = []
    for part in parts:
        name = part if is_folding else part.lower()
        text = part if preparer.quote(name) == name else preparer.quote_identifier(part)
        written.append(text.replace("%%", "%") if doubles_percent and text != part else text)
    return ".".join(written)


def _sample_values(server: Server, relation: _Relation, stop: StatementTimeout) -> dict[str, list[Any]]:
    """The first different values of each column, read as a statement of a model would read them.

    Raises:
        ToolError: the rows cannot be read.
    """
    table = sa.table(relation.plain_name, schema=relation.schema)
    query: sa.Select[Any] = sa.select(sa.literal_column("*")).select_from(table).limit(_SAMPLE_ROWS)
    values: dict[str, list[Any]] = {}
    with server.reading(stop) as connection:
        result = connection.execute(query)
        names = [write_name(connection.dialect, name) for name in result.keys()]  # noqa: SIM118  # a result's
        for row in fetch_rows(server, result, _SAMPLE_ROWS, stop):
            for name, value in zip(names, row, strict=True):
                samples = values.setdefault(name, [])
                shown = plain(server.censored(value), min(_MAX_SAMPLE_CHARS, server.database.max_value_chars))
                if len(samples) < _SAMPLES and shown is not None and shown not in samples:
                    samples.append(shown)
        result.close()
    return values


def _relations(inspector: sa.Inspector, server: Server, connection: sa.Connection) -> Iterator[_Relation]:
    """All tables and views that are shown."""
    is_part = server.parts(connection)
    for schema, plain_name, name, is_view in _all_names(inspector, server):
        if server.database.shows(name) and not is_part(plain_name):
            written_name = write_name(connection.dialect, *filter(None, (schema, plain_name)))
            yield _Relation(written_name, name, schema, plain_name, is_view)


def _all_names(inspector: sa.Inspector, server: Server) -> Iterator[tuple[str | None, str, str, bool]]:
    """Schema, name, full name, and whether it is a view, of each table and view, shown or not."""
    for schema in server.database.schemas or (None,):
        views = set(inspector.get_view_names(schema=schema))
        if server.url.get_backend_name() == "postgresql":
            views |= set(inspector.get_materialized_view_names(schema=schema))
        for name in sorted({*inspector.get_table_names(schema=schema), *views}):
            yield schema, name, f"{schema}.{name}" if schema else name, name in views


def _table(inspector: sa.Inspector, dialect: sa.Dialect, relation: _Relation) -> Table:
    columns = _ask(inspector.get_columns, relation, [])
    key = {} if relation.is_view else _ask(inspector.get_pk_constraint, relation, {})
    references = {}
    for foreign_key in [] if relation.is_view else _ask(inspector.get_foreign_keys, relation, []):
        target = (*filter(None, [foreign_key["referred_schema"]]), foreign_key["referred_table"])
        for column, other in zip(foreign_key["constrained_columns"], foreign_key["referred_columns"], strict=False):
            references[write_name(dialect, column)] = write_name(dialect, *target, other)
    return Table(
        name=relation.written_name,
        is_view=relation.is_view,
        columns={
            write_name(dialect, column["name"]): _type(column["type"], dialect) for column in columns[:MAX_COLUMNS]
        },
        keys=tuple(write_name(dialect, name) for name in key.get("constrained_columns") or ()),
        references=references,
        comment=one_line(_ask(inspector.get_table_comment, relation, {}).get("text")),
    )


def _description(inspector: sa.Inspector, dialect: sa.Dialect, relation: _Relation) -> dict[str, Any]:
    columns: list[Any] = list(inspector.get_columns(relation.plain_name, schema=relation.schema))
    table = _table(inspector, dialect, relation)
    indexes = [] if relation.is_view else _ask(inspector.get_indexes, relation, [])
    unique = [] if relation.is_view else _ask(inspector.get_unique_constraints, relation, [])
    checks = [] if relation.is_view else _ask(inspector.get_check_constraints, relation, [])
    described: dict[str, Any] = {
        "table": relation.written_name,
        "kind": "view" if relation.is_view else "table",
        "columns": [_column(column, table, dialect) for column in columns[:MAX_COLUMNS]],
        "primary_key": list(table.keys),
        "unique": [_written(dialect, constraint["column_names"]) for constraint in unique],
        "indexes": [_written(dialect, index["column_names"]) for index in indexes[:100]],
    }
    if checks:
        described["checks"] = [one_line(check["sqltext"], 500) for check in checks[:100]]
    if table.comment:
        described["comment"] = table.comment
    if len(columns) > MAX_COLUMNS:
        described["more_columns"] = len(columns) - MAX_COLUMNS
    return described


def _written(dialect: sa.Dialect, names: Iterable[str | None]) -> list[str | None]:
    return [None if name is None else write_name(dialect, name) for name in names]  # None: an expression


def _column(column: Any, table: Table, dialect: sa.Dialect) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": write_name(dialect, column["name"]),
        "type": _type(column["type"], dialect),
        "nullable": bool(column.get("nullable", True)),
    }
    if column.get("default") is not None:
        described["default"] = one_line(column["default"])
    if isinstance(column["type"], sa.Enum):
        described["values"] = [one_line(value) for value in column["type"].enums[:_MAX_VALUES]]
    if described["name"] in table.references:
        described["references"] = table.references[described["name"]]
    if column.get("comment"):
        described["comment"] = one_line(column["comment"])
    return described


def _type(column_type: sa.types.TypeEngine[Any], dialect: sa.Dialect) -> str:
    try:
        return one_line(column_type.compile(dialect), 80)
    except CompileError:  # a type that SQLAlchemy does not know, or a column without one
        return "" if isinstance(column_type, sa.types.NullType) else type(column_type).__name__


def _ask(get: Callable[..., Any], relation: _Relation, otherwise: Any) -> Any:
    """An answer of the database, or `otherwise`: a view that is broken must not hide the other tables."""
    try:
        return get(relation.plain_name, schema=relation.schema)
    except (NotImplementedError, SQLAlchemyError):  # not every database has comments
        return otherwise
