"""The page of a run: the transcript in parts, steps, state, timeline, citations, relations, live growth."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from tests.core.views.every_fact import FACTS
from tests.serve.panel.panels import PEOPLE, Browser, browse, browser_of
from tests.serve.panel.run_samples import HOSTILE, answered, extend, put, started, steps

from taoloop import Agent, MemoryJournal, ScriptedModel
from taoloop.core.cards.tool_card import ContentCard, ToolCard
from taoloop.core.decision import Act, Call, EvidenceGap, call_digest
from taoloop.core.events import (
    ActionRequested,
    Compensated,
    Fact,
    Finished,
    ModelReplied,
    Observed,
    Paused,
    ReplyRejected,
)
from taoloop.serve.panel.access import TokenAccess
from taoloop.serve.panel.app import Panel
from taoloop.serve.panel.pages import run as run_module
from taoloop.serve.panel.state import PanelState


def journal_with(run_id: str, *facts: Fact) -> MemoryJournal:
    journal = MemoryJournal()
    asyncio.run(put(journal, run_id, facts))
    return journal


def entries_in(page: str) -> list[int]:
    return [int(seq) for seq in re.findall(r'<article class="[^"]*" id="e-(\d+)"', page)]


def parts_in(page: str) -> list[str]:
    """The parts that are loaded when they are looked at."""
    return re.findall(r'hx-get="/runs/r1/events\?([^"]+)"', page)


def test_a_short_run_is_told_from_its_task_to_its_answer() -> None:
    """S3-1, S3-44, S3-45, S3-52, S2-4, S2-12: a stored run is replayed, step by step, with what each took."""

    async def scenario(browser: Browser) -> None:
        page = await browser.get("/runs/r1")
        assert entries_in(page) == list(range(9))
        for text in ("Count the mentions of tea.", "Page 2 comes next.", "Action · read_page · call_1", "archivist"):
            assert text in page
        assert page.index("Page 1 comes next.") < page.index("Page 2 comes next.")
        assert 'href="/runs/r1/citations/doc:000000000002">doc:000000000002</a>' in page
        assert parts_in(page) == []

    browse(journal_with("r1", started(), *steps(2), *answered(3)), scenario)


def test_a_long_run_has_its_first_part_and_places_for_the_others() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/runs/r1")
        assert entries_in(page) == list(range(24))
        places = ["from=24&amp;to=99", "from=100&amp;to=199", "from=200&amp;to=299", "from=300&amp;to=302"]
        assert parts_in(page) == places
        part = await browser.get("/runs/r1/events?from=200&to=299", is_fragment=True)
        assert entries_in(part) == list(range(200, 300))
        assert "<html" not in part

    browse(journal_with("r1", started(), *steps(100), *answered(101)), scenario)


def test_a_step_in_the_address_brings_its_part_and_its_state() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/runs/r1?step=90")
        assert entries_in(page) == list(range(264, 288))
        assert 'id="step-90"' in page
        assert parts_in(page)[0] == "from=0&amp;to=99"
        assert 'hx-get="/runs/r1/state?step=90"' in page
        assert entries_in(await browser.get("/runs/r1?seq=150")) == list(range(146, 170))

    browse(journal_with("r1", started(), *steps(100), *answered(101)), scenario)


def test_the_state_at_a_step_is_that_of_the_moment_with_the_prompt_as_it_was_sent() -> None:
    """S0-25, S3-1: what was sent and what came back, at any step."""

    async def scenario(browser: Browser) -> None:
        state = await browser.get("/runs/r1/state?step=3", is_fragment=True)
        assert re.search(r"max_steps</code>.*?>2</td><td[^>]*>20000</td><td[^>]*>19998<", state, re.DOTALL)
        assert "Page 2 mentions tea." in state
        assert "Page 3 mentions tea." not in state
        assert "1,680" in state  # the tokens of two replies
        assert "$0.0008" in state
        assert "has no step 99" in await browser.get("/runs/r1/state?step=99", 400, is_fragment=True)
        prompt = await browser.get("/runs/r1/events/7/prompt")
        assert "[user]\nCount the mentions of tea." in prompt
        assert "Page 2 mentions tea." in prompt

    browse(journal_with("r1", started(), *steps(5)), scenario)


def test_totals_grow_with_the_run() -> None:
    journal = MemoryJournal()

    async def scenario(browser: Browser) -> None:
        lease = await put(journal, "r1", [started(), *steps(2)])
        assert "1,600 + 80" in await browser.get("/runs/r1/totals", is_fragment=True)
        await extend(journal, lease, 7, steps(1, first=3))
        assert "2,400 + 120" in await browser.get("/runs/r1/totals", is_fragment=True)
        assert "2,400 + 120" in await browser.get("/runs/r1/totals", is_fragment=True)

    browse(journal, scenario)


def test_what_is_new_comes_once_at_the_end_and_in_order() -> None:
    journal = MemoryJournal()

    async def scenario(browser: Browser) -> None:
        lease = await put(journal, "r1", [started(), *steps(1)])
        page = await browser.get("/runs/r1")
        assert 'hx-sse:connect="/runs/r1/live?after=3"' in page
        assert 'hx-get="/runs/r1/tail?after=3" hx-trigger="grown from:body"' in page
        await browser.get("/runs/r1/tail?after=3", 204, is_fragment=True)
        await extend(journal, lease, 4, steps(1, first=2))
        tail = await browser.get("/runs/r1/tail?after=3", is_fragment=True)
        assert entries_in(tail) == [4, 5, 6]
        assert 'hx-get="/runs/r1/tail?after=6" hx-trigger="load, grown from:body"' in tail
        assert "Observed · read_page · call_2" in tail

    browse(journal, scenario)


def test_a_run_that_waits_opens_with_its_end_too_and_leads_to_the_inbox() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/runs/r1")
        assert entries_in(page) == [*range(24), 300, 301]
        assert "Waits for a person." in page
        assert "Somebody must decide." in page
        assert 'href="/inbox"' in page

    browse(journal_with("r1", started(), *steps(100), Paused(reason="Somebody must decide.")), scenario)


def test_a_citation_leads_to_the_observation_that_has_it() -> None:
    async def scenario(browser: Browser) -> None:
        response = await browser.request("GET", "/runs/r1/citations/doc:000000000002", allow_redirects=False)
        assert (response.status, response.headers["Location"]) == (303, "/runs/r1?seq=6#e-6")
        page = await browser.get("/runs/r1/citations/doc:aaaaaaaaaaaa", 404)
        assert "No observation of this run contains doc:aaaaaaaaaaaa." in page

    browse(journal_with("r1", started(), *steps(3), *answered(4)), scenario)


def test_the_timeline_has_a_bar_for_each_span_with_a_title_and_a_link() -> None:
    async def scenario(browser: Browser) -> None:
        drawn = await browser.get("/runs/r1/timeline", is_fragment=True)
        assert drawn.count('<rect class="bar') == 6
        assert re.search(r'<a href="/runs/r1\?seq=3#e-3"[^>]*><title>read_page · call_1, 0.40 s</title>', drawn)
        assert "style=" not in drawn
        by_cost = await browser.get("/runs/r1/timeline?colour=cost", is_fragment=True)
        assert 'class="bar cost-4"' in by_cost
        part = await browser.get("/runs/r1/timeline?from=4&to=6", is_fragment=True)
        assert part.count('<rect class="bar') == 2

    browse(journal_with("r1", started(), *steps(3)), scenario)


def test_every_kind_of_event_is_on_the_page_with_its_relations() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/runs/outer.1")
        assert entries_in(page) == list(range(len(facts)))
        assert 'href="/runs/outer"' in page
        assert 'href="/runs/earlier?step=2"' in page
        assert 'href="/runs/r1.1"' in page  # the run that carried out a call
        assert "Step 1 · corrected reply" in page
        assert "attempt 2" in page

    facts = [fact for fact in FACTS if not isinstance(fact, Compensated)]
    browse(journal_with("outer.1", *facts), scenario)


def test_the_runs_inside_a_run_and_its_forks_are_listed() -> None:
    journal = MemoryJournal()

    async def scenario(browser: Browser) -> None:
        await put(journal, "r1", [started(), *steps(1)])
        await put(journal, "r1.1", [started("Inner task", parent="r1"), *steps(1)])
        await put(journal, "other", [started(), *steps(1)])
        await put(journal, "fork", [started(forked_from="r1", forked_at=1), *steps(1)])
        assert 'hx-get="/runs/r1/relations"' in await browser.get("/runs/r1")
        part = await browser.get("/runs/r1/relations", is_fragment=True)
        assert "1 run inside it" in part
        assert '<a href="/runs/r1.1">Inner task</a>' in part
        assert re.search(r'1 fork of it</summary>\s*<ul><li><a href="/runs/fork">', part)
        assert "/runs/other" not in part

    browse(journal, scenario)


def test_a_fork_is_listed_however_many_other_runs_of_the_agent_came_later() -> None:
    journal = MemoryJournal()

    async def scenario(browser: Browser) -> None:
        await put(journal, "r1", [started(), *steps(1)])
        await put(journal, "fork", [started(forked_from="r1", forked_at=1), *steps(1)])
        for number in range(1_001):
            await put(journal, f"later{number}", [started(f"Task {number}")])
        assert '<a href="/runs/fork">' in await browser.get("/runs/r1/relations", is_fragment=True)

    browse(journal, scenario)


def test_the_part_of_the_cost_that_is_known_is_said_with_what_is_not() -> None:
    unpriced = ModelReplied(step=2, purpose="decide", text="", decision=None, model="new-1")

    async def scenario(browser: Browser) -> None:
        part = await browser.get("/runs/r1/totals", is_fragment=True)
        assert "$0.0004" in part
        assert "1 call has no known price and is in no sum." in part
        assert "unknown" in await browser.get("/runs/r2/totals", is_fragment=True)
        costs = await browser.get("/costs?days=all")
        assert "2 calls have no known price and are in no sum." in costs

    async def main() -> None:
        journal = MemoryJournal()
        await put(journal, "r1", [started(), *steps(1), unpriced])
        await put(journal, "r2", [started(), replace(unpriced, step=1)])
        async with browser_of(journal) as browser:
            await scenario(browser)

    asyncio.run(main())


def test_a_run_that_does_not_exist_is_said() -> None:
    async def scenario(browser: Browser) -> None:
        assert "r9" in await browser.get("/runs/r9", 404)

    browse(MemoryJournal(), scenario)


def test_a_run_of_very_many_parts_has_places_around_the_event_only() -> None:
    position = run_module.RunPosition(last=1_000_000, steps=1, step=None, seq=500_050)
    assert len(position.places) == run_module.MOST_EVENTS
    assert position.places[0] < 480_000 < 520_000 < position.places[-1]
    assert position.places[0] % 1_000 == 0
    assert list(run_module.RunPosition(last=250, steps=1, step=None, seq=None).places) == list(range(251))
    assert len(run_module.RunPosition(last=-1, steps=0, step=None, seq=None).places) == 0
    last = run_module.RunPosition(last=1_000_000, steps=1, step=None, seq=1_000_000)
    assert last.places[-1] == 1_000_000


def test_what_is_far_away_has_one_place_that_becomes_sections() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/runs/r1")
        assert entries_in(page) == list(range(24))
        assert parts_in(page)[-1] == "from=900&amp;to=999"
        assert 'hx-get="/runs/r1/sections?from=1000&amp;to=1202"' in page
        address = "/runs/r1/sections?from=1000&to=1202"
        sections = await browser.get(address, is_fragment=True)
        assert entries_in(sections) == []
        assert parts_in(sections) == ["from=1000&amp;to=1099", "from=1100&amp;to=1199", "from=1200&amp;to=1202"]
        jumped = await browser.get(f"{address}&seq=1150", is_fragment=True)
        assert entries_in(jumped) == list(range(1146, 1170))
        assert parts_in(jumped)[1:3] == ["from=1100&amp;to=1145", "from=1170&amp;to=1199"]

    browse(journal_with("r1", started(), *steps(400), *answered(401)), scenario)


def test_every_address_is_below_the_mount() -> None:
    async def main() -> None:
        journal = MemoryJournal()
        await put(journal, "r1", [started(), *steps(60), *answered(61)])
        panel = Panel(PanelState(journal=journal, access=TokenAccess(PEOPLE), prefix="/panel"))
        app = web.Application()
        app.add_subapp("/panel/", panel.app)
        async with TestClient(TestServer(app)) as client:
            browser = Browser(client, panel)
            await browser.log_in("ada")
            for path in ("/runs/r1?step=2", "/runs/r1/timeline", "/runs/r1/state?step=2", "/runs/r1/tail?after=5"):
                page = await browser.get(path, is_fragment="?" not in path)
                addresses = re.findall(r'(?:href|action|hx-get|hx-sse:connect|src)="(/[^"]*)"', page)
                assert addresses
                assert [address for address in addresses if not address.startswith("/panel/")] == []

    asyncio.run(main())


def test_pages_are_in_the_language_of_the_person() -> None:
    async def scenario(browser: Browser) -> None:
        response = await browser.request("GET", "/runs/r1", headers={"Accept-Language": "zh-CN"})
        page = await response.text()
        assert "行动 · read_page · call_1" in page
        assert "时间线" in page

    browse(journal_with("r1", started(), *steps(1), Observed(call_id="x", ok=True, output="?")), scenario)


def test_the_todo_list_is_shown_live_and_as_it_was_at_a_step() -> None:
    """S4-46, S4-49: the model's list, which says nothing but what the model wrote."""
    journal, agent_journal = MemoryJournal(), MemoryJournal()

    def wrote(*states: str) -> dict[str, Any]:
        todos = [{"text": f"{HOSTILE} {number}", "state": state} for number, state in enumerate(states)]
        return {"tool_calls": [{"name": "track_todos", "args": {"todos": todos}}]}

    model = ScriptedModel([wrote("in_progress", "open"), wrote("done", "in_progress"), "done"])
    result = Agent(model=model, tools=["track_todos"], journal=agent_journal).run_sync("Do both.")
    events = result.trace.events

    async def scenario(browser: Browser) -> None:
        lease = await put(journal, "r1", [event.fact for event in events[:4]])
        totals = await browser.get("/runs/r1/totals", is_fragment=True)
        assert "2 of 2 items open" in totals
        assert "<script>" not in totals
        await extend(journal, lease, 4, [event.fact for event in events[4:]])
        assert "1 of 2 items open" in await browser.get("/runs/r1/totals", is_fragment=True)
        assert "2 of 2 items open" in await browser.get("/runs/r1/state?step=2", is_fragment=True)
        assert "Todo list" not in await browser.get("/runs/r1/state?step=1", is_fragment=True)
        assert "[&gt;]" in await browser.get("/runs/r1")

    browse(journal, scenario)


def test_the_page_says_which_agent_gave_the_answer_and_leads_to_its_run() -> None:
    journal = MemoryJournal()
    over = {"tool_calls": [{"name": "hand_over_to_refunds", "args": {"reason": "money"}}]}
    refunds = Agent(name="refunds", description="Money.", model=ScriptedModel(["Sent back."]))
    desk = Agent(name="desk", model=ScriptedModel([over]), handoffs=[refunds], journal=journal)
    result = desk.run_sync("My money, please.")

    async def scenario(browser: Browser) -> None:
        page = await browser.get(f"/runs/{result.run_id}")
        assert "by refunds, which took over" in page
        assert "refunds · completed" in page
        assert f"/runs/{result.run_id}.1" in page
        assert "by refunds" not in await browser.get(f"/runs/{result.run_id}.1/head", is_fragment=True)
        inner = await browser.get(f"/runs/{result.run_id}.1")
        assert re.search(r"<b>Handed over by</b> desk", inner)

    browse(journal, scenario)


def test_a_loaded_skill_is_named_with_its_digest_in_any_part_of_the_page() -> None:
    """Its card is in the first event, which a later part of the page does not contain."""
    contents = (ContentCard(name="pdf", digest="sha256:d1"),)
    card = ToolCard(name="load_skill", purpose="Load.", tier="read", contents=contents)
    start = started()
    start = replace(start, agent=replace(start.agent, tools=(card,)))
    args = {"name": "pdf"}
    call = Call(tool="load_skill", args=args)
    load = (
        ModelReplied(step=41, purpose="decide", text="Load.", decision=Act(calls=(call,), reason="It fits.")),
        ActionRequested(
            step=41,
            call_id="call_41",
            tool="load_skill",
            args=args,
            tier="read",
            verdict="allow",
            digest=call_digest("load_skill", args),
        ),
        Observed(call_id="call_41", ok=True, output='{"skill":"pdf","digest":"sha256:d1"}', form="json"),
    )

    async def scenario(browser: Browser) -> None:
        part = await browser.get("/runs/r1/events?from=100&to=123", is_fragment=True)
        assert "pdf · sha256:d1 · not approved" in part

    browse(journal_with("r1", start, *steps(40), *load), scenario)


def test_citations_of_observations_are_numbered_and_lead_to_them_and_gaps_are_a_warning() -> None:
    answer = "Page 2 mentions tea [obs:call_2, obs:call_1]. It mentions no milk [obs:none]."
    gap = EvidenceGap(code="not_contained", citation="obs:call_2", value="milk", sentence="It mentions milk.")
    held_back = ReplyRejected(step=3, code="unsupported", message="obs:call_2 does not contain milk.")
    reply, end = answered(3, answer)
    assert isinstance(end, Finished)

    async def scenario(browser: Browser) -> None:
        page = await browser.get("/runs/r1")
        assert 'href="/runs/r1/citations/obs:call_2">1</a>' in page
        assert 'href="/runs/r1/citations/obs:call_1">2</a>' in page
        assert "obs:none" not in page.split('id="answer"')[1].split("</p>")[0]
        assert "Not all of it is borne out by the observations." in page
        assert "Answer sent back: its evidence does not hold" in page
        response = await browser.request("GET", "/runs/r1/citations/obs:call_2", allow_redirects=False)
        assert (response.status, response.headers["Location"]) == (303, "/runs/r1?seq=6#e-6")
        await browser.get("/runs/r1/citations/obs:call_9", 404)

    facts = (started(), *steps(2), reply, held_back, reply, replace(end, evidence=(gap,)))
    browse(journal_with("r1", *facts), scenario)
    withheld = replace(end, status="unsupported", reason="Its evidence does not hold.", evidence=(gap,))

    async def unsupported(browser: Browser) -> None:
        page = await browser.get("/runs/r1")
        assert "without evidence" in page
        assert "Its evidence does not hold." in page

    browse(journal_with("r1", started(), *steps(2), reply, withheld), unsupported)
