"""The environment of a command, and the database of runs: where it is, and what is in it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from taoloop.cli.translation import translate
from taoloop.cli.ui.stdio import print_stderr
from taoloop.core.trace import Trace
from taoloop.errors import (
    ConfigError,
    JournalError,
    JournalFull,
    JournalLocked,
    JournalTampered,
    RunNotFound,
    RunPruned,
)
from taoloop.journals.addresses import DatabaseAddress, database_address, default_database, journal_at
from taoloop.journals.base import Journal, LockHolder, locks_of
from taoloop.journals.postgres.address import is_postgres
from taoloop.journals.queries import RunPage, RunQuery, queries_of, read_start
from taoloop.journals.sqlite.file import default_path
from taoloop.models import env_file
from taoloop.tools.settings_check import expand_home
from taoloop.translation import mark

T = TypeVar("T")

load_environment = partial(env_file.load_environment, report=print_stderr)
"""The variables of the process over those of the `.env` file in the current folder, or in the given one."""

ALL_RUNS = 10_000_000
"""As a limit: every run."""
_SHOWN = 5
_COMPARED = 1_000  # runs whose ids begin alike, to see whether they are all inside one of them

LAST = "last"
"""Names the newest run that is not inside another one."""


def database(db: str | None, env: Mapping[str, str]) -> DatabaseAddress:
    """The file, or the PostgreSQL database, that `--db` or the environment names.

    Raises:
        ConfigError: `--db` is empty, as where a script's variable is not set, or is no such address.
    """
    if db is not None and not db.strip():
        raise ConfigError(translate("--db is empty."), hint=translate("Name a path, or omit the option."))
    if db is None:
        return default_database(env)
    return database_address(db) if is_postgres(db) else expand_home(db)


def is_there(path: DatabaseAddress) -> bool:
    """Whether a database may be there: a file that is missing is not made by looking into it."""
    return not isinstance(path, Path) or path.exists()


def is_writable(path: DatabaseAddress) -> bool:
    """Whether a database may be written, for all that is known without trying it."""
    return not isinstance(path, Path) or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def file_beside(path: DatabaseAddress, env: Mapping[str, str]) -> Path:
    """The file beside which other files lie: the database, or where it were if it was not in PostgreSQL."""
    return path if isinstance(path, Path) else default_path(env)


def query_database(path: DatabaseAddress, query: Callable[[Journal], Awaitable[T]], *, read_only: bool = True) -> T:
    """What `query` finds in the database, or does in it if it is not `read_only`.

    Raises:
        JournalError: there is no database, or it cannot be read.
    """

    async def ask() -> T:
        async with journal_at(path, read_only=read_only) as journal:
            return await query(journal)

    return asyncio.run(ask())


def query_overview(path: DatabaseAddress, query: Callable[[Journal], Awaitable[T]]) -> T:
    """What `query` finds in the database, which may keep what it summed up: the next time only what is new is read.

    A database that cannot be written, or is of an older version, is only looked at.

    Raises:
        JournalError: there is no database, or it cannot be read.
    """

    async def ask(*, read_only: bool) -> T:
        async with journal_at(path, read_only=read_only) as journal:
            return await query(journal)

    async def is_current() -> bool:
        async with journal_at(path, read_only=True) as journal:
            return await journal.is_current()

    if asyncio.run(is_current()) and is_writable(path):
        with suppress(JournalLocked, JournalFull):  # it can be looked at all the same
            return asyncio.run(ask(read_only=False))
    return asyncio.run(ask(read_only=True))


def load_run(path: DatabaseAddress, run_prefix: str) -> Trace:
    """The run whose id is `run_prefix` or begins with it; `last` is the newest.

    Raises:
        RunNotFound: there is none.
        ConfigError: several begin so.
    """
    run_id = find_run_id(path, run_prefix)
    return Trace(run_id, query_database(path, lambda journal: journal.load(run_id)))


def find_run_id(path: DatabaseAddress, run_prefix: str) -> str:
    """The id of that run, of which only the first event is read.

    Raises:
        RunNotFound: there is none, or it has no event.
        ConfigError: several begin so.
    """

    async def find(journal: Journal) -> tuple[str, bool]:
        run_id = await find_run(journal, path, run_prefix.strip())
        return run_id, bool(await read_start(journal, run_id))

    run_id, has_begun = query_database(path, find)
    if not has_begun:
        text = mark("{path}: the run {run_id} ended before its first event was written; it is empty.")
        raise RunNotFound(translate(text, path=path, run_id=run_id))
    return run_id


def require_whole(path: DatabaseAddress, trace: Trace) -> None:
    """Refuse a run that was edited: nothing may be built on a history that did not happen.

    Raises:
        JournalTampered: names the first event that is not as it was written.
    """
    flaw = query_database(path, lambda journal: journal.verify(trace.run_id)).first
    if flaw is not None and flaw.what != "unchained":
        text = mark("{path}: run {run_id!r} was changed after it was written: {flaw}.")
        raise JournalTampered(
            translate(text, path=path, run_id=trace.run_id, flaw=flaw.text),
            hint=translate("`tao verify {run_id}` lists what was found; restore a backup.", run_id=trace.run_id),
        )


def make_private(path: DatabaseAddress, *, expected: bool) -> None:
    """Create a database that does not exist yet, readable by its owner only; the journal then finds an empty file.

    A folder that is created for it is reported unless it is `expected`: its name may be a typing error.
    """
    if not isinstance(path, Path):
        return
    with suppress(OSError):  # the journal says what is wrong with the place
        if path.exists():
            return
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700, parents=True)
            if not expected:
                print_stderr(translate("The folder {path} was created for the database.", path=path.parent))
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


@contextmanager
def warn_if_workspace_is_new(workspace: Path | str | None) -> Iterator[None]:
    """Report a folder of the file tools that did not exist before: its name may be a typing error."""
    absent = workspace is not None and not Path(workspace).exists()
    try:
        yield
    finally:
        if absent and workspace is not None and Path(workspace).exists():
            print_stderr(translate("The folder {path} was created for the workspace.", path=workspace))


def count_orphaned_runs(path: DatabaseAddress) -> int:
    """How many runs of the database a dead process left unfinished: one look, before anything else is done.

    0 if that is not known.
    """

    async def count(journal: Journal) -> int:
        run_locks = locks_of(journal)
        return 0 if run_locks is None else len(await run_locks.orphans())

    try:
        return query_database(path, count) if is_there(path) else 0
    except (JournalError, OSError):  # who uses the database will say what is wrong with it
        return 0


def holder_of(path: DatabaseAddress, run_id: str) -> LockHolder | None:
    """Who is working on a run; None if nobody is, or that is not known."""

    async def find(journal: Journal) -> LockHolder | None:
        run_locks = locks_of(journal)
        return None if run_locks is None else await run_locks.holder(run_id)

    return query_database(path, find)


async def find_run(journal: Journal, path: DatabaseAddress, run_prefix: str) -> str:
    """The id of the run that is meant: that id, the one that begins so, or the newest.

    Raises:
        RunNotFound: there is none.
        ConfigError: several begin so.
    """
    if run_prefix and await _has_run(journal, run_prefix):
        return run_prefix
    queries, query = queries_of(journal), RunQuery(prefix=run_prefix)
    if run_prefix == LAST and (newest := await _newest_run(journal)) is not None:
        return newest
    rows = (await queries.find(query, limit=_COMPARED)).rows if run_prefix else ()
    matches = [row.run_id for row in rows]
    if outer := [run_id for run_id in matches if all(f"{run}.".startswith(f"{run_id}.") for run in matches)]:
        return outer[0]  # with the runs inside it
    if not matches:
        await _refuse_pruned(journal, run_prefix)
        text = translate("{path}: there is no run {run!r}.", path=path, run=run_prefix)
        raise RunNotFound(text, hint=translate("`tao runs` lists those that exist."))
    listing = ", ".join(matches[:_SHOWN]) + (" …" if len(matches) > _SHOWN else "")
    count = sum((await queries.count(query)).values())
    text = translate("{n} runs begin with {run!r}: {runs}.", n=count, run=run_prefix, runs=listing)
    raise ConfigError(text, hint=translate("Give more of the id."))


async def _has_run(journal: Journal, run_id: str) -> bool:
    """Whether there is a run with this id that has events."""
    try:
        return bool(await read_start(journal, run_id))
    except RunNotFound:
        return False


async def _newest_run(journal: Journal) -> str | None:
    """The newest run that is not inside another one; None if there is none."""
    page = RunPage(rows=(), cursor="")
    while page.cursor is not None:
        page = await queries_of(journal).find(RunQuery(), cursor=page.cursor or None)
        for row in page.rows:
            outer = row.run_id.rpartition(".")[0]
            if not outer or not await _has_run(journal, outer):
                return row.run_id
    return None


async def _refuse_pruned(journal: Journal, run_id: str) -> None:
    """Say of a run that retention removed what is kept of it.

    Raises:
        RunPruned: it is such a run.
    """
    try:
        await journal.load(run_id)
    except RunPruned:
        raise
    except RunNotFound:
        return
