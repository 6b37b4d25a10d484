"""The list of runs: counters, filters, search, views, paging, live events."""

from __future__ import annotations

import asyncio
import re

from tests.serve.panel.panels import Browser, browse

from taoloop import Agent, MemoryJournal, ScriptedModel
from taoloop.serve.panel.pages.runs import PAGE_SIZE


def journal_with(*tasks: str) -> MemoryJournal:
    """A journal with a completed run for each task."""
    journal = MemoryJournal()
    agent = Agent(model=ScriptedModel(["All done."]), dialect="native", journal=journal)

    async def fill() -> None:
        for task in tasks:
            await agent.run(task)

    asyncio.run(fill())
    return journal


def tasks_in(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="[^"]+">([^<]*)</a>', page)


def test_runs_are_listed_newest_first_with_counters() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/runs")
        assert tasks_in(page) == ["second &lt;b&gt;", "first"]
        assert re.search(r'href="/runs\?status=completed"[^>]*><b>2</b> completed', page)
        assert tasks_in(await browser.get("/runs?status=waiting")) == []
        assert "No run fits this filter." in await browser.get("/runs?status=waiting")

    browse(journal_with("first", "second <b>"), scenario)


def test_the_search_and_the_counters_keep_each_other() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/runs?q=发票")
        assert tasks_in(page) == ["查一下发票 4711"]
        assert "/runs?q=%E5%8F%91%E7%A5%A8&amp;status=completed" in page
        assert '<input type="hidden" name="status" value="completed">' in await browser.get(
            "/runs?q=a&status=completed"
        )

    browse(journal_with("查一下发票 4711", "something else"), scenario)


def test_the_list_is_paged_by_cursor() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/runs")
        assert len(tasks_in(page)) == PAGE_SIZE
        match = re.search(r'rel="next" href="([^"]+)"', page)
        assert match is not None
        older = await browser.get(match[1].replace("&amp;", "&"))
        assert tasks_in(older) == ["task 1", "task 0"]
        assert 'rel="next"' not in older

    browse(journal_with(*(f"task {number}" for number in range(PAGE_SIZE + 2))), scenario)


def test_htmx_gets_the_list_alone() -> None:
    async def scenario(browser: Browser) -> None:
        part = await browser.get("/runs", is_fragment=True)
        assert "<html" not in part
        assert tasks_in(part) == ["first"]

    browse(journal_with("first"), scenario)


def test_views_are_saved_and_forgotten() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.post("/views", name="<i>mine", query="status=completed&q=a")
        assert '<a href="/runs?status=completed&amp;q=a">&lt;i&gt;mine</a>' in page
        assert "The view has no name." in await browser.post("/views", 400, name=" ", query="q=a")
        assert "mine" not in await browser.post("/views", forget="<i>mine")

    browse(journal_with(), scenario)


def test_a_broken_cookie_of_views_is_ignored() -> None:
    async def scenario(browser: Browser) -> None:
        response = await browser.request("GET", "/runs", headers={"Cookie": f"{cookie(browser)}; taoloop_views=zz"})
        assert response.status == 200

    def cookie(browser: Browser) -> str:
        jar = browser._client.session.cookie_jar
        return "; ".join(f"{item.key}={item.value}" for item in jar)

    browse(journal_with(), scenario)


def test_the_stream_says_what_grows() -> None:
    journal = journal_with("first")
    agent = Agent(model=ScriptedModel(["Done."]), dialect="native", journal=journal)

    async def scenario(browser: Browser) -> None:
        response = await browser.request("GET", "/live", headers={"Accept": "text/event-stream"})
        assert response.content_type == "text/event-stream"
        assert await lines(response, 2) == ["event: grown", "data: {}"]
        result = await agent.run("second")
        event, data = await lines(response, 2)
        assert event == "event: grown"
        assert result.run_id in data
        response.close()

    async def lines(response: object, count: int) -> list[str]:
        found: list[str] = []
        async with asyncio.timeout(20):
            while len(found) < count:
                line = (await response.content.readline()).decode().strip()  # type: ignore[attr-defined]  # a response
                if line and not line.startswith(":"):
                    found.append(line)
        return found

    browse(journal, scenario)


def test_runs_are_ticked_and_compared_from_the_list() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/runs")
        runs = re.findall(r'<input type="checkbox" id="c-[^"]+" name="run" value="([^"]+)"', page)
        assert len(runs) == 2
        response = await browser.request("GET", "/compare", params=[("run", run) for run in runs])
        assert response.url.query["runs"] == ",".join(runs)
        assert 'table class="steps-beside"' in await response.text()

    browse(journal_with("first", "second"), scenario)
