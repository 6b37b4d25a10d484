"""The statements that write: each append is one of them, with its fence in it.

A row of `run` is found by id, fence, number of events and last link, changed, and only then do the events follow, all
in one statement: a writer that lost the run finds no row, and nothing is stored. The statement answers with one row in
either case, so many appends of many runs travel together.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Final, NamedTuple

from taoloop.core.events import RunStarted
from taoloop.core.text import replace_surrogates
from taoloop.journals.base import RUNNING, status_after
from taoloop.journals.process_identity import own_identity
from taoloop.journals.stored_append import FIRST_FENCE, Append, row_values

MONTH: Final = "date_trunc('month', now() AT TIME ZONE 'UTC')::date"
"""The partition of a run that is created now."""

NOW: Final = "extract(epoch FROM now())::double precision"

_LEASE = "CASE WHEN {lease} = 'Infinity' THEN 'infinity' ELSE now() + {lease} * interval '1 second' END"

_GROW = f"""
WITH taken AS (
  UPDATE @.run SET events = events + cardinality($7::text[]), link = $5,
    updated_at = coalesce(($6::float8[])[cardinality($6)], updated_at),
    status = coalesce($10, status),
    wake_at = CASE WHEN $11::float8 IS NULL THEN wake_at ELSE {_LEASE.format(lease="$11::float8")} END
    {{start}}
  WHERE id = $1 AND fence = $2 AND events = $3 AND link = $4
  RETURNING number, born
), stored AS ({{events}}){{more}}
SELECT (SELECT number FROM taken) AS number
"""  # noqa: S608  # no input
_START = """, started_at = $12, task = $13, agent = $14, parent = $15, key = $16, model = $17, description = $18"""
_DESCRIBE = """, described AS (
  INSERT INTO @.description SELECT $18::bytea, $19::bytea WHERE $18::bytea IS NOT NULL ON CONFLICT DO NOTHING
)"""
_EVENTS = """
  INSERT INTO @.event (number, born, seq, at, kind, body, link, fence, xid)
  SELECT number, born, $3 + place - 1, e.at, kind, body, e.link, $2, pg_current_xact_id()
  FROM taken, unnest($6::float8[], $7::text[], $8::text[], $9::bytea[])
    WITH ORDINALITY AS e(at, kind, body, link, place)
"""
_BEGIN = f"""
WITH taken AS (
  INSERT INTO @.run (number, id, born, fence, events, link, status, updated_at, wake_at, started_at, task, agent,
    parent, key, model, description, holder)
  SELECT nextval('@.run_number'), $1::text, {MONTH}, $2::int, $3::int + cardinality($7::text[]), $5::bytea, $10::text,
    ($6::float8[])[cardinality($6)], {_LEASE.format(lease="$11::float8")},
    $12::float8, $13::bytea, $14::text, $15::text, $16::text, $17::text, $18::bytea, $20::text
  WHERE $4 = ''::bytea AND NOT EXISTS (SELECT 1 FROM @.run_log WHERE run_id = $1 AND pruned IS NOT NULL)
  ON CONFLICT (id) DO NOTHING
  RETURNING number, born
), stored AS ({{events}}){{more}}
SELECT (SELECT number FROM taken) AS number
"""  # noqa: S608  # no input
# An image or a file that is stored already stays as it is; anything else that is there is an error.
_ARTIFACTS = """, kept AS (
  INSERT INTO @.artifact (number, born, ref, form, body)
  SELECT number, born, ref, form, body
  FROM taken, unnest(${0}::text[], ${1}::text[], ${2}::bytea[]) AS a(ref, form, body)
  WHERE form NOT LIKE '%/%'
), seen AS (
  INSERT INTO @.artifact (number, born, ref, form, body)
  SELECT number, born, ref, form, body
  FROM taken, unnest(${0}::text[], ${1}::text[], ${2}::bytea[]) AS a(ref, form, body)
  WHERE form LIKE '%/%' ON CONFLICT DO NOTHING
)"""

CREATE: Final = f"""
WITH earlier AS (SELECT number FROM @.run WHERE id = $1 AND events = 0), cleared AS (
  DELETE FROM @.artifact USING earlier WHERE artifact.number = earlier.number
)
INSERT INTO @.run AS run (number, id, born, fence, status, started_at, updated_at, wake_at, holder)
SELECT nextval('@.run_number'), $1, {MONTH}, {FIRST_FENCE}, 'running', {NOW}, {NOW}, now(), $2
WHERE NOT EXISTS (SELECT 1 FROM @.run_log WHERE run_id = $1 AND pruned IS NOT NULL)
ON CONFLICT (id) DO UPDATE SET number = excluded.number, born = excluded.born, fence = run.fence + 1,
  status = 'running', started_at = excluded.started_at, updated_at = excluded.updated_at, wake_at = excluded.wake_at,
  holder = excluded.holder
WHERE run.events = 0
RETURNING fence
"""  # noqa: S608  # no input
"""Begins an empty run, or a run without events anew; no row: the id is given away."""

ACQUIRE: Final = """
UPDATE @.run SET fence = fence + 1, holder = $2, wake_at = CASE
  WHEN status <> 'running' THEN wake_at
  WHEN queue IS NULL THEN now()  -- its lease begins with its lock
  ELSE now() + $4::float8 * interval '1 second' END
WHERE id = $1 AND ($3::int IS NULL OR events = $3) RETURNING fence, events, link
"""
"""Takes a run; no row: there is none, or it has another number of events."""

HEADS: Final = "SELECT id, fence, events, link FROM @.run WHERE id = ANY($1::text[])"
"""Reads what decides about appends."""


class WriteStatement(NamedTuple):
    """One of the statements for appends."""

    is_new: bool
    """Whether the run is begun by it."""
    is_start: bool
    """Whether it has the first event of the run."""
    has_artifacts: bool
    """Whether it has artifacts."""


@cache
def append_statement(kind: WriteStatement) -> str:
    """The text of a statement, with `@.` for the schema."""
    more, count = "", 11
    if kind.is_new or kind.is_start:
        more, count = _DESCRIBE, 19
    if kind.is_new:
        count = 20
    if kind.has_artifacts:
        more += _ARTIFACTS.format(*(count + number for number in (1, 2, 3)))
    if kind.is_new:
        return _BEGIN.format(events=_EVENTS, more=more)
    return _GROW.format(start=_START if kind.is_start else "", events=_EVENTS, more=more)


def append_values(
    kind: WriteStatement, append: Append, before: bytes, links: list[bytes], lease_s: float | None
) -> list[Any]:
    """The values of a statement; `links` are those of the events, `lease_s` how long the run stays the holder's."""
    rows = append.rows
    status, wake_s = _status_after(append, lease_s)
    values: list[Any] = [
        *(append.run_id, append.fence, append.first or 0, before, links[-1] if links else before),
        [row[2] for row in rows],
        [row[3] for row in rows],
        [row[5] for row in rows],
        links,
        *(status, wake_s),
    ]
    if kind.is_new or kind.is_start:
        values += _start_values(append)
    if kind.is_new:
        values[9] = status or RUNNING
        values[10] = 0.0 if wake_s is None else wake_s
        values.append(str(own_identity()))
    if kind.has_artifacts:
        artifacts = {ref: (form, body) for _, ref, form, body in append.artifacts if "/" in form}
        artifact_rows = [(ref, form, body) for _, ref, form, body in append.artifacts if "/" not in form]
        artifact_rows += [(ref, form, body) for ref, (form, body) in artifacts.items()]
        values += [[ref for ref, _, _ in artifact_rows], [form for _, form, _ in artifact_rows]]
        values.append([body.encode() for _, _, body in artifact_rows])
    return values


def status_of(append: Append) -> str | None:
    """The status of the run after an append; None: as before."""
    status = None
    for _, fact in append.marks:
        status = status_after(fact) or status
    return status


def _status_after(append: Append, lease_s: float | None) -> tuple[str | None, float | None]:
    """The status after an append and the seconds until the run is due; None: as before."""
    status = status_of(append)
    if status is None:
        return None, None
    return status, (lease_s or 0.0) if status == RUNNING else math.inf


def _start_values(append: Append) -> list[Any]:
    """What the row of a run says of how it began."""
    start = next(((at, fact) for at, fact in append.marks if isinstance(fact, RunStarted)), None)
    if start is None:  # it does not begin with `run_started`
        at = append.rows[0][2] if append.rows else 0.0
        return [at, b"", "", None, "", "", None, None]
    at, fact = start
    task, agent, parent, key, model = row_values(fact)
    digest, description = append.description
    texts = (stored_text(agent), None if parent is None else stored_text(parent), stored_text(key), stored_text(model))
    return [at, task.encode(), *texts, digest or None, description or None]


def stored_text(text: str) -> str:
    """A text as a column holds it: PostgreSQL knows no NUL."""
    return replace_surrogates(text).replace("\x00", "\ufffd")
