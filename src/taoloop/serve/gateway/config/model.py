"""The configuration of a gateway as plain data: its agents, keys and limits, whichever kind of file they came from.

API keys are generated here, stored as digests, and looked up in constant time.
"""

from __future__ import annotations

import hmac
import math
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from taoloop.errors import ConfigError
from taoloop.models.model_builder import split_specs
from taoloop.models.providers import PROVIDERS, Endpoint, endpoint
from taoloop.models.registry import is_provider
from taoloop.runtime.agent import Agent
from taoloop.runtime.approvals.request import RESERVED_NAMES
from taoloop.runtime.bound_agent import bind
from taoloop.serve.gateway.config.host_overrides import HostOverrides

ConfigForm = Literal["own", "agent", "higress", "flat"]
"""own: a gateway file (agents, keys, limits). agent: an agent file. higress, flat: the two forms of `ai-agent`."""

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080


KEY_PREFIX = "tao-"
"""The prefix of every generated key, so that people and secret scanners recognise it."""

_KEY_BYTES = 32
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.IGNORECASE)
_LONGEST_NAME = 100
_NO_DIGEST = "sha256:" + "0" * 64
_KEY_HEADERS = ("x-api-key", "api-key")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_number(value: object, *, or_zero: bool = False) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and (value > 0 or (or_zero and value == 0))


def _is_key_name(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and 0 < len(value.strip()) == len(value) <= _LONGEST_NAME


_KEY_CHECKS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    (
        "name",
        lambda name: name not in RESERVED_NAMES,
        f"none of {', '.join(sorted(RESERVED_NAMES))}, under which the runtime itself answers",
    ),
    ("name", _is_key_name, f"a text of 1 to {_LONGEST_NAME} characters on one line, without blanks around it"),
    (
        "digest",
        lambda digest: isinstance(digest, str) and bool(_DIGEST.fullmatch(digest)),
        "`sha256:` and 64 hex digits: the SHA-256 of the key",
    ),
    (
        "agents",
        lambda agents: isinstance(agents, tuple) and all(isinstance(agent, str) and agent for agent in agents),
        "a list of names of agents",
    ),
    ("requests_per_minute", lambda count: count is None or _is_count(count), "a whole number above 0"),
    ("tokens_per_minute", lambda count: count is None or _is_count(count), "a whole number above 0"),
    ("usd_per_day", lambda usd: usd is None or _is_number(usd), "a number above 0"),
    ("may_approve", lambda value: isinstance(value, bool), "true or false"),
)
"""Fields of a key, what makes a value valid, and the same in words."""


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

    def model_endpoints(self) -> Iterator[tuple[str, Endpoint | None]]:
        """The specs of its models, each with where its calls go; None where that is not known."""
        env = os.environ if self.agent.env is None else self.agent.env
        for spec in split_specs(bind(self.agent).model.spec):
            kind, _, name = spec.partition(":")
            target = None
            if is_provider(spec) and kind in PROVIDERS:
                with suppress(ConfigError):  # a custom model under the name of a provider
                    target = endpoint(kind, name, env)
            yield spec, target


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
            value = getattr(self, name)
            if not _is_count(value) and (value is not None or name != "max_runs_per_key"):
                raise ConfigError(f"{name} is {value!r}.", hint="It must be a whole number above 0.")
        for name in ("body_timeout_s", "run_timeout_s", "heartbeat_s", "shutdown_s"):
            value, or_zero = getattr(self, name), name == "shutdown_s"
            if not _is_number(value, or_zero=or_zero):
                least = "0 or more" if or_zero else "above 0"
                raise ConfigError(f"{name} is {value!r}.", hint=f"It must be a number of seconds, {least}.")


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

    def __post_init__(self) -> None:
        """Refuse an invalid entry.

        Raises:
            ConfigError: names the field, and what it must be.
        """
        for name, is_valid, expected in _KEY_CHECKS:
            value = getattr(self, name)
            if not is_valid(value):
                value_text = "none" if name == "digest" else repr(value)  # it may be the key itself by mistake
                raise ConfigError(f"`{name}` of the key {self.name!r} is {value_text}.", hint=f"It must be {expected}.")

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

    services: HostOverrides = field(default_factory=HostOverrides, repr=False, compare=False)
    """The host overrides; once the tools are loaded, they know which of them nothing uses."""

    def agent_for(self, model: str) -> ServedAgent | None:
        """The agent that answers for `model`, or None."""
        served = self.agents.get(model)
        return next(iter(self.agents.values())) if served is None and self.any_model else served


def new_key(name: str) -> tuple[str, ApiKey]:
    """Generate a key: the secret, which is shown once and stored nowhere, and its entry.

    Raises:
        ConfigError: the name is invalid.
    """
    secret = KEY_PREFIX + secrets.token_urlsafe(_KEY_BYTES)
    return secret, ApiKey(name=name, digest=digest_of(secret))


def digest_of(secret: str) -> str:
    """The digest that is stored of a key. A plain hash is enough: a key is too long and random to be guessed."""
    return "sha256:" + sha256(secret.encode(errors="surrogatepass")).hexdigest()


def presented_key(headers: Mapping[str, str]) -> str | None:
    """The key in the headers of a request: `Authorization: Bearer KEY`, or `x-api-key`, or `api-key`; None: no key.

    `headers` finds names in lower case, as aiohttp's do; a plain dict must have them so.
    """
    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return next((key for name in _KEY_HEADERS if (key := headers.get(name, "").strip())), None)


class KeyRing:
    """The keys of a gateway, by digest; no two have the same name or digest."""

    def __init__(self, keys: Iterable[ApiKey] = ()) -> None:
        self._names: set[str] = set()
        self._keys: dict[str, ApiKey] = {}
        for key in keys:
            self.add(key)

    def add(self, key: ApiKey) -> None:
        """Add a key.

        Raises:
            ConfigError: another key has its name or digest.
        """
        if key.name in self._names:
            raise ConfigError(f"Two keys are called {key.name!r}.", hint="What a key used is counted by its name.")
        twin = self._keys.setdefault(key.digest.lower(), key)
        if twin is not key:
            message = f"The keys {twin.name!r} and {key.name!r} have the same digest."
            raise ConfigError(message, hint="Make a key for each.")
        self._names.add(key.name)

    def find(self, presented: str | None) -> ApiKey | None:
        """The entry of a presented key; None: unknown. Digests are compared, so timing reveals nothing about keys."""
        digest = digest_of(presented or "")
        key = self._keys.get(digest)
        same = hmac.compare_digest(digest, key.digest.lower() if key is not None else _NO_DIGEST)
        return key if same and presented else None
