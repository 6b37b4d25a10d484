"""A database as tools: its schema read for the cards, its tools made, and what was wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import sqlalchemy as sa

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard, Tier, ToolCard
from taoloop.errors import TaoError
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.sql.engines import GenericDialect, Server, url_of
from taoloop.tools.sql.errors import TROUBLES, display_url, error_cards
from taoloop.tools.sql.mysql import Mysql
from taoloop.tools.sql.postgres import Postgres
from taoloop.tools.sql.schema import Table, describe, list_tables, one_line, read_schema
from taoloop.tools.sql.settings import Database
from taoloop.tools.sql.sqlite import Sqlite
from taoloop.tools.sql.statement_timeout import StatementTimeout, run_in_thread
from taoloop.tools.sql.statements import CallsTable, change, read_page
from taoloop.tools.tool import Tool, ToolContext
from taoloop.tools.toolbox import LoadProblem, LoadResult

_MARGIN_S = 5.0  # the tool's own limits come first: they end the statement, and say so
_KINDS = {"postgresql": "PostgreSQL", "mysql": "MySQL", "mariadb": "MariaDB", "sqlite": "SQLite"}
_PARAMS = {
    "type": "object",
    "description": 'Values for :name in the statement, such as {"since": "2026-01-01"}; decimals and dates as text.',
    "additionalProperties": {"type": ["string", "number", "boolean", "null", "array"]},
    "default": {},
}
_CONNECTION = ("database_unavailable", "database_busy", "database_unusable")
_STATEMENT = ("statement_failed", "statement_timeout", "not_allowed", "several_statements", "bad_params")


def query_card(server: Server, tables: Sequence[Table]) -> ToolCard:
    """The card of the tool that reads."""
    database = server.database
    return ToolCard(
        name=f"{database.name}.query",
        purpose=f"Read rows of the {_kind(server)} database {database.name!r} with one SQL statement;"
        f" at most {database.max_rows} rows per call.{_about(server)}",
        use_when="The answer stands in this database.",
        avoid_when="Something is to be changed: the connection is read-only.",
        input_schema=_object(
            {
                "statement": _statement(server, tables, "One statement that gives rows, such as SELECT, in"),
                "params": _PARAMS,
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": database.max_rows,
                    "default": database.page_rows,
                    "description": "How many rows to give.",
                },
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "default": 0,
                    "description": "How many rows to leave out first: next_offset of the page before, with the same"
                    " statement. Give the statement an ORDER BY.",
                },
            }
        ),
        errors=error_cards(*_CONNECTION, *_STATEMENT, "value_too_large", "no_rows"),
        examples=(_example(tables),) if tables else (),
        tier=cast("Tier", database.read_tier),
        timeout_s=database.timeout_s + _MARGIN_S,
        egress=False,
        roles={"params": "value", "limit": "minor", "offset": "minor"},
        max_preview_chars=12_000,
        reversible=None if database.read_tier == "read" else False,
    )


def describe_card(server: Server) -> ToolCard:
    """The card of the tool that shows the schema."""
    name = server.database.name
    return ToolCard(
        name=f"{name}.describe_table",
        purpose=f"Show the columns, keys, indexes and comments of one table of {name!r}, never its rows;"
        " without a table, the list of tables.",
        use_when="The card of the query tool does not have the table or column that is needed.",
        avoid_when="The columns are known already.",
        input_schema={
            "type": "object",
            "properties": {
                "table": {"type": "string", "default": "", "description": "A name of the list of tables, as it stands."}
            },
            "required": [],
            "additionalProperties": False,
        },
        errors=(
            ErrorCard(code="no_such_table", advice="Take a name of the list."),
            *error_cards(*_CONNECTION, "statement_failed", "statement_timeout"),
        ),
        tier="read",
        timeout_s=server.database.timeout_s + _MARGIN_S,
        egress=False,
        max_preview_chars=12_000,
    )


def execute_card(server: Server, tables: Sequence[Table]) -> ToolCard:
    """The card of the tool that changes rows."""
    database = server.database
    what = "change rows or the structure of" if database.structure else "change rows of"
    purpose = (
        f"{what.capitalize()} the {_kind(server)} database {database.name!r} with one SQL statement in a transaction;"
        f" at most {database.max_rows_changed} rows per call.{_about(server)}"
    )
    return ToolCard(
        name=f"{database.name}.execute",
        purpose=purpose,
        use_when="The task asks for this very change.",
        avoid_when="Rows are only to be read; or it is not certain which rows the condition meets: query them first.",
        input_schema=_object(
            {
                "statement": _statement(server, tables, "One statement such as INSERT, UPDATE or DELETE, in"),
                "params": _PARAMS,
            }
        ),
        errors=error_cards(*_CONNECTION, *_STATEMENT, "too_many_rows", "structure_change"),
        tier=write_tier(server),
        timeout_s=database.timeout_s + _MARGIN_S,
        egress=False,
        roles={"statement": "target", "params": "value"},
        reversible=False,
        idempotent=bool(database.calls_table),
        parallel=False,
        max_preview_chars=12_000,
    )


def write_tier(server: Server) -> Tier:
    """What the operator said, else by what the database itself is held to; never by the words of a statement."""
    if server.database.write_tier:
        return cast("Tier", server.database.write_tier)
    return "write" if server.bounds_writes and not server.database.structure else "destructive"


def schema_text(tables: Sequence[Table], max_chars: int) -> str:
    """Tables with their columns while there is room, then names only, then how many there are."""
    lines: list[str] = []
    room = max_chars * 3 // 4
    rest = sorted(tables, key=lambda table: not table.columns)  # those of which nothing is known come last
    while rest and rest[0].columns and len(line := _line(rest[0])) < room:
        lines.append(line)
        room -= len(line) + 1
        rest.pop(0)
    room += max_chars // 4
    names: list[str] = []
    while rest and len(rest[0].name) + 2 < room:
        names.append(one_line(rest.pop(0).name))
        room -= len(names[-1]) + 2
    if names:
        lines.append(f"{'Also: ' if lines else ''}{', '.join(names)}")
    if rest:
        lines.append(f"and {len(rest):,} more, which describe_table lists")
    return "\n".join(lines)


def _line(table: Table) -> str:
    columns = []
    for name, kind in table.columns.items():
        key = " PRIMARY KEY" if table.keys == (name,) else ""
        reference = f" -> {one_line(table.references[name])}" if name in table.references else ""
        columns.append(f"{one_line(name)}{' ' if kind else ''}{kind}{key}{reference}")
    if len(table.keys) > 1:
        columns.append(f"PRIMARY KEY ({', '.join(map(one_line, table.keys))})")
    view = " [view]" if table.is_view else ""
    comment = f" -- {table.comment}" if table.comment else ""
    return f"{one_line(table.name)}({', '.join(columns)}){view}{comment}"


def _statement(server: Server, tables: Sequence[Table], what: str) -> dict[str, Any]:
    listed = schema_text(tables, server.database.max_card_chars)
    known = f"Tables:\n{listed}" if listed else "The tables are not known yet: describe_table lists them."
    return {
        "type": "string",
        "minLength": 1,
        "description": f"{what} the SQL of {_kind(server)}; values as :name from params. {known}",
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": ["statement"], "additionalProperties": False}


def _kind(server: Server) -> str:
    kind = server.url.get_backend_name()
    return _KINDS.get(kind, kind)


def _about(server: Server) -> str:
    text = one_line(server.database.description, 500)
    return f" {text.rstrip('.')}." if text else ""


def _example(tables: Sequence[Table]) -> ExampleCard:
    name = one_line(tables[0].name)
    quoted = name if name.replace("_", "").replace(".", "").isalnum() else f'"{name}"'
    return ExampleCard(args={"statement": f"SELECT count(*) FROM {quoted}"})  # noqa: S608  # shown, never run


_PASSING = ("database_unavailable", "database_busy", "statement_timeout")
BY_HAND = "by-hand"


def load(database: Database) -> LoadResult:
    """The tools of a database. See `taoloop.tools.sql.sql_tools`.

    Raises:
        ToolSourceError: its URL cannot be read.
    """
    url = url_of(database)
    problems: list[LoadProblem] = []
    tables: Sequence[Table] = ()
    try:
        server = server_of(database, url)
        calls = CallsTable(database.calls_table, url.get_backend_name()) if database.calls_table else None
        tables = read_schema(server, StatementTimeout(database.timeout_s))
    except TaoError as error:
        problems.append(_problem(database, url, error))
        if error.code not in _PASSING:
            return LoadResult(problems=tuple(problems))
    if (database.tables or database.hidden) and not isinstance(server, Sqlite):
        problems.append(_only_shown(database, url))
    tools = [_query(server, tables), _describe(server)]
    if database.write:
        tools.append(_execute(server, tables, calls))
    return LoadResult(tools=tuple(tools), problems=tuple(problems))


def server_of(database: Database, url: sa.URL) -> Server:
    """The database behind a URL.

    Raises:
        ToolError: its driver is missing, or its connections are not known to keep statements from changing anything.
    """
    kind, driver = url.get_backend_name(), url.get_driver_name()
    if kind == "sqlite" and driver == "pysqlite":
        return Sqlite(database, url)
    if kind == "postgresql" and driver == "psycopg":
        return Postgres(database, url)
    return Mysql(database, url) if kind in ("mysql", "mariadb") else GenericDialect(database, url)


def _query(server: Server, tables: Sequence[Table]) -> Tool:
    database = server.database

    async def query(statement: str, params: dict[str, Any] | None = None, limit: int = 0, offset: int = 0) -> Any:
        def work(stop: StatementTimeout) -> Any:
            return read_page(server, statement, params or {}, limit or database.page_rows, offset, stop)

        return await run_in_thread(work, database.timeout_s)

    return tool_from_card(query_card(server, tables), query)


def _describe(server: Server) -> Tool:
    async def describe_table(table: str = "") -> Any:
        def work(stop: StatementTimeout) -> Any:
            return describe(server, table, stop) if table else list_tables(server, stop)

        return await run_in_thread(work, server.database.timeout_s)

    return tool_from_card(describe_card(server), describe_table)


def _execute(server: Server, tables: Sequence[Table], calls: CallsTable | None) -> Tool:
    async def execute(statement: str, params: dict[str, Any] | None = None, *, context: ToolContext) -> Any:
        key = context.idempotency_key

        def work(stop: StatementTimeout) -> Any:
            return change(server, None if key == BY_HAND else calls, statement, params or {}, key, stop)

        return await run_in_thread(work, server.database.timeout_s)

    return tool_from_card(execute_card(server, tables), execute)


def _problem(database: Database, url: sa.URL, error: TaoError) -> LoadProblem:
    """A problem for the operator; what the errors of the tools advise is meant for a model."""
    if error.code in _PASSING:
        hint = "See that it runs and that its url is right. Its tools are there all the same, without its tables."
    elif error.code == "not_allowed":
        hint = "Give the role of its url the right to read the tables and their columns."
    elif error.code in TROUBLES:
        hint = "See that its url, its user and its password are right, and that it is a database of this kind."
    else:
        hint = error.hint
    return LoadProblem(source=f"database {database.name!r}", place=display_url(url), message=error.message, hint=hint)


def _only_shown(database: Database, url: sa.URL) -> LoadProblem:
    return LoadProblem(
        source=f"database {database.name!r}",
        place="tables" if database.tables else "hidden",
        message=f"In {url.get_backend_name()} this only chooses what is shown; a statement can read the other tables.",
        hint="Take a role that has SELECT on no others.",
    )
