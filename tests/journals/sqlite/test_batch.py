"""Where a run stands is remembered between appends: only for as long as nobody else writes to the file."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from taoloop.core.events import Event
from taoloop.errors import FenceLost, IllegalEvent
from taoloop.journals.base import Artifact
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.testing.journal_contract import STARTED, events, note

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["where it is called", "in the thread"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    if request.param == "in the thread":
        monkeypatch.setattr("taoloop.journals.sqlite.writer.QUICK_S", 0.0)
    return tmp_path / "runs.db"


def test_what_another_connection_took_away_is_missed_at_the_next_append(path: Path) -> None:
    async def run() -> None:
        async with SqliteJournal(path) as journal:
            lease = await journal.create("r")
            await journal.append(lease, events(STARTED, note(1), note(2)))
            with closing(sqlite3.connect(path)) as other, other:
                other.execute("DELETE FROM event WHERE seq = 2")
            with pytest.raises(IllegalEvent, match="expects event 2, not 3"):
                await journal.append(lease, [Event(3, 4.0, note(3))])

    asyncio.run(run())


def test_a_run_that_another_journal_took_is_lost_at_the_next_append(path: Path) -> None:
    async def run() -> None:
        async with SqliteJournal(path) as journal, SqliteJournal(path) as other:
            lease = await journal.create("r")
            await journal.append(lease, events(STARTED, note(1)))
            taken = await other.acquire("r")
            with pytest.raises(FenceLost):
                await journal.append(lease, [Event(2, 3.0, note(2))])
            await other.append(taken, [Event(2, 3.0, note(2))])
            again = await journal.acquire("r")
            await journal.append(again, [Event(3, 4.0, note(3))])
            assert (await journal.verify("r")).whole

    asyncio.run(run())


def test_after_a_transaction_that_was_undone_the_run_stands_where_it_stood(path: Path) -> None:
    async def run() -> None:
        async with SqliteJournal(path) as journal:
            lease = await journal.create("r")
            await journal.append(lease, events(STARTED), [Artifact(ref="a", body="first")])
            with pytest.raises(IllegalEvent, match="there already"):
                await journal.append(lease, [Event(1, 2.0, note(1))], [Artifact(ref="a", body="second")])
            await journal.append(lease, [Event(1, 2.0, note(1))])
            assert [event.seq for event in await journal.load("r")] == [0, 1]
            flaws = (await journal.verify("r")).flaws
            assert [flaw.what for flaw in flaws] == ["artifact"]  # which no event names; the chain is whole

    asyncio.run(run())


def test_of_more_runs_than_are_remembered_each_keeps_its_chain(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taoloop.journals.sqlite.batch._HEADS_KEPT", 2)

    async def run() -> None:
        async with SqliteJournal(path) as journal:
            leases = [await journal.create(f"r{number}") for number in range(5)]
            for seq in range(4):
                fact = note(seq) if seq else STARTED
                await asyncio.gather(*(journal.append(lease, [Event(seq, float(seq), fact)]) for lease in leases))
            for lease in leases:
                assert (await journal.verify(lease.run_id)).whole

    asyncio.run(run())
