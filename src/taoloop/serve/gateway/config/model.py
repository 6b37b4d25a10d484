"""The configuration of a gateway as plain data: its agents, keys and limits, whichever kind of file they came from.

API keys are generated here, stored as digests, and looked up in constant time.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from taoloop.config.document import Stamp
from taoloop.config.settings_reader import expected
from taoloop.core.policy import TaskAuthority
from taoloop.errors import ConfigError
from taoloop.models.model_builder import split_specs
from taoloop.models.providers import PROVIDERS, Endpoint, endpoint
from taoloop.models.registry import is_provider
from taoloop.runtime.agent import Agent
from taoloop.runtime.approvals.request import RESERVED_NAMES
from taoloop.runtime.bound_agent import bind
from taoloop.serve.gateway.config.host_overrides import HostOverrides
from taoloop.tools.settings_check import Count, Seconds, check_fields

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


def _key_name(name: str) -> str:
    if not (name.isprintable() and 0 < len(name.strip()) == len(name) <= _LONGEST_NAME):
        raise expected(f"a text of 1 to {_LONGEST_NAME} characters on one line, without blanks around it,")
    if name in RESERVED_NAMES:
        raise expected(
            f"a name other than {', '.join(sorted(RESERVED_NAMES))}, which the runtime itself answers under,"
        )
    return name


def _key_digest(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise expected("`sha256:` and 64 hex digits, the SHA-256 of the key,")
    return digest


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

    reshape: Mapping[str, Any] | None = None
    """The JSON Schema that its final answers are rewritten to match, by one more model call; None: they are not."""

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

    shutdown_s: Annotated[float, Field(ge=0, le=10**9)] = 30.0
    """How long active runs may take to finish at shutdown; the others are stopped, and can be resumed."""

    def __post_init__(self) -> None:
        """Refuse invalid limits.

        Raises:
            ConfigError: names the field and what it must be.
        """
        check_fields(self, "The server")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """The entry of an API key: its digest, and its quotas."""

    name: Annotated[str, AfterValidator(_key_name)]
    """What its use is counted under, and what logs show."""

    digest: Annotated[str, AfterValidator(_key_digest)] = field(repr=False)
    """`sha256:` and 64 hex digits. Keys are random and long, so no slow hash is needed."""

    agents: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """The agents that it may use; empty: all of them."""

    requests_per_minute: Count | None = None
    """How many requests it may make; None: no limit."""

    tokens_per_minute: Count | None = None
    """How many tokens its runs may use; None: no limit."""

    usd_per_day: Annotated[float, Field(gt=0)] | None = None
    """What its runs may cost in a day (UTC); None: no limit."""

    may_approve: bool = True
    """Whether its client may answer approvals; only with the authority `full`."""

    task_authority: TaskAuthority = "values"
    """What the words of its client may authorise, where the agent's policy does not give them less."""

    def __post_init__(self) -> None:
        """Refuse an invalid entry.

        Raises:
            ConfigError: names the field, and what it must be.
        """
        check_fields(self, f"The key {self.name!r}")

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

    files: Mapping[Path, Stamp] = field(default_factory=dict)
    """The files that are watched for changes, with their stamps from when they were read."""

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
        self._keys: dict[str, ApiKey] = {}
        for key in keys:
            self.add(key)

    def add(self, key: ApiKey) -> None:
        """Add a key.

        Raises:
            ConfigError: another key has its name or digest.
        """
        if any(other.name == key.name for other in self._keys.values()):
            raise ConfigError(f"Two keys are called {key.name!r}.", hint="What a key used is counted by its name.")
        twin = self._keys.setdefault(key.digest.lower(), key)
        if twin is not key:
            message = f"The keys {twin.name!r} and {key.name!r} have the same digest."
            raise ConfigError(message, hint="Make a key for each.")

    def find(self, presented: str | None) -> ApiKey | None:
        """The entry of a presented key; None: unknown. Digests are compared, so timing reveals nothing about keys."""
        digest = digest_of(presented or "")
        key = self._keys.get(digest)
        same = hmac.compare_digest(digest, key.digest.lower() if key is not None else _NO_DIGEST)
        return key if same and presented else None
