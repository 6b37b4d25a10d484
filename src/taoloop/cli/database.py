"""Looking into the database of runs, without changing it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from taoloop.cli.ui.stdio import print_stderr
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, JournalError, JournalTampered, RunNotFound
from taoloop.journals.base import Journal, LockHolder, locks_of
from taoloop.journals.sqlite.file import default_path
from taoloop.journals.sqlite.journal import SqliteJournal

T = TypeVar("T")

_ALL = 10_000_000
_SHOWN = 5

LAST = "last"
"""Stands for the newest run, those inside others aside."""


def database(db: str | None, env: Mapping[str, str]) -> Path:
    """The file that `--db` or the environment names.

    Raises:
        ConfigError: `--db` is empty, as where a script's variable is not set.
    """
    if db is not None and not db.strip():
        raise ConfigError("--db is empty.", hint="Name a path, or leave the option away.")
    return Path(db).expanduser() if db is not None else default_path(env)


def query_database(path: Path, query: Callable[[Journal], Awaitable[T]]) -> T:
    """What `query` finds in the database.

    Raises:
        JournalError: there is no database, or it cannot be read.
    """

    async def ask() -> T:
        async with SqliteJournal(path, read_only=True) as journal:
            return await query(journal)

    return asyncio.run(ask())


def load_run(path: Path, run_prefix: str) -> Trace:
    """The run whose id is `given` or begins with it; `last` is the newest.

    Raises:
        RunNotFound: there is none.
        ConfigError: several begin so.
    """

    async def load(journal: Journal) -> Trace:
        run_id = await find_run(journal, path, run_prefix.strip())
        return Trace(run_id, await journal.load(run_id))

    trace = query_database(path, load)
    if not trace.events:
        raise RunNotFound(
            f"{path}: the run {trace.run_id} ended before its first event was written; there is nothing in it."
        )
    return trace


def require_whole(path: Path, trace: Trace) -> None:
    """Refuse a run that was edited: nothing may be made of a history that did not happen.

    Raises:
        JournalTampered: names the first event that is not as it was written.
    """
    flaw = query_database(path, lambda journal: journal.verify(trace.run_id)).first
    if flaw is not None and flaw.what != "unchained":
        raise JournalTampered(
            f"{path}: run {trace.run_id!r} was changed after it was written: {flaw.text}.",
            hint=f"`tao verify {trace.run_id}` lists what was found; restore a backup.",
        )


def make_private(path: Path, *, expected: bool) -> None:
    """Make a database that is not there yet readable by its owner only; the journal then finds an empty file.

    A folder that is made for it is told, unless it is `expected`: its name may be a slip.
    """
    with suppress(OSError):  # the journal says what is wrong with the place
        if path.exists():
            return
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700, parents=True)
            if not expected:
                print_stderr(f"The folder {path.parent} was made for the database.")
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


@contextmanager
def warn_if_workspace_is_new(workspace: Path | str | None) -> Iterator[None]:
    """Say so where the folder of the file tools was not there before: its name may be a slip."""
    absent = workspace is not None and not Path(workspace).exists()
    try:
        yield
    finally:
        if absent and workspace is not None and Path(workspace).exists():
            print_stderr(f"The folder {workspace} was made for the workspace.")


def count_orphaned_runs(path: Path) -> int:
    """How many runs of the database a dead process left unfinished: one look, before anything else is done.

    0 where that cannot be told.
    """

    async def count(journal: Journal) -> int:
        run_locks = locks_of(journal)
        return 0 if run_locks is None else len(await run_locks.orphans())

    try:
        return query_database(path, count) if path.exists() else 0
    except (JournalError, OSError):  # who uses the database will say what is wrong with it
        return 0


def holder_of(path: Path, run_id: str) -> LockHolder | None:
    """Who is at work on a run; None: nobody, or nobody can tell."""

    async def find(journal: Journal) -> LockHolder | None:
        run_locks = locks_of(journal)
        return None if run_locks is None else await run_locks.holder(run_id)

    return query_database(path, find)


async def find_run(journal: Journal, path: Path, run_prefix: str) -> str:
    rows = await journal.runs(limit=_ALL)
    if any(row.run_id == run_prefix for row in rows):
        return run_prefix
    matches = [row.run_id for row in rows if run_prefix and row.run_id.startswith(run_prefix)]
    if run_prefix == LAST and rows:
        ids = {row.run_id for row in rows}
        matches = [row.run_id for row in rows if row.run_id.rpartition(".")[0] not in ids][:1]
    if outer := [run_id for run_id in matches if all(f"{run}.".startswith(f"{run_id}.") for run in matches)]:
        return outer[0]  # with the runs inside it
    if not matches:
        raise RunNotFound(f"{path}: there is no run {run_prefix!r}.", hint="`tao runs` lists those that exist.")
    listing = ", ".join(matches[:_SHOWN]) + (" …" if len(matches) > _SHOWN else "")
    raise ConfigError(f"{len(matches)} runs begin with {run_prefix!r}: {listing}.", hint="Give more of the id.")
