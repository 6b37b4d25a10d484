"""API keys: generated here, stored as digests, and looked up in constant time."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from taoloop.config.settings_reader import expected
from taoloop.core.policy import TaskAuthority
from taoloop.errors import ConfigError
from taoloop.runtime.approvals.request import RESERVED_NAMES
from taoloop.serve.gateway.errors import ApiError
from taoloop.serve.panel.access import Role
from taoloop.tools.settings_check import Count, check_fields

KeyState = Literal["active", "expired", "blocked"]
"""What may be done with a key: only an active one opens anything."""

KEY_PREFIX = "tao-"
"""The prefix of every generated key, so that people and secret scanners recognise it."""

_KEY_BYTES = 32
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.IGNORECASE)
_LONGEST_NAME = 100
_NO_DIGEST = "sha256:" + "0" * 64
_KEY_HEADERS = ("x-api-key", "api-key")

TOKEN_OWNER = "jwt:"  # noqa: S105  # no secret
"""The names of users with a token begin so; no key may have such a name, which would give it the runs of a user."""


def _key_name(name: str) -> str:
    if not (name.isprintable() and 0 < len(name.strip()) == len(name) <= _LONGEST_NAME):
        raise expected(f"a text of 1 to {_LONGEST_NAME} characters on one line, without blanks around it,")
    if name in RESERVED_NAMES:
        raise expected(
            f"a name other than {', '.join(sorted(RESERVED_NAMES))}, which the runtime itself answers under,"
        )
    return name


def refuse_token_owner(name: str) -> None:
    """Refuse the name of a user with a token as that of a key.

    Raises:
        ConfigError: it is one.
    """
    if name.startswith(TOKEN_OWNER):
        hint = "The users with a token (`auth.jwt`) have such names; a key of that name would get the runs of a user."
        raise ConfigError(f"The name {name!r} begins with {TOKEN_OWNER!r}.", hint=hint)


def instant_of(text: str) -> float:
    """Seconds since the epoch of an ISO date or time; without an offset it is in UTC, a date alone is its midnight.

    Raises:
        ValueError: it is neither.
    """
    instant = datetime.fromisoformat(text)
    return (instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)).timestamp()


def _expiry(text: str) -> str:
    if text:
        try:
            instant_of(text)
        except (ValueError, OverflowError):
            raise expected("an ISO date or time, such as 2027-01-31 or 2027-01-31T18:00:00+01:00,") from None
    return text


def _key_digest(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise expected("`sha256:` and 64 hex digits, the SHA-256 of the key,")
    return digest


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySettings:
    """What the owner of a key or of a token may do, and how much."""

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

    panel: Role | None = None
    """What its owner may do in the panel, where the runs of all keys are; None: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey(KeySettings):
    """The entry of an API key: its digest, and its quotas."""

    name: Annotated[str, AfterValidator(_key_name)]
    """What its use is counted under, and what logs show."""

    digest: Annotated[str, AfterValidator(_key_digest)] = field(repr=False)
    """`sha256:` and 64 hex digits. Keys are random and long, so no slow hash is needed."""

    expires: Annotated[str, AfterValidator(_expiry)] = ""
    """From when on it is refused: an ISO date (its midnight in UTC) or time; empty: never."""

    blocked: bool = False
    """Whether it is refused, as one that may have leaked."""

    def __post_init__(self) -> None:
        """Refuse an invalid entry.

        Raises:
            ConfigError: names the field, and what it must be.
        """
        check_fields(self, f"The key {self.name!r}")

    def may_use(self, agent: str) -> bool:
        """Whether its client may use the agent of this name."""
        return not self.agents or agent in self.agents

    def state_at(self, now: float) -> KeyState:
        """Whether it opens anything at this time (seconds since the epoch)."""
        if self.blocked:
            return "blocked"
        return "expired" if self.expires and now >= instant_of(self.expires) else "active"


def require_active(key: ApiKey, now: float) -> None:
    """Refuse a key that has expired or is blocked.

    Raises:
        ApiError: 401; its code says which.
    """
    state = key.state_at(now)
    if state != "active":
        message = f"The API key {key.name!r} {'has expired' if state == 'expired' else 'is blocked'}."
        raise ApiError(status=401, message=f"{message} The operator of the server can help.", code=f"key_{state}")


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
        refuse_token_owner(key.name)
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
