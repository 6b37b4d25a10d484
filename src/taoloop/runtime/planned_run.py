"""Runs whose calls are decided beforehand, so that no model is asked: single calls for other hosts, and undos."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from taoloop.core.agent_spec import Limits
from taoloop.core.policy import Policy, Rule
from taoloop.errors import ModelError, PolicyError
from taoloop.policy import CodeRule
from taoloop.runtime.agent_settings import AgentSettings
from taoloop.runtime.bound_agent import BoundAgent
from taoloop.strategies import Strategy
from taoloop.tools.tool import Tool

if TYPE_CHECKING:
    from taoloop.core.effects import ModelRequest
    from taoloop.core.message import ModelReply

NO_LIMITS = Limits(
    max_steps=None, max_consecutive_errors=None, max_total_errors=None, repeat_tell=None, repeat_stop=None
)
"""The limits of such a run: its plan bounds it."""


class NoModel:
    """The model of a run that has none. `spec` is what the run's description names as its model."""

    dialect = "native"

    def __init__(self, spec: str) -> None:
        self.spec = spec

    async def complete(self, request: ModelRequest) -> ModelReply:  # noqa: ARG002  # the Protocol's signature
        """Never called by a strategy that follows a plan.

        Raises:
            ModelError: always.
        """
        raise ModelError("A run whose calls are decided beforehand has no model.")

    def check_used(self, replies: int) -> None:
        """Nothing was scripted."""

    async def close(self) -> None:
        """There is no connection."""


def bind_without_model(
    agent: AgentSettings, spec: str, strategy: Strategy, tools: Sequence[Tool], rules: Sequence[CodeRule]
) -> BoundAgent:
    """The agent as it drives a planned run: with these tools and rules alone, and no tier approved in advance."""
    return BoundAgent(
        replace(
            agent,
            model=NoModel(spec),
            fallback=(),
            tools=tuple(tools),
            strategy=strategy,
            output_type=None,
            rules=tuple(rules),
            approved_tiers=(),
        )
    )


def with_rule(policy: Policy, rule: Rule) -> Policy:
    """The policy with one more rule at its end; unchanged where an earlier rule decides the same calls."""
    try:
        return replace(policy, rules=(*policy.rules, rule))
    except PolicyError:
        return policy
