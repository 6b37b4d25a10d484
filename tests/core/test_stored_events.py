"""The stored form of events: what later versions added is not in it while it is not used."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.events import FACTS, RunStarted
from taoloop.core.policy import Policy
from taoloop.core.stored_events import LATER_FIELDS, decode_fact, encode_fact


def test_what_a_user_may_authorise_is_stored_where_it_is_limited_and_not_otherwise() -> None:
    started = RunStarted(task="Go.", agent=AgentSpec(instructions="Be brief."), nonce="n")
    body = encode_fact(started)
    assert not any(name in body for name in (b"authority", b"user_instructions", b"followed_hosts"))
    assert decode_fact("run_started", body) == started
    assert Policy().version == "2146c6382a7e32e7"  # approvals that wait are bound to it
    limited = replace(
        started,
        authority="none",
        user_instructions="brief.",
        agent=replace(started.agent, policy=Policy(task_authority="values")),
    )
    assert decode_fact("run_started", encode_fact(limited)) == limited


def test_a_field_that_is_added_is_left_out_while_it_says_nothing() -> None:
    """Else a run that was stored before loses the hashes of its chain. New kinds of facts may have any fields."""
    known = json.loads((Path(__file__).parents[1] / "data" / "stored_fields.json").read_text(encoding="utf-8"))
    always = {
        str(fact.kind): sorted({field.name for field in fields(fact)} - LATER_FIELDS.get(fact, set())) for fact in FACTS
    }
    started = RunStarted(task="t", nonce="n", agent=AgentSpec(tools=(ToolCard(name="a", purpose="p"),)))
    agent = json.loads(encode_fact(started))["agent"]
    always |= {"card": sorted(agent.pop("tools")[0]), "policy": sorted(agent.pop("policy")), "agent": sorted(agent)}
    assert {kind: names for kind, names in always.items() if kind in known} == known
