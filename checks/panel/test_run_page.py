"""The page of a run in a browser: live, by keyboard, for a very long run, and for hostile or broken ones."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from checks.panel.conftest import QUICK_LANGUAGES, Open, assert_every_look, assert_fits, serious_findings
from tests.core.views.every_fact import FACTS
from tests.serve.panel.run_samples import HOSTILE, answered, extend, put, started, steps

from taoloop import Agent, ScriptedModel
from taoloop.core.decision import Act, Call
from taoloop.core.events import ActionRequested, Compensated, ModelReplied, Observed, Paused
from taoloop.journals.base import Artifact

EVERY = [fact for fact in FACTS if not isinstance(fact, Compensated)]


def scrolled_to(page: Any, seq: int) -> None:
    """Wait until an entry is in the window."""
    page.wait_for_function(
        "id => { const box = document.getElementById(id)?.getBoundingClientRect();"
        " return box && box.top >= -4 && box.top < innerHeight; }",
        arg=f"e-{seq}",
    )


@pytest.mark.parametrize("language", QUICK_LANGUAGES)
def test_every_kind_of_event_is_accessible_and_fits(fill: Any, open_page: Open, language: str) -> None:
    fill(lambda journal: put(journal, "outer.1", EVERY, [Artifact(ref="obs_call_1", body="whole")]))
    page = open_page("ada", "/runs/outer.1?step=1", language=language)
    page.locator("svg.timeline a").first.wait_for()
    page.locator("#state .limits").wait_for()
    assert page.locator("article.entry").count() == len(EVERY)
    assert_every_look(page)


def test_a_live_run_grows_in_order_and_its_head_follows(fill: Any, open_page: Open) -> None:
    lease = fill(lambda journal: put(journal, "r1", [started(), *steps(1)]))
    page = open_page("bob", "/runs/r1")
    assert page.locator("article.entry").count() == 4
    for step in range(2, 8):
        fill(lambda journal, step=step: extend(journal, lease, 3 * step - 2, steps(1, first=step)))
    fill(lambda journal: extend(journal, lease, 22, answered(8)))
    page.locator("#e-23").wait_for()
    assert page.evaluate("[...document.querySelectorAll('article.entry')].map(entry => entry.id)") == [
        f"e-{seq}" for seq in range(24)
    ]
    page.locator("#run-head .s-completed").wait_for()
    assert "Tea is mentioned" in page.locator("#answer").inner_text()
    page.locator("#run-totals dd", has_text="5,600 + 280").wait_for()


def test_the_timeline_of_a_live_run_grows(fill: Any, open_page: Open) -> None:
    lease = fill(lambda journal: put(journal, "r1", [started(), *steps(1)]))
    page = open_page("bob", "/runs/r1?colour=cost")
    page.locator("svg.timeline .cost-4").first.wait_for()
    assert page.locator("svg.timeline a").count() == 2
    fill(lambda journal: extend(journal, lease, 4, steps(1, first=2)))
    page.locator("svg.timeline a").nth(3).wait_for()
    assert page.locator("svg.timeline .cost-4").count() == 2


def test_who_looks_at_the_end_of_a_run_stays_there(fill: Any, open_page: Open) -> None:
    lease = fill(lambda journal: put(journal, "r1", [started(), *steps(20)]))
    page = open_page("bob", "/runs/r1")
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    fill(lambda journal: extend(journal, lease, 61, steps(4, first=21)))
    page.locator("#e-72").wait_for()
    scrolled_to(page, 72)
    page.evaluate("scrollTo(0, 0)")
    fill(lambda journal: extend(journal, lease, 73, steps(1, first=25)))
    page.locator("#e-75").wait_for()
    assert page.evaluate("scrollY") < 100


def test_the_answer_leads_to_its_evidence(fill: Any, open_page: Open) -> None:
    fill(lambda journal: put(journal, "r1", [started(), *steps(60), *answered(61)]))
    page = open_page("bob", "/runs/r1")
    page.locator("#answer a.citation").click()
    page.wait_for_url("**/runs/r1?seq=6#e-6")
    scrolled_to(page, 6)
    assert "doc:000000000002" in page.locator("#e-6").inner_text()


def test_steps_by_keyboard_show_prompt_cost_and_limits_and_are_in_the_address(fill: Any, open_page: Open) -> None:
    fill(lambda journal: put(journal, "r1", [started(), *steps(200), *answered(201)]))
    page = open_page("bob", "/runs/r1?step=150#step-150")
    page.locator("#state [data-step], #state .state[data-step='150']").first.wait_for()
    scrolled_to(page, 448)
    page.keyboard.press("j")
    page.locator("#state .state[data-step='151']").wait_for()
    page.wait_for_url("**/runs/r1?step=151")
    scrolled_to(page, 451)
    assert "$0.06" in page.locator("#state").inner_text()
    assert "19850" in page.locator("#state .limits").inner_text()
    assert "Page 150 mentions tea." in page.locator("#state .messages").inner_text()
    for _ in range(3):
        page.keyboard.press("k")
    page.locator("#state .state[data-step='148']").wait_for()
    page.locator("#step").fill("3")  # far away: its part of the transcript is loaded first
    page.locator("#state .state[data-step='3']").wait_for()
    scrolled_to(page, 7)


def test_prompts_and_replies_are_loaded_when_they_are_opened(fill: Any, open_page: Open) -> None:
    fill(lambda journal: put(journal, "r1", [started(), *steps(2)]))
    page = open_page("bob", "/runs/r1")
    entry = page.locator("#e-4")
    entry.locator("summary", has_text="Prompt as it was sent").click()
    entry.locator(".messages").wait_for()
    assert "Page 1 mentions tea." in entry.inner_text()
    entry.locator("summary", has_text="Reply as it came").click()
    entry.locator(".loaded pre", has_text="I read page 2.").wait_for()


def test_bars_of_the_timeline_lead_to_entries_and_have_colours_by_cost(fill: Any, open_page: Open) -> None:
    fill(lambda journal: put(journal, "r1", [started(), *steps(60), *answered(61)]))
    page = open_page("bob", "/runs/r1")
    page.locator("svg.timeline a").nth(40).click()
    page.locator(".entry.current").wait_for()
    page.locator("a", has_text="Colour by cost").click()
    page.locator("svg.timeline .cost-4").first.wait_for()


def test_ten_thousand_steps_open_and_jump_with_a_small_page(fill: Any, open_page: Open) -> None:
    fill(lambda journal: put(journal, "r1", [started(), *steps(10_000), *answered(10_001)]))
    page = open_page("bob", "/runs/r1")
    assert page.locator("article.entry").count() <= 100
    assert page.locator(".events.waiting").count() <= 50
    page.goto(page.url.partition("?")[0] + "?step=9000#step-9000")
    scrolled_to(page, 26_998)
    assert "Page 9000 comes next." in page.locator("#e-26998").inner_text()
    assert page.locator("article.entry").count() <= 300
    page.locator("#step").fill("2000")  # from a chapter that has not been looked at
    scrolled_to(page, 5_998)
    assert page.locator("article.entry").count() <= 500
    assert page.evaluate("performance.memory.usedJSHeapSize") < 20e6


def test_a_hostile_run_is_text(fill: Any, open_page: Open) -> None:
    reply = ModelReplied(
        step=1,
        purpose="decide",
        text=HOSTILE,
        decision=Act(calls=(Call(tool="read_page", args={"q": HOSTILE}),), reason=HOSTILE),
        model=HOSTILE[:40],
    )
    request = ActionRequested(
        step=1,
        call_id="call_1",
        tool=HOSTILE[:40],
        args={"q": HOSTILE},
        tier="read",
        verdict="allow",
        digest="d",
        reasons=(HOSTILE,),
    )
    observed = Observed(call_id="call_1", ok=True, output=HOSTILE + "x" * 5_000_000, child="<b>r</b>", latency_s=0.1)
    fill(lambda journal: put(journal, "r1", [started(HOSTILE), reply, request, observed, *answered(2, HOSTILE)]))
    page = open_page("ada", "/runs/r1", width=360)
    page.locator("#timeline-title").scroll_into_view_if_needed()  # it is loaded when it is looked at
    page.locator("svg.timeline a").first.wait_for()
    main = page.locator("#run")
    assert main.locator("script, img, [onerror], a[href^=javascript], [hx-get='/logout']").count() == 0
    assert "\\u202e" in page.locator("#e-3").inner_text()
    assert "\u202e" not in page.content()
    assert len(page.content()) < 200_000
    assert "49" not in page.locator("h1").inner_text()
    assert_fits(page)
    page.locator("#e-1 summary", has_text="Prompt as it was sent").click()
    page.locator("#e-1 .messages").wait_for()
    assert main.locator("script, img").count() == 0
    assert serious_findings(page) == []
    address = page.locator("#e-3 .more a", has_text="Whole text").get_attribute("href")
    whole = page.request.get(f"{page.url.partition('/runs')[0]}{address}")
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert len(whole.text()) > 5_000_000


def test_a_half_written_run_and_events_of_another_version_are_said(fill: Any, open_page: Open, panel: Any) -> None:
    fill(lambda journal: put(journal, "r1", [started(), *steps(3)]))
    with closing(sqlite3.connect(panel.path)) as connection:
        connection.execute("UPDATE event SET kind = 'dreamt' WHERE seq = 5")
        connection.execute("UPDATE event SET body = substr(body, 1, 20) WHERE seq = 8")
        connection.commit()
    page = open_page("ada", "/runs/r1")
    assert page.locator("article.entry").count() == 10
    assert "newer version" in page.locator("#e-5").inner_text() or "dreamt" in page.locator("#e-5").inner_text()
    assert "cannot be read" in page.locator("#e-8").inner_text()
    assert "Page 3 comes next." in page.locator("#e-7").inner_text()
    assert "No process is at work on this run any more." in page.locator("#run-head").inner_text()
    page.locator("#e-7 summary", has_text="Prompt as it was sent").click()
    page.locator("#e-7 .loaded .notice.bad").wait_for()


def test_a_missing_artifact_is_said(fill: Any, open_page: Open) -> None:
    fill(lambda journal: put(journal, "outer.1", EVERY))
    page = open_page("bob", "/runs/outer.1")
    page.locator("a", has_text="Complete output").click()
    assert "is not in the journal any more" in page.locator("main").inner_text()


def test_the_answer_is_copied(fill: Any, open_page: Open) -> None:
    fill(lambda journal: put(journal, "r1", [started(), *steps(1), *answered(2)]))
    page = open_page("bob", "/runs/r1")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("[data-copy=answer]").click()
    page.locator("[data-copy=answer][data-done]").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#answer").inner_text()


def test_the_whole_transcript_is_printed(fill: Any, open_page: Open) -> None:
    fill(lambda journal: put(journal, "r1", [started(), *steps(100), *answered(101)]))
    page = open_page("bob", "/runs/r1")
    page.evaluate("window.print = () => { window.printed = document.querySelectorAll('article.entry').length; }")
    page.locator("button", has_text="Print").click()
    page.wait_for_function("() => window.printed === 303")
    page.emulate_media(media="print")
    assert not page.locator("#run .run-actions").is_visible()
    assert page.locator("#e-302").is_visible()


def test_a_note_is_added_by_form(fill: Any, open_page: Open) -> None:
    fill(lambda journal: put(journal, "r1", [started(), *steps(1), Paused(reason="Somebody must decide.")]))
    page = open_page("ann", "/runs/r1")
    page.locator("summary", has_text="Add a note").click()
    page.locator("#note").fill("Only green <b>tea</b>.")
    page.locator("button", has_text="Add the note").click()
    page.wait_for_url("**/runs/r1?seq=*")
    assert "Only green <b>tea</b>." in page.locator(".entry:target").inner_text()


def test_all_of_it_is_there_without_script(fill: Any, browser: Any, panel: Any) -> None:
    fill(lambda journal: put(journal, "r1", [started(), *steps(100), *answered(101)]))
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(panel.login_url("bob", "/runs/r1"))
    page.locator("a", has_text="Events 200 to 299").click()
    assert page.locator("#e-200").count() == 1
    page.locator("#step").fill("90")
    page.locator("button", has_text="Show").click()
    page.wait_for_url("**/runs/r1?step=90")
    page.locator("aside a", has_text="State at a step").click()
    assert json.dumps("Page 89 comes next.")[1:-1] in page.content()
    context.close()


@pytest.mark.parametrize("language", QUICK_LANGUAGES)
def test_a_todo_list_and_a_hand_off_are_accessible_and_fit(fill: Any, open_page: Open, language: str) -> None:
    states = ("done", "in_progress", "open", "dropped")
    todos = [{"text": f"{HOSTILE if state == 'open' else 'Look up May'} {state}", "state": state} for state in states]
    update = {"tool_calls": [{"name": "track_todos", "args": {"todos": todos}}]}
    over = {"tool_calls": [{"name": "hand_over_to_billing", "args": {"reason": "It is about an invoice."}}]}
    billing = Agent(name="billing", description="Invoices.", model=ScriptedModel(["It was paid on 2 June."]))
    desk = Agent(name="desk", model=ScriptedModel([update, over]), tools=["track_todos"], handoffs=[billing])
    fill(lambda journal: replace(desk, journal=journal).run("Is invoice A-17 paid?", run_id="r1"))
    page = open_page("ada", "/runs/r1?step=2", language=language)
    page.locator("#run-totals .todos li").nth(3).wait_for()
    page.locator("#state .todos li").nth(3).wait_for()
    assert "billing" in page.locator("#run-head").inner_text()
    assert_every_look(page)
