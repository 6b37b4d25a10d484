"""A database as tools: its schema read for the cards, its tools made, and what was wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import sqlalchemy as sa

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard, ToolCard
from taoloop.errors import TaoError
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.sql.engines import Server, StatementTimeout, held_by_role, make_engine, run_statement, url_of
from taoloop.tools.sql.errors import display_url, error_cards, is_database_error
from taoloop.tools.sql.mysql import Mysql
from taoloop.tools.sql.postgres import Postgres
from taoloop.tools.sql.schema import Table, describe, list_tables, one_line, read_schema, unknown_names
from taoloop.tools.sql.settings import Database
from taoloop.tools.sql.sqlite import Sqlite
from taoloop.tools.sql.statements import CallsTable, change, read_page
from taoloop.tools.sql.texts import TEXTS
from taoloop.tools.texts import CardTexts
from taoloop.tools.tool import RunContext, Tool
from taoloop.tools.toolbox import LoadProblem, LoadResult

_MARGIN_S = 5.0  # the tool's own limits come first: they end the statement, and say so
_KINDS = {"postgresql": "PostgreSQL", "mysql": "MySQL", "mariadb": "MariaDB", "sqlite": "SQLite"}
_CONNECTION = ("database_unavailable", "database_busy", "database_unusable")
_STATEMENT = ("statement_failed", "statement_timeout", "not_allowed", "several_statements", "bad_params")


def _card(server: Server, kind: str, text: CardTexts, **fields: Any) -> ToolCard:
    """The card of the tool `NAME.KIND` with these fields, and with what all tools of a database have in common."""
    return ToolCard(
        name=f"{server.database.name}.{kind}",
        use_when=text(f"{kind}_use_when"),
        avoid_when=text(f"{kind}_avoid_when"),
        timeout_s=server.database.timeout_s + _MARGIN_S,
        egress=False,
        max_preview_chars=12_000,
        **fields,
    )


def schema_text(tables: Sequence[Table], max_chars: int, language: str = "en") -> str:
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
        joined = ", ".join(names)
        lines.append(TEXTS.text(language, "also", names=joined) if lines else joined)
    if rest:
        lines.append(TEXTS.text(language, "more_tables", count=len(rest)))
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


def _statement(server: Server, tables: Sequence[Table], name: str, text: CardTexts) -> dict[str, Any]:
    def known(language: str) -> str:
        listed = schema_text(tables, server.database.max_card_chars, language)
        return TEXTS.text(language, "tables" if listed else "no_tables", tables=listed)

    return {"type": "string", "minLength": 1, "description": text(name, kind=_kind(server), tables=known)}


def _params(text: CardTexts) -> dict[str, Any]:
    return {
        "type": "object",
        "description": text("params"),
        "additionalProperties": {"type": ["string", "number", "boolean", "null", "array"]},
        "default": {},
    }


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _names(server: Server) -> dict[str, Any]:
    """What the purpose of a tool says of the database: kind, name, and the operator's description as a sentence."""
    description = one_line(server.database.description, 500).rstrip(".。")

    def about(language: str) -> str:
        return TEXTS.text(language, "about", text=description) if description else ""

    return {"kind": _kind(server), "name": server.database.name, "about": about}


def _kind(server: Server) -> str:
    kind = server.url.get_backend_name()
    return _KINDS.get(kind, kind)


def _example(tables: Sequence[Table]) -> ExampleCard:
    return ExampleCard(args={"statement": f"SELECT count(*) FROM {one_line(tables[0].name)}"})  # noqa: S608  # shown, never run


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
        problems += _unknown_names(server)
    except TaoError as error:
        problems.append(_problem(database, url, error))
        if error.code not in _PASSING:
            return LoadResult(problems=tuple(problems))
    if (database.tables or database.hidden) and not isinstance(server, Sqlite):
        problems.append(
            LoadProblem(
                source=f"database {database.name!r}",
                place="tables" if database.tables else "hidden",
                message=f"In {url.get_backend_name()} this only chooses what is shown; a statement can read the other"
                " tables.",
                hint="Take a role that has SELECT on no others.",
            )
        )
    tools = [_query(server, tables), _describe(server)]
    if database.write:
        tools.append(_execute(server, tables, calls))
    return LoadResult(tools=tuple(tools), problems=tuple(problems))


def _unknown_names(server: Server) -> Iterator[LoadProblem]:
    """A name in `tables` or `hidden` that selects nothing: perhaps a mistake that shows what should be hidden."""
    for setting, names in (("tables", server.database.tables), ("hidden", server.database.hidden)):
        for name in unknown_names(server, names, StatementTimeout(server.database.timeout_s)):
            yield LoadProblem(
                source=f"database {server.database.name!r}",
                place=setting,
                message=f"No table or view has the name {name!r}.",
                hint="Correct it; columns cannot be named.",
            )


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
    held_by_role(database, url)
    return Mysql(database, url) if kind in ("mysql", "mariadb") else Server(database, url, make_engine(url))


def _query(server: Server, tables: Sequence[Table]) -> Tool:
    """The tool that reads."""
    database, text = server.database, CardTexts(TEXTS)

    async def query(statement: str, params: dict[str, Any] | None = None, limit: int = 0, offset: int = 0) -> Any:
        work = partial(read_page, server, statement, params or {}, limit or database.page_rows, offset)
        return await run_statement(work, database.timeout_s)

    row_count = {"type": "integer", "minimum": 1, "maximum": database.max_rows, "default": database.page_rows}
    card = _card(
        server,
        "query",
        text,
        purpose=text("query_purpose", rows=database.max_rows, **_names(server)),
        input_schema=_object(
            {
                "statement": _statement(server, tables, "query_statement", text),
                "params": _params(text),
                "limit": {**row_count, "description": text("limit")},
                "offset": {"type": "integer", "minimum": 0, "default": 0, "description": text("offset")},
            },
            "statement",
        ),
        errors=error_cards(text, *_CONNECTION, *_STATEMENT, "value_too_large", "no_rows"),
        examples=(_example(tables),) if tables else (),
        tier=database.read_tier,
        roles={"params": "value", "limit": "minor", "offset": "minor"},
        reversible=None if database.read_tier == "read" else False,
    )
    return tool_from_card(card, query, chinese=text.chinese)


def _describe(server: Server) -> Tool:
    """The tool that shows the schema."""
    database, text = server.database, CardTexts(TEXTS)

    async def describe_table(table: str = "", samples: bool = False) -> Any:
        work = partial(describe, server, table, samples=samples) if table else partial(list_tables, server)
        return await run_statement(work, database.timeout_s)

    properties: dict[str, Any] = {"table": {"type": "string", "default": "", "description": text("table")}}
    if database.samples:
        properties["samples"] = {"type": "boolean", "default": False, "description": text("samples")}
    purpose = "describe_table_purpose_samples" if database.samples else "describe_table_purpose"
    card = _card(
        server,
        "describe_table",
        text,
        purpose=text(purpose, name=database.name),
        input_schema=_object(properties),
        errors=(
            ErrorCard(code="no_such_table", advice=text("no_such_table_advice")),
            *error_cards(text, *_CONNECTION, "statement_failed", "statement_timeout"),
            *(error_cards(text, "not_allowed", "value_too_large") if database.samples else ()),
        ),
        tier=database.read_tier if database.samples else "read",
        reversible=False if database.samples and database.read_tier != "read" else None,
    )
    return tool_from_card(card, describe_table, chinese=text.chinese)


def _execute(server: Server, tables: Sequence[Table], calls: CallsTable | None) -> Tool:
    """The tool that changes rows."""
    database, text = server.database, CardTexts(TEXTS)

    async def execute(statement: str, params: dict[str, Any] | None = None, *, context: RunContext) -> Any:
        key = context.idempotency_key
        work = partial(change, server, None if key == BY_HAND else calls, statement, params or {}, key)
        return await run_statement(work, database.timeout_s)

    purpose = "execute_purpose_structure" if database.structure else "execute_purpose"
    is_bounded = server.bounds_writes and not database.structure
    statement = _statement(server, tables, "execute_statement", text)
    card = _card(
        server,
        "execute",
        text,
        purpose=text(purpose, rows=database.max_rows_changed, **_names(server)),
        input_schema=_object({"statement": statement, "params": _params(text)}, "statement"),
        errors=error_cards(text, *_CONNECTION, *_STATEMENT, "too_many_rows", "structure_change"),
        # what the operator said, else what the database itself is held to; never the words of a statement
        tier=database.write_tier or ("write" if is_bounded else "destructive"),
        roles={"statement": "target", "params": "value"},
        reversible=False,
        idempotent=bool(database.calls_table),
        parallel=False,
    )
    return tool_from_card(card, execute, chinese=text.chinese)


def _problem(database: Database, url: sa.URL, error: TaoError) -> LoadProblem:
    """A problem for the operator; what the errors of the tools advise is meant for a model."""
    if error.code in _PASSING:
        hint = "See that it runs and that its url is right. Its tools are there all the same, without its tables."
    elif error.code == "not_allowed":
        hint = "Give the role of its url the right to read the tables and their columns."
    elif is_database_error(error):
        hint = "See that its url, its user and its password are right, and that it is a database of this kind."
    else:
        hint = error.hint
    return LoadProblem(source=f"database {database.name!r}", place=display_url(url), message=error.message, hint=hint)
