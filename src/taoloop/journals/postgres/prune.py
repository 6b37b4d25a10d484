"""Removing runs: their rows go, their records enter the log of runs, and months without runs are dropped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import asyncpg

from taoloop.errors import JournalCorrupt
from taoloop.journals.base import RUNNING, WAITING, translate
from taoloop.journals.postgres import run_log, schema
from taoloop.journals.postgres.reading import linked_rows, verify
from taoloop.journals.postgres.spending import UsageSums
from taoloop.journals.retention import (
    PrunedRun,
    PruneReport,
    Retention,
    StoredRun,
    due_groups,
    encode_record,
    has_open_calls,
    record_digest,
)
from taoloop.translation import mark

if TYPE_CHECKING:
    from taoloop.journals.postgres.connections import JournalDatabase
    from taoloop.journals.postgres.driver import PostgresConnection

_ROWS = """
SELECT id, parent, status, updated_at, CASE WHEN first.body LIKE '%"undoes":{%' THEN first.body END
FROM @.run LEFT JOIN @.event AS first ON first.number = run.number AND first.born = run.born AND first.seq = 0
WHERE events > 0 ORDER BY run.number
"""
_STATE = """
SELECT id, agent, status, started_at, updated_at, events, link FROM @.run WHERE id = ANY($1::text[]) FOR UPDATE
"""
_REMOVALS = (
    "DELETE FROM @.{table} USING @.run WHERE run.id = ANY($1::text[]) AND {table}.number = run.number"
    " AND {table}.born = run.born"
)
_MONTHS = """
SELECT relid::regclass::text FROM pg_partition_tree(to_regclass($1)) WHERE isleaf
AND right(relid::regclass::text, 8) < $2 AND relid::regclass::text ~ '_[0-9]{4}_[0-9]{2}$'
"""
_USED_MONTHS = "SELECT DISTINCT to_char(born, 'YYYY_MM') FROM @.run"


async def prune(database: JournalDatabase, keep: Retention, now: float, *, is_dry_run: bool) -> PruneReport:
    """Remove what is due, a run with those inside it at a time.

    Raises:
        JournalError: the database cannot be read or written; what was removed until then has its records.
    """
    pruned: list[PrunedRun] = []
    damaged: list[str] = []
    for group, rule in _due(database, keep, now, await database.run(lambda c: c.fetch(database.sql(_ROWS)))):
        run_ids = [row.run_id for row in group]
        async with database.transaction(snapshot=True) as connection:
            reports = [await verify(database, run_id, connection) for run_id in run_ids]
            bad = [report.run_id for report in reports if not report.whole]
            damaged += bad
            if bad or await _has_open_calls(database, run_ids, connection):
                continue
        heads = {report.run_id: report.head for report in reports}
        async with database.transaction() as connection:
            records = await _records(database, run_ids, heads, rule, now, connection)
            if records and not is_dry_run:
                await _remove(database, records, connection)
        pruned += records
    if not is_dry_run:
        if pruned:
            await _remove_descriptions(database)
        await drop_empty_months(database)
    return PruneReport(pruned=tuple(pruned), damaged=tuple(damaged))


async def drop_empty_months(database: JournalDatabase) -> list[str]:
    """Drop the partitions of past months that have no runs any more; returns which.

    Those that are in use at this moment stay until the next time.
    """
    dropped: list[str] = []
    name = schema.quoted(database.settings.schema)
    try:
        async with database.transaction() as connection:
            await schema.lock(connection, database.settings.schema, "schema")
            await connection.execute("SET LOCAL lock_timeout = '2s'")
            used = {row[0] for row in await connection.fetch(database.sql(_USED_MONTHS))}
            month = await connection.fetchval("SELECT '_' || to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM')")
            for table in ("event", "artifact"):
                for (partition,) in await connection.fetch(_MONTHS, f"{name}.{table}", month):
                    if partition[-7:] not in used:
                        await connection.execute(f"DROP TABLE {partition}")
                        dropped.append(partition)
    except (asyncpg.LockNotAvailableError, asyncpg.InsufficientPrivilegeError):
        return []  # somebody reads them, or they are another role's
    return dropped


def _due(
    database: JournalDatabase, keep: Retention, now: float, rows: Sequence[Sequence[Any]]
) -> Iterator[tuple[list[StoredRun], str]]:
    runs = []
    for run_id, parent, status, updated_at, body in rows:
        try:
            undoes = None if body is None else (json.loads(body).get("undoes") or {}).get("run_id")
        except (ValueError, AttributeError, RecursionError) as error:
            text = mark("{path}: the first event of a run is not JSON; nothing was removed.")
            message = translate(text, path=database.location)
            raise JournalCorrupt(message, hint=translate("`tao verify --all` finds the run.")) from error
        runs.append(StoredRun(run_id, undoes or parent, status not in (RUNNING, WAITING), updated_at))
    return due_groups(runs, keep, now)


async def _has_open_calls(database: JournalDatabase, run_ids: Sequence[str], connection: PostgresConnection) -> bool:
    for run_id in run_ids:
        if has_open_calls(row.decode() for row in await linked_rows(database, run_id, connection)):
            return True
    return False


async def _records(
    database: JournalDatabase,
    run_ids: Sequence[str],
    heads: dict[str, str],
    rule: str,
    now: float,
    connection: PostgresConnection,
) -> list[PrunedRun]:
    """The records of these runs; none if one of them is not as it was when it was looked at."""
    rows = {row[0]: row for row in await connection.fetch(database.sql(_STATE), list(run_ids))}
    records: list[PrunedRun] = []
    for run_id in run_ids:
        row = rows.get(run_id)
        if row is None or row[2] in (RUNNING, WAITING) or row[6].hex() != heads[run_id]:
            return []
        _, agent, status, started_at, ended_at, events, _ = row
        records.append(
            PrunedRun(
                run_id=run_id,
                agent=agent,
                status=status,
                started_at=started_at,
                ended_at=ended_at,
                events=events,
                head=heads[run_id],
                pruned_at=now,
                rule=rule,
            )
        )
    return records


async def _remove(database: JournalDatabase, records: Sequence[PrunedRun], connection: PostgresConnection) -> None:
    usage = UsageSums(database, connection)
    while not await usage.update():  # what they cost stays
        pass
    await run_log.hold(database, connection)
    texts = [encode_record(record) for record in records]
    entries = [(record.run_id, record_digest(text), text) for record, text in zip(records, texts, strict=True)]
    await run_log.enter(database, connection, entries)
    run_ids = [record.run_id for record in records]
    for table in ("event", "artifact"):
        await connection.execute(database.sql(_REMOVALS.format(table=table)), run_ids)
    await connection.execute(database.sql("DELETE FROM @.run_words WHERE run_id = ANY($1::text[])"), run_ids)
    await connection.execute(database.sql("DELETE FROM @.run WHERE id = ANY($1::text[])"), run_ids)


async def _remove_descriptions(database: JournalDatabase) -> None:
    """Remove the descriptions of agents that no run names any more.

    The lock keeps a run from beginning with one that is being removed: it waits for the runs that are beginning, and
    the statement after it sees them.
    """
    async with database.transaction() as connection:
        await connection.execute(database.sql("LOCK TABLE @.description IN SHARE ROW EXCLUSIVE MODE"))
        used = "SELECT 1 FROM @.run WHERE run.description = description.digest"
        await connection.execute(database.sql(f"DELETE FROM @.description WHERE NOT EXISTS ({used})"))  # noqa: S608  # no input
