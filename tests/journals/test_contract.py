"""The contract catches journals that are wrong in one way each."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from taoloop.errors import FenceLost, IllegalEvent, RunNotFound
from taoloop.journals.base import Artifact, Journal, Lease, RunRow
from taoloop.journals.memory import MemoryJournal
from taoloop.journals.retention import PruneReport, Retention
from taoloop.testing.journal_contract import JournalContract

if TYPE_CHECKING:
    from collections.abc import Sequence

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
)


def _failures(kind: type[MemoryJournal]) -> list[str]:
    class Suite(JournalContract):
        async def make_journal(self) -> Journal:
            return kind()

    failed = []
    for name in (name for name in dir(Suite) if name.startswith("test_")):
        try:
            getattr(Suite(), name)()
        except Exception:  # noqa: BLE001  # however it fails, it was caught
            failed.append(name)
    return failed


@pytest.mark.parametrize("kind", WRONG, ids=lambda kind: kind.__name__)
def test_a_wrong_journal_fails_the_contract(kind: type[MemoryJournal]) -> None:
    assert _failures(kind)


def test_a_right_one_passes_it() -> None:
    assert _failures(MemoryJournal) == []
