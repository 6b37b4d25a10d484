"""Runs with a tool whose calls a person must allow each time, from the card to the call."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent, ApprovalAnswer, ApprovalRequest, MemoryJournal, Result, ScriptedModel, tool
from taoloop.config.tool_file import load_tools
from taoloop.core.events import ActionRequested, ApprovalGiven, Event, Observed, RunStarted
from taoloop.core.policy import PROFILES, Policy, Profile, Rule
from taoloop.core.stored_events import decode_fact, encode_fact
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError
from taoloop.runtime.after.replay import replay
from taoloop.runtime.approvals.inbox import answer_approval
from taoloop.tools.openapi import OpenapiSource, openapi_tools


@tool(tier="read", approval="required", egress=False)
def peek(drawer: str) -> str:
    """Look into one drawer, at most."""
    return f"in {drawer}: nothing"


def peeking(*drawers: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "peek", "args": {"drawer": one}} for one in drawers]}


def agent(*replies: Any, **options: Any) -> Agent:
    return Agent(model=ScriptedModel([*replies, "done"], strict=False), **{"tools": [peek], **options})


def facts(result: Result, kind: type[Any]) -> list[Any]:
    return [event.fact for event in result.trace if isinstance(event.fact, kind)]


@pytest.mark.parametrize("profile", PROFILES)
def test_it_waits_for_a_person_or_is_denied(profile: Profile) -> None:
    tiers: Any = ("read", "draft", "write", "destructive")
    result = agent(peeking("top"), policy=profile, approved_tiers=tiers, early_reads=True).run_sync("peek into top")
    denied = profile in ("headless", "locked")
    assert result.status == {"headless": "blocked", "locked": "completed"}.get(profile, "waiting")
    assert facts(result, ActionRequested)[0].verdict == ("deny" if denied else "ask")
    assert not any(one.ok for one in facts(result, Observed))
    assert all(one.same for one in replay(result.trace))


def test_a_yes_is_for_one_call_whatever_else_it_says() -> None:
    asked: list[ApprovalRequest] = []

    def approve(question: ApprovalRequest) -> ApprovalAnswer:
        asked.append(question)
        return ApprovalAnswer(approved=True, scope="rule")

    result = agent(peeking("top", "middle"), peeking("low"), policy="autonomous", approve=approve).run_sync("go")
    assert [one.args["drawer"] for one in asked] == ["top", "middle", "low"]
    assert not any(one.has_always for one in asked)
    assert [one.scope for one in facts(result, ApprovalGiven)] == ["call"] * 3


def test_an_answer_from_elsewhere_has_no_always_and_no_tier_is_one() -> None:
    journal = MemoryJournal()
    one = agent(peeking("top"), journal=journal)
    run_id = one.run_sync("go").run_id
    always = ApprovalAnswer(approved=True, scope="rule")
    with pytest.raises(ConfigError, match="needs a person's approval for each call: it has no 'always'"):
        asyncio.run(answer_approval(journal, run_id, "call_1", always))
    assert one.resume_sync(run_id, approved_tiers=("read", "destructive")).status == "waiting"
    asyncio.run(answer_approval(journal, run_id, "call_1", ApprovalAnswer(approved=True)))
    assert one.resume_sync(run_id).status == "completed"


def test_a_run_that_began_without_it_is_not_gone_on_with() -> None:
    journal = MemoryJournal()
    free = peek.with_card(approval=None, tier="write")
    one = agent(peeking("top"), journal=journal, tools=[free])
    run_id = one.run_sync("go").run_id
    with pytest.raises(ConfigError, match="needs a person's approval for each call now"):
        replace(one, tools=[free.with_card(approval="required")]).resume_sync(run_id)


def test_it_is_asked_of_an_agent_inside_another_one_too() -> None:
    inner = agent(peeking("top"), policy="autonomous", name="scout")
    scout = inner.as_tool(purpose="Scout.")
    assert scout.card.tier == "read"
    outer = agent({"tool_calls": [{"name": "scout", "args": {"task": "peek"}}]}, tools=[scout])
    assert outer.run_sync("go").status == "waiting"


def test_a_rule_for_exactly_this_tool_lets_it_run() -> None:
    policy = Policy(profile="headless", rules=(Rule(verdict="allow", tool="peek"),))
    assert facts(agent(peeking("top"), policy=policy).run_sync("go"), Observed)[0].ok


def test_it_stands_in_the_trace_and_an_older_trace_is_read_without_it() -> None:
    result = agent(peeking("top"), policy="headless").run_sync("go")
    started = facts(result, RunStarted)[0]
    body = encode_fact(started)
    again = decode_fact("run_started", body)
    assert isinstance(again, RunStarted)
    assert again.agent.tools[0].approval == "required"
    plain = json.loads(body)
    for card in plain["agent"]["tools"]:
        del card["approval"]
    older = decode_fact("run_started", json.dumps(plain).encode())
    assert isinstance(older, RunStarted)
    assert older.agent.tools[0].approval is None
    assert Trace("r", [Event(0, 0.0, older)]).agent.tools[0].name == "peek"


DOCUMENT = """
openapi: 3.1.0
info: {title: Bank, version: "1"}
servers: [{url: "http://127.0.0.1:1"}]
paths:
  /balance: {get: {operationId: balance, x-approval: required}}
  /pay: {post: {operationId: pay, x-approval: required, x-tier: draft}}
  /close: {delete: {operationId: close}}
"""


def test_a_document_asks_for_it_and_the_tier_stays_its_own() -> None:
    tools = openapi_tools(OpenapiSource(document=DOCUMENT, approval=("close",))).tools
    tiers = {one.name: one.card.tier for one in tools}
    assert tiers == {"balance": "read", "pay": "draft", "close": "destructive"}
    assert all(one.card.approval == "required" for one in tools)
    for name in ("balance", "pay"):
        call: dict[str, Any] = {"tool_calls": [{"name": name, "args": {}}]}
        assert agent(call, tools=list(tools), policy="autonomous").run_sync(name).status == "waiting"


def test_a_card_in_a_tool_file_asks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "drawers.py").write_text('def ring() -> str:\n    return "ring"\n')
    card = "{name: ring, purpose: Ring a bell., tier: read, approval: required}"
    (tmp_path / "t.yaml").write_text(f"tools:\n- function: drawers:ring\n  card: {card}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load_tools(tmp_path / "t.yaml").tools[0].card.approval == "required"
    wrong = card.replace("required", "always")
    (tmp_path / "t.yaml").write_text(f"tools:\n- function: drawers:ring\n  card: {wrong}\n")
    with pytest.raises(ConfigError, match="one of required is expected, not 'always'"):
        load_tools(tmp_path / "t.yaml")
