"""Access tokens of OAuth2 client credentials: asked for at the first call, kept until they expire, never written."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote, urljoin
from weakref import WeakKeyDictionary

import pydantic_core

from taoloop.core.redaction.redactor import Redactor
from taoloop.errors import ToolError
from taoloop.tools.egress import EgressResponse
from taoloop.tools.openapi.document.operation import Scheme
from taoloop.tools.openapi.http.response import decode
from taoloop.tools.openapi.http.retry import Clock

EARLY_S = 30.0
"""A token is renewed this many seconds before it expires."""

DEFAULT_LIFE_S = 300.0
"""How long a token is kept whose server does not say how long it lives."""

_SHOWN = 300

Post = Callable[[str, Mapping[str, str], bytes], Awaitable[EgressResponse]]
"""Sends a POST to an address with headers and a body."""


class OAuthTokens:
    """The tokens of one API, by the name of their scheme and the scopes. Several calls that need one ask once."""

    def __init__(self, post: Post, clock: Clock) -> None:
        self._post, self._clock = post, clock
        self._kept: dict[tuple[str, str], tuple[str, float]] = {}
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @property
    def values(self) -> list[str]:
        """The tokens that are kept now, for a redactor."""
        return [token for token, _ in self._kept.values()]

    async def get(self, scheme: Scheme, scopes: tuple[str, ...], given: Mapping[str, str], base: str) -> str:
        """A token that is good for some time yet. `given` has `client_id` and `client_secret`, and may have `scope`.

        Raises:
            ToolError: `token_refused`, where the server of tokens gives none.
        """
        scope = given.get("scope") or " ".join(scopes or scheme.scopes)
        key = (scheme.name, scope)
        if (token := self._good(key)) is not None:
            return token
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            if (token := self._good(key)) is None:
                token, life_s = await self._ask(scheme, scope, given, base)
                self._kept[key] = (token, self._clock.tick() + life_s - EARLY_S)
        return token

    def drop(self, tokens: Iterable[str]) -> bool:
        """Forget tokens that an API did not take. False: there are none, so that a new one would be no other."""
        refused = set(tokens)
        for key in [key for key, (kept, _) in self._kept.items() if kept in refused]:
            del self._kept[key]
        return bool(refused)

    def _good(self, key: tuple[str, str]) -> str | None:
        token, until = self._kept.get(key, ("", 0.0))
        return token if token and self._clock.tick() < until else None

    async def _ask(self, scheme: Scheme, scope: str, given: Mapping[str, str], base: str) -> tuple[str, float]:
        url = given.get("token_url") or scheme.token_url
        url = urljoin(f"{base}/", url)
        fields = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
        user, word = given.get("client_id", ""), given.get("client_secret", "")
        pair = f"{quote(user, safe='')}:{quote(word, safe='')}"
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        proof = {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
        answered = await self._post(url, headers | proof, _encoded(fields))
        if answered.status in (400, 401):  # a server may take the secret in the body alone
            both = fields | {"client_id": user, "client_secret": word}
            answered = await self._post(url, headers, _encoded(both))
        told = _object(answered)
        token = told.get("access_token")
        if answered.status != 200 or not isinstance(token, str) or not token:
            clean = Redactor({"client_secret": word})
            said = clean.text(decode(answered.body, "")[:_SHOWN])
            raise ToolError(
                f"The server of tokens for {scheme.name!r} gave none: HTTP {answered.status}: {said}",
                code="token_refused",
                retryable=answered.status >= 500 or answered.status == 429,
                hint=f"Only the operator can change this: check `auth.{scheme.name}`. The call was not sent.",
            )
        return token, _life_s(told.get("expires_in"))


def _life_s(said: Any) -> float:
    try:
        life_s = float(said)
    except (TypeError, ValueError):
        return DEFAULT_LIFE_S
    return life_s if life_s > 0 else DEFAULT_LIFE_S


def _encoded(fields: Mapping[str, str]) -> bytes:
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items()).encode()


def _object(answered: EgressResponse) -> Mapping[str, Any]:
    try:
        told = pydantic_core.from_json(answered.body)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
