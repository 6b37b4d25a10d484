"""A policy tried on a stored run: the verdicts that change, and why."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from typing import Any

import pytest
from tests.serve.panel.panels import Browser, browse

from taoloop import Agent, MemoryJournal, ScriptedModel, tool
from taoloop.serve.panel.pages import policy


@tool(tier="write")
def pay(to: str, amount: int) -> str:
    """Pay an amount."""
    return "paid"


def call(**args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": "pay", "args": args}]}


def ran(journal: MemoryJournal, *script: Any) -> str:
    agent = Agent(
        model=ScriptedModel([*script, "done"]),
        tools=[pay],
        journal=journal,
        approve=lambda request: request.args["amount"] < 9,
        max_steps=20,
    )
    return asyncio.run(agent.run("Do it.")).run_id


def changes_in(page: str) -> list[str]:
    return re.findall(r'<article class="card change c-(\w+)">', page)


SMALL = """
profile: supervised
rules:
  - {name: small, tool: pay, args: {amount: {max: 20}}, verdict: allow}
"""


def test_a_policy_marks_the_verdicts_that_change_and_says_why() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call(to="<i>ann", amount=5), call(to="bob", amount=500))

    async def scenario(browser: Browser) -> None:
        page = await browser.post(f"/runs/{run_id}/policy", 200, policy=SMALL)
        assert changes_in(page) == ["question_vanishes"]
        assert "2 calls were judged; 1 with the same verdict." in page
        assert "asked about, a person allowed it → allowed" in page
        assert "the rule &#39;small&#39; applies" in page
        assert "&lt;i&gt;ann" in page
        denied = await browser.post(
            f"/runs/{run_id}/policy", 200, policy="profile: headless" + SMALL.partition("supervised")[2]
        )
        assert changes_in(denied) == ["question_vanishes", "newly_denied"]
        assert "rules[0] small requires args.amount.max: 20; here: 500" in denied
        events = await journal.load(run_id)
        assert sum(event.kind == "action_requested" for event in events) == 2  # nothing was added

    browse(journal, scenario, "bob")


def test_a_profile_is_in_the_address() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call(to="ann", amount=5))

    async def scenario(browser: Browser) -> None:
        assert changes_in(await browser.get(f"/runs/{run_id}/policy")) == []
        page = await browser.get(f"/runs/{run_id}/policy?profile=read-only")
        assert changes_in(page) == ["newly_denied"]
        assert "profile: read-only" in page
        assert re.search(r'href="/runs/[^"]+/policy\?profile=read-only" aria-current="true"', page)

    browse(journal, scenario, "bob")


def test_a_policy_that_cannot_be_read_comes_back_with_its_mistake() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call(to="ann", amount=5))

    async def scenario(browser: Browser) -> None:
        text = "profile: strict\nprofle: </textarea><script>x"
        page = await browser.post(f"/runs/{run_id}/policy", 422, policy=text)
        assert "policy.yaml:2" in page
        assert unescape(page.partition('name="policy"')[2]).count("profle: </textarea><script>x") == 1
        assert "<script>x" not in page
        warned = await browser.post(
            f"/runs/{run_id}/policy", 200, policy="rules:\n  - {tool: fly, verdict: deny}\nprofile: strict"
        )
        assert "the agent has no such tool" in warned

    browse(journal, scenario, "bob")


def test_what_people_approved_suggests_a_policy_that_can_be_tried() -> None:
    journal = MemoryJournal()
    run_id = ran(journal, call(to="ann", amount=5))

    async def scenario(browser: Browser) -> None:
        page = await browser.get(f"/runs/{run_id}/policy")
        match = re.search(r'<pre id="proposal">(.*?)</pre>', page, re.DOTALL)
        assert match is not None
        tried = await browser.post(f"/runs/{run_id}/policy", 200, policy=unescape(match[1]))
        assert changes_in(tried) == ["question_vanishes"]

    browse(journal, scenario, "bob")


def test_of_many_changes_the_first_are_shown_and_the_command_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "MOST_CALLS", 2)
    journal = MemoryJournal()
    run_id = ran(journal, *(call(to="ann", amount=amount) for amount in range(4)))

    async def scenario(browser: Browser) -> None:
        page = await browser.get(f"/runs/{run_id}/policy?profile=locked")
        assert len(changes_in(page)) == 2
        assert f"Only the first 2 are shown. All of them: tao policy test policy.yaml --runs {run_id}" in page
        assert "<b>4</b> would newly be denied" in page

    browse(journal, scenario, "bob")
