"""The credentials of a request: keys, passwords and tokens, sent in the way the document defines.

The model never sees them. They are sent only to the servers of the API, and never along with a redirect.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin
from weakref import WeakKeyDictionary

from taoloop.core.redaction.redactor import Redactor
from taoloop.errors import MissingKey
from taoloop.tools.oauth.token_endpoint import Post, basic_header, request_token
from taoloop.tools.openapi.operation import Operation, Parameter, ParameterLocation, Scheme
from taoloop.tools.openapi.settings import OpenapiSource, is_user_login
from taoloop.tools.openapi.texts import TEXTS
from taoloop.tools.openapi.value_encoding import check_header, percent_encode

Alternative = Mapping[str, tuple[str, ...]]

RENEWAL_MARGIN_S = 30.0
"""A token is renewed this many seconds before it expires."""

DEFAULT_LIFETIME_S = 300.0
"""The lifetime of a token whose server does not state one."""

_MAX_SHOWN_CHARS = 300
_LOCATIONS: tuple[ParameterLocation, ...] = ("header", "query", "cookie")
_NOT_IN_VARIABLES = re.compile(r"[^A-Z0-9]+")


@dataclass(slots=True)
class RequestParts:
    """What a request carries outside its path and its body."""

    headers: dict[str, str] = field(default_factory=dict)
    """Header values by header name."""
    query: list[str] = field(default_factory=list)
    """Encoded `name=value` pairs of the query."""
    cookies: list[str] = field(default_factory=list)
    """Encoded `name=value` pairs of the `Cookie` header."""


def choose_alternative(operation: Operation, source: OpenapiSource) -> Alternative:
    """The first security alternative for which the operator configured all secrets; empty if none is required.

    Raises:
        MissingKey: no alternative is complete; the error names what to set.
        ToolError: `unsupported_security`, if no alternative can ever be satisfied.
    """
    schemes = operation.schemes
    usable = [
        alternative
        for alternative in operation.security
        if all(_is_known(schemes[name]) or _has_secret(schemes[name], operation, source) for name in alternative)
    ]
    for alternative in usable:
        if alternative and all(_has_secret(schemes[name], operation, source) for name in alternative):
            return alternative
    if not operation.security or not all(operation.security):
        return {}
    if not usable:
        names = sorted({name for alternative in operation.security for name in alternative})
        undefined = next((name for name in names if schemes[name].kind == "undefined"), "")
        if undefined:
            raise _missing_key("undefined_scheme", operation, schemes[undefined], source)
        described = ", ".join(f"{name} ({schemes[name].description or schemes[name].kind})" for name in names)
        raise TEXTS.error("unsupported_security", "unsupported_security", tool=operation.name, schemes=described)
    lacking = next(name for name in usable[0] if not _has_secret(schemes[name], operation, source))
    raise _missing_key("missing_key", operation, schemes[lacking], source)


def _missing_key(text: str, operation: Operation, scheme: Scheme, source: OpenapiSource) -> MissingKey:
    variable = variable_name(source, scheme.name)
    setting = f"{{{scheme.name}: {secret_syntax(scheme, variable)}}}"
    values = {"tool": operation.name, "scheme": scheme.name, "setting": setting, "variable": variable}
    return TEXTS.run_error(MissingKey, text, values)


def credentials(
    operation: Operation, alternative: Alternative, source: OpenapiSource, tokens: Mapping[str, str]
) -> RequestParts:
    """The credentials of a security alternative. `tokens` are the OAuth2 access tokens by scheme name."""
    result = RequestParts()
    for name in alternative:
        scheme = operation.schemes[name]
        custom = _custom_place(scheme, source)
        if not source.auth.get(name) or not (custom or _is_known(scheme)):  # a configured header replaces it
            continue
        location, key = custom or (scheme.location, scheme.key or "Authorization")
        value = _credential_text(scheme, source, tokens)
        if location == "header":
            result.headers[key] = check_header(f"auth.{name}", value, is_secret=True)
        else:
            pairs = result.query if location == "query" else result.cookies
            pairs.append(f"{percent_encode(key)}={percent_encode(value)}")
    return result


def oauth_clients(
    operation: Operation, alternative: Alternative, source: OpenapiSource
) -> Iterator[tuple[Scheme, Mapping[str, str]]]:
    """The schemes of an alternative whose token must be requested first, each with the client that requests it."""
    for name in alternative:
        scheme, client = operation.schemes[name], source.auth.get(name)
        if client and not isinstance(client, str) and scheme.kind == "oauth2_client" and not is_user_login(client):
            yield scheme, client


def secrets_of(source: OpenapiSource) -> dict[str, str]:
    """Every secret of an API by a displayable name, for a redactor."""
    secrets: dict[str, str] = {}
    for name, value in _named_secrets(source):
        if value and value not in secrets.values():
            secrets[name if name not in secrets else f"{name}_{len(secrets)}"] = value
    return secrets


def variable_name(source: OpenapiSource, scheme: str) -> str:
    """The suggested environment variable for a secret; its name identifies it as a secret."""
    stem = _NOT_IN_VARIABLES.sub("_", f"{source.name}_{scheme}".upper()).strip("_") or "API"
    return stem if stem.endswith(("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")) else f"{stem}_TOKEN"


def _named_secrets(source: OpenapiSource) -> Iterator[tuple[str, str]]:
    for name, secret in source.auth.items():
        label = f"auth.{name}"
        if isinstance(secret, str):
            yield label, secret
            yield label, (secret.split() or [""])[-1]  # behind `Bearer` or another word
            if ":" in secret:
                yield label, secret.partition(":")[2]
                yield label, _encode_base64(secret)
            continue
        if secret.get("value"):
            yield f"{label}.value", secret["value"]
            yield f"{label}.value", secret["value"].split()[-1]
        for user, word in (("username", "password"), ("client_id", "client_secret")):
            if secret.get(word):
                yield f"{label}.{word}", secret[word]
                yield f"{label}.both", _encode_base64(f"{secret.get(user, '')}:{secret[word]}")
    for name, value in source.secrets.items():
        yield f"secret.{name}", value
    for name, value in source.headers.items():
        if name.lower() in ("authorization", "cookie") or any(w in name.lower() for w in ("key", "token", "secret")):
            yield f"header.{name}", value
            yield f"header.{name}", (value.split() or [""])[-1]


def _encode_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def carries_secret(parameter: Parameter, scheme: Scheme, source: OpenapiSource) -> bool:
    """Whether a parameter is the place of the secret of a security scheme."""
    if scheme.kind != "api_key" and _custom_place(scheme, source) is None:
        return False
    location, key = _custom_place(scheme, source) or (scheme.location, scheme.key)
    is_same = parameter.name.lower() == key.lower() if location == "header" else parameter.name == key
    return parameter.location == location and is_same


def _is_known(scheme: Scheme) -> bool:
    """Whether the document says in a way that is supported how requests are authenticated."""
    return scheme.kind not in ("unsupported", "undefined")


def _custom_place(scheme: Scheme, source: OpenapiSource) -> tuple[ParameterLocation, str] | None:
    """The part of the request, and the name in it, that the settings state for a secret; None if they state none."""
    secret = source.auth.get(scheme.name)
    if not secret or isinstance(secret, str) or not secret.get("value"):
        return None
    return next(((location, secret[location]) for location in _LOCATIONS if secret.get(location)), None)


def _is_supplied(scheme: Scheme, operation: Operation, source: OpenapiSource) -> bool:
    """Whether the operator's headers or secret parameters include that of a scheme, so that it needs no other."""
    if scheme.location == "header" and scheme.key.lower() in {name.lower() for name in source.headers}:
        return True
    return any(
        parameter.name in source.secrets and carries_secret(parameter, scheme, source)
        for parameter in operation.parameters
    )


def _has_secret(scheme: Scheme, operation: Operation, source: OpenapiSource) -> bool:
    secret = source.auth.get(scheme.name)
    if _custom_place(scheme, source) is not None:
        return True
    if not secret or not _is_known(scheme):
        return _is_supplied(scheme, operation, source)
    if isinstance(secret, str):
        return True
    if is_user_login(secret):
        return True
    required_part = {"basic": "username", "oauth2_client": "client_secret"}.get(scheme.kind)
    return required_part is not None and bool(secret.get(required_part))


def _credential_text(scheme: Scheme, source: OpenapiSource, tokens: Mapping[str, str]) -> str:
    secret = source.auth.get(scheme.name, "")
    if not isinstance(secret, str) and secret.get("value"):
        return secret["value"]
    if is_user_login(secret):
        return f"Bearer {tokens[scheme.name]}"
    if scheme.kind == "basic":
        if isinstance(secret, str):
            return basic_header(*secret.partition(":")[::2])
        return basic_header(secret.get("username", ""), secret.get("password", ""))
    if scheme.kind == "oauth2_client":
        return f"Bearer {secret if isinstance(secret, str) else tokens[scheme.name]}"
    text = secret if isinstance(secret, str) else ""
    prefix = scheme.prefix or ("Bearer" if scheme.kind == "bearer" else "")
    return f"{prefix} {text}" if prefix and not text.lower().startswith(f"{prefix.lower()} ") else text


def secret_syntax(scheme: Scheme, variable: str) -> str:
    """How the settings state the secret of a scheme, with a reference to an environment variable."""
    reference = f"${{{variable}}}"
    forms = {
        "undefined": f"{{header: …, value: {reference}}}",
        "basic": f"{{username: …, password: {reference}}}",
        "oauth2_client": f"{{client_id: …, client_secret: {reference}}}",
    }
    return forms.get(scheme.kind, reference)


class OAuthTokens:
    """The tokens of one API by scheme name and scopes. Concurrent calls that need the same token request it once.

    `tick`: seconds that only increase, by which tokens expire.
    """

    def __init__(self, post: Post, tick: Callable[[], float]) -> None:
        self._post, self._tick = post, tick
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
                self._tokens[key] = (token, self._tick() + life_s - RENEWAL_MARGIN_S)
        return token

    def drop(self, tokens: Iterable[str]) -> bool:
        """Forget tokens that the API rejected. False: there are none, so requesting a new one would not help."""
        refused = set(tokens)
        self._tokens = {key: entry for key, entry in self._tokens.items() if entry[0] not in refused}
        return bool(refused)

    def _valid_token(self, key: tuple[str, str]) -> str | None:
        token, until = self._tokens.get(key, ("", 0.0))
        return token if token and self._tick() < until else None

    async def _request_token(
        self, scheme: Scheme, scope: str, client: Mapping[str, str], base: str
    ) -> tuple[str, float]:
        url = urljoin(f"{base}/", client.get("token_url") or scheme.token_url)
        fields = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
        secret = client.get("client_secret", "")
        reply = await request_token(self._post, url, fields, client.get("client_id", ""), secret)
        if not reply.access_token:
            status = reply.response.status
            text = Redactor({"client_secret": secret}).text(reply.response.text[:_MAX_SHOWN_CHARS])
            retryable = status >= 500 or status == 429
            values: dict[str, Any] = {"scheme": scheme.name, "status": status, "text": text}
            raise TEXTS.error("token_refused", "token_refused", retryable=retryable, **values)
        return reply.access_token, reply.lifetime_s or DEFAULT_LIFETIME_S
