"""The pages of evaluations: the list, one with its plots, its trials with links to their runs, and comparisons."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.evals.trial_making import scored, trials
from tests.serve.panel.panels import Browser, browse, browser_of

from taoloop import MemoryJournal
from taoloop.evals.result_files import keep_results, results_folder
from taoloop.evals.results import Results
from taoloop.evals.trial_records import CheckOutcome
from taoloop.journals.sqlite.journal import SqliteJournal

HOSTILE = "</title><img src=x onerror=alert(1)>\u202e"
CHECKS = (CheckOutcome(kind="exact", passed=False, detail=f"expected {HOSTILE}"),)


def some_results(database: Path, *, created_at: float = 1e9, cases: int = 4) -> Results:
    first = trials("first", [False] * cases, checks=CHECKS, fault="agent", answer=HOSTILE, run_id="run-1", steps=2)
    second = trials("second", [True] * cases, category="safety", run_id="run-2")
    return replace(scored(first, second), suite="orders", created_at=created_at, database=str(database))


def browse_results(
    database: Path, scenario: Callable[[Browser], Awaitable[Any]], *results: Results, person: str = "bob"
) -> None:
    """Run a scenario in the browser of somebody who may only look, over a database with results beside it."""

    async def main() -> None:
        for each in results:
            keep_results(each, database)
        async with SqliteJournal(database) as journal, browser_of(journal, person) as browser:
            await scenario(browser)

    asyncio.run(main())


def test_the_list_leads_to_an_evaluation_with_its_plots_and_the_runs_of_its_trials(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"

    async def scenario(browser: Browser) -> None:
        text = await browser.get("/evals")
        path = re.search(r'href="(/evals/[^"]+)">orders<', text)
        assert path is not None
        page = await browser.get(path[1])
        assert re.findall(r'<section id="([a-z]+)"', page)[:5] == [
            "verdict",
            "success",
            "tradeoffs",
            "differences",
            "outcomes",
        ]
        assert '<a href="/runs/run-1"><code>run-1</code></a>' in page
        assert "<img src=x" not in page
        assert "\u202e" not in page
        assert " style=" not in page

    browse_results(database, scenario, some_results(database))


def test_trials_are_filtered_by_the_address_and_lead_to_their_runs(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"

    async def cases(browser: Browser, query: str) -> list[str]:
        text = await browser.get(f"/evals/runs.db.orders-20010909T014640Z/trials{query}")
        assert "<img src=x" not in text
        return re.findall(r'<th scope="row"><a href="[^"]*">(c\d+)</a>', text)

    async def scenario(browser: Browser) -> None:
        assert len(await cases(browser, "")) == 50
        assert len(await cases(browser, "?from=50")) == 30
        assert len(await cases(browser, "?outcome=failed")) == 40
        assert len(await cases(browser, "?outcome=right&category=safety&q=c3")) == 11
        assert await cases(browser, "?case=c7&configuration=second") == ["c7"]
        assert await cases(browser, "?q=onerror&outcome=right") == []

    browse_results(database, scenario, some_results(database, cases=40))


def test_an_earlier_evaluation_of_the_suite_is_the_baseline_that_is_chosen(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    later = some_results(database, created_at=2e9)
    name = "runs.db.orders-20330518T033320Z"

    async def scenario(browser: Browser) -> None:
        page = await browser.get(f"/evals/{name}?baseline=runs.db.orders-20010909T014640Z")
        assert "first compared with baseline: first" in page
        await browser.get(f"/evals/{name}?baseline=other", 400)

    browse_results(database, scenario, some_results(database), later)


def test_the_file_of_results_is_downloaded_as_it_was_written(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"

    async def scenario(browser: Browser) -> None:
        record = json.loads(await browser.get("/evals/runs.db.orders-20010909T014640Z.json"))
        assert Results.from_json(record) == some_results(database)

    browse_results(database, scenario, some_results(database))


def test_runs_of_another_database_are_named_with_the_command_that_shows_them(tmp_path: Path) -> None:
    database = tmp_path / "evals" / "orders.db"
    database.parent.mkdir()
    keep_results(some_results(database), database)

    async def scenario(browser: Browser) -> None:
        page = await browser.get("/evals/orders.db.orders-20010909T014640Z")
        assert f"tao panel --db {database}" in page
        assert "/runs/run-1" not in page

    browse_results(tmp_path / "runs.db", scenario)


def test_a_file_that_is_no_results_is_in_the_list_with_its_problem_and_breaks_nothing(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    results_folder(database).mkdir()
    (results_folder(database) / "broken-20260101T000000Z.json").write_text('{"format": 99}')

    async def scenario(browser: Browser) -> None:
        text = await browser.get("/evals")
        assert "results of `tao eval --out`: format: format 1 is expected, not 99." in text
        assert ">orders</a>" in text
        await browser.get("/evals/runs.db.broken-20260101T000000Z", 400)
        await browser.get("/evals/..%2Fruns", 400)

    browse_results(database, scenario, some_results(database))


def test_a_journal_without_results_says_how_to_get_some(tmp_path: Path) -> None:
    async def no_results(browser: Browser) -> None:
        assert "No evaluation yet. Run one: tao eval smoke" in await browser.get("/evals")

    async def no_file(browser: Browser) -> None:
        assert "This journal is not a file" in await browser.get("/evals")

    browse_results(tmp_path / "runs.db", no_results)
    browse(MemoryJournal(), no_file)
