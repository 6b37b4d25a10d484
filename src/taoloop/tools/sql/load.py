"""A database as tools: its schema read for the cards, its tools made, and what was wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from taoloop.errors import TaoError
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.sql.cards import describe_card, execute_card, query_card
from taoloop.tools.sql.engines import GenericDialect, Server, url_of
from taoloop.tools.sql.errors import TROUBLES, display_url
from taoloop.tools.sql.mysql import Mysql
from taoloop.tools.sql.postgres import Postgres
from taoloop.tools.sql.schema import Table, describe, list_tables, read_schema
from taoloop.tools.sql.settings import Database
from taoloop.tools.sql.sqlite import Sqlite
from taoloop.tools.sql.statement_timeout import StatementTimeout, run_in_thread
from taoloop.tools.sql.statements import CallsTable, change, read_page
from taoloop.tools.tool import Tool, ToolContext
from taoloop.tools.toolbox import LoadProblem, LoadResult

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
