"""SQL databases as tools: reading that cannot write, and writing that is bounded."""

from __future__ import annotations

from taoloop.errors import MissingExtra
from taoloop.tools.sql.settings import Database
from taoloop.tools.toolbox import LoadResult

__all__ = ["Database", "sql_tools"]


def sql_tools(database: Database) -> LoadResult:
    """`NAME.query`, `NAME.describe_table` and, where the settings say `write`, `NAME.execute`.

    Reads the schema for the cards, so it waits for the database, up to its `timeout_s`. A database that does not answer
    is a problem and has its tools all the same; one that cannot be used is a problem without tools.

    Raises:
        ToolSourceError: the URL cannot be read, or names a driver that cannot be used.
        MissingExtra: SQLAlchemy is not installed.
    """
    try:
        import sqlalchemy  # noqa: F401, PLC0415  # an extra; and it takes a while to load
    except ImportError as error:
        raise MissingExtra(
            "SQLAlchemy, which carries the tools for databases, is not installed: pip install 'taoloop[sql]'."
        ) from error
    from taoloop.tools.sql.load import load  # noqa: PLC0415  # likewise

    return load(database)
