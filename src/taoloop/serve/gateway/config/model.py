"""The configuration of a gateway as plain data: its agents, keys and limits, whichever kind of file they came from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from taoloop.errors import ConfigError
from taoloop.runtime.agent import Agent
from taoloop.serve.gateway.config.host_overrides import HostOverrides

ConfigForm = Literal["own", "agent", "higress", "flat"]
"""own: a gateway file (agents, keys, limits). agent: an agent file. higress, flat: the two forms of `ai-agent`."""

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080


def _require_value(name: str, value: object, holds: bool, expected: str) -> None:
    if not holds:
        raise ConfigError(f"{name} is {value!r}.", hint=f"It must be {expected}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape:
    """The final answer is rewritten as JSON by one more model call."""

    schema: Mapping[str, Any] | None = None
    """The schema that it must match; None: any JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAgent:
    """An agent under the name by which clients call it."""

    name: str
    """What clients write as `model`."""

    agent: Agent
    """The agent."""

    description: str = ""
    """What it is for, as the file says."""

    reshape: Reshape | None = None
    """Whether its answers are rewritten as JSON; None: they are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of the server. A request beyond one gets an error; nothing waits in a queue that grows."""

    max_body_bytes: int = 4 * 1024 * 1024
    """The largest body of a request."""

    body_timeout_s: float = 30.0
    """How long a body may take to arrive."""

    max_runs: int = 128
    """How many runs may be active at once; beyond that the status is 429 with `Retry-After`."""

    max_runs_per_key: int | None = None
    """The same for each key; None: no limit."""

    run_timeout_s: float = 300.0
    """How long a whole run may take, tools and models together."""

    heartbeat_s: float = 15.0
    """A stream that is silent for so long gets a comment, so that no proxy closes it."""

    shutdown_s: float = 30.0
    """How long active runs may take to finish at shutdown; the others are stopped, and can be resumed."""

    def __post_init__(self) -> None:
        """Refuse invalid limits.

        Raises:
            ConfigError: names the field and what it must be.
        """
        for name in ("max_body_bytes", "max_runs", "max_runs_per_key"):
            value: object = getattr(self, name)
            fits = isinstance(value, int) and not isinstance(value, bool) and value > 0
            _require_value(
                name, value, fits or (value is None and name == "max_runs_per_key"), "a whole number above 0"
            )
        for name in ("body_timeout_s", "run_timeout_s", "heartbeat_s", "shutdown_s"):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            least = "0 or more" if name == "shutdown_s" else "above 0"
            fits = number and (value > 0 or (value == 0 and name == "shutdown_s"))  # type: ignore[operator]  # a number
            _require_value(name, value, fits, f"a number of seconds, {least}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """The entry of an API key: its digest, and its quotas."""

    name: str
    """What its use is counted under, and what logs show."""

    digest: str = field(repr=False)
    """`sha256:` and 64 hex digits. Keys are random and long, so no slow hash is needed."""

    agents: tuple[str, ...] = ()
    """The agents that it may use; empty: all of them."""

    requests_per_minute: int | None = None
    """How many requests it may make; None: no limit."""

    tokens_per_minute: int | None = None
    """How many tokens its runs may use; None: no limit."""

    usd_per_day: float | None = None
    """What its runs may cost in a day (UTC); None: no limit."""

    may_approve: bool = True
    """Whether its client may answer approvals."""

    def may_use(self, agent: str) -> bool:
        """Whether its client may use the agent of this name."""
        return not self.agents or agent in self.agents


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

    limits: ServerLimits = ServerLimits()
    """The limits of the server."""

    host: str = DEFAULT_HOST
    """The address to listen on."""

    port: int = DEFAULT_PORT
    """The port; 0 takes a free one."""

    db: Path | None = None
    """The database of all runs; None: the one in the user's data folder."""

    allow_origins: tuple[str, ...] = ()
    """Origins of web pages that may call from a browser, as browsers send them; empty: none."""

    any_model: bool = False
    """Whether the first agent answers requests whose `model` is not the name of an agent, as for an `ai-agent` file."""

    files: tuple[Path, ...] = ()
    """The files that are watched for changes."""

    warnings: tuple[str, ...] = ()
    """Problems of the file that do not stop the server."""

    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Secrets in the file and of its agents, by name; they are redacted everywhere."""

    services: HostOverrides = field(default_factory=lambda: HostOverrides({}), repr=False, compare=False)
    """The host overrides; once the tools are loaded, they know which of them nothing uses."""

    def agent_for(self, model: str) -> ServedAgent | None:
        """The agent that answers for `model`, or None."""
        served = self.agents.get(model)
        return next(iter(self.agents.values())) if served is None and self.any_model else served
