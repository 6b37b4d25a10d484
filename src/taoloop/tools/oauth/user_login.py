"""The login of a person at one authorization server: the authorization code flow with PKCE (RFC 6749, 4.1; RFC 7636).

Tokens are kept for each person by name. They are in no card, no error and no trace, and a call gets only the token of
the person for whom its run is (`RunContext.user`).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit
from weakref import WeakKeyDictionary, WeakValueDictionary

from taoloop.errors import ToolError
from taoloop.tools.oauth.store import LoginStore, Record
from taoloop.tools.oauth.texts import TEXTS
from taoloop.tools.oauth.token_endpoint import Post, TokenReply, request_token

REFRESH_MARGIN_S = 60.0
"""A token is refreshed this many seconds before it expires."""

LOGIN_LIFETIME_S = 600.0
"""For how long an address for a login can be used, and for how long the login itself may take, in seconds."""

LOGIN_REQUIRED = "login_required"
"""The code of the error of a call whose person must log in first."""

_MAX_REASON = 200
_LEASE_S = 60.0  # longer than a request to a token endpoint takes; a process that dies keeps others waiting so long
_LEASE_POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    """What the operator registered at an authorization server."""

    api: str
    """What people and models read as the name of the API."""
    authorization_url: str
    """Where the browser of a person is sent."""
    token_url: str
    """Where codes and refresh tokens are exchanged."""
    client_id: str
    """The id of the client."""
    client_secret: str = field(default="", repr=False)
    """Its secret; empty: a public client."""
    scope: str = ""
    """The scopes to ask for, separated by blanks; empty: the server's own choice."""
    issuer: str = ""
    """The server's issuer identifier: an answer that names none, or another one, is refused (RFC 9207). Empty: it is
    not checked."""

    @property
    def id(self) -> str:
        """What tokens are kept under: another server, client or scope has other tokens."""
        parts = (self.authorization_url, self.token_url, self.client_id, self.scope)
        return _digest("\0".join(parts))[:24]

    @property
    def host(self) -> str:
        """The host where people log in."""
        return urlsplit(self.authorization_url).netloc.rpartition("@")[2]


@dataclass(frozen=True, slots=True)
class StartedLogin:
    """A login that waits for the person in the browser."""

    url: str = field(repr=False)
    """The address at the authorization server."""
    state: str = field(repr=False)
    """What the server sends back with its answer."""
    browser: str = field(repr=False)
    """A secret that only the browser of this login knows, for its cookie: `finish` demands it."""


class UserLogin:
    """The logins of all people at one authorization server.

    A login is an invitation (`invite`), which is shown to the person; `begin`, when the person follows it; and
    `finish`, when the browser comes back. Each step can be done by another process with the same store.

    Args:
        client: The registered client.
        post: Sends the requests to the token endpoint.
        store: Keeps tokens and logins that have begun.
        now: Seconds since the epoch.
    """

    def __init__(
        self, client: OAuthClient, post: Post, store: LoginStore, *, now: Callable[[], float] = time.time
    ) -> None:
        self.client, self.store = client, store
        self._post, self._now = post, now
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[str, asyncio.Lock]]
        self._locks = WeakKeyDictionary()

    async def token(self, user: str, *, rejected: str = "") -> str:
        """The access token of a person, refreshed if it has expired or is the one that the API has `rejected`.

        Raises:
            ToolError: `login_required`, if the person must log in; `token_failed`, if the server fails.
            ConfigError: the store cannot be used.
        """
        async with self._lock(user):
            record = await self.store.load(self._key(user))
            if record is None:
                raise self._required("login_required")
            token, left_s = str(record["access_token"]), self._left_s(record)
            if token != rejected and left_s > (REFRESH_MARGIN_S if record.get("refresh_token") else 0.0):
                return token
            return await self._refresh(user, record, rejected)

    async def is_logged_in(self, user: str) -> bool:
        """Whether there are tokens of a person."""
        return await self.store.load(self._key(user)) is not None

    async def forget(self, user: str) -> bool:
        """Forget the tokens of a person; False: there were none."""
        return await self.store.take(self._key(user)) is not None

    async def invite(self, user: str) -> str:
        """A ticket with which this person, and nobody else, can begin a login once within `LOGIN_LIFETIME_S`."""
        return await self._put("ticket", {"user": user})

    async def invited(self, ticket: str) -> str | None:
        """The person to whom a ticket of this login was given; None: it is not valid. The ticket stays valid."""
        record = self._valid(await self.store.load(_pending_key("ticket", ticket)))
        return None if record is None else str(record["user"])

    async def accept(self, ticket: str, redirect_uri: str) -> StartedLogin:
        """Begin the login of a ticket, which is used up.

        Raises:
            ToolError: `login_failed`: the ticket is not valid.
        """
        record = self._valid(await self.store.take(_pending_key("ticket", ticket)))
        if record is None:
            raise login_failed("state_unknown")
        return await self.begin(str(record["user"]), redirect_uri)

    async def begin(self, user: str, redirect_uri: str) -> StartedLogin:
        """Begin a login of a person, whose browser comes back to `redirect_uri`."""
        verifier, browser = secrets.token_urlsafe(48), secrets.token_urlsafe(32)
        pending = {"user": user, "verifier": verifier, "redirect_uri": redirect_uri, "browser": _digest(browser)}
        state = await self._put("state", pending)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        fields = {
            "response_type": "code",
            "client_id": self.client.client_id,
            "redirect_uri": redirect_uri,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        if self.client.scope:
            fields["scope"] = self.client.scope
        separator = "&" if urlsplit(self.client.authorization_url).query else "?"
        return StartedLogin(f"{self.client.authorization_url}{separator}{urlencode(fields)}", state, browser)

    async def has_begun(self, state: str) -> bool:
        """Whether this state is that of a login here which has begun and not ended."""
        return self._valid(await self.store.load(_pending_key("state", state))) is not None

    async def finish(self, fields: Mapping[str, str], browser: str) -> str:
        """End a login with what the browser brought (`code`, `state`, `error`, `iss`); gives the person.

        A state is used up by this, whatever comes of it.

        Raises:
            ToolError: `login_failed`: the state is unknown, used, expired or another browser's, the server gave no
                access, or no token for the code.
            ConfigError: the store cannot be used.
        """
        pending = self._valid(await self.store.take(_pending_key("state", fields.get("state", ""))))
        if pending is None:
            raise login_failed("state_unknown")
        if not hmac.compare_digest(str(pending["browser"]), _digest(browser)):
            raise login_failed("other_browser")
        if self.client.issuer and fields.get("iss") != self.client.issuer:
            raise login_failed("other_issuer")
        if not fields.get("code"):
            reason = fields.get("error_description") or fields.get("error") or "?"
            raise login_failed("denied", host=self.client.host, reason=reason[:_MAX_REASON])
        reply = await self._request(
            {
                "grant_type": "authorization_code",
                "code": fields["code"],
                "redirect_uri": str(pending["redirect_uri"]),
                "code_verifier": str(pending["verifier"]),
            }
        )
        if not reply.access_token:
            raise login_failed("exchange_failed", host=self.client.host, status=reply.response.status)
        user = str(pending["user"])
        async with self._lock(user):
            await self._keep(user, reply, {})
        return user

    def rejected(self) -> ToolError:
        """The error of a call whose new token was rejected, too: only another login can help."""
        return self._required("login_expired")

    async def _refresh(self, user: str, record: Record, rejected: str) -> str:
        """A new token in place of one that has expired or was rejected. The lock of the person is held here.

        Many servers take a refresh token that is used twice for a stolen one, so of several processes one refreshes.
        """
        lease = f"refresh:{self.client.id}:{user}"
        while not await self.store.add(lease, {}, until=self._now() + _LEASE_S):  # noqa: ASYNC110  # others' processes
            await asyncio.sleep(_LEASE_POLL_S)
        try:
            current = await self.store.load(self._key(user))
            if current is not None and current != record:  # another process has done it meanwhile
                return str(current["access_token"])
            if current is not None and (refresh_token := record.get("refresh_token")):
                reply = await self._request({"grant_type": "refresh_token", "refresh_token": str(refresh_token)})
                if reply.access_token:
                    return await self._keep(user, reply, record)
                if reply.fields.get("error") != "invalid_grant":
                    return self._old_token(record, rejected, reply.response.status)
            await self.forget(user)
        finally:
            await self.store.take(lease)
        raise self._required("login_expired")

    def _old_token(self, record: Record, rejected: str, status: int) -> str:
        """The token that could not be refreshed, while it is good for some seconds more."""
        token = str(record["access_token"])
        if token == rejected or self._left_s(record) <= 0:
            raise TEXTS.error("token_failed", "token_failed", retryable=True, api=self.client.api, status=status)
        return token

    async def _keep(self, user: str, reply: TokenReply, before: Record) -> str:
        token = reply.access_token
        refresh_token = reply.fields.get("refresh_token") or before.get("refresh_token")  # RFC 6749, 6
        record: dict[str, Any] = {"access_token": token, "refresh_token": refresh_token}
        if reply.lifetime_s is not None:
            record["expires_at"] = self._now() + reply.lifetime_s
        await self.store.save(self._key(user), record)
        return token

    async def _request(self, fields: Mapping[str, str]) -> TokenReply:
        client = self.client
        return await request_token(self._post, client.token_url, fields, client.client_id, client.client_secret)

    async def _put(self, kind: str, record: Mapping[str, Any]) -> str:
        """Keep a step of a login; gives the secret by which it is found again, of which only the digest is kept."""
        secret, until = secrets.token_urlsafe(32), self._now() + LOGIN_LIFETIME_S
        kept = {**record, "login": self.client.id, "until": until}
        await self.store.save(_pending_key(kind, secret), kept, until=until)
        return secret

    def _valid(self, record: Record | None) -> Record | None:
        is_valid = record is not None and record.get("login") == self.client.id and self._now() < record["until"]
        return record if is_valid else None

    def _left_s(self, record: Record) -> float:
        expires_at = record.get("expires_at")
        return float("inf") if expires_at is None else float(expires_at) - self._now()

    def _key(self, user: str) -> str:
        return f"token:{self.client.id}:{user}"

    def _lock(self, user: str) -> asyncio.Lock:
        locks = self._locks.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
        lock = locks.get(user)
        if lock is None:
            locks[user] = lock = asyncio.Lock()
        return lock

    def _required(self, name: str) -> ToolError:
        hint = TEXTS.run_text("login_required_hint", api=self.client.api)
        return TEXTS.error(name, LOGIN_REQUIRED, hint=hint, api=self.client.api)


def logins_of(tools: Iterable[Any]) -> tuple[UserLogin, ...]:
    """The logins that calls of these tools need of a person, each once."""
    return tuple({tool.login.client.id: tool.login for tool in tools if tool.login is not None}.values())


def login_failed(name: str, **values: Any) -> ToolError:
    """The error of a login that came to nothing, for the person; `name` is that of its text."""
    return TEXTS.error(name, "login_failed", **values)


def _pending_key(kind: str, secret: str) -> str:
    return f"{kind}:{_digest(secret)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
