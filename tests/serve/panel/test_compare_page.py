"""Runs side by side: picked from a list, aligned, with what differs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest
from tests.serve.panel.panels import Browser, browse

from taoloop import Agent, MemoryJournal, ScriptedModel, tool
from taoloop.serve.panel.pages import compare

HOSTILE = "<script>alert(1)</script>\u202e[x](javascript:y)"


@tool(tier="read")
def price(item: str) -> int:
    """The price of an item."""
    return len(item)


def look(item: str) -> Mapping[str, Any]:
    return {"text": "I look.", "tool_calls": [{"name": "price", "args": {"item": item}}]}


def ran(journal: MemoryJournal, *script: Any, task: str = "Get tea.") -> str:
    agent = Agent(model=ScriptedModel(script), tools=[price], journal=journal, max_steps=20)
    return asyncio.run(agent.run(task)).run_id


def rows_of(page: str) -> list[list[str]]:
    """The cells of the table of steps, each as its words."""
    table = page.partition('class="steps-beside"')[2].partition("</table>")[0]
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table.partition("<tbody>")[2], re.DOTALL)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in rows]
    return [[" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in row] for row in cells]


def test_two_runs_are_aligned_and_the_first_difference_is_shown() -> None:
    journal = MemoryJournal()
    first = ran(journal, look("tea"), look("milk"), "x")
    second = ran(journal, look("tea"), look(HOSTILE), look("milk"), "y")

    async def scenario(browser: Browser) -> None:
        page = await browser.get(f"/compare?runs={first},{second}")
        assert "They first differ in step 2: only B has it" in page
        rows = rows_of(page)
        assert [row[0].partition(" ")[0] for row in rows] == ["1", "no", "2", "3"]
        assert [row[1].partition(" ")[0] for row in rows] == ["1", "2", "3", "4"]
        assert re.search(r'Steps</th><td class="figure">3</td><td class="figure">4 <span class="quiet">\(\+1\)', page)
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page

    browse(journal, scenario, "bob")


def test_more_runs_are_each_compared_with_the_first_and_a_fork_is_named() -> None:
    journal = MemoryJournal()
    script = [look("tea"), look("milk"), "x"]
    first = ran(journal, *script)
    agent = Agent(model=ScriptedModel(["y"]), tools=[price], journal=journal)
    fork = asyncio.run(agent.fork(first, at=2)).run_id
    third = ran(journal, look("tea"), look("milk"), "z")

    async def scenario(browser: Browser) -> None:
        page = await browser.get(f"/compare?runs={first},{fork},{third}")
        assert "B is a fork of A at step 2." in page
        assert re.search(r"<h3>A, C</h3>\s*<p>They first differ in step 3: answer</p>", page)
        assert "They first differ in step 3: answer" not in await browser.get(f"/compare?runs={first},{first},{fork}")

    browse(journal, scenario)


def test_equal_stretches_are_one_row_until_all_steps_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "ROWS_PER_PAGE", 4)
    journal = MemoryJournal()
    items = [look(f"item {number}") for number in range(6)]
    first, second = ran(journal, *items, "x"), ran(journal, *items, "y")

    async def scenario(browser: Browser) -> None:
        address = f"/compare?runs={first},{second}"
        page = await browser.get(address)
        assert rows_of(page)[0] == ["6 equal steps"]
        assert len(rows_of(page)) == 2
        every = await browser.get(f"{address}&rows=all")
        assert len(rows_of(every)) == 4
        match = re.search(r'rel="next" href="([^"]+)#steps"', every)
        assert match is not None
        following = await browser.get(match[1].replace("&amp;", "&"))
        assert [row[0].partition(" ")[0] for row in rows_of(following)] == ["5", "6", "7"]
        assert "is not the number of a row" in await browser.get(f"{address}&from=x", status=400)

    browse(journal, scenario)


def test_runs_are_picked_from_a_list_of_the_same_task() -> None:
    journal = MemoryJournal()
    first, other = ran(journal, "x"), ran(journal, "y", task="Something else.")
    alike = ran(journal, "z")

    async def scenario(browser: Browser) -> None:
        page = await browser.get(f"/compare?runs={first}")
        assert re.findall(r'name="run" value="([^"]+)"( checked)?', page) == [
            (first, " checked"),
            (alike, ""),
            (other, ""),
        ]
        assert other not in re.findall(r'value="([^"]+)"', await browser.get("/compare?q=tea"))
        response = await browser.request("GET", f"/compare?run={first}&run={alike}", allow_redirects=False)
        assert response.status == 303
        assert response.headers["Location"] == f"/compare?runs={first}%2C{alike}"

    browse(journal, scenario)


def test_a_run_that_is_not_there_and_too_many_are_said_in_the_form() -> None:
    journal = MemoryJournal()
    first = ran(journal, "x")

    async def scenario(browser: Browser) -> None:
        page = await browser.get(f"/compare?runs={first},nothing", status=404)
        assert "nothing" in page.partition('notice bad" role="alert"')[2].partition("</p>")[0]
        assert f'value="{first}" checked' in page
        many = ",".join([first, *(f"run-{number}" for number in range(8))])
        assert "At most 8 runs can be compared." in await browser.get(f"/compare?runs={many}", status=404)

    browse(journal, scenario)


def test_a_run_that_is_too_long_is_compared_in_part_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "QUICK_EVENTS", 16)
    journal = MemoryJournal()
    first, second = ran(journal, look("tea"), look("milk"), "x"), ran(journal, "x")

    async def scenario(browser: Browser) -> None:
        page = await browser.get(f"/compare?runs={first},{second}")
        assert "A has more events than are compared here: only its first 8 are." in page
        assert "B has more events" not in page
        assert f"/compare?runs={first}%2C{second}&amp;whole=1" in page
        assert "has more events" not in await browser.get(f"/compare?runs={first},{second}&whole=1")

    browse(journal, scenario)


def test_thoughts_and_decisions_alone_are_a_link_away() -> None:
    journal = MemoryJournal()
    first = ran(journal, look("tea"), "x")
    second = ran(journal, {**look("tea"), "text": "Hm."}, "x")

    async def scenario(browser: Browser) -> None:
        assert "Nothing differs that was compared." in await browser.get(f"/compare?runs={first},{second}")
        page = await browser.get(f"/compare?runs={first},{second}&thoughts=1")
        assert "They first differ in step 1: thought" in page
        assert "- A: I look." in page

    browse(journal, scenario)
