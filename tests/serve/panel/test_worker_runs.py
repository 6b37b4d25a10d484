"""Runs of workers in the panel: what is parked is handed to them again, and nothing is driven here."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tests.serve.panel.panels import Browser, browse

from taoloop import MemoryJournal, Submission
from taoloop.core.events import Resumed
from taoloop.testing.journal_contract import STARTED, events


def parked_run() -> MemoryJournal:
    journal = MemoryJournal()

    async def fill() -> None:
        lease = await journal.create("parked")
        started = replace(STARTED, submission=Submission(queue="slow"))
        await journal.append(lease, events(started, *[Resumed()] * 5))

    asyncio.run(fill())
    return journal


def test_a_parked_run_is_released_to_its_workers() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/inbox/parked/run")
        assert "5 times in a row" in page or "6 times in a row" in page
        assert "or: tao submit --resume parked" in page
        await browser.post("/runs/parked/resume", item="parked:run")
        last = (await browser.panel.state.journal.load("parked"))[-1].fact
        assert isinstance(last, Resumed)
        assert last.reason == "released by ann"

    browse(parked_run(), scenario, "ann")
