"""What models cost per day, key, agent and model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add, attrgetter
from typing import Any, TypeVar, cast

from taoloop.core.events import Event, RunStarted
from taoloop.journals.base import KEY, Journal
from taoloop.journals.queries import has_queries, queries_of
from taoloop.journals.usage import COUNTS, GROUP, RunOrigin, UsageLedger, UsageRow, day_of, own_start

Row = TypeVar("Row", "CostRow", UsageRow)

_ALL = 10_000_000
_DAY_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """What one agent used on one day for one key."""

    day: str
    """The day in UTC: `2026-01-31`."""

    key: str
    """The name of the API key; "" where a run has none."""

    agent: str
    """The name of the agent."""

    model: str = ""
    """The model, where costs are added up by it; else ""."""

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
"""What costs are added up by, unless something else is asked for."""

_COUNTS = ("runs", "model_calls", "input_tokens", "cached_tokens", "output_tokens", "cost_usd", "unpriced_calls")


async def cost_rows(journal: Journal, since: float | None = None, by: Collection[str] = GROUPS) -> list[CostRow]:
    """What was used from `since` on (seconds since the epoch; None: ever), by those of day, key, agent, model in `by`.

    Runs are counted as by `usage_rows`. A journal that cannot be queried and has a method `spending` is asked for the
    rows by day, key and agent.

    Raises:
        JournalError: the journal cannot be read.
    """
    is_kept = has_queries(journal) and _begins_a_day(since)
    if not is_kept and callable(spending := getattr(journal, "spending", None)) and "model" not in by:
        return totals(cast("list[CostRow]", await spending(since)), by)
    return totals(map(_cost_row, await usage_rows(journal, since)), by)


async def usage_rows(journal: Journal, since: float | None = None) -> list[UsageRow]:
    """What was used, and how it went, from `since` on (seconds since the epoch; None: ever).

    A run inside another one counts for the key of the outermost run, under its own agent's name, and once: the outer
    run's record of it is not counted, and neither is what a fork copied. A journal that can be queried
    (`taoloop.journals.JournalQueries`) keeps sums by day, which include what retention removed. Where it has none, or
    `since` is no beginning of a day in UTC, the runs are read.

    Raises:
        JournalError: the journal cannot be read.
    """
    if has_queries(journal) and _begins_a_day(since):
        return await queries_of(journal).usage(None if since is None else day_of(since))
    ledger, origins = UsageLedger(), dict[str, _RunStart]()
    runs: dict[str, list[Event]] = {}
    for row in await journal.runs(limit=_ALL):
        if since is None or row.updated_at >= since:
            runs[row.run_id] = await journal.load(row.run_id)
            origins[row.run_id] = _start_of(runs[row.run_id])
    for run_id in list(origins):
        outer = origins[run_id][1]
        while outer is not None and outer not in origins:  # nothing happened in it since
            origins[outer] = _start_of(await journal.load(outer))
            outer = origins[outer][1]
    for run_id, events in runs.items():
        origin = origins[run_id][0]._replace(key=_key(origins, run_id))
        own_at = events[0].at if origin.own_at is None else origin.own_at
        new = [event for event in events if since is None or (event.at >= since if event.seq else own_at >= since)]
        ledger.add(origin, new)
    return ledger.rows()


def _begins_a_day(since: float | None) -> bool:
    return since is None or since % _DAY_S == 0


_RunStart = tuple[RunOrigin, "str | None"]
"""What the events of a run are counted for, with its own key, and the run around it."""


def _start_of(events: list[Event]) -> _RunStart:
    first = events[0].fact if events else None
    if not isinstance(first, RunStarted):
        return RunOrigin("", "", ""), None
    own = own_start(events) if first.forked_from is not None else (0, None)
    return RunOrigin(first.labels.get(KEY, ""), first.agent.name, first.agent.model, *own), first.parent


def _key(origins: dict[str, _RunStart], run_id: str) -> str:
    """The key of the outermost run around it, as far as that is known."""
    origin, outer = origins[run_id]
    for _ in origins:  # bounded, in case somebody made the runs each other's parents
        if outer is None or outer not in origins:
            break
        origin, outer = origins[outer]
    return origin.key


def _cost_row(row: UsageRow) -> CostRow:
    return CostRow(**{name: getattr(row, name) for name in (*GROUP, *_COUNTS)})


def totals(rows: Iterable[Row], by: Collection[str] = GROUPS) -> list[Row]:
    """The rows added up by what `by` names of day, key, agent and model, the rest of which is empty; sorted by them."""
    return add_up(rows, lambda row: tuple([getattr(row, name) if name in by else "" for name in GROUP]))


def add_up(rows: Iterable[Row], group_of: Callable[[Row], tuple[str, ...]]) -> list[Row]:
    """The rows added up by the day, key, agent and model that `group_of` gives for each; sorted by them."""
    first: dict[tuple[str, ...], Row] = {}
    sums: dict[tuple[str, ...], Sequence[float]] = {}
    for row in rows:
        counts, group = _COUNTS_OF[type(row)](row), group_of(row)
        sums[group] = list(map(add, sums[group], counts)) if group in sums else counts
        first.setdefault(group, row)
    return [_with_values(first[group], group, sums[group]) for group in sorted(sums) if any(sums[group])]


def _with_values(row: Row, group: tuple[str, ...], counts: Sequence[float]) -> Row:
    names = (*GROUP, *(_COUNTS if isinstance(row, CostRow) else COUNTS))
    values: dict[str, Any] = dict(zip(names, (*group, *counts), strict=True))
    return replace(row, **values)


_COUNTS_OF: Mapping[type, Callable[[Any], tuple[float, ...]]] = {
    CostRow: attrgetter(*_COUNTS),
    UsageRow: attrgetter(*COUNTS),
}


def unpriced_models(rows: Iterable[UsageRow]) -> dict[str, int]:
    """The models of which calls are not in the cost, because nobody knows their price, and how many; most first."""
    calls: Counter[str] = Counter()
    for row in rows:
        calls[row.model] += row.unpriced_calls
    return {model: count for model, count in calls.most_common() if count}
