"""One configuration in use: its agents bound to the journal. A changed configuration is a new snapshot."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from taoloop.models.http.sdk_request import load_sdk
from taoloop.models.wrappers.build import split_specs
from taoloop.runtime.bound_agent import bind
from taoloop.serve.gateway.config.api_keys import KeyRing
from taoloop.serve.gateway.run_service import Service

if TYPE_CHECKING:
    from taoloop.journals.base import Journal
    from taoloop.serve.gateway.config.model import GatewayConfig
    from taoloop.serve.gateway.observe.run_recorder import RunAccounts

_LOG = logging.getLogger("taoloop.gateway")


class ConfigSnapshot:
    """One configuration with its agents, bound to the journal. The accounts are shared by all snapshots.

    A request keeps the snapshot that it began with. When a snapshot is replaced, its agents are closed after its last
    request.
    """

    def __init__(
        self,
        config: GatewayConfig,
        journal: Journal,
        accounts: RunAccounts,
    ) -> None:
        bound_agents = {
            name: replace(served, agent=replace(served.agent, journal=journal))
            for name, served in config.agents.items()
        }
        self.config = replace(config, agents=bound_agents)
        self.keys = KeyRing(config.keys)
        self.service = Service(journal, run_timeout_s=config.limits.run_timeout_s)
        self.journal, self.accounts = journal, accounts
        self._active = 0
        self._is_replaced = False

    def warm_up(self) -> None:
        """Load what the first request would have to wait for: tools, prompts and model clients.

        Raises:
            ConfigError: the configuration of an agent is wrong.
            MissingExtra: a model needs a package that is not installed.
        """
        for served in self.config.agents.values():
            for language in ("", "你好"):
                served.agent.spec_for(language)
            for spec in split_specs(bind(served.agent).model.spec):
                load_sdk(spec.partition(":")[0])
            _ = served.agent.toolbox

    def enter(self) -> None:
        """A request has begun."""
        self._active += 1

    async def leave(self) -> None:
        """A request has ended."""
        self._active -= 1
        await self._close_when_idle()

    async def retire(self) -> None:
        """Another snapshot replaces this one, or the server ends."""
        self._is_replaced = True
        await self._close_when_idle()

    async def _close_when_idle(self) -> None:
        if self._is_replaced and self._active == 0:
            for served in self.config.agents.values():
                try:
                    await served.agent.close()
                except Exception:  # noqa: BLE001  # it must not cost the last request its answer
                    _LOG.exception("the connections of %s could not be closed", served.name)
