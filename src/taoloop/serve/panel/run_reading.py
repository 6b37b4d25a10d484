"""Reads of one run for its page: each costs what it shows, however long the run is, and none fails for a bad event."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Sequence
from typing import NamedTuple, Protocol, TypeVar

from taoloop.core.events import Event, Observed, RunStarted
from taoloop.core.trace import Trace
from taoloop.errors import JournalCorrupt
from taoloop.journals.base import Journal, RunRow
from taoloop.journals.queries import JournalQueries, RunQuery, queries_of

_CHUNK = 500
_PROBE = 20
_MOST_VIEWS = 64
_MOST_INNER = 200
_MOST_FORK_PAGES, _MOST_FORKS = 5, 50
_MOST_KNOWN = 2  # runs whose events are kept; one of 10,000 steps takes some 40 MB


class UnreadableEvent(NamedTuple):
    """An event that this version cannot read, in its place."""

    seq: int
    """Its place in the run."""
    reason: str
    """Why it cannot be read."""


class Foldable(Protocol):
    """What is built from events: from all, or where it has an attribute `kinds` from those of these kinds."""

    def __init__(self) -> None: ...

    def fold(self, event: Event) -> None:
        """Process the next event."""
        ...


V = TypeVar("V", bound=Foldable)


async def read_events(queries: JournalQueries, run_id: str, first: int, limit: int) -> list[Event | UnreadableEvent]:
    """At most `limit` events from `first` on; one that cannot be read is said in its place.

    Raises:
        RunNotFound: there is no such run.
    """
    try:
        return list(await queries.read(run_id, after=first - 1, limit=limit))
    except JournalCorrupt:
        pass
    events: list[Event | UnreadableEvent] = []
    for seq in range(first, first + limit):
        try:
            rows = await queries.read(run_id, after=seq - 1, before=seq + 1, limit=1)
        except JournalCorrupt as error:
            events.append(UnreadableEvent(seq, error.message))
            continue
        if not rows:
            break
        events += rows
    return events


async def read_all(
    queries: JournalQueries, run_id: str, *, after: int = -1, kinds: Collection[str] | None = None
) -> AsyncIterator[Event]:
    """The events after one, in order, a part of them in memory at a time; those that cannot be read are left out.

    With `kinds` only these are read.

    Raises:
        JournalCorrupt: one of these kinds cannot be read.
    """
    while True:
        events: Sequence[Event | UnreadableEvent]
        if kinds is None:
            events = await read_events(queries, run_id, after + 1, _CHUNK)
        else:
            events = await queries.read(run_id, after=after, limit=_CHUNK, kinds=kinds)
        for event in events:
            if isinstance(event, Event):
                yield event
        if len(events) < _CHUNK:
            return
        after = events[-1].seq


async def last_seq(queries: JournalQueries, run_id: str, row: RunRow | None) -> int:
    """The seq of the last event; -1 for a run without any.

    Raises:
        RunNotFound: there is no such run.
    """
    try:
        events = await queries.read(run_id, limit=1, last=True)
    except JournalCorrupt:
        return row.events - 1 if row is not None else 0
    return events[-1].seq if events else -1


async def find_row(queries: JournalQueries, run_id: str) -> RunRow | None:
    """The run as lists have it; None for one without events."""
    cursor = None
    while True:
        page = await queries.find(RunQuery(prefix=run_id), cursor=cursor, limit=_MOST_INNER)
        for row in page.rows:
            if row.run_id == run_id:
                return row
        if (cursor := page.cursor) is None:
            return None


async def inner_runs(queries: JournalQueries, run_id: str) -> list[RunRow]:
    """The runs inside a run, the oldest first; of very many the newest."""
    page = await queries.find(RunQuery(prefix=f"{run_id}."), limit=_MOST_INNER)
    return list(reversed(page.rows))


async def forks_of(queries: JournalQueries, row: RunRow) -> list[RunRow]:
    """The runs that were forked from a run, the oldest first; of very many the newest.

    No journal has a list of them. A fork has the task and the agent of its original and began later, so these few are
    looked at, but of more than a thousand such runs only the newest.
    """
    forks: list[RunRow] = []
    cursor = None
    for _ in range(_MOST_FORK_PAGES):
        query = RunQuery(task=row.task, agent=row.agent, since=row.started_at, only_outermost=True)
        page = await queries.find(query, cursor=cursor, limit=_MOST_INNER)
        for other in page.rows:
            if other.run_id != row.run_id and len(forks) < _MOST_FORKS:
                starts = await read_events(queries, other.run_id, 0, 1)
                fact = starts[0].fact if starts and isinstance(starts[0], Event) else None
                if isinstance(fact, RunStarted) and fact.forked_from == row.run_id:
                    forks.append(other)
        if (cursor := page.cursor) is None:
            break
    return list(reversed(forks))


async def find_step(queries: JournalQueries, run_id: str, step: int, last: int, count: int | None = None) -> int | None:
    """The first event of a step, or of the first one after it, among the events up to `last`; None: there is none.

    Steps grow with the run, mostly at one rate, so the first look is where the step should be; after that the place is
    found by halving. Two short reads where the rate is even, some twenty for a million events where it is not. `count`
    is the number of the last step, where the caller knows it.
    """
    low, high = 0, last + 1  # the first event of the step is at `low` or later, and before `high` if there is one
    first_seq: int | None = None
    count = await step_count(queries, run_id, last) if count is None else count
    middle = int(high * step / count) - _PROBE // 2 if 0 < step <= count else high // 2
    while low < high:
        middle = min(max(low, middle), high - 1)
        numbers = await _step_numbers(queries, run_id, middle, high)
        later = next((place for place, (_, number) in enumerate(numbers) if number >= step), None)
        if later is not None:
            first_seq, high = numbers[later][0], middle
            if later:  # the event before it is of an earlier step
                break
        elif numbers:
            low = numbers[-1][0] + 1
        else:
            high = middle
        middle = (low + high) // 2
    return first_seq


async def step_count(queries: JournalQueries, run_id: str, last: int) -> int:
    """The number of the last step among the events up to `last`, found from the end; 0: there is none."""
    end = last + 1
    while end > 0:
        start = max(0, end - _PROBE)
        if numbers := await _step_numbers(queries, run_id, start, end):
            return numbers[-1][1]
        end = start
    return 0


async def _step_numbers(queries: JournalQueries, run_id: str, first: int, end: int) -> list[tuple[int, int]]:
    """A few events that belong to steps, from `first` on and before `end`, each with the number of its step."""
    while first < end:
        events = await read_events(queries, run_id, first, min(_PROBE, end - first))
        numbers = [
            (event.seq, number)
            for event in events
            if isinstance(event, Event) and isinstance(number := getattr(event.fact, "step", None), int)
        ]
        if numbers or not events:
            return numbers
        first = events[-1].seq + 1
    return []


async def find_citation(journal: Journal, run_id: str, passage: str) -> int | None:
    """The observation that contains the passage `doc:ID`, or that is `obs:CALL_ID`; None: the run has none."""
    if passage.startswith("obs:"):
        call_ids, kinds = (passage.removeprefix("obs:"),), (Observed.kind,)
        events = await queries_of(journal).read(run_id, kinds=kinds, call_ids=call_ids, limit=1)
        return events[0].seq if events else None
    async for event in read_all(queries_of(journal), run_id):
        if not isinstance(event.fact, Observed):
            continue
        if passage in event.fact.output:
            return event.seq
        if event.fact.artifact is not None:
            artifact = await journal.artifact(run_id, event.fact.artifact)
            if artifact is not None and passage in artifact.body:
                return event.seq
    return None


class KnownViews:
    """Views of the runs that people look at: kept, and brought up to date by what is new, so live pages stay cheap."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._views: OrderedDict[tuple[str, type[Foldable]], tuple[Foldable, int]] = OrderedDict()

    async def of(self, run_id: str, kind: type[V]) -> V:
        """The view of this kind of a run as it is now.

        Raises:
            RunNotFound: there is no such run.
        """
        key = run_id, kind
        view, last = self._views.setdefault(key, (kind(), -1))
        self._views.move_to_end(key)
        kinds: Collection[str] | None = getattr(kind, "kinds", None)
        async for event in read_all(queries_of(self._journal), run_id, after=last, kinds=kinds):
            if event.seq > self._views.get(key, (view, last))[1]:  # else another request brought it this far meanwhile
                view.fold(event)
                self._views[key] = view, event.seq
        while len(self._views) > _MOST_VIEWS:
            self._views.popitem(last=False)
        return view  # type: ignore[return-value]  # the key determines the type


class _KnownState:
    """A run as it was at one of its steps, and all of its events that were read."""

    def __init__(self, run_id: str) -> None:
        self.lock = asyncio.Lock()
        self.trace = Trace(run_id)
        self.events: list[Event] = []


class KnownStates:
    """The runs whose steps people go through, as they were at a step: each event is read once, and folded on from.

    Only a step back begins to fold anew, with the events that are in memory already. A run that was never looked at is
    read piece by piece up to the step, and other pages are answered meanwhile.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._runs: OrderedDict[str, _KnownState] = OrderedDict()

    def is_near(self, run_id: str, seq: int) -> bool:
        """Whether little is to be read for the state before an event."""
        known = self._runs.get(run_id)
        return seq <= (0 if known is None else len(known.events)) + _CHUNK

    async def before(self, run_id: str, seq: int) -> Trace:
        """A run before one of its events. Whoever gets it uses it at once, for another request may take it further.

        Raises:
            RunNotFound: there is no such run.
            JournalCorrupt: one of the events cannot be read.
        """
        known = self._runs.setdefault(run_id, _KnownState(run_id))
        self._runs.move_to_end(run_id)
        while len(self._runs) > _MOST_KNOWN:
            self._runs.popitem(last=False)
        async with known.lock:
            queries, limit = queries_of(self._journal), _CHUNK
            if len(known.trace) > seq:
                known.trace = Trace(run_id)
            while len(known.trace) < seq:
                at = len(known.trace)
                if at == len(known.events):
                    events = await queries.read(run_id, after=at - 1, before=seq, limit=limit)
                    if not events:
                        break
                    known.events += events
                for event in known.events[at : min(seq, at + limit)]:
                    known.trace.append(event)
            return known.trace
