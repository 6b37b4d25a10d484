"""What models cost per day, key and agent, summed from the events of the runs in a journal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from taoloop.core.events import Event, ModelReplied, Resumed, RunStarted
from taoloop.errors import JournalCorrupt
from taoloop.journals.base import Journal

if TYPE_CHECKING:
    import sqlite3

KEY = "key"
"""The label of a run that names the API key whose client asked for it."""

_ALL = 10_000_000
_FORKED = "fork of run "  # how the reason of the event begins after which a fork's events are its own


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """What one agent used on one day for one key."""

    day: str
    """The day in UTC: `2026-01-31`."""

    key: str
    """The name of the API key; "" where a run has none."""

    agent: str
    """The name of the agent."""

    runs: int = 0
    """The runs that began on that day."""

    model_calls: int = 0
    """The replies that came on that day, whenever their runs began; so there may be calls without a run."""

    input_tokens: int = 0
    """The tokens of the prompts."""

    cached_tokens: int = 0
    """Those of the input tokens that a cache served."""

    output_tokens: int = 0
    """The tokens of the replies."""

    cost_usd: float = 0.0
    """The cost of the calls whose price is known."""

    unpriced_calls: int = 0
    """How many calls are not in the cost."""


GROUPS = ("day", "key", "agent")
"""What costs are added up by."""

_CALL_COUNTS = ("model_calls", "input_tokens", "cached_tokens", "output_tokens", "cost_usd", "unpriced_calls")
_COUNTS = ("runs", *_CALL_COUNTS)


class _RunStart(NamedTuple):
    """How a run began. `at` is when it became a run of its own: a fork did so long after its first event."""

    agent: str
    at: float
    key: str
    parent: str | None


_DayUsage = tuple[str, str, int, int, int, int, float, int]
"""What the model calls of one run used on one day: the run, the day, and the `_CALL_COUNTS`."""


async def cost_rows(journal: Journal, since: float | None = None) -> list[CostRow]:
    """What was used from `since` on (seconds since the epoch; None: ever), by day, key and agent, in this order.

    A run inside another one counts for the key of the outermost run, under its own agent's name, and once: the outer
    run's record of it is not counted, and neither is what a fork copied. A journal that has a method `spending` is
    asked for the sums; of any other journal every run is read.

    Raises:
        JournalError: the journal cannot be read.
    """
    if callable(spending := getattr(journal, "spending", None)):
        return cast("list[CostRow]", await spending(since))
    starts: dict[str, _RunStart] = {}
    usages: list[_DayUsage] = []
    for row in await journal.runs(limit=_ALL):
        if since is not None and row.updated_at < since:
            continue
        events = await journal.load(row.run_id)
        starts[row.run_id], own = _own_events(events)
        usages += _day_usages(row.run_id, own, since)
    for run_id in list(starts):
        outer = starts[run_id].parent
        while outer is not None and outer not in starts:  # nothing happened in it since
            starts[outer], _ = _own_events(await journal.load(outer))
            outer = starts[outer].parent
    return _sum_rows(starts, usages, since)


def _own_events(events: list[Event]) -> tuple[_RunStart, list[Event]]:
    """How a run began, and those of its events that were not copied from another run."""
    first, at = events[0].fact, events[0].at
    if not isinstance(first, RunStarted):
        return _RunStart("", at, "", None), events
    if first.forked_from is not None:
        for number in range(len(events) - 1, 0, -1):
            fact = events[number].fact
            if isinstance(fact, Resumed) and fact.reason.startswith(_FORKED):
                at, events = events[number].at, events[number:]
                break
    return _RunStart(first.agent.name, at, first.labels.get(KEY, ""), first.parent), events


def _day_usages(run_id: str, events: Iterable[Event], since: float | None) -> list[_DayUsage]:
    return [
        (
            run_id,
            _day(event.at),
            1,
            fact.usage.input_tokens,
            fact.usage.cached_tokens,
            fact.usage.output_tokens,
            fact.cost_usd or 0.0,
            int(fact.cost_usd is None),
        )
        for event in events
        if isinstance(fact := event.fact, ModelReplied) and (since is None or event.at >= since)
    ]


_FIRST = """
SELECT run.id, run.agent, coalesce(own.at, first.at), json_extract(CAST(first.body AS TEXT), '$.labels.key'),
  json_extract(CAST(first.body AS TEXT), '$.parent')
FROM run JOIN event AS first ON first.run_id = run.id AND first.seq = 0
LEFT JOIN event AS own ON own.run_id = run.id AND own.seq = {own}
"""
_OWN = f"""
CASE WHEN json_extract(CAST(first.body AS TEXT), '$.forked_from') IS NULL THEN 0 ELSE (
  SELECT max(seq) FROM event AS e WHERE e.run_id = run.id AND e.kind = 'resumed'
  AND json_extract(CAST(e.body AS TEXT), '$.reason') LIKE '{_FORKED}%') END"""  # noqa: S608  # no input
_RECENT = " WHERE (SELECT at FROM event WHERE run_id = run.id ORDER BY seq DESC LIMIT 1) >= :since"
_BY_ID = " WHERE run.id = :run_id"
_REPLIES = """
SELECT run_id, day, count(*), sum(input), sum(cached), sum(output), coalesce(sum(cost), 0.0), sum(cost IS NULL) FROM (
  SELECT event.run_id, date(event.at, 'unixepoch') AS day,
    json_extract(CAST(body AS TEXT), '$.usage.input_tokens') AS input,
    json_extract(CAST(body AS TEXT), '$.usage.cached_tokens') AS cached,
    json_extract(CAST(body AS TEXT), '$.usage.output_tokens') AS output,
    json_extract(CAST(body AS TEXT), '$.cost_usd') AS cost
  FROM event JOIN (
    SELECT run.id, coalesce({own}, 0) AS begin FROM run JOIN event AS first ON first.run_id = run.id AND first.seq = 0
    {where}
  ) AS whole ON event.run_id = whole.id AND event.seq >= whole.begin
  WHERE event.kind = 'model_replied' {after}
) GROUP BY run_id, day
"""


def read_spending(path: Path, since: float | None, connection: sqlite3.Connection) -> list[CostRow]:
    """`cost_rows` for the tables of a SQLite journal: each row that counts is read once.

    Raises:
        JournalCorrupt: an event is not JSON.
    """
    import sqlite3  # noqa: PLC0415  # a journal in memory does without it

    first, where, after = _FIRST.format(own=_OWN), "", ""
    if since is not None:
        where, after = _RECENT, "AND event.at >= :since"
    try:
        starts = _read_starts(connection, first + where, {"since": since})
        for run_id in list(starts):
            outer = starts[run_id].parent
            while outer is not None and outer not in starts:
                outer_runs = _read_starts(connection, first + _BY_ID, {"run_id": outer})
                if not outer_runs:
                    break  # it is not in this file
                starts |= outer_runs
                outer = starts[outer].parent
        replies = _REPLIES.format(own=_OWN, where=where, after=after)
        usages = [cast("_DayUsage", row) for row in connection.execute(replies, {"since": since})]
    except sqlite3.OperationalError as error:
        if "malformed JSON" not in str(error):
            raise
        message = f"{path}: an event that the costs are summed from is not JSON."
        raise JournalCorrupt(message, hint="`tao verify` finds the run.") from error
    return _sum_rows(starts, usages, since)


def _read_starts(connection: sqlite3.Connection, query: str, values: Mapping[str, Any]) -> dict[str, _RunStart]:
    rows = connection.execute(query, values)
    return {row[0]: _RunStart(row[1], row[2], row[3] or "", row[4]) for row in rows}


def _sum_rows(starts: Mapping[str, _RunStart], usages: Iterable[_DayUsage], since: float | None) -> list[CostRow]:
    def row(run_id: str, day: str, **counts: Any) -> CostRow:
        return CostRow(day=day, key=_key(starts, run_id), agent=starts[run_id].agent, **counts)

    rows = [row(run_id, _day(run.at), runs=1) for run_id, run in starts.items() if since is None or run.at >= since]
    rows += [row(run_id, day, **dict(zip(_CALL_COUNTS, counts, strict=True))) for run_id, day, *counts in usages]
    return totals(rows)


def _key(starts: Mapping[str, _RunStart], run_id: str) -> str:
    """The key of the outermost run around it, as far as that is known."""
    run = starts[run_id]
    for _ in starts:  # bounded, in case somebody made the runs of a file each other's parents
        if run.parent is None or run.parent not in starts:
            break
        run = starts[run.parent]
    return run.key


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def totals(rows: Iterable[CostRow], by: Collection[str] = GROUPS) -> list[CostRow]:
    """The rows added up by what `by` names of day, key and agent, the rest of which is empty; sorted by these three."""
    sums: dict[tuple[str, ...], CostRow] = {}
    for row in rows:
        day, key, agent = group = tuple(getattr(row, name) if name in by else "" for name in GROUPS)
        total = sums.get(group, CostRow(day=day, key=key, agent=agent))
        sums[group] = replace(total, **{name: getattr(total, name) + getattr(row, name) for name in _COUNTS})
    return [sums[group] for group in sorted(sums)]
