"""Undo from the panel: the plan that a person agrees to, and nothing else, once."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from tests.serve.panel.panels import Browser, browse, browser_of, ended_in_background

from taoloop import Agent, MemoryJournal, ScriptedModel, Trace, tool
from taoloop.core.events import ApprovalGiven
from taoloop.errors import ToolError
from taoloop.tools.tool import Tool

LOG: list[str] = []
GATES: list[tuple[asyncio.Event, asyncio.Event]] = []
"""That a call waits, and what lets it go on."""


@pytest.fixture(autouse=True)
def _fresh() -> None:
    LOG.clear()
    GATES.clear()


def _order() -> Tool:
    @tool(name="order", tier="write", compensation="cancel")
    def order(item: str) -> dict[str, str]:
        """Order an item."""
        return {"id": f"order-{item}"}

    return order.with_card(compensation_args={"order_id": "output.id"})


@tool(tier="write")
async def cancel(order_id: str) -> str:
    """Cancel an order."""
    for waiting, gate in GATES:
        waiting.set()
        await gate.wait()
    if order_id.endswith("gone"):
        raise ToolError("It was shipped.", code="shipped")
    LOG.append(order_id)
    return "cancelled"


@tool(tier="write")
def send(to: str) -> str:
    """Send a mail."""
    return "sent"


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "args": args}]}


TOOLS = [_order(), cancel, send]


def ran(journal: MemoryJournal, *script: Any) -> str:
    agent = Agent(
        model=ScriptedModel([*script, "done"]), tools=TOOLS, journal=journal, approve=lambda _: True, max_steps=20
    )
    return asyncio.run(agent.run("Do it.")).run_id


def agents(journal: MemoryJournal) -> Any:
    return lambda _spec: Agent(model=ScriptedModel(["x"]), tools=TOOLS, journal=journal)


def digest_in(page: str) -> str:
    match = re.search(r'name="digest" value="([^"]+)"', page)
    assert match is not None, page
    return match[1]


async def finish(browser: Browser, run_id: str) -> None:
    await ended_in_background(browser.panel.state.background, f"{run_id}.undo")


def test_the_plan_shows_each_call_and_what_cannot_be_undone() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call("order", item="<b>tea</b>"), call("send", to="bob"))

    async def scenario(browser: Browser) -> None:
        page = await browser.get(f"/runs/{run_id}/undo")
        assert page.index("Will be undone, in this order") < page.index("Cannot be undone")
        assert "Undone by cancel" in page
        assert "&#34;order_id&#34;: &#34;order-&lt;b&gt;tea&lt;/b&gt;&#34;" in page
        assert "call_2 · send" in page.partition("Cannot be undone")[2]
        assert LOG == []
        later = await browser.get(f"/runs/{run_id}/undo?to=1")
        assert "call_1 · order" not in later
        skipped = await browser.get(f"/runs/{run_id}/undo?skip=call_1")
        assert "Left alone" in skipped
        assert 'name="digest"' not in skipped
        assert "There is no call" in await browser.get(f"/runs/{run_id}/undo?skip=call_9", status=409)
        assert "cannot be undone to step 9" in await browser.get(f"/runs/{run_id}/undo?to=9", status=409)

    browse(journal, scenario, agents=agents(journal))


def test_a_plan_that_was_agreed_to_is_carried_out_in_that_name() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call("order", item="tea"), call("order", item="milk"))

    async def scenario(browser: Browser) -> None:
        digest = digest_in(await browser.get(f"/runs/{run_id}/undo"))
        refused = await browser.post(f"/runs/{run_id}/undo", 409, digest=digest)
        assert "Say that you have read the plan" in refused
        await browser.post(f"/runs/{run_id}/undo", 200, digest=digest, agreed="1")
        await finish(browser, run_id)
        assert LOG == ["order-milk", "order-tea"]
        page = await browser.get(f"/runs/{run_id}/undo")
        assert "Everything was undone." in page
        assert f'href="/runs/{run_id}.undo-1"' in page
        undo = Trace("u", await journal.load(f"{run_id}.undo-1"))
        assert {event.fact.by for event in undo.events if isinstance(event.fact, ApprovalGiven)} == {"ada"}
        assert "The run has changed" in await browser.post(f"/runs/{run_id}/undo", 409, digest=digest, agreed="1")
        assert LOG == ["order-milk", "order-tea"]

    browse(journal, scenario, agents=agents(journal))


def test_of_two_people_who_undo_at_once_the_second_is_told() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call("order", item="tea"))

    async def scenario(browser: Browser) -> None:
        waiting, gate = asyncio.Event(), asyncio.Event()
        GATES.append((waiting, gate))
        digest = digest_in(await browser.get(f"/runs/{run_id}/undo"))
        first = await browser.post(f"/runs/{run_id}/undo", 200, digest=digest, agreed="1")
        assert "The run is being undone." in first
        assert 'hx-trigger="every 1s"' in first
        second = await browser.post(f"/runs/{run_id}/undo", 409, digest=digest, agreed="1")
        assert "Somebody else is undoing this run" in second
        await waiting.wait()
        progress = await browser.get(f"/runs/{run_id}/undo")
        assert re.search(r"call_1 <span class=\"tag\">runs</span>", progress)
        assert "Undone by cancel" in progress
        gate.set()
        await finish(browser, run_id)
        part = await browser.get(f"/runs/{run_id}/undo", is_fragment=True)
        assert "Everything was undone." in part
        assert "hx-trigger" not in part
        assert "<main" not in part
        assert LOG == ["order-tea"]

    browse(journal, scenario, agents=agents(journal))


def test_of_two_panels_on_one_journal_the_second_is_told() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call("order", item="tea"))

    async def main() -> None:
        async with (
            browser_of(journal, "ada", agents=agents(journal)) as one,
            browser_of(journal, "ada", agents=agents(journal)) as two,
        ):
            waiting, gate = asyncio.Event(), asyncio.Event()
            GATES.append((waiting, gate))
            digest = digest_in(await one.get(f"/runs/{run_id}/undo"))
            assert digest == digest_in(await two.get(f"/runs/{run_id}/undo"))
            await one.post(f"/runs/{run_id}/undo", 200, digest=digest, agreed="1")
            await waiting.wait()
            page = await two.post(f"/runs/{run_id}/undo", 409, digest=digest, agreed="1")
            assert f"tao undo {run_id}" in page  # what to do once the other one has ended
            gate.set()
            await finish(one, run_id)
            assert LOG == ["order-tea"]

    asyncio.run(main())


def test_what_fails_is_said_and_may_be_tried_again() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call("order", item="tea"), call("order", item="gone"))

    async def scenario(browser: Browser) -> None:
        digest = digest_in(await browser.get(f"/runs/{run_id}/undo"))
        await browser.post(f"/runs/{run_id}/undo", 200, digest=digest, agreed="1")
        await finish(browser, run_id)
        page = await browser.get(f"/runs/{run_id}/undo")
        assert "It was shipped." in page
        assert "Will be undone, in this order" in page
        assert LOG == []
        skip = digest_in(await browser.get(f"/runs/{run_id}/undo?skip=call_2"))
        await browser.post(f"/runs/{run_id}/undo", 200, digest=skip, agreed="1", skip="call_2")
        await finish(browser, run_id)
        assert LOG == ["order-tea"]

    browse(journal, scenario, agents=agents(journal))


def test_without_agents_the_command_and_the_effects_are_shown() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call("order", item="tea"), call("send", to="bob"))

    async def scenario(browser: Browser) -> None:
        page = await browser.get(f"/runs/{run_id}/undo?to=1&skip=call_2")
        assert f"tao undo {run_id} --to 1 --skip call_2</pre>" in page
        assert page.index("call_2 · send") < page.index("call_1 · order")
        await browser.post(f"/runs/{run_id}/undo", 409, digest="x", agreed="1")

    browse(journal, scenario)


def test_an_approver_sees_the_plan_and_an_admin_carries_it_out() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call("order", item="tea"))

    async def scenario(browser: Browser) -> None:
        page = await browser.get(f"/runs/{run_id}/undo")
        assert "An admin can carry out this plan." in page
        assert 'name="digest"' not in page
        await browser.post(f"/runs/{run_id}/undo", 403, digest="x", agreed="1")
        await browser.log_in("bob")
        await browser.get(f"/runs/{run_id}/undo", status=403)
        assert LOG == []

    browse(journal, scenario, "ann", agents=agents(journal))


def test_every_agent_that_was_made_is_closed() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call("order", item="tea"))
    made: list[Agent] = []
    closed: list[Agent] = []

    class Watched(Agent):
        async def close(self) -> None:
            closed.append(self)
            await super().close()

    def source(_spec: Any) -> Agent:
        made.append(Watched(model=ScriptedModel(["x"]), tools=TOOLS, journal=journal))
        return made[-1]

    async def scenario(browser: Browser) -> None:
        page = await browser.get(f"/runs/{run_id}/undo")
        await browser.post(f"/runs/{run_id}/undo", 409, digest="another")
        await browser.post(f"/runs/{run_id}/undo", digest=digest_in(page), agreed="1")
        await ended_in_background(browser.panel.state.background, f"{run_id}.undo")
        await browser.post(f"/runs/{run_id}/fork", 422, step="1", decision="{", action="run")
        assert made
        assert {id(agent) for agent in made} == {id(agent) for agent in closed}

    browse(journal, scenario, agents=source)


def test_agents_that_others_use_stay_open() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call("order", item="tea"))
    closed: list[str] = []

    class Watched(Agent):
        async def close(self) -> None:
            closed.append("closed")

    shared = Watched(model=ScriptedModel(["x"]), tools=TOOLS, journal=journal)

    async def scenario(browser: Browser) -> None:
        browser.panel.state.shares_agents = True
        await browser.get(f"/runs/{run_id}/undo")
        assert closed == []

    browse(journal, scenario, agents=lambda _spec: shared)
