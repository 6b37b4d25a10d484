"""The list of runs in a browser."""

from __future__ import annotations

from typing import Any

import pytest
from checks.panel.conftest import QUICK_LANGUAGES, Open, assert_every_look

from taoloop import Agent, ScriptedModel
from taoloop.journals.sqlite.journal import SqliteJournal

HOSTILE = "<img src=x onerror=alert(1)> [link](javascript:alert(1)) \u202e reversed \x1b[31m" + "x" * 300


WATCH = """
window.changes = 0;
const seen = {subtree: true, childList: true, characterData: true, attributes: true};
const watch = new MutationObserver((records) => { changes += records.length; });
watch.observe(document.querySelector("table.runs tbody tr"), seen);
"""
"""Counts the changes of the first row."""


async def run(journal: SqliteJournal, task: str) -> Any:
    return await Agent(model=ScriptedModel(["All done."]), dialect="native", journal=journal).run(task)


@pytest.mark.parametrize("language", QUICK_LANGUAGES)
def test_the_list_is_accessible_and_fits(fill: Any, open_page: Open, language: str) -> None:
    for task in ("What is 17 times 23?", "把发票 4711 退款", HOSTILE):
        fill(lambda journal, task=task: run(journal, task))
    page = open_page("ada", "/runs", language=language)
    assert page.locator("table.runs tbody tr").count() == 3
    assert page.locator("table.runs img").count() == 0
    assert_every_look(page)


def test_a_run_appears_while_the_page_is_open(fill: Any, open_page: Open) -> None:
    fill(lambda journal: run(journal, "first"))
    page = open_page("bob", "/runs")
    rows = page.locator("table.runs tbody tr")
    assert rows.count() == 1
    rows.first.get_by_role("checkbox").check()
    page.evaluate(WATCH)
    fill(lambda journal: run(journal, "second"))
    rows.nth(1).wait_for()
    assert page.evaluate("changes") == 0, "what has not changed is left as it is"
    assert "second" in rows.nth(0).inner_text()
    assert not rows.nth(0).get_by_role("checkbox").is_checked()
    assert rows.nth(1).get_by_role("checkbox").is_checked(), "ticks stay"
    rows.nth(0).get_by_role("checkbox").check()
    page.get_by_role("button", name="Compare the ticked runs").click()
    page.wait_for_url("**/compare?runs=*%2C*")


def test_the_search_works_by_keyboard_and_without_script(fill: Any, browser: Any, panel: Any) -> None:
    for task in ("refund the invoice", "something else"):
        fill(lambda journal, task=task: run(journal, task))
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(panel.login_url("bob"))
    page.locator("#q").fill("invoice")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs?q=invoice*")
    assert page.locator("table.runs tbody tr").count() == 1
    context.close()


def test_a_database_that_goes_away_under_an_open_page_is_said_until_it_is_back(
    fill: Any, open_page: Open, panel: Any
) -> None:
    fill(lambda journal: run(journal, "first"))
    page = open_page("bob", "/runs")
    page.locator("#away").wait_for(state="hidden")
    elsewhere = panel.path.with_name("elsewhere.db")
    panel.path.rename(elsewhere)
    page.locator("#away").wait_for()
    assert page.locator("table.runs tbody tr").count() == 1, "what was known stays"
    elsewhere.rename(panel.path)
    page.locator("#away").wait_for(state="hidden")
