"""What models cost: per day, key and agent, summed from the events of the runs that a journal keeps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from taoloop.core.events import ModelReplied, Resumed, RunStarted
from taoloop.errors import JournalCorrupt

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from taoloop.core.events import Event
    from taoloop.journals.base import Journal

KEY = "key"
"""The label of a run that names the API key whose client asked for it."""

_ALL = 10_000_000
_FORKED = "fork of run "  # how the reason of the event begins after which a fork's events are its own


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """What one agent used on one day (UTC, `2026-01-31`) for one key; `key` is "" where a run has none.

    `runs` are those that began on that day, `model_calls` the replies that came on it, whenever their runs began; so
    there may be calls without a run. `cached_tokens` is a part of the input. `cost_usd` is that of the calls whose
    price is known; `unpriced_calls` is how many are not in it.
    """

    day: str
    key: str
    agent: str
    runs: int = 0
    model_calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    unpriced_calls: int = 0


class _CanTell(Protocol):
    async def spending(self, since: float | None = None) -> list[CostRow]: ...


class _Began(NamedTuple):
    """How a run began. `at` is when it became a run of its own: a fork did so long after its first event."""

    agent: str
    at: float
    key: str
    parent: str | None


class _Used(NamedTuple):
    """What the model calls of one run used on one day."""

    run_id: str
    day: str
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_usd: float
    unpriced: int


async def cost_rows(journal: Journal, since: float | None = None) -> list[CostRow]:
    """What was used from `since` on (seconds since the epoch; None: ever), by day, key and agent, in this order.

    A run inside another one counts for the key of the outermost run, under its own agent's name, and once: what the
    outer run says of it is left out. So is what a fork copied. A journal that has a method `spending` is asked for it;
    of any other one every run is read.

    Raises:
        JournalError: the journal cannot be read.
    """
    if callable(getattr(journal, "spending", None)):
        return await cast("_CanTell", journal).spending(since)
    began: dict[str, _Began] = {}
    used: list[_Used] = []
    for row in await journal.runs(limit=_ALL):
        if since is not None and row.updated_at < since:
            continue
        events = await journal.load(row.run_id)
        began[row.run_id], own = _own_events(events)
        used += _used(row.run_id, own, since)
    for run_id in list(began):
        await _add_outer(journal, began, run_id)
    return _summed(began, used, since)


async def _add_outer(journal: Journal, began: dict[str, _Began], run_id: str) -> None:
    """The runs around a run, where nothing happened in them since."""
    outer = began[run_id].parent
    while outer is not None and outer not in began:
        began[outer], _ = _own_events(await journal.load(outer))
        outer = began[outer].parent


def _own_events(events: list[Event]) -> tuple[_Began, list[Event]]:
    """How a run began, and those of its events that were not copied from another run."""
    first, at = events[0].fact, events[0].at
    if not isinstance(first, RunStarted):
        return _Began("", at, "", None), events
    if first.forked_from is not None:
        for number in range(len(events) - 1, 0, -1):
            fact = events[number].fact
            if isinstance(fact, Resumed) and fact.reason.startswith(_FORKED):
                at, events = events[number].at, events[number:]
                break
    return _Began(first.agent.name, at, first.labels.get(KEY, ""), first.parent), events


def _used(run_id: str, events: Iterable[Event], since: float | None) -> list[_Used]:
    return [
        _Used(
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
_ONE = " WHERE run.id = :run_id"
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
    """The same out of the tables of a SQLite journal, with one look at the rows that count.

    Raises:
        JournalCorrupt: an event is no JSON.
    """
    import sqlite3  # noqa: PLC0415  # who keeps runs in memory does without it

    first, where, after = _FIRST.format(own=_OWN), "", ""
    if since is not None:
        where, after = _RECENT, "AND event.at >= :since"
    try:
        began = _rows_began(connection, first + where, {"since": since})
        for run_id in list(began):
            outer = began[run_id].parent
            while outer is not None and outer not in began:
                found = _rows_began(connection, first + _ONE, {"run_id": outer})
                if not found:
                    break  # nothing is known of it
                began |= found
                outer = began[outer].parent
        replies = _REPLIES.format(own=_OWN, where=where, after=after)
        used = [_Used(*row) for row in connection.execute(replies, {"since": since})]
    except sqlite3.OperationalError as error:
        if "malformed JSON" not in str(error):
            raise
        raise JournalCorrupt(
            f"{path}: an event that the costs are summed from is no JSON.", hint="`tao verify` finds the run."
        ) from error
    return _summed(began, used, since)


def _rows_began(connection: sqlite3.Connection, query: str, given: Mapping[str, Any]) -> dict[str, _Began]:
    rows = connection.execute(query, given)
    return {row[0]: _Began(row[1], row[2], row[3] or "", row[4]) for row in rows}


def _summed(began: Mapping[str, _Began], used: Iterable[_Used], since: float | None) -> list[CostRow]:
    sums: dict[tuple[str, str, str], list[Any]] = {}

    def add(day: str, run_id: str, numbers: Iterable[Any]) -> None:
        place = (day, _key(began, run_id), began[run_id].agent)
        so_far = sums.setdefault(place, [0, 0, 0, 0, 0, 0.0, 0])
        sums[place] = [one + other for one, other in zip(so_far, numbers, strict=True)]

    for run_id, run in began.items():
        if since is None or run.at >= since:
            add(_day(run.at), run_id, (1, 0, 0, 0, 0, 0.0, 0))
    for one in used:
        add(one.day, one.run_id, (0, *one[2:]))
    return [
        CostRow(
            day=day,
            key=key,
            agent=agent,
            runs=runs,
            model_calls=calls,
            input_tokens=given,
            cached_tokens=cached,
            output_tokens=written,
            cost_usd=cost,
            unpriced_calls=unpriced,
        )
        for (day, key, agent), (runs, calls, given, cached, written, cost, unpriced) in sorted(sums.items())
    ]


def _key(began: Mapping[str, _Began], run_id: str) -> str:
    """The key of the outermost run around it, as far as that is known."""
    run = began[run_id]
    for _ in began:  # bounded, should somebody have tied the runs of a file to a ring
        if run.parent is None or run.parent not in began:
            break
        run = began[run.parent]
    return run.key


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def totals(rows: Iterable[CostRow], by: Callable[[CostRow], tuple[str, str, str]]) -> list[CostRow]:
    """The rows added up where `by` says the same (day, key, agent), in the order of what it says."""
    sums: dict[tuple[str, str, str], CostRow] = {}
    for row in rows:
        place = by(row)
        known = sums.get(place, CostRow(day=place[0], key=place[1], agent=place[2]))
        sums[place] = CostRow(
            day=place[0],
            key=place[1],
            agent=place[2],
            runs=known.runs + row.runs,
            model_calls=known.model_calls + row.model_calls,
            input_tokens=known.input_tokens + row.input_tokens,
            cached_tokens=known.cached_tokens + row.cached_tokens,
            output_tokens=known.output_tokens + row.output_tokens,
            cost_usd=known.cost_usd + row.cost_usd,
            unpriced_calls=known.unpriced_calls + row.unpriced_calls,
        )
    return [sums[place] for place in sorted(sums)]
