"""The stored form of events: what later versions added is not in it while it is not used."""

from __future__ import annotations

from dataclasses import replace

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import RunStarted
from taoloop.core.policy import Policy
from taoloop.core.stored_events import decode_fact, encode_fact


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
