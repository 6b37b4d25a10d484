"""Moving a SQLite database into PostgreSQL: every run as it is, the log of runs, and what was used; then a check.

It can be stopped and started again at any time: runs that are there are not copied again. The source is only read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from taoloop.errors import JournalError
from taoloop.journals.base import RUNNING, translate
from taoloop.journals.postgres.journal import PostgresJournal
from taoloop.journals.postgres.raw_runs import add_raw_runs, copy_log
from taoloop.journals.raw_runs import RawRun
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.translation import mark

_ALL = 10_000_000
_AT_ONCE = 2_000
"""Events that are stored in one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReport:
    """What a move did, once all of it was checked."""

    runs: int
    """How many runs the source has."""

    copied: int
    """How many of them were copied this time."""

    events: int
    """How many events they have."""

    damaged: tuple[str, ...]
    """Runs that were not as they were written before the move; they were copied as they are."""


async def move(source: SqliteJournal, target: PostgresJournal, report: Callable[[int, int], None]) -> MoveReport:
    """Copy all runs of `source` into `target`, and see that they are there; `report` is told how many of how many.

    Raises:
        JournalError: a run is being worked on, the target has other runs, or a run is not the same there; what was
            copied until then stays, and the next attempt goes on from there.
    """
    rows = list(reversed(await source.runs(limit=_ALL)))
    run_ids = [row.run_id for row in rows]
    await _require_idle(source, [row.run_id for row in rows if row.status == RUNNING])
    there = {row.run_id for row in await target.runs(limit=_ALL)}
    if others := there - set(run_ids):
        text = mark("{path}: the database has runs of its own, such as {run_id!r}; nothing was copied.")
        message = translate(text, path=target.location, run_id=min(others))
        raise JournalError(message, hint=translate("Name an empty database, or another schema with ?schema=NAME."))
    # The log first: what it has is not entered again when the runs come.
    log = partial(copy_log, target.database, await source.log_entries(), await source.usage())
    await target.database.run_in_transaction(log)
    waiting, copied = list[RawRun](), 0
    missing = [run_id for run_id in run_ids if run_id not in there]
    for number, run_id in enumerate(missing, start=1):
        waiting.append(await source.raw_run(run_id))
        if sum(len(run.events) for run in waiting) >= _AT_ONCE or number == len(missing):
            work = partial(add_raw_runs, target.database, tuple(waiting), with_log=False)
            copied += len(await target.database.run_in_transaction(work))
            waiting.clear()
            report(number, len(missing))
    return await _checked(source, target, run_ids, copied)


async def _require_idle(source: SqliteJournal, run_ids: list[str]) -> None:
    for run_id in run_ids:
        if source.run_locks is not None and (holder := await source.run_locks.holder(run_id)) is not None:
            text = mark("{path}: {holder} is at work on run {run_id!r}; nothing was copied.")
            message = translate(text, path=source.path, holder=holder, run_id=run_id)
            raise JournalError(message, hint=translate("Stop what uses the database, and try again."))


async def _checked(source: SqliteJournal, target: PostgresJournal, run_ids: list[str], copied: int) -> MoveReport:
    """Compare number of events, head and artifacts of every run, and the log."""
    events, damaged = 0, list[str]()
    for run_id in run_ids:
        before, after = await source.verify(run_id), await target.verify(run_id)
        if (before.events, before.head) != (after.events, after.head) or (before.whole and not after.whole):
            text = mark("{path}: run {run_id!r} is not what it is in {source}.")
            message = translate(text, path=target.location, run_id=run_id, source=source.path)
            raise JournalError(message, hint=translate("Remove the schema, and move the database again."))
        events += after.events
        if not before.whole:
            damaged.append(run_id)
    before_log, after_log = await source.verify_log(), await target.verify_log()
    if before_log.head != after_log.head:
        text = mark("{path}: the log of runs is not what it is in {source}.")
        message = translate(text, path=target.location, source=source.path)
        raise JournalError(message, hint=translate("Remove the schema, and move the database again."))
    return MoveReport(runs=len(run_ids), copied=copied, events=events, damaged=tuple(damaged))
