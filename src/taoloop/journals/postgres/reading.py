"""Reading the events of a run, whole or in part, and whether it is as it was written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from taoloop.core.events import Event, RunStarted
from taoloop.core.stored_events import ChainedEvent, ChainError, ChainReport, check, description_digest, genesis_hash
from taoloop.errors import JournalCorrupt, RunNotFound
from taoloop.journals.base import Artifact, translate
from taoloop.journals.postgres.statements import stored_text
from taoloop.journals.queries import RunPart
from taoloop.journals.refusals import run_missing
from taoloop.journals.retention import PrunedRun, decode_record, pruned_error
from taoloop.journals.run_check import artifact_flaws, row_flaws
from taoloop.translation import mark

if TYPE_CHECKING:
    from taoloop.journals.postgres.connections import JournalDatabase
    from taoloop.journals.postgres.driver import PostgresConnection

OF_RUN: Final = "number = (SELECT number FROM @.run WHERE id = $1) AND born = (SELECT born FROM @.run WHERE id = $1)"
"""The rows of one run, in its partition alone."""

_DESCRIPTION = """
CASE WHEN kind = 'run_started' THEN
  (SELECT body FROM @.description WHERE digest = (SELECT description FROM @.run WHERE id = $1)) END
"""
_EVENTS = f"SELECT seq, at, kind, body, link, {_DESCRIPTION} FROM @.event WHERE {OF_RUN} ORDER BY seq"  # noqa: S608  # no input
_PART = f"""
SELECT seq, at, kind, body, link, {_DESCRIPTION} FROM @.event WHERE {OF_RUN} AND seq > $2 AND seq < $3
AND ($5::text[] IS NULL OR kind = ANY($5)) AND ($6::text[] IS NULL OR EXISTS (
  SELECT 1 FROM unnest($6::text[]) AS name WHERE strpos(body, name) > 0))
ORDER BY seq {{order}} LIMIT $4
"""  # noqa: S608  # no input
_HAS_RUN = "SELECT 1 FROM @.run WHERE id = $1"
_RECORD = "SELECT pruned FROM @.run_log WHERE run_id = $1 AND pruned IS NOT NULL"
_ARTIFACT = f"SELECT form, body FROM @.artifact WHERE {OF_RUN} AND ref = $2"  # noqa: S608  # no input

_RUN_ROW = """
SELECT link, sealed_later, events, status, task, agent, started_at, parent, key, model, description
FROM @.run WHERE id = $1
"""
_ARTIFACTS = f"SELECT ref, form, body FROM @.artifact WHERE {OF_RUN} ORDER BY ref"  # noqa: S608  # no input

_MOST = 2**31 - 1  # above every seq
_PARTS = 2_000  # rows that are read at once where only some of them fit


async def linked_rows(database: JournalDatabase, run_id: str, connection: PostgresConnection) -> list[ChainedEvent]:
    """The events of a run as they are stored, readable or not.

    Raises:
        RunNotFound: there is no such run.
    """
    rows = [_chained(row) for row in await connection.fetch(database.sql(_EVENTS), run_id)]
    if not rows:
        await require_run(database, run_id, connection)
    return rows


async def load_events(database: JournalDatabase, run_id: str, connection: PostgresConnection) -> list[Event]:
    """All events of a run.

    Raises:
        RunNotFound: there is no such run.
        JournalCorrupt: one is missing or cannot be read.
    """
    return _events(database, run_id, await linked_rows(database, run_id, connection), first=0)


async def read_events(database: JournalDatabase, part: RunPart, connection: PostgresConnection) -> list[Event]:
    """The events of a part of a run.

    Raises:
        RunNotFound: there is no such run.
        JournalCorrupt: one is missing, where all between two places are read, or cannot be read.
    """
    run_id, limit = part.run_id, max(0, part.limit)
    calls = None if part.call_ids is None else frozenset(part.call_ids)
    statement = database.sql(_PART.format(order="DESC" if part.last else ""))
    # As JSON has it: what contains the name may be about the call; which does is seen below.
    names = None if calls is None else [json.dumps(call, ensure_ascii=False) for call in calls]
    after, before = min(part.after, _MOST), min(_MOST, _MOST if part.before is None else part.before)
    rows: list[ChainedEvent] = []
    while len(rows) < limit or not limit:
        at_once = limit if calls is None else _PARTS
        kinds = None if part.kinds is None else list(part.kinds)
        read = await connection.fetch(statement, run_id, max(-1, after), max(-1, before), at_once, kinds, names)
        rows += (row for row in map(_chained, read) if calls is None or _call_of(row) in calls)
        if len(read) < at_once or not limit or calls is None:
            break
        after, before = (after, read[-1][0]) if part.last else (read[-1][0], before)
    rows = rows[:limit]
    if part.last:
        rows.reverse()
    if not rows:
        await require_run(database, run_id, connection)
    is_whole = part.kinds is None and calls is None
    first = rows[0].seq if rows and (part.last or not is_whole) else max(-1, part.after) + 1
    return _events(database, run_id, rows, first=first if is_whole else None)


async def verify(database: JournalDatabase, run_id: str, connection: PostgresConnection) -> ChainReport:
    """Look through one run, in a transaction of one snapshot. Linear in its size; nothing is changed.

    Raises:
        RunNotFound: there is no such run.
    """
    rows = await linked_rows(database, run_id, connection)
    head = rows[-1].link if rows else genesis_hash(run_id)
    link, sealed_later, events, status, task, *columns, description = await connection.fetchrow(
        database.sql(_RUN_ROW), run_id
    )
    flaws = check(run_id, rows, link or genesis_hash(run_id))
    if events != len(rows) and not any(flaw.what == "cut" for flaw in flaws):
        text = mark("the list of runs gives another {name} than the events do ({value})")
        flaws.append(ChainError(None, "run_row", translate(text, name="events", value=events)))
    stored = (status, task.decode("utf-8", "replace"), *columns, (description or b"").hex().upper())
    flaws += row_flaws(rows, stored, stored_text)
    if rows:  # else it is replaced when it is created again
        flaws += artifact_flaws(rows, await connection.fetch(database.sql(_ARTIFACTS), run_id))
    return ChainReport(run_id=run_id, events=len(rows), head=head.hex(), flaws=tuple(flaws), sealed_later=sealed_later)


async def require_run(database: JournalDatabase, run_id: str, connection: PostgresConnection) -> None:
    """Refuse a run that is not there.

    Raises:
        RunPruned, RunNotFound: it is not, or not any more.
    """
    if await connection.fetchval(database.sql(_HAS_RUN), run_id) is None:
        raise await missing(database, run_id, connection)


async def missing(database: JournalDatabase, run_id: str, connection: PostgresConnection) -> RunNotFound:
    """The run is not there, or not any more."""
    record = await pruned_run(database, run_id, connection)
    return run_missing(database.location, run_id) if record is None else pruned_error(database.location, record)


async def pruned_run(database: JournalDatabase, run_id: str, connection: PostgresConnection) -> PrunedRun | None:
    """What is kept of a run that retention removed; None if it did not, or if the record is not one any more."""
    text = await connection.fetchval(database.sql(_RECORD), run_id)
    with suppress(ValueError, TypeError):  # somebody edited it, which `tao verify --all` shows
        return None if text is None else decode_record(text)
    return None


async def read_artifact(
    database: JournalDatabase, run_id: str, ref: str, connection: PostgresConnection
) -> Artifact | None:
    """One artifact of a run, or None."""
    row = await connection.fetchrow(database.sql(_ARTIFACT), run_id, ref)
    return None if row is None else Artifact(ref=ref, form=row[0], body=row[1].decode("utf-8", "replace"))


def _chained(row: Sequence[Any]) -> ChainedEvent:
    seq, at, kind, body, link, description = row
    return ChainedEvent(seq, at, kind, body.encode(), link, description or b"")


def _call_of(row: ChainedEvent) -> Any:
    with suppress(ValueError, RecursionError, AttributeError):  # it was edited, which `tao verify` shows
        return json.loads(row.body).get("call_id")
    return None


def _events(database: JournalDatabase, run_id: str, rows: Iterable[ChainedEvent], *, first: int | None) -> list[Event]:
    """The events in these rows, which begin with `first` and have no gap; None: whichever they are."""
    location, events = database.location, list[Event]()
    expected = first
    for row in rows:
        if expected is not None and row.seq != expected:
            text = mark("{path}: event {seq} of run {run_id!r} is missing.")
            raise JournalCorrupt(translate(text, path=location, seq=expected, run_id=run_id))
        expected = None if expected is None else row.seq + 1
        events.append(_event(location, run_id, row))
    return events


def _event(location: str, run_id: str, row: ChainedEvent) -> Event:
    if row.kind == RunStarted.kind and not row.description and description_digest(row.body) is not None:
        text = mark("the agent's description that event {seq} of run {run_id!r} names is missing.")
        problem = translate(text, seq=row.seq, run_id=run_id)
        raise JournalCorrupt(f"{location}: {problem}", hint=translate("Restore a backup."))
    try:
        return Event(row.seq, row.at, row.decode())
    except JournalCorrupt as error:
        text = f"{location}: event {row.seq} of run {run_id!r}: {error.message}"
        raise JournalCorrupt(text, hint=error.hint) from error
