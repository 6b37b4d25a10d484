"""The linter of agents: what nobody guards, what nothing bounds, and that a guarded agent has no finding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent, Limits, tool
from taoloop.core.policy import Policy, Rule
from taoloop.models.prices import Price
from taoloop.serve.agent_lint import lint_agent, lint_gateway
from taoloop.serve.gateway.config.gateway_file import load_config

SPEC = "openai:my-own-model"
ENV = {"OPENAI_API_KEY": "k"}


@tool(tier="read")
def look(at: str) -> str:
    """Look at something."""
    return at


@tool(tier="write", egress=False, probe=lambda item: False)  # noqa: ARG005  # a probe has the tool's parameters
def order(item: str) -> str:
    """Order an item."""
    return item


@tool(tier="destructive", egress=False)
def drop(item: str) -> str:
    """Drop an item."""
    return item


@tool(tier="destructive", egress=False, approval="required", idempotent=True)
def pay(item: str) -> str:
    """Pay an item."""
    return item


@tool
def anything(item: str) -> str:
    """Do something."""
    return item


@tool(tier="read", egress=True)
def ask_web(query: str) -> str:
    """Ask the web."""
    return query


def codes(**options: Any) -> list[str]:
    return [finding.code for finding in lint_agent(Agent(**{"model": "offline"} | options))]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"tools": [look, order, pay]}, []),
        ({"tools": [look, pay], "policy": "autonomous"}, []),
        ({"tools": [order], "policy": "autonomous"}, ["unguarded_effect"]),
        ({"tools": [order], "approved_tiers": ("write",)}, ["unguarded_effect"]),
        ({"tools": [order], "approved_tiers": ("destructive",)}, []),
        ({"tools": [anything, ask_web], "policy": "autonomous"}, ["unguarded_effect"] * 2),
        ({"tools": [drop]}, ["no_repeat_guard"]),
        ({"tools": [drop], "policy": "autonomous"}, ["unguarded_effect", "no_repeat_guard"]),
        ({"tools": [order], "policy": Policy(profile="autonomous", rules=(Rule(verdict="ask", tool="ord*"),))}, []),
        (
            {"tools": [order], "policy": Policy(profile="autonomous", rules=(Rule(verdict="allow", tool="order"),))},
            ["unguarded_effect"],
        ),
        ({"limits": Limits(max_steps=None)}, ["no_step_limit"]),
        ({"limits": Limits(max_steps=None, max_wall_s=60)}, []),
    ],
)
def test_what_nobody_guards_is_found(options: Any, expected: list[str]) -> None:
    assert codes(**options) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["no_cost_limit"]),
        ({"limits": Limits(max_tokens=1000)}, []),
        ({"limits": Limits(max_cost_usd=1)}, ["unknown_price"]),
        ({"limits": Limits(max_cost_usd=1), "prices": {SPEC: Price(input=1, output=2)}}, []),
    ],
)
def test_what_a_paid_model_may_cost_is_bounded_and_known(options: Any, expected: list[str]) -> None:
    assert codes(model=SPEC, env=ENV, **options) == expected


def test_a_model_without_its_key_is_not_this_linters_matter() -> None:
    assert codes(model=SPEC, env={}) == []


def test_each_finding_says_what_could_happen_and_what_to_write() -> None:
    [finding] = lint_agent(Agent(model="offline", tools=[order], policy="autonomous"))
    assert finding.message.startswith("Nobody is asked before 'order' acts (write): a wrong decision")
    assert "`approval: required`" in finding.advice


def test_the_agents_inside_an_agent_are_looked_at() -> None:
    inner = Agent(name="clerk", description="c", model="offline", tools=[order], policy="autonomous")
    assert "unguarded_effect" in codes(handoffs=[inner])
    assert "unguarded_effect" in codes(tools=[inner.as_tool(purpose="Order things.")])


def test_a_gateway_without_keys_is_found(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("model: offline\n")
    file = tmp_path / "gateway.yaml"
    file.write_text("agents: {shop: agent.yaml}\n")
    [finding] = lint_gateway(load_config(file, env={}))
    assert (finding.code, "127.0.0.1" in finding.message) == ("no_keys", True)
    file.write_text("agents: {shop: agent.yaml}\nkeys: [{name: ann, key: '${KEY}'}]\n")
    assert lint_gateway(load_config(file, env={"KEY": "k" * 40})) == []
