"""Forks from the panel: what may be edited, what happens to it, and a form that loses nothing."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from typing import Any

from tests.serve.panel.panels import Browser, browse, ended_in_background

from taoloop import Agent, MemoryJournal, ScriptedModel, Trace, tool
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import Resumed
from taoloop.errors import ConfigError

HOSTILE = '</textarea><script>alert("x")</script>\u202e'


@tool(tier="read")
def look(item: str) -> str:
    """Look at an item."""
    return f"{item} costs 3"


def call(item: str) -> dict[str, Any]:
    return {"text": "I look.", "tool_calls": [{"name": "look", "args": {"item": item}}]}


def ran(journal: MemoryJournal, *script: Any, task: str = "Get tea.") -> str:
    agent = Agent(model=ScriptedModel(script), tools=[look], journal=journal)
    return asyncio.run(agent.run(task)).run_id


def area(page: str, name: str) -> str:
    """The text in an area of the form."""
    match = re.search(rf'<textarea id="{name}"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    assert match is not None, page
    return unescape(match[1])


async def load(journal: MemoryJournal, run_id: str) -> Trace:
    return Trace(run_id, await journal.load(run_id))


async def forks(journal: MemoryJournal) -> list[Trace]:
    traces = [await load(journal, row.run_id) for row in await journal.runs()]
    return [trace for trace in traces if trace.started is not None and trace.started.forked_from]


def test_the_form_shows_what_may_be_edited_and_hostile_text_stays_text() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call(HOSTILE), "done")

    async def scenario(browser: Browser) -> None:
        page = await browser.get(f"/runs/{run_id}/fork?step=1")
        assert area(page, "thought") == "I look."
        assert '"tool": "look"' in area(page, "decision")
        assert area(page, "outcome-call_1") == f"{HOSTILE} costs 3"
        assert area(page, "task") == "Get tea."
        assert "<script>alert" not in page
        assert "characters that do not show" in page
        assert 'value="2"' in await browser.get(f"/runs/{run_id}/fork")  # by default the last step

    browse(journal, scenario, "ann")


def test_without_agents_the_fork_is_made_and_the_command_shown() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call("tea"), "done")

    async def scenario(browser: Browser) -> None:
        page = await browser.post(
            f"/runs/{run_id}/fork", 200, **{"step": "1", "outcome-call_1": "tea is sold", "action": "run"}
        )
        (fork,) = await forks(journal)
        assert f"tao resume {fork.run_id}</pre>" in page
        assert f"/compare?runs={run_id}%2C{fork.run_id}" in page
        assert fork.calls["call_1"].observed is not None
        assert fork.calls["call_1"].observed.output == "tea is sold"
        resumed = fork.events[-1].fact
        assert isinstance(resumed, Resumed)
        assert resumed.reason.endswith("edited by a person: observation of call_1; by ann")

    browse(journal, scenario, "ann")


def test_with_agents_the_fork_runs_on_with_the_edited_decision() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call("tea"), "done")
    agent = Agent(model=ScriptedModel(["a reply that the edit replaced", "milk it is"]), tools=[look], journal=journal)

    async def scenario(browser: Browser) -> None:
        decision = '{"tool": "look", "args": {"item": "milk"}}'
        fields = {"csrf": browser.csrf, "step": "1", "decision": decision, "action": "run", "max_steps": "9"}
        response = await browser.request("POST", f"/runs/{run_id}/fork", data=fields, allow_redirects=False)
        assert response.status == 303, await response.text()
        (fork,) = await forks(journal)
        assert response.headers["Location"] == f"/runs/{fork.run_id}"
        await ended_in_background(browser.panel.state.background, fork.run_id)
        ended = await load(journal, fork.run_id)
        assert ended.finished is not None
        assert ended.finished.answer == "milk it is"
        assert ended.calls["call_1"].args == {"item": "milk"}
        assert ended.limits.max_steps == 9

    browse(journal, scenario, "ann", agents=lambda _spec: agent)


def test_a_wrong_edit_makes_no_fork_and_loses_nothing() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call("tea"), "done")

    async def scenario(browser: Browser) -> None:
        page = await browser.post(
            f"/runs/{run_id}/fork", 422, step="1", decision='{"tool": ', thought="Hm.\r\nMilk.", max_steps="7"
        )
        assert "The edited decision is not JSON" in page
        assert "No fork was made." in page
        assert (area(page, "decision"), area(page, "thought")) == ('{"tool": ', "Hm.\nMilk.")
        assert 'name="max_steps" type="number" min="1" value="7"' in page
        wrong = await browser.post(f"/runs/{run_id}/fork", 422, step="1", max_steps="many")
        assert "is no number of steps" in wrong
        empty = await browser.post(f"/runs/{run_id}/fork", 422, step="1", task="  ")
        assert "The edited task is empty." in empty
        assert area(empty, "task") == "  "
        assert await forks(journal) == []
        assert "has no step 9" in await browser.get(f"/runs/{run_id}/fork?step=9", status=400)
        assert "is not the number of a step" in await browser.get(f"/runs/{run_id}/fork?step=x", status=400)
        await browser.get("/runs/nothing/fork", status=404)

    browse(journal, scenario, "ann")


def test_an_agent_that_is_not_there_is_said_in_the_form() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call("tea"), "done")

    def agents(_spec: AgentSpec) -> Agent:
        raise ConfigError("The agent's file is gone.", hint="Put it back.")

    async def scenario(browser: Browser) -> None:
        page = await browser.post(f"/runs/{run_id}/fork", 422, step="1", thought="Hm.", action="run")
        assert "Put it back." in page
        assert area(page, "thought") == "Hm."
        assert await forks(journal) == []
        await browser.post(f"/runs/{run_id}/fork", 200, step="1", thought="Hm.", action="create")
        assert len(await forks(journal)) == 1

    browse(journal, scenario, "ann", agents=agents)


def test_a_viewer_makes_no_fork() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, "done")

    async def scenario(browser: Browser) -> None:
        await browser.get(f"/runs/{run_id}/fork", status=403)
        await browser.post(f"/runs/{run_id}/fork", 403, step="1")
        assert await forks(journal) == []

    browse(journal, scenario, "bob")


def test_the_whole_of_a_long_output_can_be_edited() -> None:
    @tool(name="look", tier="read")
    def tell(item: str) -> str:
        """Tell much."""
        return "\n".join(f"{item} {number}" for number in range(3_000))

    journal = MemoryJournal()
    agent = Agent(model=ScriptedModel([call("line"), "done"]), tools=[tell], journal=journal)
    run_id = asyncio.run(agent.run("Tell.")).run_id

    async def scenario(browser: Browser) -> None:
        page = await browser.get(f"/runs/{run_id}/fork?step=1")
        assert area(page, "outcome-call_1").endswith("line 2999")

    browse(journal, scenario, "ann")


def test_a_decision_of_megabytes_is_not_in_the_form_and_stays_as_it_is() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call("tea" * 1_000_000), "done")

    async def scenario(browser: Browser) -> None:
        page = await browser.get(f"/runs/{run_id}/fork?step=1")
        assert len(page) < 100_000
        assert "too long to be edited here: 3,000," in page
        await browser.post(f"/runs/{run_id}/fork", 200, step="1", thought="Hm.")
        (fork,) = await forks(journal)
        assert fork.calls["call_1"].args == {"item": "tea" * 1_000_000}

    browse(journal, scenario, "ann")
