"""What a gateway serves, to whom and within which bounds: plain data, whatever form the file had."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from taoloop.errors import ConfigError
from taoloop.runtime.agent import Agent
from taoloop.serve.gateway.config.host_overrides import HostOverrides

Form = Literal["own", "agent", "higress", "flat"]
"""own: agents, keys and limits in one file. agent: a plain agent file. higress, flat: the two forms of `ai-agent`."""

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080


def _require_value(name: str, value: object, holds: bool, expected: str) -> None:
    if not holds:
        raise ConfigError(f"{name} is {value!r}.", hint=f"It must be {expected}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape:
    """The final answer is made JSON by one more call of the model. Without a `schema` any JSON object will do."""

    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAgent:
    """One agent under the name that clients write as `model`."""

    name: str
    agent: Agent
    description: str = ""
    reshape: Reshape | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Bounds of the server; whoever meets one is told so, and nothing waits in a queue that grows.

    `max_body_bytes` bounds a request's body, `body_timeout_s` how long it may take to arrive. `max_runs` is how many
    runs may be under way at once, `max_runs_per_key` how many of one key: beyond them it is 429 with `Retry-After`.
    `run_timeout_s` bounds a whole run, tools and models together. After `heartbeat_s` of silence a stream gets a
    comment. At the end runs have `shutdown_s` to finish; those that do not are stopped, and can be resumed.
    """

    max_body_bytes: int = 4 * 1024 * 1024
    body_timeout_s: float = 30.0
    max_runs: int = 128
    max_runs_per_key: int | None = None
    run_timeout_s: float = 300.0
    heartbeat_s: float = 15.0
    shutdown_s: float = 30.0

    def __post_init__(self) -> None:
        """Refuse bounds that nothing could be held to.

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
    """A key that a client presents, of which only the digest is kept, and what it may use.

    `digest` is `sha256:` and 64 hex digits; a key is random and long, so that no slow hash is needed. No `agents`: all
    of them. None means no limit. `may_approve`: its client may answer what waits for a person.
    """

    name: str
    digest: str = field(repr=False)
    agents: tuple[str, ...] = ()
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    usd_per_day: float | None = None
    may_approve: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """Everything that a file says, checked.

    `db` None: the journal in the user's data folder. `allow_origins`: whose pages may call from a browser, as
    `origins.py` writes them; none: no page of another origin. `any_model`: the first of the agents answers where a
    request's `model` is the name of none, as clients of an `ai-agent` are used to. `files` are those whose changes are
    watched. `services` know, once the tools are loaded, which of the names that go elsewhere stand for nothing.
    """

    path: Path
    form: Form
    agents: Mapping[str, ServedAgent]
    keys: tuple[ApiKey, ...] = ()
    limits: ServerLimits = ServerLimits()
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    db: Path | None = None
    allow_origins: tuple[str, ...] = ()
    any_model: bool = False
    files: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    services: HostOverrides = field(default_factory=lambda: HostOverrides({}), repr=False, compare=False)

    def agent_for(self, model: str) -> ServedAgent | None:
        """The agent that answers for `model`, or None."""
        served = self.agents.get(model)
        return next(iter(self.agents.values())) if served is None and self.any_model else served
