"""Budgets of keys that hold nothing: those of agents whose model has no known price."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from taoloop.errors import ConfigError
from taoloop.models.pricing import is_priced
from taoloop.models.providers import PROVIDERS, endpoint
from taoloop.models.registry import is_provider
from taoloop.models.wrappers.build import split_specs
from taoloop.runtime.bound_agent import bind

if TYPE_CHECKING:
    from taoloop.runtime.agent import Agent
    from taoloop.serve.gateway.config.model import GatewayConfig


def unenforceable_budgets(config: GatewayConfig) -> Iterator[str]:
    """A sentence for each model that a key with a budget may use, and whose price nobody knows."""
    for name, served in config.agents.items():
        keys = [key.name for key in config.keys if key.usd_per_day is not None and name in (key.agents or (name,))]
        if keys:
            for spec in _unpriced(served.agent):
                of = ", ".join(keys)
                yield (
                    f"The price of {spec} (agent {name}) is not known, so it costs nothing of the `usd_per_day` of "
                    f"{of}: bound these keys by `tokens_per_minute`, or the agent by `limits`."
                )


def _unpriced(agent: Agent) -> Iterator[str]:
    env = os.environ if agent.env is None else agent.env
    for spec in split_specs(bind(agent).model.spec):
        kind, _, name = spec.partition(":")
        if not is_provider(spec) or kind not in PROVIDERS:
            continue
        try:
            target = endpoint(kind, name, env)
        except ConfigError:  # a model that its user made, under the name of a provider
            continue
        if not target.kind.free and not is_priced(target.address, target.model):
            yield spec
