"""The page of costs and health: periods and filters in the address, charts, tables, links to the runs, CSV."""

from __future__ import annotations

import asyncio
import csv
import io
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from tests.serve.panel.panels import PEOPLE, Browser, browser_of
from tests.serve.panel.spending import at_noon, spend

from taoloop import MemoryJournal
from taoloop.serve.panel.access import TokenAccess
from taoloop.serve.panel.app import Panel
from taoloop.serve.panel.state import PanelState
from taoloop.testing import FakeClock

NOW = at_noon("2027-01-15")


def shown(fill: Callable[[MemoryJournal], Awaitable[Any]], scenario: Callable[[Browser], Awaitable[Any]]) -> None:
    """Run a scenario in the browser of somebody who may only look, over a journal, on a known day."""

    async def main() -> None:
        journal = MemoryJournal()
        await fill(journal)
        async with browser_of(journal, "bob") as browser:
            browser.panel.state.clock = FakeClock(NOW)
            await scenario(browser)

    asyncio.run(main())


async def some_runs(journal: MemoryJournal) -> None:
    await spend(journal, "r1", "2027-01-15", cost=1.25, failed=1, answered=True)
    await spend(journal, "r3", "2027-01-10", agent="客服", model="small", key="shop", cost=0.25, status="stopped")
    await spend(journal, "r4", "2026-12-01", agent="clerk", cost=8.0)


def figure(page: str, name: str) -> str:
    match = re.search(f"<dt>{name}</dt><dd>([^<]*)</dd>", page)
    assert match is not None, page
    return match[1]


def names_in(page: str) -> list[str]:
    table = page[page.index('<table class="costs">') :]
    return re.findall(r'<th scope="row">(?:<a href="[^"]*">|<i>)?([^<]*)<', table)


def test_the_last_30_days_are_shown_and_other_periods_are_a_link_away() -> None:
    """S3-47."""

    async def scenario(browser: Browser) -> None:
        page = await browser.get("/costs")
        assert figure(page, "Spend") == "$1.50"
        assert figure(page, "Runs") == "2"
        assert figure(page, "Completed runs") == "50%"
        assert figure(page, "Steps per run") == "2"
        assert figure(page, "Failed tool calls") == "25%"
        assert figure(page, "Interventions") == "1"
        assert names_in(page) == ["clerk", "客服"]
        assert re.search(r'href="/costs\?days=30" aria-current="true"', page)
        assert figure(await browser.get("/costs?days=all"), "Spend") == "$9.50"
        assert figure(await browser.get("/costs?days=7"), "Spend") == "$1.50"
        assert figure(await browser.get("/costs?since=2026-12-01&until=2026-12-01"), "Spend") == "$8.00"
        assert "Nothing happened in this period" in await browser.get("/costs?since=2026-11-01&until=2026-11-02")
        assert '<input type="hidden" name="days" value="all">' in await browser.get("/costs?days=all")
        both = await browser.get("/costs?days=all&since=2027-01-01&until=")
        assert figure(both, "Spend") == "$1.50", "days go before a period"
        assert 'name="since" type="date" value="2027-01-01"' in both

    shown(some_runs, scenario)


def test_filters_and_groups_are_in_the_address_and_each_row_leads_to_its_runs() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/costs?by=model&days=all")
        assert names_in(page) == ["big", "small"]
        assert 'href="/runs?inner=1&amp;model=small"' in page
        page = await browser.get("/costs?by=key&since=2027-01-01")
        assert names_in(page) == ["without a key", "shop"]
        [path] = re.findall(r'href="(/runs[^"]*key=shop)"', page)
        assert path == "/runs?since=2027-01-01&amp;inner=1&amp;key=shop"
        assert "r3" in await browser.get(path.replace("&amp;", "&"))
        page = await browser.get("/costs?agent=客服&by=agent")
        assert (figure(page, "Runs"), names_in(page)) == ("1", ["客服"])
        assert '<option value="客服" selected>' in page
        assert "days=90" in page
        assert "agent=%E5%AE%A2%E6%9C%8D" in page[page.index("days=90") - 200 :][:400], "a period keeps the filter"

    shown(some_runs, scenario)


def test_charts_are_pictures_with_a_table_beside_each() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/costs")
        assert page.count('role="img"') == page.count("<figure") == page.count("<details><summary>") == 5
        assert "2026-12-17 to 2027-01-15. Highest: $1.25 (2027-01-15). In all: $1.50." in page
        assert len(re.findall('<rect class="hit"', page)) == 5 * 30, "each day of the period, also without runs"
        path = "/runs?since=2027-01-10&amp;until=2027-01-10&amp;inner=1"
        numbers = '<td class="number">$0.00</td><td class="number">$0.25</td>'
        assert f'<tr><th scope="row"><a href="{path}">2027-01-10</a></th>{numbers}' in page
        assert "r3" in await browser.get(path.replace("&amp;", "&"))
        assert " style=" not in page
        weeks = await browser.get("/costs?since=2026-01-01")
        assert "by week" in weeks
        assert 'href="/runs?since=2026-11-30&amp;until=2026-12-06&amp;inner=1"' in weeks

    shown(some_runs, scenario)


def test_calls_without_a_price_are_named_and_no_zero() -> None:
    async def fill(journal: MemoryJournal) -> None:
        await spend(journal, "r1", "2027-01-15", model="new <b>", cost=None, steps=3)

    async def scenario(browser: Browser) -> None:
        page = await browser.get("/costs?by=model")
        assert figure(page, "Spend") == "unknown"
        assert "3 calls have no known price" in page
        assert "<code>new &lt;b&gt;</code> (3)" in page
        assert "$0.00</td>" not in page[page.index('<table class="costs">') :]

    shown(fill, scenario)


def test_more_groups_than_patterns_are_added_up() -> None:
    async def fill(journal: MemoryJournal) -> None:
        for number in range(12):
            await spend(journal, f"r{number}", "2027-01-15", agent=f"agent {number}", cost=float(number + 1))

    async def scenario(browser: Browser) -> None:
        page = await browser.get("/costs")
        assert "6 others" in page
        assert len(names_in(page)) == 12
        assert names_in(page)[0] == "agent 11", "the largest first"

    shown(fill, scenario)


def test_a_spreadsheet_gets_what_the_page_shows_and_no_formula() -> None:
    async def fill(journal: MemoryJournal) -> None:
        await some_runs(journal)
        await spend(journal, "r9", "2027-01-15", agent='=HYPERLINK("http://evil.example")', cost=0.125)

    async def scenario(browser: Browser) -> None:
        response = await browser.request("GET", "/costs.csv?since=2027-01-01")
        assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
        assert "attachment" in response.headers["Content-Disposition"]
        text = (await response.read()).decode("utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(text)))
        assert [(row["day"], row["agent"], row["key"], row["cost_usd"]) for row in rows] == [
            ("2027-01-10", "客服", "shop", "0.25"),
            ("2027-01-15", '\'=HYPERLINK("http://evil.example")', "", "0.125"),
            ("2027-01-15", "clerk", "", "1.25"),
        ]

    shown(fill, scenario)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("since=2027-13-01", "is not a day of the calendar"),
        ("until=yesterday", "is not a day of the calendar"),
        ("since=2027-01-02&until=2027-01-01", "ends before it begins"),
    ],
)
def test_what_is_no_period_is_said_in_the_page(query: str, message: str) -> None:
    async def scenario(browser: Browser) -> None:
        assert message in await browser.get(f"/costs?{query}", status=400)
        assert message in await browser.get(f"/costs.csv?{query}", status=400)

    shown(some_runs, scenario)


@pytest.mark.parametrize(
    "query", ["days=0", "days=x", "by=day", "agent=%00%ff", "since=0001-01-01", "until=9999-12-31"]
)
def test_odd_addresses_have_an_answer(query: str) -> None:
    async def scenario(browser: Browser) -> None:
        await browser.get(f"/costs?{query}")

    shown(some_runs, scenario)


def test_it_is_empty_without_runs() -> None:
    async def fill(journal: MemoryJournal) -> None:
        await journal.runs()

    async def scenario(browser: Browser) -> None:
        assert "Nothing happened in this period" in await browser.get("/costs")
        assert "Nothing happened in this period" in await browser.get("/costs?days=all")

    shown(fill, scenario)


def test_it_stays_in_the_gateway_where_that_mounts_it() -> None:
    async def main() -> None:
        journal = MemoryJournal()
        await some_runs(journal)
        panel = Panel(PanelState(journal=journal, access=TokenAccess(PEOPLE), prefix="/panel"))
        outer = web.Application()
        outer.add_subapp("/panel/", panel.app)
        async with TestClient(TestServer(outer)) as client:
            browser = Browser(client, panel)
            await browser.log_in("bob")
            page = await browser.get("/costs?days=all")
            links = re.findall('(?:href|action)="(/[^"]*)"', page)
            assert links
            assert [link for link in links if not link.startswith("/panel/")] == []

    asyncio.run(main())


def test_it_speaks_chinese() -> None:
    async def scenario(browser: Browser) -> None:
        response = await browser.request("GET", "/costs?days=all", headers={"Accept-Language": "zh-CN"})
        page = await response.text()
        assert "<h1>费用与运行状况</h1>" in page
        assert "2026-12-01 至 2027-01-15。最高：$8.00（2026-12-01）。合计：$9.50。" in page

    shown(some_runs, scenario)
