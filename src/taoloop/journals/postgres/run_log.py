"""The log of runs: which runs began and which retention removed, in one hash chain, so that a removed run is missed.

A chain has one end, and writers that each waited for it would wait for each other's commits. So runs are entered a
moment after they began, by one process at a time, from a position on, as the other readers do it. A run that somebody
removes within that moment leaves no entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from taoloop.core.stored_events import LOG_ORIGIN, LogReport, log_hash
from taoloop.journals.postgres import schema
from taoloop.journals.postgres.positions import NEW, START, WITHIN, parse_position, read_part
from taoloop.journals.run_check import LogEntry, log_flaws, run_flaws

if TYPE_CHECKING:
    from taoloop.journals.postgres.connections import JournalDatabase
    from taoloop.journals.postgres.driver import PostgresConnection

_AT_ONCE = 20_000
"""Events that are looked at in one transaction."""

_NOTE: Final = "log"
_POSITION = "SELECT value FROM @.about WHERE key = 'log'"
_BEGUN = f"""
SELECT id, start.link FROM (SELECT number, born, link, xid FROM @.event WHERE {WITHIN} AND seq = 0) AS start
JOIN (SELECT number, born, id FROM @.run) AS run USING (number, born)
WHERE NOT EXISTS (SELECT 1 FROM @.run_log WHERE run_id = id AND run_log.first = start.link AND pruned IS NULL)
ORDER BY xid, number
"""  # noqa: S608  # no input
_END = """
SELECT coalesce((SELECT value::bigint FROM @.about WHERE key = 'log_end'), 0),
  (SELECT link FROM @.run_log ORDER BY number DESC LIMIT 1)
"""
_ENTER = """
INSERT INTO @.run_log (number, run_id, first, sealed_later, link, pruned)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::boolean[], $5::bytea[], $6::text[])
"""
_ENTRIES = "SELECT number, run_id, first, sealed_later, link, pruned FROM @.run_log ORDER BY number"
# Those that the log should have: a run that began a moment ago is none of them.
_FIRSTS = f"""
SELECT id, event.link FROM @.event JOIN @.run USING (number, born) WHERE seq = 0 AND NOT {NEW}
"""  # noqa: S608  # no input
_TRY = "SELECT pg_try_advisory_xact_lock(hashtext($1), hashtext($2))"


async def enter_begun(database: JournalDatabase, connection: PostgresConnection, *, wait: bool = True) -> bool:
    """Enter a part of the runs that began, in a transaction. True: there are no more, or another process does it."""
    name = database.settings.schema
    if wait:
        await schema.lock(connection, name, _NOTE)
    elif not await connection.fetchval(_TRY, f"taoloop {name}", _NOTE):
        return True
    noted = await connection.fetchval(database.sql(_POSITION))
    position = START if noted is None else parse_position(noted)
    reached, is_last = await read_part(connection, database, position, _AT_ONCE)
    if reached == position:
        return True
    rows = await connection.fetch(database.sql(_BEGUN), *position.values, *reached.values)
    await enter(database, connection, [(run_id, first, None) for run_id, first in rows])
    await schema.note(connection, name, _NOTE, str(reached))
    return is_last


async def enter(
    database: JournalDatabase,
    connection: PostgresConnection,
    entries: Sequence[tuple[str, bytes, str | None]],
    *,
    sealed_later: frozenset[str] = frozenset(),
) -> None:
    """Add entries, in a transaction that holds the lock of the log.

    Each has its run, the link of its first event, and None; or, of a run that is removed, the digest of its record and
    the record. `sealed_later` are the runs that were entered only when an older database was upgraded.
    """
    if not entries:
        return
    end, last = await connection.fetchrow(database.sql(_END))
    last = LOG_ORIGIN if last is None else last
    rows = []
    for number, (run_id, first, record) in enumerate(entries, start=end + 1):
        is_later = run_id in sealed_later and record is None
        last = log_hash(last, number, run_id, first, is_sealed_later=is_later)
        rows.append((number, run_id, first, is_later, last, record))
    await connection.execute(database.sql(_ENTER), *map(list, zip(*rows, strict=True)))
    await schema.note(connection, database.settings.schema, "log_end", str(rows[-1][0]))


async def hold(database: JournalDatabase, connection: PostgresConnection) -> None:
    """Hold the log until the transaction ends, with all runs in it that began."""
    while not await enter_begun(database, connection):
        pass


async def verify_log(database: JournalDatabase, connection: PostgresConnection) -> LogReport:
    """Compare the log of runs with the runs that are stored, in a transaction of one snapshot."""
    end, _ = await connection.fetchrow(database.sql(_END))
    rows = [LogEntry(*row) for row in await connection.fetch(database.sql(_ENTRIES))]
    noted = await connection.fetchval(database.sql(_POSITION))
    position = START if noted is None else parse_position(noted)
    firsts = {str(row[0]): row[1] for row in await connection.fetch(database.sql(_FIRSTS), *position.values)}
    stored = [run_id for (run_id,) in await connection.fetch(database.sql("SELECT id FROM @.run"))]
    flaws = [*log_flaws(rows, end), *run_flaws(rows, firsts)]
    return LogReport(
        run_ids=tuple(stored),
        links=tuple(row.link.hex() for row in rows),
        flaws=tuple(flaws),
        sealed_later=sum(1 for row in rows if row.sealed_later),
        pruned=sum(1 for row in rows if row.record is not None),
    )
