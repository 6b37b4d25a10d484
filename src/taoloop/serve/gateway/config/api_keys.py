"""API keys: generated, stored as digests, and looked up in constant time."""

from __future__ import annotations

import hmac
import math
import re
import secrets
from collections.abc import Iterable, Mapping
from hashlib import sha256

from taoloop.errors import ConfigError
from taoloop.runtime.approvals.request import RESERVED_NAMES
from taoloop.serve.gateway.config.model import ApiKey

PREFIX = "tao-"
"""The prefix of every generated key, so that people and secret scanners recognise it."""

_BYTES = 32
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_LONGEST_NAME = 100
_NO_KEY = "sha256:" + "0" * 64
_HEADERS = ("x-api-key", "api-key")


def new_key(name: str) -> tuple[str, ApiKey]:
    """Generate a key: the secret, which is shown once and stored nowhere, and its entry.

    Raises:
        ConfigError: the name is invalid.
    """
    secret = PREFIX + secrets.token_urlsafe(_BYTES)
    key = ApiKey(name=name, digest=digest_of(secret))
    check_key(key)
    return secret, key


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
    return next((key for name in _HEADERS if (key := headers.get(name, "").strip())), None)


class KeyRing:
    """The keys of a gateway, by digest.

    Raises:
        ConfigError: a key is invalid (`check_key`), or two have the same name or digest.
    """

    def __init__(self, keys: Iterable[ApiKey]) -> None:
        self._keys: dict[str, ApiKey] = {}
        names: set[str] = set()
        for key in keys:
            check_key(key)
            if key.name in names:
                raise ConfigError(f"Two keys are called {key.name!r}.", hint="What a key used is counted by its name.")
            if (twin := self._keys.get(key.digest.lower())) is not None:
                raise ConfigError(
                    f"The keys {twin.name!r} and {key.name!r} have the same digest.", hint="Make a key for each."
                )
            names.add(key.name)
            self._keys[key.digest.lower()] = key

    def __bool__(self) -> bool:
        """Whether there is any key."""
        return bool(self._keys)

    def find(self, presented: str | None) -> ApiKey | None:
        """The entry of a presented key; None: unknown. Digests are compared, so timing reveals nothing about keys."""
        digest = digest_of(presented or "")
        key = self._keys.get(digest)
        same = hmac.compare_digest(digest, key.digest.lower() if key is not None else _NO_KEY)
        return key if same and presented else None


def check_key(key: ApiKey) -> None:
    """Refuse an invalid entry.

    Raises:
        ConfigError: names the field, and what it must be.
    """
    name: object = key.name
    fits = isinstance(name, str) and name.isprintable() and 0 < len(name.strip()) == len(name) <= _LONGEST_NAME
    _require_field(
        key,
        "name",
        name not in RESERVED_NAMES,
        f"none of {', '.join(sorted(RESERVED_NAMES))}, under which the runtime itself answers",
    )
    _require_field(
        key, "name", fits, f"a text of 1 to {_LONGEST_NAME} characters on one line, without blanks around it"
    )
    digest: object = key.digest
    fits = isinstance(digest, str) and _DIGEST.fullmatch(digest.lower()) is not None
    _require_field(key, "digest", fits, "`sha256:` and 64 hex digits: the SHA-256 of the key")
    agents: object = key.agents
    fits = isinstance(agents, tuple) and all(isinstance(agent, str) and agent for agent in agents)
    _require_field(key, "agents", fits, "a list of names of agents")
    for field in ("requests_per_minute", "tokens_per_minute"):
        value = getattr(key, field)
        whole = isinstance(value, int) and not isinstance(value, bool)
        _require_field(key, field, value is None or (whole and value > 0), "a whole number above 0")
    usd: object = key.usd_per_day
    number = isinstance(usd, int | float) and not isinstance(usd, bool)
    fits = usd is None or (number and math.isfinite(usd) and usd > 0)  # type: ignore[arg-type, operator]  # a number
    _require_field(key, "usd_per_day", fits, "a number above 0")
    _require_field(key, "may_approve", isinstance(key.may_approve, bool), "true or false")


def _require_field(key: ApiKey, field: str, holds: bool, expected: str) -> None:
    if holds:
        return
    value_text = "" if field == "digest" else f" is {getattr(key, field)!r}"  # it may be the key itself by mistake
    raise ConfigError(f"`{field}` of the key {key.name!r}{value_text or ' is none'}.", hint=f"It must be {expected}.")
