"""The inbox in a browser: every look, every action, hostile arguments, two people, the keyboard, no script."""

from __future__ import annotations

import json
from typing import Any

import pytest
from checks.panel.conftest import QUICK_LANGUAGES, Open, assert_every_look, serious_findings
from tests.runtime.approvals.waiting_runs import (
    leave_approval,
    leave_blocked,
    leave_dead,
    leave_failed_undo,
    leave_question,
)
from tests.runtime.planning import TASK, Shop, planner
from tests.serve.panel.inbox_runs import ask_about_a_table, ask_about_an_invoice, ask_with_hostile_texts

from taoloop import Trace
from taoloop.core.events import ApprovalGiven, ApprovalRefused
from taoloop.journals.sqlite.journal import SqliteJournal


async def leave_all(journal: SqliteJournal) -> None:
    """Something of every kind."""
    await leave_approval(journal, 5, 6, 7, task="pay ann what she is owed")
    await ask_about_an_invoice(journal)
    await ask_about_a_table(journal)
    await ask_with_hostile_texts(journal)
    await leave_blocked(journal)
    await leave_failed_undo(journal)
    await leave_dead(journal)
    await leave_question(journal, choices=["R-17", "R-71"])
    await planner(Shop(), journal=journal).run(TASK, run_id="plans")
    await planner(Shop(), journal=journal, approve=lambda _: True).run(TASK, run_id="planned")


PAGES = (
    "/inbox",
    "/inbox/invoice/call_2",
    "/inbox/table/call_1",
    "/inbox/hostile/call_1",
    "/inbox/hostile/call_2",
    "/inbox/dead/call_1",
    "/inbox/orders.undo-1/call_1",
    "/inbox/blocked/run",
    "/inbox/dead/run",
    "/inbox/asks-user/call_1",
    "/inbox/plans/call_1",
    "/runs/planned",
)


def answers(fill: Any, run_id: str) -> list[Any]:
    async def load(journal: SqliteJournal) -> list[Any]:
        trace = Trace(run_id, await journal.load(run_id))
        return [event.fact for event in trace if isinstance(event.fact, ApprovalGiven | ApprovalRefused)]

    found: list[Any] = fill(load)
    return found


@pytest.mark.parametrize("language", QUICK_LANGUAGES)
def test_every_page_is_accessible_and_fits(fill: Any, open_page: Open, language: str) -> None:
    fill(leave_all)
    page = open_page("ada", PAGES[0], language=language)
    origin = page.url.partition("/inbox")[0]
    for path in PAGES:
        page.goto(f"{origin}{path}")
        if path == "/runs/planned":
            page.locator("#run-plan table.plan").wait_for()
        assert page.locator("main img, main script").count() == 0, path
        assert_every_look(page)


def test_of_two_browsers_the_first_counts_and_the_other_is_told_at_once(fill: Any, open_page: Open) -> None:
    fill(lambda journal: leave_approval(journal, 5))
    ann = open_page("ann", "/inbox/asks/call_1")
    ada = open_page("ada", "/inbox/asks/call_1")
    badge = open_page("bob", "/inbox")
    assert badge.locator("#inbox-badge .badge").inner_text().startswith("1")
    ada.locator("#approve-note").fill("typed before")
    ann.get_by_label("Why not? The model reads this.").fill("not before Friday")
    ann.get_by_role("button", name="Refuse").click()
    assert "not before Friday" in ann.locator("main").inner_text()
    ada.get_by_text("Somebody has answered meanwhile.").wait_for()
    assert "ann" in ada.locator("#state").inner_text()
    assert ada.locator("#approve-note").input_value() == "typed before", "what was typed stays"
    badge.get_by_text("Nothing waits for a person.").wait_for()
    badge.locator("#inbox-badge .badge").wait_for(state="detached")
    ada.get_by_role("button", name="Approve", exact=True).click()
    ada.get_by_text("Your answer was not recorded: somebody was faster.").wait_for()
    text = ada.locator("main").inner_text()
    assert "ann" in text
    assert "refused" in text
    assert [type(fact).__name__ for fact in answers(fill, "asks")] == ["ApprovalRefused"]


def test_a_new_question_appears_while_the_page_is_open_and_ticks_stay(fill: Any, open_page: Open) -> None:
    fill(lambda journal: leave_approval(journal, 5, 6))
    page = open_page("ann", "/inbox")
    page.locator('input[name="item"]').first.check()
    fill(lambda journal: leave_approval(journal, 7, run_id="asks2"))
    page.locator('a[href="/inbox/asks2/call_1"]').wait_for()
    assert page.locator('input[name="item"]:checked').count() == 1
    page.get_by_role("button", name="Approve the ticked calls").click()
    page.get_by_text("is allowed.").wait_for()
    assert [fact.call_id for fact in answers(fill, "asks")] == ["call_1"]
    assert answers(fill, "asks2") == []


def test_an_error_in_edited_arguments_is_shown_where_it_was_made(fill: Any, open_page: Open) -> None:
    fill(lambda journal: leave_approval(journal, 5))
    page = open_page("ann", "/inbox/asks/call_1")
    page.get_by_text("Edit and approve").click()
    page.locator("#args").fill('{"to": "bob", "amount": "all"}')
    page.locator("#edit-note").fill("bob gets it")
    page.get_by_role("button", name="Approve with these arguments").click()
    page.locator("#problem").wait_for()
    assert "do not fit" in page.locator("#problem").inner_text()
    assert page.locator("#args").is_visible()
    assert page.locator("#args").input_value() == '{"to": "bob", "amount": "all"}'
    assert page.locator("#edit-note").input_value() == "bob gets it"
    assert serious_findings(page) == []
    page.locator("#args").fill('{"to": "bob", "amount": 7}')
    page.get_by_role("button", name="Approve with these arguments").click()
    page.get_by_text("allowed with other arguments").wait_for()
    [given] = answers(fill, "asks")
    assert given.args == {"to": "bob", "amount": 7}


def test_hostile_arguments_stay_text_and_survive_an_edit(fill: Any, open_page: Open) -> None:
    fill(ask_with_hostile_texts)
    page = open_page("ann", "/inbox/hostile/call_1")
    shown = page.locator("table.arguments").inner_text()
    assert "<script>alert(1)</script>" in shown
    assert "\u202e" not in page.content()
    page.get_by_text("Edit and approve").click()
    typed = json.loads(page.locator("#args").input_value())
    page.locator("#args").fill(json.dumps({**typed, "amount": 4}))
    page.get_by_role("button", name="Approve with these arguments").click()
    page.get_by_text("allowed with other arguments").wait_for()
    [given] = answers(fill, "hostile")
    assert given.args == {**typed, "amount": 4}
    assert "\u202e" in given.args["to"], "as the model wrote it"


def test_a_high_risk_call_is_answered_by_keyboard_alone(fill: Any, open_page: Open) -> None:
    fill(ask_about_a_table)
    page = open_page("ann", "/inbox")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('href')") == "/inbox/table/call_1":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/inbox/table/call_1")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "confirm":
            break
    page.keyboard.type("ok")
    page.keyboard.press("Enter")
    page.locator("#problem").wait_for()
    assert answers(fill, "table") == []
    page.locator("#confirm").focus()
    page.keyboard.type("yes")
    page.keyboard.press("Enter")
    page.get_by_text("What happens next").wait_for()
    assert [fact.by for fact in answers(fill, "table")] == ["ann"]


def test_everything_works_without_script(fill: Any, browser: Any, panel: Any) -> None:
    fill(lambda journal: leave_approval(journal, 5, 6))
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(panel.login_url("ann", "/inbox"))
    assert page.locator("#inbox-badge .badge").inner_text().startswith("2")
    page.locator('a[href="/inbox/asks/call_1"]').click()
    page.get_by_label("also the other call of this question").last.check()
    page.get_by_label("Why not? The model reads this.").fill("no payments today")
    page.get_by_role("button", name="Refuse").click()
    assert "no payments today" in page.locator("main").inner_text()
    assert "tao resume asks --db" in page.locator("pre").inner_text()
    page.get_by_role("link", name="Back to the inbox").click()
    assert page.get_by_text("Nothing waits for a person.").count() == 1
    assert page.locator("#inbox-badge .badge").count() == 0
    assert len(answers(fill, "asks")) == 2
    context.close()
