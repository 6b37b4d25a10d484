"""Lists of runs: pages, counts, and what grew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from taoloop.journals.base import RunRow
from taoloop.journals.postgres.positions import NEW, SNAPSHOT, SnapshotPosition, position_of
from taoloop.journals.postgres.search import matching
from taoloop.journals.postgres.statements import stored_text
from taoloop.journals.queries import Growth, RunPage, RunQuery

if TYPE_CHECKING:
    from taoloop.journals.postgres.connections import JournalDatabase
    from taoloop.journals.postgres.driver import PostgresConnection

BEYOND: Final = 2**62
"""Above the number of every run."""

_ROWS = """
SELECT run.number, id, task, agent, status, started_at, updated_at, events, parent, key, model
FROM @.run {words} WHERE {conditions} ORDER BY run.number DESC LIMIT {limit}
"""
_COUNTS = "SELECT status, count(*) FROM @.run {words} WHERE {conditions} GROUP BY status"
_WORDS = "JOIN @.run_words AS found ON found.number = run.number"
_GREW = f"""
SELECT id, max(seq), max(xid)::text FROM @.event JOIN @.run USING (number, born)
WHERE {NEW} GROUP BY id
"""  # noqa: S608  # no input


async def find_runs(
    database: JournalDatabase, query: RunQuery, below: int, limit: int, connection: PostgresConnection
) -> tuple[list[RunRow], int | None]:
    """The newest runs below a number, at most `limit`, and the number to go on below; None at the end."""
    limit = max(0, limit)
    terms = await matching(database, query.text, connection)
    if terms == "":
        return [], None
    conditions, values = _conditions(query, terms, with_status=True)
    values += [below, limit + 1]
    conditions += f" AND run.number < ${len(values) - 1}"
    statement = _ROWS.format(words=_words(terms), conditions=conditions, limit=f"${len(values)}")
    rows = await connection.fetch(database.sql(statement), *values)
    kept = rows[:limit]
    return [_run_row(row) for row in kept], kept[-1][0] if kept and len(rows) > limit else None


def page_of(rows: Sequence[RunRow], below: int | None) -> RunPage:
    """The page with these rows."""
    return RunPage(rows=tuple(rows), cursor=None if below is None else str(below))


async def count_runs(database: JournalDatabase, query: RunQuery, connection: PostgresConnection) -> dict[str, int]:
    """How many runs there are, by status."""
    terms = await matching(database, query.text, connection)
    if terms == "":
        return {}
    conditions, values = _conditions(query, terms, with_status=False)
    statement = database.sql(_COUNTS.format(words=_words(terms), conditions=conditions))
    return {row[0]: row[1] for row in await connection.fetch(statement, *values)}


async def growth_since(
    database: JournalDatabase, position: SnapshotPosition, connection: PostgresConnection
) -> Growth | None:
    """Which runs have events after a position, and where these end; None: the position is of another journal.

    In a transaction of one snapshot.
    """
    now = position_of(*await connection.fetchrow(database.sql(SNAPSHOT)))
    if position.limit > now.limit and not now.running and position.limit > await _next_transaction(connection):
        return None
    rows = await connection.fetch(database.sql(_GREW), *position.values)
    return Growth(position=str(now), runs={row[0]: row[1] for row in rows})


async def _next_transaction(connection: PostgresConnection) -> int:
    return int(await connection.fetchval("SELECT pg_snapshot_xmax(pg_current_snapshot())::text"))


def _words(terms: str | None) -> str:
    return "" if terms is None else _WORDS


def _run_row(row: Sequence[Any]) -> RunRow:
    _, run_id, task, agent, status, started_at, updated_at, events, parent, key, model = row
    return RunRow(
        run_id=run_id,
        task=task.decode("utf-8", "replace"),
        agent=agent,
        status=status,
        started_at=started_at,
        updated_at=updated_at,
        events=events,
        parent=parent,
        key=key,
        model=model,
    )


def _conditions(query: RunQuery, terms: str | None, *, with_status: bool) -> tuple[str, list[Any]]:
    """SQL that is true for the runs that fit, and its values."""
    values: list[Any] = []

    def value(content: Any) -> str:
        values.append(content)
        return f"${len(values)}"

    conditions = ["events > 0"]
    if terms is not None:
        conditions.append(f"found.words @@ {value(terms)}::text::tsquery")
    if with_status and query.statuses:
        conditions.append(f"status = ANY({value(list(query.statuses))}::text[])")
    if query.task is not None:
        conditions.append(f"task = {value(query.task.encode('utf-8', 'replace'))}")
    names = [name for name in ("agent", "model", "key") if getattr(query, name) is not None]
    conditions += [f"{name} = {value(stored_text(getattr(query, name)))}" for name in names]
    if query.since is not None:
        conditions.append(f"started_at >= {value(float(query.since))}")
    if query.until is not None:
        conditions.append(f"started_at < {value(float(query.until))}")
    if query.prefix:
        first = value(stored_text(query.prefix))
        conditions.append(f"id >= {first} AND id < {value(stored_text(query.prefix) + chr(0x10FFFF))}")
    if query.only_outermost:
        conditions.append("parent IS NULL")
    return " AND ".join(conditions), values
