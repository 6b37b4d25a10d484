"""The configuration of a gateway as plain data: its agents, keys and limits, whichever kind of file they came from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from taoloop.config.document import Stamp
from taoloop.errors import ConfigError
from taoloop.journals.addresses import DatabaseAddress
from taoloop.journals.retention import Retention
from taoloop.models.model_builder import endpoint_targets, split_specs
from taoloop.models.providers import PROVIDERS, Endpoint, endpoint, is_priced
from taoloop.models.registry import is_provider
from taoloop.runtime.agent import Agent
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.notifications.hooks import NotificationSettings
from taoloop.serve.gateway.auth.keys import ApiKey
from taoloop.serve.gateway.auth.tokens import JwtSettings
from taoloop.serve.gateway.config.host_overrides import HostOverrides
from taoloop.serve.gateway.config.tls import TlsFiles
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.settings_check import Count, Seconds, check_fields

GatewayProtocol = Literal["agui", "messages", "a2a"]
"""Protocols that a gateway speaks only where it is told to: AG-UI, Anthropic's Messages API and A2A."""

ConfigForm = Literal["own", "agent", "higress", "flat", "wasm_plugin"]
"""own: a gateway file (agents, keys, limits). agent: an agent file. higress, flat: the two forms of `ai-agent`.
wasm_plugin: a resource of Kubernetes with files of `ai-agent`."""

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080

_WORD = re.compile(r"[a-z]+(?:_[a-z]+)+")

ANY_OBJECT: Mapping[str, Any] = {"type": "object"}
"""The schema of any JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAgent:
    """An agent under the name by which clients call it."""

    name: str
    """What clients write as `model`."""

    agent: Agent
    """The agent."""

    description: str = ""
    """What it is for, as the file says."""

    image_urls: EgressRules | None = None
    """Where images that clients name by their URL may be fetched from; None: from nowhere."""

    reshape: Mapping[str, Any] | None = None
    """The JSON Schema that its final answers are rewritten to match, by one more model call; None: they are not."""

    setting_names: Mapping[str, str] = field(default_factory=dict)
    """What its file calls a setting of an agent, where it has another name for it; messages use that."""

    file_limits: Mapping[str, int] = field(default_factory=dict)
    """Its limits by the names and in the units of its file, where these are other than those of an agent."""

    def with_setting_names(self, text: str) -> str:
        """A message with the names that the file has for settings."""
        return _WORD.sub(lambda match: self.setting_names.get(match[0], match[0]), text) if self.setting_names else text

    def model_endpoints(self) -> Iterator[tuple[str, Endpoint | None]]:
        """The specs of its models, each with where its calls go; None where that is not known."""
        env = os.environ if self.agent.env is None else self.agent.env
        for position, spec in enumerate(split_specs(bind(self.agent).model.spec)):
            if self.agent.endpoints and not position and is_provider(spec):
                yield from ((spec, target) for target, _ in endpoint_targets(spec, self.agent.endpoints, env))
                continue
            kind, _, name = spec.partition(":")
            target = None
            if is_provider(spec) and kind in PROVIDERS:
                with suppress(ConfigError):  # a custom model under the name of a provider
                    target = endpoint(kind, name, env)
            yield spec, target

    def unpriced_models(self) -> tuple[str, ...]:
        """The specs of its models whose calls cost money, and nobody knows how much."""
        unpriced = (
            spec
            for spec, target in self.model_endpoints()
            if target is not None
            and not target.kind.free
            and spec not in self.agent.prices
            and not is_priced(target.address, target.model)
        )
        return tuple(dict.fromkeys(unpriced))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of the server. A request beyond one gets an error; nothing waits in a queue that grows."""

    max_body_bytes: Count = 4 * 1024 * 1024
    """The largest body of a request."""

    body_timeout_s: Seconds = 30.0
    """How long a body may take to arrive."""

    max_runs: Count = 128
    """How many runs may be active at once; beyond that the status is 429 with `Retry-After`."""

    max_runs_per_key: Count | None = None
    """The same for each key; None: no limit."""

    run_timeout_s: Seconds = 300.0
    """How long a whole run may take, tools and models together."""

    heartbeat_s: Seconds = 15.0
    """A stream that is silent for so long gets a comment, so that no proxy closes it."""

    repeat_window_s: Annotated[float, Field(ge=0, le=86_400)] = 600.0
    """For how long after the last event of a run a request with the same body is answered from it, while nobody knows
    how the run ended: it has changed something, or lost its process, and the client has no answer. 0: never."""

    shutdown_s: Annotated[float, Field(ge=0, le=10**9)] = 30.0
    """How long active runs may take to finish at shutdown; the others are stopped, and can be resumed."""

    def __post_init__(self) -> None:
        """Refuse invalid limits.

        Raises:
            ConfigError: names the field and what it must be.
        """
        check_fields(self, "The server")


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """A configuration file, validated."""

    path: Path
    """The file."""

    form: ConfigForm
    """Which kind of file it is."""

    agents: Mapping[str, ServedAgent]
    """The agents by name; the default one is first."""

    keys: tuple[ApiKey, ...] = ()
    """The API keys; none: nobody needs one."""

    admin_keys: tuple[ApiKey, ...] = ()
    """Who may manage keys over the admin API; none: there is no such API."""

    jwt: JwtSettings | None = None
    """Which tokens of an identity provider are accepted in place of a key; None: none."""

    tls: TlsFiles | None = None
    """The certificate with which the server answers; None: without TLS."""

    limits: ServerLimits = ServerLimits()
    """The limits of the server."""

    host: str = DEFAULT_HOST
    """The address to listen on."""

    port: int = DEFAULT_PORT
    """The port; 0 takes a free one."""

    db: DatabaseAddress | None = None
    """The database of all runs; None: the one in the user's data folder."""

    recover: bool = True
    """Whether runs whose process died are resumed at the start; False: only those of agents with
    `recover_on_start`."""

    keep: Retention | None = None
    """How long finished runs are kept; None: for ever."""

    allow_origins: tuple[str, ...] = ()
    """Origins of web pages that may call from a browser, as browsers send them; empty: none."""

    allow_hosts: tuple[str, ...] = ()
    """Host names by which clients may reach a server without keys, besides the usual ones of this machine."""

    public_url: str = ""
    """The address of the server for browsers, to which logins come back; empty: only browsers of this machine know
    one."""

    notify: NotificationSettings | None = None
    """Who is told what waits for a person; None: nobody."""

    protocols: tuple[GatewayProtocol, ...] = ()
    """The protocols that are served beside OpenAI's APIs; empty: none."""

    a2a_push: EgressRules | None = None
    """Where the states of A2A tasks may be pushed to, at the request of clients; None: nowhere."""

    any_model: bool = False
    """Whether the first agent answers requests whose `model` is not the name of an agent, as for an `ai-agent` file."""

    files: Mapping[Path, Stamp] = field(default_factory=dict)
    """The files that are watched for changes, with their stamps from when they were read."""

    warnings: tuple[str, ...] = ()
    """Problems of the file that do not stop the server."""

    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Secrets in the file and of its agents, by name; they are redacted everywhere."""

    services: HostOverrides = field(default_factory=HostOverrides, repr=False, compare=False)
    """The host overrides; once the tools are loaded, they know which of them nothing uses."""

    @property
    def needs_key(self) -> bool:
        """Whether clients need a key or a token."""
        return bool(self.keys or self.admin_keys or self.jwt is not None)

    def agent_for(self, model: str) -> ServedAgent | None:
        """The agent that answers for `model`, or None."""
        served = self.agents.get(model)
        return next(iter(self.agents.values())) if served is None and self.any_model else served
