"""What the pages read of a run of 2,000 steps to show a part of it."""

from __future__ import annotations

import asyncio

from tests.runtime.approvals.long_runs import STEPS, CountingJournal, lengthen, put_long_approval, put_long_blocked
from tests.runtime.approvals.waiting_runs import leave_dead, leave_failed_undo, leave_question
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
            journal.forget()
            await browser.get(path)
            assert journal.events_read < SOME, path

    browse(journal, scenario)


def test_a_step_is_shown_at_once_and_its_state_reads_each_event_once() -> None:
    journal = long_run()

    async def scenario(browser: Browser) -> None:
        async def state(query: str) -> str:
            journal.forget()
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
        journal.forget()
        assert (await browser.get("/runs/r1/plan", is_fragment=True)).strip() == ""
        assert journal.events_read == 1
        part = await browser.get("/runs/plans/plan", is_fragment=True)
        assert part.count('class="status s-completed"') == 2
        assert journal.events_read < len(facts) + 2
        journal.forget()
        assert await browser.get("/runs/plans/plan", is_fragment=True) == part
        assert journal.events_read == 1

    browse(journal, scenario)


def test_an_item_of_the_inbox_reads_what_waits_and_the_run_for_its_evidence_apart() -> None:
    journal = CountingJournal()
    call_id = asyncio.run(put_long_approval(journal))
    asyncio.run(put_long_blocked(journal))

    async def scenario(browser: Browser) -> None:
        async def get(path: str) -> str:
            journal.forget()
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
        await browser.get("/inbox/asks/call_9/evidence", 404, is_fragment=True)

    browse(journal, scenario)


def test_items_of_every_kind_read_no_more_of_a_long_run_than_of_a_short_one() -> None:
    """A question to the user, a run that died with a call in doubt, and an undo that stopped."""
    short, journal = MemoryJournal(), CountingJournal()

    async def make() -> None:
        await leave_question(short)
        await leave_dead(short)
        await leave_failed_undo(short)
        for run_id in ("asks-user", "dead", "orders", "orders.undo-1"):
            await lengthen(journal, short, run_id)

    asyncio.run(make())

    async def scenario(browser: Browser) -> None:
        for path, text in (
            ("/inbox", "Which invoice?"),
            ("/inbox/asks-user/call_1", "Which invoice?"),
            ("/inbox/asks-user/call_1/state?digest=x", ""),
            ("/inbox/dead/call_1", "Did it happen?"),
            ("/inbox/dead/call_1/arguments", "ann"),
            ("/inbox/dead/run", "died again and again"),
            ("/inbox/orders.undo-1/call_1", "shipped"),
            ("/inbox/badge", ""),
        ):
            journal.forget()
            assert text in await browser.get(path)
            assert journal.events_read < 3 * SOME, (path, journal.events_read)
            assert journal.most_at_once <= SOME, path

    browse(journal, scenario)


def test_the_evidence_of_a_call_searches_a_run_without_keeping_it() -> None:
    journal = CountingJournal()
    call_id = asyncio.run(put_long_approval(journal))
    asyncio.run(put_long_blocked(journal))

    async def scenario(browser: Browser) -> None:
        for path in (f"/inbox/asks/{call_id}/evidence", "/inbox/blocked/late_call_2/evidence"):
            journal.forget()
            await browser.get(path, is_fragment=True)
            assert journal.most_at_once <= SOME, path
        assert "appears nowhere in this run" in await browser.get(f"/inbox/asks/{call_id}/evidence", is_fragment=True)

    browse(journal, scenario)


def test_no_page_of_a_run_holds_all_of_it_at_once() -> None:
    """Parts that need every event fold them piece by piece; a citation of a call is read by its id."""
    journal = long_run()

    async def scenario(browser: Browser) -> None:
        for path, most in (
            ("/runs", 0),
            ("/runs/r1", SOME),
            ("/runs/r1/head", SOME),
            ("/runs/r1/relations", SOME),
            ("/runs/r1/events?from=3000", SOME),
            ("/runs/r1/tail?after=5990", SOME),
            ("/runs/r1/timeline?from=3000&to=3100", 2 * SOME),
            ("/runs/r1/events/3001/record", 1),
            ("/runs/r1/events/3001/texts/0", 1),
            ("/runs/r1/citations/obs:call_1700", SOME),
            ("/runs/r1/totals", 7 * STEPS),
            ("/runs/r1/timeline", 4 * STEPS),
            ("/runs/r1/citations/doc:000000001700", 4 * STEPS),
        ):
            journal.forget()
            await browser.get(path)
            assert journal.events_read <= most, (path, journal.events_read)
            assert journal.most_at_once <= SOME, path

    browse(journal, scenario)
