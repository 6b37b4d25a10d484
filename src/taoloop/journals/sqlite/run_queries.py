"""Lists of runs in a SQLite journal: pages, counts, and what grew."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final

from taoloop.core.text import replace_surrogates
from taoloop.journals.base import RunRow
from taoloop.journals.queries import Growth, RunPage, RunQuery
from taoloop.journals.sqlite import schema
from taoloop.journals.sqlite.positions import Position, at, end

BEYOND: Final = 2**62
"""Above the number of every run."""

OLDER_RUNS = """
WITH run AS (
  SELECT number, id, status, task, agent, started_at, first.run_id IS NOT NULL AS begun,
    CASE WHEN json_valid(body) THEN json_extract(body, '$.parent') END AS parent,
    coalesce(CASE WHEN json_valid(body) THEN json_extract(body, '$.labels.key') END, '') AS key,
    coalesce(CASE WHEN json_valid(body) THEN json_extract(body, '$.agent.model') END, '') AS model
  FROM main.run AS own LEFT JOIN event AS first ON first.run_id = own.id AND first.seq = 0
)
"""
"""The rows of runs with the columns of the current schema, in a file that has not been brought up to date."""

_ROWS = """
SELECT number, id, task, agent, status, started_at,
  coalesce((SELECT at FROM event WHERE run_id = run.id ORDER BY seq DESC LIMIT 1), started_at),
  coalesce((SELECT max(seq) + 1 FROM event WHERE run_id = run.id), 0), parent, key, model
FROM run WHERE {conditions} ORDER BY number DESC LIMIT :limit
"""
_COUNTS = "SELECT status, count(*) FROM run {hits} WHERE {conditions} GROUP BY status"
_HITS = "JOIN (SELECT value AS hit FROM json_each(:numbers)) ON number = hit"  # half the time of IN, for many hits
_ALL_COUNTS = """
WITH other AS MATERIALIZED (
  SELECT status, count(*) AS n FROM run WHERE status < 'completed' GROUP BY status
  UNION ALL SELECT status, count(*) FROM run WHERE status > 'completed' GROUP BY status
)
SELECT status, sum(n) FROM (
  SELECT status, n FROM other
  UNION ALL SELECT 'completed', (SELECT count(*) FROM run) - (SELECT coalesce(sum(n), 0) FROM other)
  UNION ALL SELECT status, -count(*) FROM run WHERE NOT begun GROUP BY status
  {inner}
) GROUP BY status HAVING sum(n) > 0
"""
"""Nearly all runs are completed. SQLite counts all rows without reading them, so those are what is left of all."""

_NOT_INNER = "UNION ALL SELECT status, -count(*) FROM run WHERE parent IS NOT NULL GROUP BY status"
_GREW = "SELECT run_id, max(seq), max(rowid) FROM event NOT INDEXED WHERE rowid > ? GROUP BY run_id"
"""By rowid: left to itself, SQLite takes the index of runs for the grouping, and reads all of it."""

Hits = Callable[[int, int], "list[tuple[int, str]]"]
"""The newest runs that a text is found in: at most so many below a number, as numbers and ids."""

_MOST_HITS_AT_ONCE = 2_000


def find_runs(
    query: RunQuery, below: int, limit: int, hits: Hits | None, connection: sqlite3.Connection
) -> tuple[list[RunRow], int | None]:
    """The newest runs below a number, at most `limit`, and the number to go on below; None at the end."""
    limit = max(0, limit)
    if hits is None:
        rows = _rows(query, connection, below=below, limit=limit + 1)
        return _cut(rows, limit)
    rows, at_once = [], max(4 * limit, 200)
    while len(rows) <= limit:
        numbers = dict(hits(below, at_once))
        rows += _rows(query, connection, below=below, limit=limit + 1 - len(rows), numbers=numbers)
        if len(numbers) < at_once:
            break
        below, at_once = min(numbers), _MOST_HITS_AT_ONCE
    return _cut(rows, limit)


def page_of(rows: Sequence[RunRow], below: int | None) -> RunPage:
    """The page with these rows."""
    return RunPage(rows=tuple(rows), cursor=None if below is None else str(below))


def count_runs(query: RunQuery, numbers: Callable[[], str] | None, connection: sqlite3.Connection) -> dict[str, int]:
    """How many runs there are, by status; `numbers` are those that a text is found in, as a JSON array."""
    version = schema.version(connection)
    is_current = version >= schema.INDEXED
    conditions, values = _conditions(query, with_status=False)
    if numbers is None and is_current and not values and (version >= schema.COUNTED or not query.only_outermost):
        inner = _NOT_INNER if query.only_outermost else ""
        return dict(connection.execute(_ALL_COUNTS.format(inner=inner)).fetchall())
    hits = ""
    if numbers is not None:
        hits, values["numbers"] = _HITS, numbers()
    statement = ("" if is_current else OLDER_RUNS) + _COUNTS.format(hits=hits, conditions=conditions)
    return dict(connection.execute(statement, values).fetchall())


def growth_since(position: Position, connection: sqlite3.Connection) -> Growth:
    """Which runs have events after a position, and where these end."""
    connection.execute("BEGIN")
    try:
        rows = connection.execute(_GREW, (position.resolve(connection),)).fetchall()
        now = at(connection, max(rowid for _, _, rowid in rows)) if rows else end(connection)
    finally:
        connection.execute("ROLLBACK")
    return Growth(position=str(now), runs={run_id: seq for run_id, seq, _ in rows})


def _rows(
    query: RunQuery,
    connection: sqlite3.Connection,
    *,
    below: int,
    limit: int,
    numbers: dict[int, str] | None = None,
) -> list[tuple[Any, ...]]:
    conditions, values = _conditions(query, with_status=True)
    values |= {"below": below, "limit": limit}
    conditions += " AND number < :below"
    if numbers is not None:
        conditions += " AND number IN (SELECT value FROM json_each(:numbers))"
        values |= {"numbers": json.dumps(list(numbers)), "limit": BEYOND}
    older = "" if schema.version(connection) >= schema.INDEXED else OLDER_RUNS
    rows = connection.execute(older + _ROWS.format(conditions=conditions), values).fetchall()
    if numbers is not None:  # the number of a removed run may have been given again
        rows = [row for row in rows if numbers.get(row[0]) == row[1]][:limit]
    return rows


def _cut(rows: list[tuple[Any, ...]], limit: int) -> tuple[list[RunRow], int | None]:
    kept = rows[:limit]
    below = kept[-1][0] if kept and len(rows) > limit else None
    return [_run_row(*row) for row in kept], below


def _run_row(_number: int, *row: Any) -> RunRow:
    run_id, task, agent, status, started_at, updated_at, events, parent, key, model = row
    return RunRow(
        run_id=run_id,
        task=task,
        agent=agent,
        status=status,
        started_at=started_at,
        updated_at=updated_at,
        events=events,
        parent=parent,
        key=key,
        model=model,
    )


def _conditions(query: RunQuery, *, with_status: bool) -> tuple[str, dict[str, Any]]:
    """SQL that is true for the runs that fit, and its values."""
    conditions, values = ["begun"], dict[str, Any]()
    if with_status and query.statuses:
        names = [f"status{number}" for number in range(len(query.statuses))]
        conditions.append(f"status IN ({', '.join(f':{name}' for name in names)})")
        values |= dict(zip(names, query.statuses, strict=True))
    for name in ("task", "agent", "model", "key"):
        if (value := getattr(query, name)) is not None:
            conditions.append(f"{name} = :{name}")
            values[name] = replace_surrogates(value)
    if query.since is not None:
        conditions.append("started_at >= :since")
        values["since"] = query.since
    if query.until is not None:
        conditions.append("started_at < :until")
        values["until"] = query.until
    if query.prefix:
        # By the index of ids; to look for 50 of them in the order of numbers could take all rows.
        conditions.append("number IN (SELECT number FROM run WHERE id >= :prefix AND id < :beyond)")
        values |= {"prefix": query.prefix, "beyond": f"{query.prefix}\U0010ffff"}
    if query.only_outermost:
        conditions.append("parent IS NULL")
    return " AND ".join(conditions), values
