"""Looking into the database of runs, without changing it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, RunNotFound
from taoloop.journals.base import Journal
from taoloop.journals.location import default_path
from taoloop.journals.sqlite import SqliteJournal

T = TypeVar("T")

_ALL = 10_000_000
_SHOWN = 5


def database(db: str | None, env: Mapping[str, str]) -> Path:
    """The file that `--db` or the environment names."""
    return Path(db).expanduser() if db else default_path(env)


def look(path: Path, query: Callable[[Journal], Awaitable[T]]) -> T:
    """What `query` finds in the database.

    Raises:
        JournalError: there is no database, or it cannot be read.
    """

    async def ask() -> T:
        async with SqliteJournal(path, read_only=True) as journal:
            return await query(journal)

    return asyncio.run(ask())


def load_run(path: Path, given: str) -> Trace:
    """The run whose id is `given` or begins with it.

    Raises:
        RunNotFound: there is none.
        ConfigError: several begin so.
    """

    async def load(journal: Journal) -> Trace:
        run_id = await _find(journal, path, given.strip())
        return Trace(run_id, await journal.load(run_id))

    trace = look(path, load)
    if not trace.events:
        raise RunNotFound(
            f"{path}: the run {trace.run_id} ended before its first event was written; there is nothing in it."
        )
    return trace


async def _find(journal: Journal, path: Path, given: str) -> str:
    rows = await journal.runs(limit=_ALL)
    if any(row.run_id == given for row in rows):
        return given
    found = [row.run_id for row in rows if given and row.run_id.startswith(given)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise RunNotFound(f"{path}: there is no run {given!r}.", hint="`tao runs` lists those that exist.")
    shown = ", ".join(found[:_SHOWN]) + (" …" if len(found) > _SHOWN else "")
    raise ConfigError(f"{len(found)} runs begin with {given!r}: {shown}.", hint="Give more of the id.")
