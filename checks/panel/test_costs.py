"""The page of costs and health in a browser."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from checks.panel.conftest import QUICK_LANGUAGES, WIDTHS, Open, assert_every_look
from tests.serve.panel.spending import spend

from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.journals.usage_report import days_before

HOSTILE = "</title><img src=x onerror=alert(1)>\u202e" + "x" * 200
AGENTS = ("clerk", "客服助手", "desk", HOSTILE, "=1+1", "research", "night", "mail", "sums")
LAST = "2027-01-15"


async def many_runs(journal: SqliteJournal) -> None:
    """Runs of 1,000 days and nine agents, some of them without a price."""
    await asyncio.gather(
        *(
            spend(
                journal,
                f"r{number}",
                days_before(LAST, number),
                agent=AGENTS[number // 3 % len(AGENTS)],
                model="unpriced" if number % 7 == 0 else "big",
                cost=None if number % 7 == 0 else 0.1 + number % 11 / 10,
                failed=number % 2,
                status="completed" if number % 5 else "stopped",
                answered=number % 4 == 0,
            )
            for number in range(0, 1_000, 3)
        )
    )


@pytest.mark.parametrize("language", QUICK_LANGUAGES)
def test_the_page_is_accessible_and_fits(fill: Any, open_page: Open, language: str) -> None:
    fill(many_runs)
    page = open_page("bob", f"/costs?since={days_before(LAST, 29)}", language=language)
    assert page.locator("svg.chart").count() == 5
    assert page.locator("img[src=x]").count() == 0
    assert_every_look(page)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        boxes = page.locator("svg.chart text").evaluate_all(
            "texts => texts.filter(text => getComputedStyle(text).display !== 'none').map(text => "
            "[text.getBoundingClientRect().left, text.getBoundingClientRect().right, "
            "parseFloat(getComputedStyle(text).fontSize)])"
        )
        assert all(left >= 0 and right <= width and size >= 12 for left, right, size in boxes), "labels can be read"


def test_a_period_a_group_and_the_runs_of_a_row_are_reached_by_keyboard(fill: Any, open_page: Open) -> None:
    fill(many_runs)
    page = open_page("bob", "/costs?days=all")
    assert page.locator("svg.chart").first.locator("rect.hit").count() == 34, "1,000 days are months"
    page.get_by_label("Add up by").press("End")
    page.get_by_label("Agent", exact=True).select_option("客服助手")
    page.get_by_role("button", name="Show").press("Enter")
    page.wait_for_url(re.compile("agent="))
    summary = page.locator("figure summary").first
    summary.press("Enter")
    assert page.locator("figure").first.get_by_role("table").is_visible()
    page.get_by_label("Add up by").select_option("agent")
    page.get_by_role("button", name="Show").press("Enter")
    page.get_by_role("link", name="客服助手").press("Enter")
    page.wait_for_url(re.compile(r"/runs\?.*agent="))
    assert page.locator("table.runs tbody tr").count() == 37, "a ninth of all runs"


def test_the_csv_is_a_file(fill: Any, open_page: Open) -> None:
    fill(many_runs)
    page = open_page("bob", "/costs?days=all")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as CSV").click()
    assert download.value.suggested_filename == "taoloop-costs.csv"
