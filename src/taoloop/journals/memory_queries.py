"""The queries of the journal in memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Collection
from itertools import islice
from typing import TYPE_CHECKING

import pydantic_core

from taoloop.core.events import Event, RunStarted
from taoloop.core.stored_events import encode_fact
from taoloop.journals.base import KEY, RUNNING, Artifact, RunRow
from taoloop.journals.queries import POLL_S, Growth, RunPage, RunQuery, parse_number
from taoloop.journals.usage import RunOrigin, UsageLedger, UsageRow, own_start

if TYPE_CHECKING:
    from taoloop.journals.search_index import SearchIndex


class MemoryRun:
    """One run. It has slots and no artifact dict before the first artifact: a thousand runs may live at once."""

    __slots__ = ("artifacts", "counted", "events", "fence", "number", "status")

    def __init__(self, fence: int, number: int) -> None:
        self.fence = fence
        self.number = number  # in the order of creation
        self.counted = 0  # how many of its events are in the sums of usage
        self.status = RUNNING
        self.events: list[Event] = []
        self.artifacts: dict[str, Artifact] | None = None


class MemoryQueries:
    """What `JournalQueries` asks, of the runs of a `MemoryJournal`. All of it is under the lock of the journal."""

    _lock: threading.Lock
    _runs: dict[str, MemoryRun]

    def __init__(self) -> None:
        """Begin without anything."""
        self._appended = 0  # how many events, ever
        self._grown: dict[str, int] = {}  # the runs in the order of their last append, and `_appended` after it
        self._ledger = UsageLedger()
        self._counted_to = 0  # of `_appended`: what is in the ledger
        self._index: SearchIndex | None = None
        self._indexed_to = 0

    async def read(
        self,
        run_id: str,
        *,
        after: int = -1,
        before: int | None = None,
        limit: int = 500,
        last: bool = False,
        kinds: Collection[str] | None = None,
        call_ids: Collection[str] | None = None,
    ) -> list[Event]:
        """A part of a run: as `JournalQueries.read`."""
        with self._lock:
            events = self._find(run_id).events
            start, end = max(0, after + 1), len(events) if before is None else max(0, min(before, len(events)))
            limit = max(0, limit)
            if kinds is None and call_ids is None:
                return events[max(start, end - limit) : end] if last else events[start : min(end, start + limit)]
            seqs = range(end - 1, start - 1, -1) if last else range(start, end)
            selected = list(islice((events[seq] for seq in seqs if _is_asked(events[seq], kinds, call_ids)), limit))
            return selected[::-1] if last else selected

    async def find(self, query: RunQuery, *, cursor: str | None = None, limit: int = 50) -> RunPage:
        """A page of runs: as `JournalQueries.find`."""
        below = None if cursor is None else parse_number(cursor, "cursor")
        rows: list[RunRow] = []
        last = 0
        with self._lock:
            self._check_open()
            hits = self._hits(query)
            for run_id, run in reversed(self._runs.items()):
                if below is not None and run.number >= below:
                    continue
                if not _fits(run_id, run, query, hits) or (query.statuses and run.status not in query.statuses):
                    continue
                if len(rows) >= limit:
                    return RunPage(rows=tuple(rows), cursor=str(last) if rows else None)
                rows.append(row_of(run_id, run))
                last = run.number
        return RunPage(rows=tuple(rows), cursor=None)

    async def count(self, query: RunQuery) -> dict[str, int]:
        """How many runs there are, by status: as `JournalQueries.count`."""
        counts: dict[str, int] = {}
        with self._lock:
            self._check_open()
            hits = self._hits(query)
            for run_id, run in self._runs.items():
                if _fits(run_id, run, query, hits):
                    counts[run.status] = counts.get(run.status, 0) + 1
        return counts

    async def position(self) -> str:
        """The place after the newest event of all runs."""
        self._check_open()
        return str(self._appended)

    async def tail(self, after: str | None = None, *, interval_s: float = POLL_S) -> AsyncGenerator[Growth, None]:
        """What is added from now on, or from `after` on: as `JournalQueries.tail`. A position is of this journal."""
        known = parse_number(await self.position() if after is None else after, "position")
        while True:
            with self._lock:
                self._check_open()
                runs = {run_id: len(self._runs[run_id].events) - 1 for run_id in self._grown_since(known)}
                known = self._appended
            if runs:
                yield Growth(position=str(known), runs=runs)
            await asyncio.sleep(interval_s)

    async def usage(self, since_day: str | None = None) -> list[UsageRow]:
        """What was used and how it went: as `JournalQueries.usage`."""
        with self._lock:
            self._check_open()
            for run_id in self._grown_since(self._counted_to):
                self._account(run_id)
            self._counted_to = self._appended
            return self._ledger.rows(since_day)

    def _grow(self, run_id: str, count: int) -> None:
        """Note that a run has new events."""
        self._appended += count
        self._grown.pop(run_id, None)
        self._grown[run_id] = self._appended

    def _grown_since(self, position: int) -> list[str]:
        """The runs with events after a position, the one that grew last at the end."""
        run_ids: list[str] = []
        for run_id, at in reversed(self._grown.items()):
            if at <= position:
                break
            run_ids.append(run_id)
        return run_ids[::-1]

    def _remove(self, run_id: str) -> None:
        """Remove a run; what it used stays in the sums."""
        self._account(run_id)
        if self._index is not None:
            self._index.remove([run_id])
        self._grown.pop(run_id, None)
        del self._runs[run_id]

    def _account(self, run_id: str) -> None:
        run = self._runs[run_id]
        if run.counted < len(run.events):
            self._ledger.add(self._origin(run), run.events[run.counted :])
            run.counted = len(run.events)

    def _origin(self, run: MemoryRun) -> RunOrigin:
        first = run.events[0].fact
        if not isinstance(first, RunStarted):
            return RunOrigin("", "", "")
        own = own_start(run.events) if first.forked_from is not None else (0, None)
        key, parent = first.labels.get(KEY, ""), first.parent
        for _ in self._runs:  # bounded, in case somebody made runs each other's parents
            outer = self._runs.get(parent) if parent is not None else None
            if outer is None or not outer.events or not isinstance(fact := outer.events[0].fact, RunStarted):
                break
            key, parent = fact.labels.get(KEY, ""), fact.parent
        return RunOrigin(key, first.agent.name, first.agent.model, *own)

    def _hits(self, query: RunQuery) -> set[int] | None:
        """The numbers of the runs that the text is found in; None: no text is looked for."""
        if not query.text.strip():
            return None
        import sqlite3  # noqa: PLC0415  # few who keep runs in memory search them

        from taoloop.journals.search_index import INDEXED_KINDS, Document, SearchIndex, document_of  # noqa: PLC0415

        if self._index is None:
            self._index = SearchIndex(sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False))
        for run_id in self._grown_since(self._indexed_to):
            run = self._runs[run_id]
            if run.status == RUNNING and self._index.has(run_id):
                continue  # what it was found by, until it is over again
            if run.status == RUNNING:
                document = Document(row_of(run_id, run).task)
            else:
                facts = [event.fact for event in run.events if event.kind in INDEXED_KINDS]
                document = document_of((fact.kind, pydantic_core.from_json(encode_fact(fact))) for fact in facts)
            self._index.put(run.number, run_id, document)
        self._indexed_to = self._appended
        return {number for number, _ in self._index.hits(query.text, 2**62, -1)}

    # Of the journal.

    def _find(self, run_id: str) -> MemoryRun:
        raise NotImplementedError

    def _check_open(self) -> None:
        raise NotImplementedError


def row_of(run_id: str, run: MemoryRun) -> RunRow:
    """The line of a run in lists."""
    first, last = run.events[0], run.events[-1]
    fact = first.fact if isinstance(first.fact, RunStarted) else None
    return RunRow(
        run_id=run_id,
        task="" if fact is None else fact.task,
        agent="" if fact is None else fact.agent.name,
        status=run.status,
        started_at=first.at,
        updated_at=last.at,
        events=len(run.events),
        parent=None if fact is None else fact.parent,
        key="" if fact is None else fact.labels.get(KEY, ""),
        model="" if fact is None else fact.agent.model,
    )


def _is_asked(event: Event, kinds: Collection[str] | None, call_ids: Collection[str] | None) -> bool:
    if kinds is not None and event.kind not in kinds:
        return False
    return call_ids is None or getattr(event.fact, "call_id", None) in call_ids


def _fits(run_id: str, run: MemoryRun, query: RunQuery, hits: set[int] | None) -> bool:
    """Whether a run is meant, whatever its status."""
    if not run.events or not run_id.startswith(query.prefix) or (hits is not None and run.number not in hits):
        return False
    row = row_of(run_id, run)
    return (
        query.task in (None, row.task)
        and query.agent in (None, row.agent)
        and query.model in (None, row.model)
        and query.key in (None, row.key)
        and (query.since is None or row.started_at >= query.since)
        and (query.until is None or row.started_at < query.until)
        and not (query.only_outermost and row.parent is not None)
    )
