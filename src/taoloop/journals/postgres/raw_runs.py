"""Runs as a PostgreSQL journal stores them: taken out for archives, and put in from archives and other databases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from taoloop.core.stored_events import description_digest
from taoloop.journals.postgres import run_log, schema
from taoloop.journals.postgres.reading import OF_RUN, missing
from taoloop.journals.postgres.spending import UsageSums
from taoloop.journals.postgres.statements import MONTH, stored_text
from taoloop.journals.raw_runs import RawEvent, RawRun
from taoloop.journals.run_check import LogEntry

if TYPE_CHECKING:
    from taoloop.journals.postgres.connections import JournalDatabase
    from taoloop.journals.postgres.driver import PostgresConnection
    from taoloop.journals.usage import UsageRow

_ROW = """
SELECT status, fence, sealed_later, started_at, updated_at, task, agent, parent, key, model,
  (SELECT body FROM @.description WHERE digest = run.description)
FROM @.run WHERE id = $1
"""
_EVENTS = f"SELECT seq, at, kind, fence, body, encode(link, 'hex') FROM @.event WHERE {OF_RUN} ORDER BY seq"  # noqa: S608  # no input
_ARTIFACTS = f"SELECT ref, form, body FROM @.artifact WHERE {OF_RUN} ORDER BY ref"  # noqa: S608  # no input
_ADD: Final = f"""
INSERT INTO @.run (number, id, born, status, fence, events, link, sealed_later, started_at, updated_at, task, agent,
  parent, key, model, description)
SELECT nextval('@.run_number'), $1, {MONTH}, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14
ON CONFLICT (id) DO NOTHING RETURNING number, born
"""  # no input
_ADD_EVENTS = """
INSERT INTO @.event (number, born, seq, at, kind, fence, body, link, xid)
SELECT $1::bigint, $2::date, e.*, pg_current_xact_id()
FROM unnest($3::int[], $4::float8[], $5::text[], $6::int[], $7::text[], $8::bytea[]) AS e
"""
_ADD_ARTIFACTS = """
INSERT INTO @.artifact (number, born, ref, form, body)
SELECT $1::bigint, $2::date, a.* FROM unnest($3::text[], $4::text[], $5::bytea[]) AS a
"""
_COPY_LOG = """
INSERT INTO @.run_log (number, run_id, first, sealed_later, link, pruned)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::boolean[], $5::bytea[], $6::text[])
ON CONFLICT (number) DO NOTHING
"""


async def raw_run(database: JournalDatabase, run_id: str, connection: PostgresConnection) -> RawRun:
    """A run as it is stored, in a transaction of one snapshot.

    Raises:
        RunNotFound: there is no such run.
    """
    row = await connection.fetchrow(database.sql(_ROW), run_id)
    if row is None:
        raise await missing(database, run_id, connection)
    status, fence, later, started_at, updated_at, task, agent, parent, key, model, description = row
    events = await connection.fetch(database.sql(_EVENTS), run_id)
    artifacts = await connection.fetch(database.sql(_ARTIFACTS), run_id)
    return RawRun(
        run_id=run_id,
        status=status,
        fence=fence,
        sealed_later=later,
        started_at=started_at,
        updated_at=updated_at,
        task=task.decode(),
        agent=agent,
        parent=parent,
        key=key,
        model=model,
        description=(description or b"").decode(),
        events=tuple(RawEvent(*event) for event in events),
        artifacts=tuple((ref, form, body.decode()) for ref, form, body in artifacts),
    )


async def add_raw_runs(
    database: JournalDatabase, runs: Sequence[RawRun], connection: PostgresConnection, *, with_log: bool = True
) -> list[str]:
    """Store runs that are not there, in a transaction; what they used is not counted again.

    Without `with_log` the log of runs is copied apart (`copy_log`).
    """
    usage, added = UsageSums(database, connection), list[str]()
    while not await usage.update():
        pass
    await run_log.hold(database, connection)
    for run in runs:
        if await _add(database, run, connection):
            added.append(run.run_id)
    begun = [
        (run.run_id, bytes.fromhex(run.events[0].link), None) for run in runs if run.run_id in added and run.events
    ]
    if with_log:
        await run_log.enter(database, connection, begun)
    await usage.skip_own()
    return added


async def copy_log(
    database: JournalDatabase, entries: Sequence[LogEntry], usage: Sequence[UsageRow], connection: PostgresConnection
) -> None:
    """Take over the log of runs of another database as it is, and its sums of usage, in a transaction."""
    if entries:
        columns = zip(*((*row[:3], bool(row[3]), *row[4:]) for row in entries), strict=True)
        await connection.execute(database.sql(_COPY_LOG), *map(list, columns))
        await schema.note(connection, database.settings.schema, "log_end", str(entries[-1].number))
    await UsageSums(database, connection).replace(usage)


async def _add(database: JournalDatabase, run: RawRun, connection: PostgresConnection) -> bool:
    digest = description_digest(run.events[0].body.encode()) if run.events else None
    description = bytes.fromhex(digest) if digest is not None and run.description else None
    if description is not None:
        statement = "INSERT INTO @.description VALUES ($1, $2) ON CONFLICT DO NOTHING"
        await connection.execute(database.sql(statement), description, run.description.encode())
    parent = None if run.parent is None else stored_text(run.parent)
    row = await connection.fetchrow(
        database.sql(_ADD),
        *(run.run_id, run.status, run.fence, len(run.events), bytes.fromhex(run.head), run.sealed_later),
        *(run.started_at, run.updated_at, run.task.encode(), stored_text(run.agent), parent),
        *(stored_text(run.key), stored_text(run.model), description),
    )
    if row is None:
        return False
    if run.events:
        seqs, times, kinds, fences, bodies, links = map(list, zip(*run.events, strict=True))
        values = (seqs, times, kinds, fences, bodies, [bytes.fromhex(str(link)) for link in links])
        await connection.execute(database.sql(_ADD_EVENTS), *row, *values)
    if run.artifacts:
        refs, forms, texts = map(list, zip(*run.artifacts, strict=True))
        await connection.execute(database.sql(_ADD_ARTIFACTS), *row, refs, forms, [text.encode() for text in texts])
    return True
