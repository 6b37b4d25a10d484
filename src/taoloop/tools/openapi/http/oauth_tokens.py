"""OAuth2 access tokens for client credentials: requested at the first call, kept in memory until they expire."""

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
from taoloop.tools.openapi.http.retry import RetryClock
from taoloop.tools.openapi.texts import TEXTS

RENEWAL_MARGIN_S = 30.0
"""A token is renewed this many seconds before it expires."""

DEFAULT_LIFETIME_S = 300.0
"""The lifetime of a token whose server does not state one."""

_MAX_SHOWN_CHARS = 300

Post = Callable[[str, Mapping[str, str], bytes], Awaitable[EgressResponse]]
"""Sends a POST to an address with headers and a body."""


class OAuthTokens:
    """The tokens of one API by scheme name and scopes. Concurrent calls that need the same token request it once."""

    def __init__(self, post: Post, clock: RetryClock) -> None:
        self._post, self._clock = post, clock
        self._tokens: dict[tuple[str, str], tuple[str, float]] = {}
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @property
    def values(self) -> list[str]:
        """The current tokens, for a redactor."""
        return [token for token, _ in self._tokens.values()]

    async def get(self, scheme: Scheme, scopes: tuple[str, ...], client: Mapping[str, str], base: str) -> str:
        """A token that is still valid for some time.

        `client` has `client_id` and `client_secret`, and may have `scope` and `token_url`.

        Raises:
            ToolError: `token_refused`, if the token server does not issue one.
        """
        scope = client.get("scope") or " ".join(scopes or scheme.scopes)
        key = (scheme.name, scope)
        if (token := self._valid_token(key)) is not None:
            return token
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            if (token := self._valid_token(key)) is None:
                token, life_s = await self._request_token(scheme, scope, client, base)
                self._tokens[key] = (token, self._clock.tick() + life_s - RENEWAL_MARGIN_S)
        return token

    def drop(self, tokens: Iterable[str]) -> bool:
        """Forget tokens that the API rejected. False: there are none, so requesting a new one would not help."""
        refused = set(tokens)
        for key in [key for key, (token, _) in self._tokens.items() if token in refused]:
            del self._tokens[key]
        return bool(refused)

    def _valid_token(self, key: tuple[str, str]) -> str | None:
        token, until = self._tokens.get(key, ("", 0.0))
        return token if token and self._clock.tick() < until else None

    async def _request_token(
        self, scheme: Scheme, scope: str, client: Mapping[str, str], base: str
    ) -> tuple[str, float]:
        url = client.get("token_url") or scheme.token_url
        url = urljoin(f"{base}/", url)
        fields = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
        user, secret = client.get("client_id", ""), client.get("client_secret", "")
        basic_pair = f"{quote(user, safe='')}:{quote(secret, safe='')}"
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        authorization = {"Authorization": "Basic " + base64.b64encode(basic_pair.encode()).decode()}
        response = await self._post(url, headers | authorization, _encode_form(fields))
        if response.status in (400, 401):  # some servers only accept the secret in the body
            with_secret = fields | {"client_id": user, "client_secret": secret}
            response = await self._post(url, headers, _encode_form(with_secret))
        reply = _json_object(response)
        token = reply.get("access_token")
        if response.status != 200 or not isinstance(token, str) or not token:
            clean = Redactor({"client_secret": secret})
            text = clean.text(response.text[:_MAX_SHOWN_CHARS])
            raise ToolError(
                TEXTS.run_text("token_refused", scheme=scheme.name, status=response.status, text=text),
                code="token_refused",
                retryable=response.status >= 500 or response.status == 429,
                hint=TEXTS.run_text("token_refused_hint", scheme=scheme.name),
            )
        return token, _lifetime_s(reply.get("expires_in"))


def _lifetime_s(expires_in: Any) -> float:
    try:
        life_s = float(expires_in)
    except (TypeError, ValueError):
        return DEFAULT_LIFETIME_S
    return life_s if life_s > 0 else DEFAULT_LIFETIME_S


def _encode_form(fields: Mapping[str, str]) -> bytes:
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items()).encode()


def _json_object(response: EgressResponse) -> Mapping[str, Any]:
    try:
        values = pydantic_core.from_json(response.body)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}
