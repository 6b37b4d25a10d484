"""Where a journal is: the path of an SQLite file, or the address of a PostgreSQL database; and the journal there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from taoloop.journals.postgres.address import DatabaseAddress, PostgresAddress, is_postgres
from taoloop.journals.sqlite.file import ENV_VARIABLE, default_path

if TYPE_CHECKING:
    from taoloop.journals.postgres.journal import PostgresJournal
    from taoloop.journals.sqlite.journal import SqliteJournal


__all__ = ["DatabaseAddress", "database_address", "default_database", "journal_at", "stored_at"]


def database_address(database: str | Path | PostgresAddress) -> DatabaseAddress:
    """Where the database is that a setting names.

    Raises:
        ConfigError: it begins like the address of a PostgreSQL database and is none.
    """
    if isinstance(database, PostgresAddress):
        return database
    return PostgresAddress(database) if isinstance(database, str) and is_postgres(database) else Path(database)


def stored_at(journal: object) -> DatabaseAddress | None:
    """Where the database is that an agent names as its journal; None where it has a journal, or none."""
    return database_address(journal) if isinstance(journal, str | DatabaseAddress) else None


def default_database(environ: Mapping[str, str] | None = None) -> DatabaseAddress:
    """The database that `TAOLOOP_DB` names, a path or an address; else the file in the user's data folder.

    Raises:
        ConfigError: it begins like the address of a PostgreSQL database and is none.
    """
    chosen = (os.environ if environ is None else environ).get(ENV_VARIABLE, "").strip()
    return PostgresAddress(chosen) if is_postgres(chosen) else default_path(environ)


def journal_at(address: DatabaseAddress, *, read_only: bool = False) -> SqliteJournal | PostgresJournal:
    """The journal at an address, not opened yet.

    Raises:
        MissingExtra: it is a PostgreSQL database, and the driver is not installed.
    """
    if isinstance(address, PostgresAddress):
        from taoloop.journals.postgres.journal import PostgresJournal  # noqa: PLC0415  # only where one is named

        return PostgresJournal(address, read_only=read_only)
    from taoloop.journals.sqlite.journal import SqliteJournal  # noqa: PLC0415  # the same

    return SqliteJournal(address, read_only=read_only)
