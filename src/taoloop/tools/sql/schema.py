"""What a database says of its tables: columns, types, keys and comments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import CompileError, SQLAlchemyError

from taoloop.core.search import suggest_names
from taoloop.tools.sql.engines import Server, StatementTimeout
from taoloop.tools.sql.texts import TEXTS

MAX_DETAILED = 100
"""Tables whose columns are read for a card."""

MAX_NAMES = 1_000
MAX_COLUMNS = 500
_MAX_COMMENT_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table or view. What the database did not say is empty."""

    name: str
    """Its name as a statement writes it."""
    is_view: bool
    """Whether it is a view."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The types of its columns by their names."""
    keys: tuple[str, ...] = ()
    """The columns of the primary key."""
    references: Mapping[str, str] = field(default_factory=dict)
    """For a column of a foreign key the `TABLE.COLUMN` that it refers to."""
    comment: str = ""
    """Its comment in the database."""


class _Relation(NamedTuple):
    """A table or view by its name as a statement writes it, its schema (None: the default one) and its name there."""

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
            else Table(name=relation.name, is_view=relation.is_view)
            for number, relation in enumerate(relations[: MAX_NAMES * 10])
        )


def describe(server: Server, name: str, stop: StatementTimeout) -> dict[str, Any]:
    """All about one table.

    Raises:
        ToolError: `no_such_table`, or the database cannot be reached or read.
    """
    with server.looking(stop) as connection:
        inspector = sa.inspect(connection)
        known = {relation.name: relation for relation in _relations(inspector, server, connection)}
        if name not in known:
            near = suggest_names(name, known, at_most=3)
            hint = TEXTS.run_text("did_you_mean", names=TEXTS.run_text("or").join(near)) if near else None
            raise TEXTS.error("no_such_table", "no_such_table", hint=hint, name=name[:80])
        return _description(inspector, connection.dialect, known[name])


def list_tables(server: Server, stop: StatementTimeout) -> dict[str, Any]:
    """The names of all tables and views that are shown.

    Raises:
        ToolError: the database cannot be reached or read.
    """
    with server.looking(stop) as connection:
        names = [relation.name for relation in _relations(sa.inspect(connection), server, connection)]
    more = {"more": len(names) - MAX_NAMES} if len(names) > MAX_NAMES else {}
    return {"tables": names[:MAX_NAMES], **more}


def one_line(text: object, most: int = _MAX_COMMENT_CHARS) -> str:
    """What a database wrote, on one line and bounded: it is data, and shall look like nothing else."""
    line = " ".join("".join(char if char.isprintable() else " " for char in str(text or "")).split())
    return line if len(line) <= most else line[:most] + "…"


def _relations(inspector: sa.Inspector, server: Server, connection: sa.Connection) -> Iterator[_Relation]:
    """All tables and views that are shown."""
    is_part = server.parts(connection)
    for schema in server.database.schemas or (None,):
        views = set(inspector.get_view_names(schema=schema))
        if server.url.get_backend_name() == "postgresql":
            views |= set(inspector.get_materialized_view_names(schema=schema))
        for plain_name in sorted({*inspector.get_table_names(schema=schema), *views}):
            name = f"{schema}.{plain_name}" if schema else plain_name
            if server.database.shows(name) and not is_part(plain_name):
                yield _Relation(name, schema, plain_name, plain_name in views)


def _table(inspector: sa.Inspector, dialect: sa.Dialect, relation: _Relation) -> Table:
    columns = _ask(inspector.get_columns, relation, [])
    key = {} if relation.is_view else _ask(inspector.get_pk_constraint, relation, {})
    references = {}
    for foreign_key in [] if relation.is_view else _ask(inspector.get_foreign_keys, relation, []):
        target = ".".join(filter(None, (foreign_key["referred_schema"], foreign_key["referred_table"])))
        for column, other in zip(foreign_key["constrained_columns"], foreign_key["referred_columns"], strict=False):
            references[column] = f"{target}.{other}"
    return Table(
        name=relation.name,
        is_view=relation.is_view,
        columns={column["name"]: _type(column["type"], dialect) for column in columns[:MAX_COLUMNS]},
        keys=tuple(key.get("constrained_columns") or ()),
        references=references,
        comment=one_line(_ask(inspector.get_table_comment, relation, {}).get("text")),
    )


def _description(inspector: sa.Inspector, dialect: sa.Dialect, relation: _Relation) -> dict[str, Any]:
    columns: list[Any] = list(inspector.get_columns(relation.plain_name, schema=relation.schema))
    table = _table(inspector, dialect, relation)
    indexes = [] if relation.is_view else _ask(inspector.get_indexes, relation, [])
    unique = [] if relation.is_view else _ask(inspector.get_unique_constraints, relation, [])
    described: dict[str, Any] = {
        "table": relation.name,
        "kind": "view" if relation.is_view else "table",
        "columns": [_column(column, table, dialect) for column in columns[:MAX_COLUMNS]],
        "primary_key": list(table.keys),
        "unique": [constraint["column_names"] for constraint in unique],
        "indexes": [index["column_names"] for index in indexes[:100]],
    }
    if table.comment:
        described["comment"] = table.comment
    if len(columns) > MAX_COLUMNS:
        described["more_columns"] = len(columns) - MAX_COLUMNS
    return described


def _column(column: Any, table: Table, dialect: sa.Dialect) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": column["name"],
        "type": _type(column["type"], dialect),
        "nullable": bool(column.get("nullable", True)),
    }
    if column.get("default") is not None:
        described["default"] = one_line(column["default"])
    if column["name"] in table.references:
        described["references"] = table.references[column["name"]]
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
