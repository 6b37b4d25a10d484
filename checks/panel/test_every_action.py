"""What the forms of the panel do in a browser, where no other test here has sent them: answers, marks, stops, views."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from checks.panel.conftest import Open
from checks.panel.refunds import WHOLE, run
from tests.runtime.approvals.waiting_runs import (
    asking,
    leave_approval,
    leave_blocked,
    leave_dead,
    leave_failed_undo,
    leave_question,
)
from tests.runtime.planning import TASK, Shop, planner
from tests.serve.panel.panels import ServedPanel, served_panel
from tests.serve.panel.run_samples import answered, put, started, steps

from taoloop import Agent, ScriptedModel, Trace
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import ApprovalGiven, ApprovalRefused, DoubtSettled, Finished, Noted
from taoloop.core.human_input import Marked
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.runtime.lessons import find_lessons

HOLD = """
import asyncio, sys
from taoloop.journals.sqlite.journal import SqliteJournal

async def hold():
    async with SqliteJournal(sys.argv[1]) as journal:
        journal.run_locks.lock(await journal.acquire("r1"))
        print("held", flush=True)
        await asyncio.Event().wait()

asyncio.run(hold())
"""
"""A process that is at work on a run, and does nothing."""


@pytest.fixture
def panel(tmp_path: Path) -> Iterator[ServedPanel]:
    """A panel whose agents never get a reply, so that what it resumes goes on until somebody stops it."""

    async def silent(_task: str, _trace: Trace) -> str:
        await asyncio.Event().wait()
        return "never"

    def agent(spec: AgentSpec) -> Agent:
        payer = asking(SqliteJournal(tmp_path / "runs.db"))
        return Agent(name=spec.name, model=silent, tools=payer.tools)

    with served_panel(tmp_path / "runs.db", agents=agent) as served:
        yield served


def facts(fill: Any, run_id: str, kind: type) -> list[Any]:
    """The facts of a kind in a run."""

    async def load(journal: SqliteJournal) -> list[Any]:
        return [event.fact for event in await journal.load(run_id) if isinstance(event.fact, kind)]

    loaded: list[Any] = fill(load)
    return loaded


def test_a_question_is_answered_and_another_is_declined(fill: Any, open_page: Open) -> None:
    fill(lambda journal: leave_question(journal, choices=["R-17", "R-71"]))
    fill(lambda journal: leave_question(journal, run_id="asks-again"))
    page = open_page("ann", "/inbox/asks-user/call_1")
    page.get_by_label("R-71").check()
    page.get_by_role("button", name="Send the answer").click()
    page.get_by_role("heading", name="Answered").wait_for()
    assert [fact.args for fact in facts(fill, "asks-user", ApprovalGiven)] == [{"answer": "R-71"}]
    page.get_by_role("link", name="Back to the inbox").click()
    page.locator('a[href="/inbox/asks-again/call_1"]').first.click()
    page.get_by_label("Why not? The model reads this.").fill("ask the office")
    page.get_by_role("button", name="Decline").click()
    page.get_by_role("heading", name="Answered").wait_for()
    assert [fact.note for fact in facts(fill, "asks-again", ApprovalRefused)] == ["ask the office"]


def test_a_doubt_is_settled_and_a_blocked_run_gets_a_note_and_is_closed(fill: Any, open_page: Open) -> None:
    for leave in (leave_dead, leave_blocked, leave_failed_undo, partial(leave_blocked, run_id="wrong")):
        fill(leave)
    page = open_page("ada", "/inbox/dead/call_1")
    page.get_by_label("It happened.").check()
    page.get_by_label("What was the result? The model reads this.").fill("the bank says so")
    page.get_by_role("button", name="Record this").click()
    page.get_by_role("heading", name="Answered").wait_for()
    assert [(fact.happened, fact.by) for fact in facts(fill, "dead", DoubtSettled)] == [(True, "ada")]
    origin = page.url.partition("/inbox")[0]
    page.goto(f"{origin}/inbox/blocked/run")
    page.locator("#note").fill("Order A1 is not ours.")
    page.get_by_role("button", name="Add the note").click()
    page.get_by_role("status").get_by_text("Order A1 is not ours.").wait_for()
    assert [fact.text for fact in facts(fill, "blocked", Noted)] == ["Order A1 is not ours."]
    assert page.get_by_role("button", name="Close it for good").is_visible(), "it is still blocked"
    for path, run_id in (("wrong/run", "wrong"), ("orders.undo-1/call_1", "orders.undo-1")):
        page.goto(f"{origin}/inbox/{path}")
        page.get_by_label("Why, for the record").fill("seen")
        page.get_by_role("button", name="Close it for good").click()
        page.get_by_role("heading", name="What happens next").wait_for()
        assert facts(fill, run_id, Finished)[-1].abandoned_by == "ada"


def test_a_plan_is_edited_and_approved(fill: Any, open_page: Open) -> None:
    fill(lambda journal: planner(Shop(), journal=journal).run(TASK, run_id="plans"))
    page = open_page("ann", "/inbox/plans/call_1")
    page.get_by_text("Edit and approve").click()
    steps_of_plan = json.loads(page.locator("#args").input_value())
    steps_of_plan["steps"][1]["calls"][0]["args"]["amount"] = 7
    page.locator("#args").fill(json.dumps(steps_of_plan))
    if page.locator("#edit-confirm").count():
        page.locator("#edit-confirm").fill("yes")
    page.get_by_role("button", name="Approve this plan").click()
    page.get_by_role("heading", name="Answered").wait_for()
    [given] = facts(fill, "plans", ApprovalGiven)
    assert given.args == steps_of_plan
    page.get_by_text("allowed with other arguments").wait_for()


def test_an_approved_run_is_resumed_and_stopped(fill: Any, open_page: Open) -> None:
    fill(lambda journal: leave_approval(journal, 5))
    page = open_page("ann", "/inbox/asks/call_1")
    page.get_by_role("button", name="Approve", exact=True).click()
    page.get_by_role("button", name="Resume").click()
    page.goto(f"{page.url.partition('/inbox')[0]}/runs/asks")
    page.get_by_role("button", name="Stop", exact=True).click()
    page.locator("#run-head .s-stopped").wait_for()


def test_the_process_of_another_run_is_ended(fill: Any, open_page: Open, panel: ServedPanel) -> None:
    fill(lambda journal: put(journal, "r1", [started(), *steps(1)]))
    arguments = [sys.executable, "-c", HOLD, str(panel.path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        page = open_page("ada", "/runs/r1")
        page.locator("summary", has_text="Stop").click()
        page.get_by_role("button", name="End the process").click()
        page.get_by_text("No process is at work on this run any more.").wait_for()
        assert process.wait(30) != 0


def test_a_run_is_marked_exported_and_made_a_test_case(fill: Any, open_page: Open) -> None:
    fill(lambda journal: put(journal, "r1", [started(), *steps(1), *answered(2)]))
    page = open_page("ann", "/runs/r1")
    page.locator("summary", has_text="Right or wrong?").click()
    page.get_by_label("Why (optional)").fill("Tea is <b>twice</b>.")
    page.get_by_role("button", name="Wrong", exact=True).click()
    page.locator("summary", has_text="You marked it wrong").wait_for()
    assert [(fact.verdict, fact.by, fact.note) for fact in facts(fill, "r1", Marked)] == [
        ("wrong", "ann", "Tea is <b>twice</b>.")
    ]
    names = []
    for menu, link in (("Export", "(HTML)"), ("Export", "(Markdown)"), ("Export", "lines)"), ("Make it", "Download")):
        page.locator("details[open] > summary").evaluate_all("menus => menus.forEach(menu => menu.click())")
        page.locator("summary", has_text=menu).click()
        with page.expect_download() as download:
            page.locator("a", has_text=link).click()
        names.append(download.value.suggested_filename.rpartition(".")[2])
    assert names == ["html", "md", "jsonl", "zip"]


def test_a_view_is_saved_and_forgotten_and_preferences_and_the_logout_hold(fill: Any, open_page: Open) -> None:
    fill(lambda journal: put(journal, "r1", [started(), *steps(1), *answered(2)]))
    page = open_page("bob", "/runs?status=completed")
    page.locator("summary", has_text="Views").click()
    page.get_by_label("Save this list as").fill("done <b>")
    page.get_by_role("button", name="Save").click()
    page.goto(page.url.partition("?")[0])
    page.locator("summary", has_text="Views").click()
    page.get_by_role("link", name="done <b>").click()
    page.wait_for_url("**/runs?status=completed")
    page.locator("summary", has_text="Views").click()
    page.get_by_role("button", name="Forget done <b>").click()
    page.locator("summary", has_text="Views").click()
    assert page.get_by_role("link", name="done <b>").count() == 0
    for button in ("dark", "中文"):
        page.locator("summary", has_text="bob").click()
        page.get_by_role("button", name=button).click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    page.locator("summary", has_text="bob").click()
    page.locator("form[action='/logout'] button").click()
    page.wait_for_url("**/login*")
    page.goto(f"{page.url.partition('/login')[0]}/runs")
    page.wait_for_url("**/login?next=%2Fruns")


def test_a_lesson_is_dropped(fill: Any, open_page: Open) -> None:
    async def learn(journal: SqliteJournal) -> None:
        replies = ["The hut has 4 rooms.", "NONE", "Count the <b>attic</b>, too."]
        judge = Agent(model=ScriptedModel(replies, strict=False), strategy="reflect:lessons=2", journal=journal)
        await judge.run("Count the rooms.", run_id="r1")
        await judge.learn_from("r1", "The attic is missing.")

    fill(learn)
    page = open_page("ann", "/runs/r1")
    page.locator("summary", has_text="Lesson").click()
    assert page.get_by_text("Count the <b>attic</b>, too.").first.is_visible()
    page.get_by_role("button", name="Drop the lesson").click()
    page.locator("summary", has_text="Lesson").wait_for(state="detached")
    assert fill(find_lessons) == []


def test_a_policy_is_typed(fill: Any, open_page: Open) -> None:
    run_id = fill(lambda journal: run(journal, WHOLE))
    page = open_page("ada", f"/runs/{run_id}/policy")
    page.get_by_label("As in a policy file, in YAML").fill("profile: [")
    page.get_by_role("button", name="Try it").click()
    page.get_by_role("alert").wait_for()
    assert page.get_by_label("As in a policy file, in YAML").input_value().strip() == "profile: ["
    page.get_by_label("As in a policy file, in YAML").fill("profile: locked")
    page.get_by_role("button", name="Try it").click()
    page.locator("article.c-newly_denied").first.wait_for()
