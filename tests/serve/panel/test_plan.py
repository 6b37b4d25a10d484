"""A plan in the panel: its question as a table, the form that edits it, and the status of each step of a run."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from tests.runtime.planning import FIND, ORDER_ID, REFUND, TASK, Shop, planner
from tests.serve.panel.panels import Browser, browse
from tests.serve.panel.test_inbox import digest_in, last

from taoloop import ApprovalAnswer, MemoryJournal
from taoloop.core.events import ApprovalGiven, ApprovalRefused

CHEAPER = {"steps": [FIND, {**REFUND, "calls": [{"tool": "refund", "args": {"order_id": ORDER_ID, "amount": 7}}]}]}


def waiting() -> MemoryJournal:
    journal = MemoryJournal()
    asyncio.run(planner(Shop(), journal=journal).run(TASK, run_id="plans"))
    return journal


def test_the_question_about_a_plan_is_a_table_with_the_origin_of_each_value() -> None:
    async def scenario(browser: Browser) -> None:
        for page in (await browser.get("/inbox/plans/call_1"), await browser.get("/inbox")):
            assert "1. Find the order" in page
            assert "2. Refund it (after 1)" in page
            assert "&lt;search_orders.items[].id of step 1&gt;" in page
            assert "FOREIGN" in page
            assert re.findall(r'<span class="tag">(\w+)</span>', page) == ["read", "write"], "of its calls alone"
        page = await browser.get("/inbox/plans/call_1")
        assert "May this plan run, with exactly the calls that it lists?" in page
        assert "Approve this plan" in page
        assert "trust its values" not in page

    browse(waiting(), scenario)


@pytest.mark.parametrize("edited", [False, True])
def test_an_approval_is_of_the_plan_as_shown_or_as_edited(edited: bool) -> None:
    journal = waiting()

    async def scenario(browser: Browser) -> None:
        page = await browser.get("/inbox/plans/call_1")
        fields = {"digest": digest_in(page), "confirm": "yes"} | ({"args": json.dumps(CHEAPER)} if edited else {})
        await browser.post("/inbox/plans/call_1/approve", **fields)
        given = await last(browser, "plans", ApprovalGiven)
        assert (given.by, given.authenticated, given.args) == ("ada", "panel_token", CHEAPER if edited else None)
        assert (given.digest == fields["digest"]) == (not edited)
        shop = Shop()
        result = await planner(shop, journal=journal).resume("plans")
        assert (result.status, shop.ledger) == ("completed", [("S-1", 7 if edited else 40)])
        part = await browser.get("/runs/plans/plan", is_fragment=True)
        assert ("Edited and approved by ada" in part) == edited
        assert re.findall(r'class="status s-(\w+)">(\w+)<', part) == [("completed", "done"), ("completed", "done")]
        assert 'href="/runs/plans.2"' in part
        assert 'hx-get="/runs/plans/plan"' in await browser.get("/runs/plans")

    browse(journal, scenario)


def test_a_plan_edited_into_one_that_cannot_run_stays_open_with_what_is_wrong() -> None:
    async def scenario(browser: Browser) -> None:
        digest = digest_in(await browser.get("/inbox/plans/call_1"))
        broken = json.dumps({"steps": [{"number": 1, "goal": "x", "calls": [{"tool": "steal", "args": {}}]}]})
        page = await browser.post("/inbox/plans/call_1/approve", 422, digest=digest, args=broken, confirm="yes")
        assert "Step 1: there is no tool &#39;steal&#39;." in page
        await browser.post("/inbox/plans/call_1/refuse", digest=digest, note="too much")
        assert (await last(browser, "plans", ApprovalRefused)).note == "too much"

    browse(waiting(), scenario)


def test_a_broken_plan_shows_which_step_failed_and_why() -> None:
    journal = MemoryJournal()
    broken = {**FIND, "expect": "len(search_orders.items) > 1"}
    agent = planner(
        Shop(),
        {"tool_calls": [{"name": "make_plan", "args": {"steps": [broken, REFUND]}}]},
        "Only one.",
        journal=journal,
        strategy="plan_execute:max_replans=0",
        approve=lambda _: ApprovalAnswer(approved=True, by="boss"),
    )
    asyncio.run(agent.run(TASK, run_id="plans"))

    async def scenario(browser: Browser) -> None:
        part = await browser.get("/runs/plans/plan", is_fragment=True)
        assert re.findall(r'class="status s-(\w+)">(\w+)', part) == [("lost", "failed"), ("open", "open")]
        assert "What the plan expects does not hold" in part
        assert "Approved by boss (claimed)" in " ".join(part.split())

    browse(journal, scenario)


def test_a_run_without_a_plan_shows_none() -> None:
    journal = MemoryJournal()
    asyncio.run(planner(Shop(), "Hello.", journal=journal, strategy="react").run("Say hello.", run_id="plain"))

    async def scenario(browser: Browser) -> None:
        assert "/plan" not in await browser.get("/runs/plain")
        assert (await browser.get("/runs/plain/plan", is_fragment=True)).strip() == ""

    browse(journal, scenario)
