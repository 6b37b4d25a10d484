"""Who may see the panel, and what they may do there: identities, roles and sessions.

A person logs in once with a credential: the link that `tao panel` prints, or a key of the gateway. From then on a
cookie names the session. Every request asks the source of identities again, so a credential that is revoked, or whose
role changes, takes effect at once.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, Protocol, get_args

from taoloop.errors import ConfigError
from taoloop.runtime.approvals.request import RESERVED_NAMES
from taoloop.runtime.engine.clock import Clock

Role = Literal["viewer", "approver", "admin"]
"""What a person may do. A viewer reads everything; an approver also answers what waits for a person, adds notes,
stops, resumes and forks runs, and drops lessons; an admin also undoes what runs did, and abandons runs."""

ROLES: Final[tuple[Role, ...]] = get_args(Role)

SESSION_S: Final = 12 * 3600.0
"""How long a session lasts without a request."""

_MOST_SESSIONS = 10_000
_TOKEN_BYTES = 32
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A person who may see the panel."""

    name: str
    """What the trace records as `by` where the person answers."""

    role: Role
    """What the person may do."""

    authenticated: str = "panel_token"
    """How it is known who it is, as the trace records it with an answer; a key of the gateway is `gateway_key`."""

    def may(self, role: Role) -> bool:
        """Whether the person has this role, or one that includes it."""
        return ROLES.index(self.role) >= ROLES.index(role)


class PanelAccess(Protocol):
    """Knows the people who may see the panel, by what they log in with."""

    async def identify(self, credential: str) -> Identity | None:
        """The person with this credential; None if it is unknown."""
        ...

    async def confirm(self, identity: Identity) -> Identity | None:
        """The same person as they are now; None if they may no longer see the panel."""
        ...


class TokenAccess:
    """Identities with a token each, which is made when the process starts and ends with it."""

    def __init__(self, identities: Iterable[Identity]) -> None:
        """Make a token for each identity.

        Raises:
            ConfigError: two have the same name, or a name is none.
        """
        self.tokens: dict[str, str] = {}
        """The token of each name."""
        self._identities: dict[str, Identity] = {}
        for identity in identities:
            _require_name(identity.name)
            if identity.name in self._identities:
                raise ConfigError(f"Two people are called {identity.name!r}.", hint="Give each a name of their own.")
            self._identities[identity.name] = identity
            self.tokens[identity.name] = secrets.token_urlsafe(_TOKEN_BYTES)

    async def identify(self, credential: str) -> Identity | None:
        """The person with this token. All are compared, so the time tells nothing about them."""
        digest = _digest(credential)
        names = [name for name, token in self.tokens.items() if hmac.compare_digest(_digest(token), digest)]
        return self._identities[names[0]] if names else None

    async def confirm(self, identity: Identity) -> Identity | None:
        """Tokens last as long as the process, so nothing changes."""
        return self._identities.get(identity.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One browser of one person."""

    identity: Identity
    """The person."""

    csrf: str
    """What every form must send back: a page of another origin cannot read it."""

    key: str
    """The digest of the cookie, under which it is kept."""


class Sessions:
    """The open sessions of one process. Cookies are not kept, only their digests."""

    def __init__(self, access: PanelAccess, clock: Clock) -> None:
        self._access, self._clock = access, clock
        self._sessions: dict[str, tuple[Session, float]] = {}  # the session, and when it was last used

    def open(self, identity: Identity) -> str:
        """Begin a session; returns the value of its cookie."""
        self._drop_expired()
        cookie = secrets.token_urlsafe(_TOKEN_BYTES)
        session = Session(identity=identity, csrf=secrets.token_urlsafe(_TOKEN_BYTES), key=_digest(cookie))
        while len(self._sessions) >= _MOST_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        self._sessions[session.key] = session, self._clock.tick()
        return cookie

    async def find(self, cookie: str) -> Session | None:
        """The session of a cookie, with the person as they are now; None if there is none or it has expired."""
        stored = self._sessions.get(_digest(cookie)) if cookie else None
        if stored is None:
            return None
        session, used_at = stored
        identity = await self._access.confirm(session.identity)
        if identity is None or self._clock.tick() - used_at > SESSION_S:
            self.close(session)
            return None
        session = Session(identity=identity, csrf=session.csrf, key=session.key)
        self._sessions.pop(session.key, None)  # the least recently used come first
        self._sessions[session.key] = session, self._clock.tick()
        return session

    async def is_open(self, session: Session) -> bool:
        """Whether a session still holds; does not renew it: an open page alone keeps nobody logged in."""
        stored = self._sessions.get(session.key)
        is_current = stored is not None and self._clock.tick() - stored[1] <= SESSION_S
        return is_current and await self._access.confirm(session.identity) is not None

    def close(self, session: Session) -> None:
        """End a session."""
        self._sessions.pop(session.key, None)

    def _drop_expired(self) -> None:
        now = self._clock.tick()
        for key, (_, used_at) in list(self._sessions.items()):
            if now - used_at <= SESSION_S:
                return
            del self._sessions[key]


def parse_identity(text: str) -> Identity:
    """`NAME=ROLE`, as on the command line.

    Raises:
        ConfigError: it has another form.
    """
    name, _, role = text.rpartition("=")
    if role not in ROLES:
        raise ConfigError(f"{text!r} is not of the form NAME=ROLE.", hint=f"Roles are: {', '.join(ROLES)}.")
    _require_name(name)
    return Identity(name=name, role=role)


def _require_name(name: str) -> None:
    if not (name.isprintable() and 0 < len(name.strip()) == len(name) <= _LONGEST_NAME):
        hint = f"Use 1 to {_LONGEST_NAME} printable characters without blanks around them."
        raise ConfigError(f"{name!r} is not the name of a person.", hint=hint)
    if name in RESERVED_NAMES:
        hint = f"The runtime itself answers under {', '.join(sorted(RESERVED_NAMES))}."
        raise ConfigError(f"A person cannot be called {name!r}.", hint=hint)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
