"""What the pages read of a run of 2,000 steps to show a part of it."""

from __future__ import annotations

import asyncio

from tests.runtime.approvals.long_runs import STEPS, CountingJournal, put_long_approval, put_long_blocked
from tests.runtime.planning import TASK, Shop, planner
from tests.serve.panel.panels import Browser, browse
from tests.serve.panel.run_samples import answered, put, started, steps

from taoloop import MemoryJournal
from taoloop.core.events import ModelReplied

SOME = 500


def long_run(*, lesson: bool = False) -> CountingJournal:
    """A run of 2,000 steps."""
    journal = CountingJournal()
    asyncio.run(put(journal, "r1", [started(), *steps(STEPS), *answered(STEPS + 1)]))
    return journal


def test_the_page_of_a_run_reads_what_it_shows() -> None:
    journal = long_run()

    async def scenario(browser: Browser) -> None:
        for path in ("/runs/r1", "/runs/r1?step=1500", "/runs/r1/sections?from=3000&to=3999&seq=3500"):
            journal.events_read = 0
            await browser.get(path)
            assert journal.events_read < SOME, path

    browse(journal, scenario)


def test_a_step_is_shown_at_once_and_its_state_reads_each_event_once() -> None:
    journal = long_run()

    async def scenario(browser: Browser) -> None:
        async def state(query: str) -> str:
            journal.events_read = 0
            return await browser.get(f"/runs/r1/state?{query}", is_fragment=True)

        begin = await state("step=1500")
        assert 'data-step="1500"' in begin
        assert 'hx-get="/runs/r1/state?step=1500&amp;all=1"' in begin
        assert "max_steps" not in begin
        assert journal.events_read < SOME, "the search for the step"
        assert ">1499</td>" in await state("step=1500&all=1")
        assert 3 * 1_499 < journal.events_read < 3 * 1_500 + SOME
        for step in (1_501, 1_400, 2, 1_502, 1_600):
            assert f">{step - 1}</td>" in await state(f"step={step}"), "as near as this it is all there at once"
            assert journal.events_read < SOME, step

    browse(journal, scenario)


def test_a_plan_reads_neither_other_runs_nor_what_the_model_said() -> None:
    journal = long_run()
    short = MemoryJournal()
    asyncio.run(planner(Shop(), journal=short, approve=lambda _: True).run(TASK, run_id="plans"))
    facts = [event.fact for event in asyncio.run(short.load("plans"))]
    talk = [ModelReplied(step=1, purpose="compact", text="so far", decision=None) for _ in range(STEPS)]
    asyncio.run(put(journal, "plans", [facts[0], *talk, *facts[1:]]))

    async def scenario(browser: Browser) -> None:
        journal.events_read = 0
        assert (await browser.get("/runs/r1/plan", is_fragment=True)).strip() == ""
        assert journal.events_read == 1
        part = await browser.get("/runs/plans/plan", is_fragment=True)
        assert part.count('class="status s-completed"') == 2
        assert journal.events_read < len(facts) + 2
        journal.events_read = 0
        assert await browser.get("/runs/plans/plan", is_fragment=True) == part
        assert journal.events_read == 1

    browse(journal, scenario)


def test_an_item_of_the_inbox_reads_what_waits_and_the_run_for_its_evidence_apart() -> None:
    journal = CountingJournal()
    call_id = asyncio.run(put_long_approval(journal))
    asyncio.run(put_long_blocked(journal))

    async def scenario(browser: Browser) -> None:
        async def get(path: str) -> str:
            journal.events_read = 0
            page = await browser.get(path)
            assert journal.events_read < 2 * SOME, (path, journal.events_read)
            return page

        assert "pay" in await get("/inbox")
        page = await get(f"/inbox/asks/{call_id}")
        assert f'hx-get="/inbox/asks/{call_id}/evidence"' in page
        assert "appears nowhere in this run" in page
        await get(f"/inbox/asks/{call_id}/state?digest=x")
        await get(f"/inbox/asks/{call_id}/arguments")
        assert "It is refunded." in await get("/inbox/blocked/run")
        assert "appears nowhere in this run" in await browser.get(f"/inbox/asks/{call_id}/evidence", is_fragment=True)
        await browser.get("/inbox/asks/call_9/evidence", 404, is_fragment=True)

    browse(journal, scenario)
