"""The panel within the gateway: who may see it, and how it is mounted under `/panel`.

Admin keys are admins there; other keys have the role that their entry names. Without any key only this machine reaches
the server, and a token that it prints at the start opens the panel, so that a page in a browser cannot.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from hmac import compare_digest
from typing import Final

from aiohttp import web

from taoloop.core.agent_spec import AgentSpec
from taoloop.errors import ConfigError
from taoloop.journals.base import Journal
from taoloop.runtime.agent import Agent
from taoloop.runtime.engine.clock import Clock
from taoloop.serve.gateway.auth.keys import ApiKey
from taoloop.serve.gateway.run_service import ConfigSnapshot
from taoloop.serve.panel.access import Identity
from taoloop.serve.panel.app import Panel
from taoloop.serve.panel.state import PanelState

PANEL_PATH: Final = "/panel"
"""Where the panel is mounted."""

_OPERATOR, _BY_KEY = "operator", "gateway_key"
_TOKEN_BYTES = 32


class GatewayAccess:
    """The people of a gateway's panel, by its keys; `snapshot` gives the configuration that holds now."""

    def __init__(self, snapshot: Callable[[], ConfigSnapshot], clock: Clock) -> None:
        self._snapshot, self._clock = snapshot, clock
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        """Opens the panel of a server without keys."""

    @property
    def needs_key(self) -> bool:
        """Whether people log in with a key."""
        config = self._snapshot().config
        return config.needs_key or bool(config.admin_keys)

    async def identify(self, credential: str) -> Identity | None:
        """The owner of this key, if it has a role."""
        if not self.needs_key:
            is_token = compare_digest(credential.encode("utf-8", "surrogatepass"), self.token.encode())
            return Identity(name=_OPERATOR, role="admin") if is_token else None
        snapshot, now = self._snapshot(), self._clock.now()
        admin_key = snapshot.admin_keys.find(credential)
        if admin_key is not None:
            is_active = admin_key.state_at(now) == "active"
            return Identity(name=admin_key.name, role="admin", authenticated=_BY_KEY) if is_active else None
        return _identity_of(snapshot.find_key(credential), now)

    async def confirm(self, identity: Identity) -> Identity | None:
        """The same person while the key is active and has a role."""
        if not self.needs_key:
            return identity if identity.name == _OPERATOR else None
        snapshot, now = self._snapshot(), self._clock.now()
        for key in snapshot.config.admin_keys:
            if key.name == identity.name and identity.role == "admin" and key.state_at(now) == "active":
                return identity
        return _identity_of(snapshot.owner_key(identity.name), now)


class GatewayHosts:
    """The names under which the panel is called: with keys any, since no page of another name has a session."""

    def __init__(self, snapshot: Callable[[], ConfigSnapshot]) -> None:
        self._snapshot = snapshot

    def accepts(self, host: str | None) -> bool:
        """Whether a request with this header `Host` is served."""
        snapshot = self._snapshot()
        return snapshot.config.needs_key or snapshot.hosts.accepts(host)


def gateway_panel(
    snapshot: Callable[[], ConfigSnapshot], journal: Journal, access: GatewayAccess, clock: Clock
) -> Panel:
    """The panel of a gateway; the gateway itself resumes what people answer there."""

    def agent_for(spec: AgentSpec) -> Agent:
        served = snapshot().config.agents.get(spec.name)
        if served is None:
            known = ", ".join(snapshot().config.agents)
            message = f"The configuration has no agent called {spec.name!r}."
            raise ConfigError(message, hint=f"Known: {known}. Continue the run with `tao resume`.")
        return served.agent

    config = snapshot().config
    return Panel(
        PanelState(
            journal=journal,
            access=access,
            agents=agent_for,
            shares_agents=True,
            resumes_itself=True,
            prefix=PANEL_PATH,
            hosts=GatewayHosts(snapshot),
            clock=clock,
            is_secure=config.tls is not None or config.public_url.startswith("https:"),
        )
    )


async def redirect_to_panel(_request: web.Request) -> web.Response:
    """`GET /panel`, as people type it."""
    return web.Response(status=308, headers={"Location": f"{PANEL_PATH}/"})


def _identity_of(key: ApiKey | None, now: float) -> Identity | None:
    if key is None or key.panel is None or key.state_at(now) != "active":
        return None
    return Identity(name=key.name, role=key.panel, authenticated=_BY_KEY)
