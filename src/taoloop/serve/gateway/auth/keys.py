"""API keys: generated here, stored as digests, and looked up in constant time."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated

from pydantic import AfterValidator, Field

from taoloop.config.settings_reader import expected
from taoloop.core.policy import TaskAuthority
from taoloop.errors import ConfigError
from taoloop.runtime.approvals.request import RESERVED_NAMES
from taoloop.tools.settings_check import Count, check_fields

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
