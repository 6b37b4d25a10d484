"""The contract catches journals that are wrong in one way each."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from taoloop.errors import FenceLost, IllegalEvent, RunNotFound
from taoloop.journals.base import Artifact, Journal, Lease, RunRow
from taoloop.journals.memory import MemoryJournal
from taoloop.journals.queries import Growth, RunPage, RunQuery, parse_number
from taoloop.journals.retention import PruneReport, Retention
from taoloop.testing.journal_query_contract import JournalQueryContract

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from taoloop.core.events import Event


class IgnoresFence(MemoryJournal):
    async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        current = self._runs[lease.run_id].fence if lease.run_id in self._runs else lease.fence
        await super().append(Lease(run_id=lease.run_id, fence=current), events, artifacts)


class WritesHalf(MemoryJournal):
    async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        for event in events:
            await super().append(lease, [event])
        await super().append(lease, [], artifacts)


class WritesBeforeItChecks(MemoryJournal):
    async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        if lease.run_id in self._runs:
            kept = self._runs[lease.run_id].artifacts or {}
            self._runs[lease.run_id].artifacts = kept | {artifact.ref: artifact for artifact in artifacts}
        await super().append(lease, events)


class TakesAnyOrder(MemoryJournal):
    async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        try:
            await super().append(lease, events, artifacts)
        except IllegalEvent:
            self._runs[lease.run_id].events.extend(events)


class ListsOldestFirst(MemoryJournal):
    async def runs(self, *, limit: int = 50, status: str | None = None) -> list[RunRow]:
        return (await super().runs(limit=1_000, status=status))[::-1][:limit]


class ForgetsStatus(MemoryJournal):
    async def runs(self, *, limit: int = 50, status: str | None = None) -> list[RunRow]:  # noqa: ARG002
        return await super().runs(limit=limit)


class SharesItsList(MemoryJournal):
    async def load(self, run_id: str) -> list[Event]:
        return self._find(run_id).events


class KeepsTheOldFence(MemoryJournal):
    async def acquire(self, run_id: str, *, at: int | None = None) -> Lease:  # noqa: ARG002
        return Lease(run_id=run_id, fence=self._find(run_id).fence)


class CreatesTwice(MemoryJournal):
    async def create(self, run_id: str) -> Lease:
        self._runs.pop(run_id, None)
        return await super().create(run_id)


class InventsRuns(MemoryJournal):
    async def load(self, run_id: str) -> list[Event]:
        try:
            return await super().load(run_id)
        except RunNotFound:
            return []


class YieldsBetweenCheckAndWrite(MemoryJournal):
    async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        run = self._find(lease.run_id)
        expected = len(run.events)
        if run.fence != lease.fence:
            raise FenceLost("lost")
        await asyncio.sleep(0)
        if [event.seq for event in events] != list(range(expected, expected + len(events))):
            raise IllegalEvent("gap")
        run.events.extend(events)
        await super().append(lease, [], artifacts)


class PrunesWithoutRecords(MemoryJournal):
    async def prune(self, keep: Retention, *, now: float, is_dry_run: bool = False) -> PruneReport:
        report = await super().prune(keep, now=now, is_dry_run=is_dry_run)
        self._pruned.clear()
        return report


class PrunesInADryRun(MemoryJournal):
    async def prune(self, keep: Retention, *, now: float, is_dry_run: bool = False) -> PruneReport:  # noqa: ARG002
        return await super().prune(keep, now=now)


class PagesByOffset(MemoryJournal):
    async def find(self, query: RunQuery, *, cursor: str | None = None, limit: int = 50) -> RunPage:
        start = parse_number(cursor or "0", "cursor")
        rows = (await super().find(query, limit=1_000_000)).rows
        more = str(start + limit) if len(rows) > start + limit else None
        return RunPage(rows=rows[start : start + limit], cursor=more)


class FindsOneStatus(MemoryJournal):
    async def find(self, query: RunQuery, *, cursor: str | None = None, limit: int = 50) -> RunPage:
        return await super().find(replace(query, statuses=query.statuses[:1]), cursor=cursor, limit=limit)


class SearchesTasksOnly(MemoryJournal):
    async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        await super().append(lease, events, artifacts)
        await self.find(RunQuery(text="x"))  # indexes the run before it is over
        self._indexed_to = 10_000


class CountsWhatIsFound(MemoryJournal):
    async def count(self, query: RunQuery) -> dict[str, int]:
        rows = (await self.find(query, limit=1_000)).rows
        return dict(Counter(row.status for row in rows))


class TellsAllThatGrew(MemoryJournal):
    async def tail(self, after: str | None = None, *, interval_s: float = 0.05) -> AsyncGenerator[Growth, None]:  # noqa: ARG002
        async for growth in super().tail("0", interval_s=interval_s):
            yield growth


class ForgetsWhatWasUsed(MemoryJournal):
    def _remove(self, run_id: str) -> None:
        self._runs[run_id].counted = len(self._runs[run_id].events)
        super()._remove(run_id)


class ReadsFromTheWrongEnd(MemoryJournal):
    async def read(
        self,
        run_id: str,
        *,
        after: int = -1,
        before: int | None = None,
        limit: int = 500,
        last: bool = False,  # noqa: ARG002
        **selection: Any,
    ) -> list[Event]:
        return await super().read(run_id, after=after, before=before, limit=limit, **selection)


class SelectsBeforeTheLimit(MemoryJournal):
    async def read(self, run_id: str, *, kinds: Any = None, **bounds: Any) -> list[Event]:
        part = await super().read(run_id, **bounds)
        return [event for event in part if kinds is None or event.kind in kinds]


WRONG = (
    IgnoresFence,
    WritesHalf,
    WritesBeforeItChecks,
    TakesAnyOrder,
    ListsOldestFirst,
    ForgetsStatus,
    SharesItsList,
    KeepsTheOldFence,
    CreatesTwice,
    InventsRuns,
    YieldsBetweenCheckAndWrite,
    PrunesWithoutRecords,
    PrunesInADryRun,
    PagesByOffset,
    FindsOneStatus,
    SearchesTasksOnly,
    CountsWhatIsFound,
    TellsAllThatGrew,
    ForgetsWhatWasUsed,
    ReadsFromTheWrongEnd,
    SelectsBeforeTheLimit,
)


def _failures(kind: type[MemoryJournal]) -> Iterator[str]:
    """The tests that fail, those last that wait for what a wrong journal may never say."""

    class Suite(JournalQueryContract):
        async def make_journal(self) -> Journal:
            return kind()

    names = [name for name in dir(Suite) if name.startswith("test_")]
    for name in sorted(names, key=lambda name: "position" in name or "new" in name or "meanwhile" in name):
        try:
            getattr(Suite(), name)()
        except Exception:  # noqa: BLE001  # however it fails, it was caught
            yield name


@pytest.mark.parametrize("kind", WRONG, ids=lambda kind: kind.__name__)
def test_a_wrong_journal_fails_the_contract(kind: type[MemoryJournal]) -> None:
    assert next(_failures(kind), None)


def test_a_right_one_passes_it() -> None:
    assert list(_failures(MemoryJournal)) == []
