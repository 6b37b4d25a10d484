"""Retention beside other work: what it removes is logged, and an error does not end it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from taoloop.core.events import Finished
from taoloop.journals.memory import MemoryJournal
from taoloop.journals.retention import Retention
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.runtime.after.retention import RetentionTask
from taoloop.testing.fakes import FakeClock
from taoloop.testing.journal_contract import STARTED, events

FINISHED = Finished(status="completed", answer="5", reason="answered")


def test_what_is_removed_is_logged_and_reads_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            for number in range(3):
                await journal.append(await journal.create(f"r{number}"), events(STARTED, FINISHED))
            await journal.append(await journal.create("open"), events(STARTED))
            task = RetentionTask(journal, lambda: Retention(days=30))
            pruning = asyncio.create_task(task.apply())
            await journal.append(await journal.create("other"), events(STARTED))
            await pruning
            assert {row.run_id for row in await journal.runs()} == {"open", "other"}

    asyncio.run(run())
    assert "retention removed 3 runs (r0 to r2)" in caplog.text


def test_nothing_is_removed_without_a_retention_and_an_error_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        journal = MemoryJournal()
        await journal.append(await journal.create("r0"), events(STARTED, FINISHED))
        await RetentionTask(journal, lambda: None).apply()
        assert await journal.load("r0")
        await journal.close()
        await RetentionTask(journal, lambda: Retention(days=30), clock=FakeClock()).apply()

    asyncio.run(run())
    assert "retention could not be applied" in caplog.text
