"""Where the tokens of people are kept: a SQLite file that only its owner can read, or a store of the operator's own."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from taoloop.errors import ConfigError
from taoloop.tools.private_database import DatabaseKind, open_database, transaction
from taoloop.tools.settings_check import expand_home

T = TypeVar("T")
Record = Mapping[str, Any]
"""A record of a store: plain JSON."""

_BUSY_S = 5.0
_OTHERS = 0o077
_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_KIND = DatabaseKind(
    application_id=0x74616F4C,  # "taoL"
    version=1,
    tables="CREATE TABLE entry (key TEXT PRIMARY KEY, record TEXT NOT NULL, until REAL) WITHOUT ROWID",
)


@runtime_checkable
class LoginStore(Protocol):
    """Keeps records by key. Several processes may use one store at once; a record holds tokens, so it is a secret."""

    async def load(self, key: str) -> Record | None:
        """The record; None where there is none."""
        ...

    async def save(self, key: str, record: Record, *, until: float | None = None) -> None:
        """Keep a record in place of an earlier one; from `until` on (seconds since the epoch) it may be dropped."""
        ...

    async def add(self, key: str, record: Record, *, until: float) -> bool:
        """Keep a record where there is none that is still valid; of several callers at once one gets True."""
        ...

    async def take(self, key: str) -> Record | None:
        """Remove a record and give it; of several callers at once only one gets it."""
        ...


class SqliteLoginStore:
    """A SQLite file with the permissions 0600, created at its first use.

    Its content is not encrypted: whoever can read the file as its owner has the tokens.

    Args:
        path: The file; empty: `logins.db` in the user's data folder.
        now: Seconds since the epoch.
    """

    def __init__(self, path: str | Path = "", *, now: Callable[[], float] = time.time) -> None:
        self.path = expand_home(path) if path else _default_path()
        self._now = now

    async def load(self, key: str) -> Record | None:
        """The record; None where there is none.

        Raises:
            ConfigError: the file cannot be used, as in the other methods.
        """
        return await asyncio.to_thread(self._load, key)

    async def save(self, key: str, record: Record, *, until: float | None = None) -> None:
        """Keep a record; those that have expired are dropped."""
        await asyncio.to_thread(partial(self._save, key, record, until))

    async def add(self, key: str, record: Record, *, until: float) -> bool:
        """Keep a record where there is none that is still valid."""
        return await asyncio.to_thread(partial(self._add, key, record, until))

    async def take(self, key: str) -> Record | None:
        """Remove a record and give it."""
        return await asyncio.to_thread(self._take, key)

    async def remove_unreadable(self) -> bool:
        """Remove a file that is broken, with the tokens of all people; False: there is none, or it can be read.

        Raises:
            ConfigError: it is another database, or cannot be removed.
        """
        return await asyncio.to_thread(self._remove_unreadable)

    def _remove_unreadable(self) -> bool:
        if not self.path.is_file():
            return False
        try:
            with self._open() as database:
                is_sound = database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
        except ConfigError as error:
            cause = error.__cause__
            if not isinstance(cause, sqlite3.DatabaseError) or cause.sqlite_errorcode & 0xFF not in _BROKEN:
                raise
            is_sound = False
        if not is_sound:
            for path in (self.path, *(Path(f"{self.path}{suffix}") for suffix in ("-wal", "-shm", "-journal"))):
                path.unlink(missing_ok=True)
        return not is_sound

    def _load(self, key: str) -> Record | None:
        with self._open() as database:
            return _record(database.execute("SELECT record FROM entry WHERE key = ?", (key,)).fetchone())

    def _save(self, key: str, record: Record, until: float | None) -> None:
        with self._open() as database, transaction(database):
            database.execute("DELETE FROM entry WHERE until < ?", (self._now(),))
            database.execute("INSERT OR REPLACE INTO entry VALUES (?, ?, ?)", (key, json.dumps(record), until))

    def _add(self, key: str, record: Record, until: float) -> bool:
        with self._open() as database, transaction(database):
            database.execute("DELETE FROM entry WHERE until < ?", (self._now(),))
            values = (key, json.dumps(record), until)
            return database.execute("INSERT OR IGNORE INTO entry VALUES (?, ?, ?)", values).rowcount == 1

    def _take(self, key: str) -> Record | None:
        with self._open() as database, transaction(database):
            row = database.execute("DELETE FROM entry WHERE key = ? RETURNING record", (key,)).fetchone()
        return _record(row)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            if os.name != "nt" and self.path.exists() and self.path.stat().st_mode & _OTHERS:
                raise ConfigError(
                    f"Others can read the tokens of people in {str(self.path)!r}.",
                    hint=f"chmod 600 {self.path}, and let people log in anew if somebody may have read them.",
                )
            with open_database(self.path, _KIND, _BUSY_S, self._refusal) as database:
                yield database
        except (sqlite3.Error, OSError) as error:
            raise ConfigError(
                f"The tokens of people in {str(self.path)!r} cannot be used: {error}.",
                hint="Check permissions and disk space, or name another file as `token_file`.",
            ) from error

    def _refusal(self, why: str) -> Exception:
        hint = "Name another file as `token_file`."
        if why == "newer":
            return ConfigError(f"A newer taoloop wrote the tokens of people in {str(self.path)!r}.", hint=hint)
        return ConfigError(f"The tokens of people cannot be in {str(self.path)!r}: it is another database.", hint=hint)


def _record(row: tuple[str] | None) -> Record | None:
    return None if row is None else dict(json.loads(row[0]))


def _default_path() -> Path:
    import platformdirs  # noqa: PLC0415  # only if the settings name no file

    return Path(platformdirs.user_data_path("taoloop", appauthor=False)) / "logins.db"
