"""What a person does on the page of a run: notes and stops, by role; a run of another process is left alone."""

from __future__ import annotations

import asyncio

from tests.serve.panel.panels import Browser, browse
from tests.serve.panel.run_samples import answered, put, started, steps

from taoloop import Agent, MemoryJournal, ScriptedModel, Trace
from taoloop.core.events import Noted, Paused
from taoloop.core.human_input import Marked
from taoloop.runtime.lessons import find_lessons

WAITING = (started(), *steps(1), Paused(reason="Somebody must decide."))


def test_a_note_is_in_the_run_with_the_name_of_the_person() -> None:
    journal = MemoryJournal()

    async def scenario(browser: Browser) -> None:
        await put(journal, "r1", WAITING)
        page = await browser.post("/runs/r1/notes", text=" Hurry up. <b> ")
        assert "Hurry up. &lt;b&gt;" in page
        noted = [event.fact for event in await journal.load("r1") if isinstance(event.fact, Noted)]
        assert [(fact.by, fact.text, fact.authenticated) for fact in noted] == [("ann", "Hurry up. <b>", "panel_token")]
        assert "The note is empty." in await browser.post("/runs/r1/notes", 400, text=" ")

    browse(journal, scenario, "ann")


def test_a_completed_run_takes_no_note() -> None:
    journal = MemoryJournal()

    async def scenario(browser: Browser) -> None:
        await put(journal, "r1", [started(), *steps(1), *answered(2)])
        assert "Add a note" not in await browser.get("/runs/r1")
        assert "is completed" in await browser.post("/runs/r1/notes", 409, text="late")

    browse(journal, scenario, "ann")


def test_a_lesson_is_dropped_on_the_page_of_its_run_by_those_who_may_act() -> None:
    journal = MemoryJournal()
    replies = ["The hut has <b>4</b> rooms.", "NONE", "Count the <b>attic</b>, too."]
    judge = Agent(model=ScriptedModel(replies, strict=False), strategy="reflect:lessons=2", journal=journal)

    run_id = judge.run_sync("Count the rooms.").run_id
    asyncio.run(judge.learn_from(run_id, "The attic is missing."))

    async def scenario(browser: Browser) -> None:
        path, button = f"/runs/{run_id}/drop-lesson", "Drop the lesson"
        page = await browser.get(f"/runs/{run_id}")
        if browser_may_act := button in page:
            assert "Count the &lt;b&gt;attic&lt;/b&gt;, too." in page.partition(button)[2]
        dropped = await browser.post(path, 200 if browser_may_act else 403)
        assert button not in dropped
        assert len(await find_lessons(journal)) == (0 if browser_may_act else 1)
        if browser_may_act:
            assert "has no lesson" in await browser.post(path, 400)
            last = (await journal.load(run_id))[-1].fact
            assert isinstance(last, Noted)
            assert (last.by, last.authenticated) == ("ann", "panel_token")

    browse(journal, scenario, "bob")
    browse(journal, scenario, "ann")


def test_the_outcome_of_a_run_is_marked_and_marked_again() -> None:
    journal = MemoryJournal()

    async def scenario(browser: Browser) -> None:
        await put(journal, "r1", [started(), *steps(1), *answered(2)])
        assert "Right or wrong?" in await browser.get("/runs/r1")
        assert "You marked it right" in await browser.post("/runs/r1/marks", verdict="right")
        page = await browser.post("/runs/r1/marks", verdict="wrong", note=" Tea was <b> twice. ")
        assert "You marked it wrong" in page
        assert "Tea was &lt;b&gt; twice." in page
        assert "marked right" not in page.split("What happened")[0]
        marks = [event.fact for event in await journal.load("r1") if isinstance(event.fact, Marked)]
        assert marks[1] == Marked(verdict="wrong", by="ann", note="Tea was <b> twice.", authenticated="panel_token")
        await browser.post("/runs/r1/marks", 403, verdict="right", csrf="forged")
        assert "not &#39;maybe&#39;" in await browser.post("/runs/r1/marks", 400, verdict="maybe")
        await put(journal, "r2", WAITING)
        assert "Right or wrong?" not in await browser.get("/runs/r2")
        assert "has not ended" in await browser.post("/runs/r2/marks", 400, verdict="right")
        assert len(await journal.load("r1")) == 8

    browse(journal, scenario, "ann")


def test_a_viewer_only_reads() -> None:
    journal = MemoryJournal()

    async def scenario(browser: Browser) -> None:
        await put(journal, "r1", WAITING)
        await put(journal, "r2", [started(), *steps(1), *answered(2)])
        assert "Right or wrong?" not in await browser.get("/runs/r2")
        await browser.post("/runs/r2/marks", 403, verdict="right")
        page = await browser.get("/runs/r1")
        for text in ("Add a note", ">Stop<", "End the process", ">Fork<"):
            assert text not in page
        for path in ("notes", "stop", "end-process"):
            await browser.post(f"/runs/r1/{path}", 403, text="x")

    browse(journal, scenario, "bob")


def test_a_run_of_this_process_is_stopped_and_says_so() -> None:
    journal = MemoryJournal()
    asked = asyncio.Event()

    async def wait(_task: str, _trace: Trace) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    async def scenario(browser: Browser) -> None:
        running = asyncio.create_task(Agent(model=wait, journal=journal).run("Wait."))
        await asked.wait()
        (row,) = await journal.runs()
        assert f'action="/runs/{row.run_id}/stop"' in await browser.get(f"/runs/{row.run_id}")
        page = await browser.post(f"/runs/{row.run_id}/stop")
        assert running.cancelled()
        assert "Stopped before it was done" in page
        assert (await journal.runs())[0].status == "stopped"

    browse(journal, scenario, "ann")


def test_nothing_is_stopped_where_no_process_is_at_work() -> None:
    journal = MemoryJournal()

    async def scenario(browser: Browser) -> None:
        await put(journal, "r1", WAITING)
        assert "No process is at work on this run." in await browser.post("/runs/r1/stop", 409)
        assert "No process is at work on this run." in await browser.post("/runs/r1/end-process", 409)

    browse(journal, scenario)
