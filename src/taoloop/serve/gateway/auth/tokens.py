"""Tokens of an identity provider (JWT, OpenID Connect) in place of API keys. Needs the extra `jwt`."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from dataclasses import dataclass, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import Field

from taoloop.core.policy import TaskAuthority
from taoloop.errors import ConfigError, MissingExtra, TaoError
from taoloop.runtime.engine.clock import Clock, SystemClock
from taoloop.serve.gateway.auth.keys import TOKEN_OWNER, ApiKey, KeySettings
from taoloop.serve.gateway.errors import RETRY_AFTER_S, ApiError
from taoloop.tools.egress.client import EgressClient
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.settings_check import check_fields

_LOG = logging.getLogger("taoloop.gateway")

Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""The signatures with a public key. With a shared secret, whoever can verify a token could also make one; such
algorithms, and `none`, are never accepted."""

_NO_DIGEST = "sha256:" + "0" * 64
_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]*", re.ASCII)
_FETCH_TIMEOUT_S, _MAX_KEY_BYTES = 5.0, 256 * 1024
_FRESH_S = 600.0
"""How long fetched keys are used before they are fetched again; a key that the provider withdrew is refused then."""

_STALE_S = 86_400.0
"""How long they are used while they cannot be fetched again."""

_PAUSE_S = 30.0
"""The least time between two fetches, whatever tokens arrive: anybody can write an unknown key id into one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimNames:
    """Which claims of a token say who its user is and what they may do."""

    user: Annotated[str, Field(min_length=1)] = "sub"
    """The name of the user: runs and usage are counted under it, with `jwt:` before it."""

    agents: str = ""
    """The agents that the user may use: a list, or names with blanks between them; a token without any opens none.
    Empty: `agents` holds for everybody."""

    task_authority: str = ""
    """What the words of the user may authorise, but never more than `task_authority` says. Empty: that holds for
    everybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtSettings(KeySettings):
    """Which tokens are accepted, and what each of their users may do."""

    issuer: Annotated[str, Field(min_length=1)]
    """Who issues the tokens: the claim `iss`, exactly."""

    audience: Annotated[str, Field(min_length=1)]
    """Whom they are for: the claim `aud` is or contains it. Without it a token for another service would do."""

    jwks_url: str = ""
    """The address of the issuer's public keys (JWKS): https, or http on this machine."""

    jwks_file: Path | None = None
    """The file with these keys, in place of an address; read again with the configuration."""

    algorithms: tuple[Algorithm, ...] = ("RS256", "ES256")
    """The accepted signatures; only such with a public key exist here."""

    claims: ClaimNames = ClaimNames()
    """Which claims are read."""

    leeway_s: Annotated[float, Field(ge=0, le=300)] = 30.0
    """How far the clocks of the issuer and of this machine may differ."""

    def __post_init__(self) -> None:
        """Refuse settings that accept nothing, or too much.

        Raises:
            ConfigError: names the field, and what it must be.
        """
        check_fields(self, "jwt")
        if bool(self.jwks_url) == (self.jwks_file is not None):
            raise ConfigError("exactly one of `jwks_url` and `jwks_file` is needed.", hint="Name the issuer's keys.")
        if not self.algorithms:
            raise ConfigError("`algorithms` is empty, so no token could be accepted.", hint="Omit it, or name one.")
        if self.jwks_url and not _is_safe(self.jwks_url):
            raise ConfigError(
                "`jwks_url` must begin with https://: whoever changes the keys on their way can sign tokens.",
                hint="On this machine (localhost) http:// will do.",
            )

    def key_of(self, name: str) -> ApiKey:
        """What a user may do, by the name under which their runs are stored; what a token said is not known here."""
        values = {field.name: getattr(self, field.name) for field in fields(KeySettings)}
        return ApiKey(**values, name=name, digest=_NO_DIGEST)


def is_token(presented: str) -> bool:
    """Whether what a client presents has the form of a token, and not that of a key."""
    return _TOKEN.fullmatch(presented) is not None


class TokenVerifier:
    """Verifies tokens by the public keys of their issuer, which are kept and fetched again at a bounded rate.

    Args:
        settings: Which tokens are accepted.
        client: Sends the requests for keys; None: one that reaches only the address of `jwks_url`.
        clock: Tells how old the keys are.

    Raises:
        MissingExtra: the package that verifies tokens is not installed.
        ConfigError: `jwks_file` cannot be read, or has no usable key.
    """

    def __init__(
        self, settings: JwtSettings, *, client: EgressClient | None = None, clock: Clock | None = None
    ) -> None:
        self._jwt = _load_jwt()
        self._settings, self._clock = settings, clock or SystemClock()
        self._client = client
        if client is None and settings.jwks_url:
            rules = EgressRules(only_allowed=True).allowing(settings.jwks_url)
            self._client = EgressClient(rules, timeout_s=_FETCH_TIMEOUT_S, max_bytes=_MAX_KEY_BYTES)
        self._keys: list[dict[str, Any]] = []
        self._fetched_at = self._tried_at = float("-inf")
        self._fetching = asyncio.Lock()
        if settings.jwks_file is not None:
            self._keys = _read_file(settings.jwks_file)

    async def verify(self, token: str) -> ApiKey:
        """What the user of a token may do.

        Raises:
            ApiError: 401 where the token is not accepted; 403 where it opens no agent; 503 where the issuer's keys
                cannot be fetched.
        """
        try:
            header = self._jwt.get_unverified_header(token)
            algorithm = header.get("alg")
            if algorithm not in self._settings.algorithms:
                raise _refused(f"its algorithm is not one of {', '.join(self._settings.algorithms)}")
            key = await self._key_for(header.get("kid"), algorithm)
            claims = self._jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                leeway=self._settings.leeway_s,
                options={"require": ["exp", "iss", "aud"], "strict_aud": False},
            )
        except self._jwt.ExpiredSignatureError:
            raise ApiError(status=401, message="The token has expired. Get a new one.", code="token_expired") from None
        except (self._jwt.PyJWTError, ValueError, TypeError) as error:
            raise _refused(_reason(error)) from None
        return self._user(claims)

    def _user(self, claims: dict[str, Any]) -> ApiKey:
        names = self._settings.claims
        user = claims.get(names.user)
        if not (isinstance(user, str) and user.isprintable() and 0 < len(user.strip()) == len(user) <= 90):  # of 100
            raise _refused(f"its claim {names.user!r} names no user")
        values = {field.name: getattr(self._settings, field.name) for field in fields(KeySettings)}
        if names.agents:
            values["agents"] = self._agents(claims.get(names.agents))
        if names.task_authority:
            values["task_authority"] = self._authority(claims.get(names.task_authority))
        return ApiKey(**values, name=f"{TOKEN_OWNER}{user}", digest=_NO_DIGEST)

    def _agents(self, claim: Any) -> tuple[str, ...]:
        """The agents of a claim that the settings allow; there is at least one."""
        written = claim.split() if isinstance(claim, str) else claim
        names = [name for name in written if isinstance(name, str) and name] if isinstance(written, list) else []
        allowed = self._settings.agents
        agents = tuple(name for name in names if not allowed or name in allowed)
        if not agents:
            raise ApiError(status=403, message="The token opens no agent of this server.", code="no_agents")
        return agents

    def _authority(self, claim: Any) -> TaskAuthority:
        """The authority of a claim, but no more than the settings give; without one, none."""
        order: tuple[TaskAuthority, ...] = ("none", "values", "full")
        if claim is None:
            return "none"
        if claim not in order:
            raise _refused(f"its claim {self._settings.claims.task_authority!r} is none of {', '.join(order)}")
        return min(order[order.index(claim)], self._settings.task_authority, key=order.index)

    async def _key_for(self, kid: object, algorithm: str) -> Any:
        """The public key with this id; of one that is unknown, after the keys were fetched again."""
        age_s = self._clock.now() - self._fetched_at
        key = self._find(kid, algorithm) if self._settings.jwks_file is not None or age_s < _STALE_S else None
        if self._settings.jwks_url and (key is None or age_s >= _FRESH_S):
            await self._refresh()
            key = self._find(kid, algorithm)
        if key is None:
            raise _refused("its key is not one of the issuer's")
        return key

    def _find(self, kid: object, algorithm: str) -> Any:
        matches = [jwk for jwk in self._keys if _may_sign(jwk, algorithm) and (kid is None or jwk.get("kid") == kid)]
        # Several keys and a token that names none: which one is meant is not guessed.
        return self._jwt.PyJWK(matches[0], algorithm=algorithm) if len(matches) == 1 else None

    async def _refresh(self) -> None:
        """Fetch the keys, unless that was tried a moment ago; keys that are not too old stay in use where it fails.

        Raises:
            ApiError: 503: there are none, and they cannot be fetched.
        """
        async with self._fetching:
            now = self._clock.now()
            if now - self._tried_at >= _PAUSE_S:
                self._tried_at = now
                try:
                    self._keys = await self._fetch()
                    self._fetched_at = now
                except (TaoError, ValueError) as error:
                    _LOG.warning("the keys of %s cannot be fetched: %s", self._settings.issuer, error)
            if now - self._fetched_at >= _STALE_S:
                message = "The keys of the identity provider cannot be fetched now."
                raise ApiError(status=503, message=message, code="jwks_unavailable", retry_after_s=RETRY_AFTER_S)

    async def _fetch(self) -> list[dict[str, Any]]:
        if self._client is None:
            return self._keys
        response = await self._client.send("GET", self._settings.jwks_url, headers={"accept": "application/json"})
        if response.status != 200 or response.is_cut:  # OK
            raise ValueError(f"status {response.status}, {len(response.body)} bytes")
        return _keys_in(response.body)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()


def _is_safe(url: str) -> bool:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "http":
        return parts.scheme == "https" and bool(host)
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _may_sign(jwk: dict[str, Any], algorithm: str) -> bool:
    """Whether a key of a set is a public one for signatures by this algorithm."""
    kinds = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
    is_kind = jwk.get("kty") == kinds[algorithm[:2]]
    return is_kind and jwk.get("use", "sig") == "sig" and jwk.get("alg", algorithm) == algorithm


def _keys_in(data: bytes) -> list[dict[str, Any]]:
    """The public keys in a JWKS document.

    Raises:
        ValueError: it is none.
    """
    document = json.loads(data)
    keys = document.get("keys") if isinstance(document, dict) else None
    usable = [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else []
    usable = [key for key in usable if any(_may_sign(key, algorithm) for algorithm in get_args(Algorithm))]
    if not usable:
        raise ValueError("it is no JWKS document with a public key for signatures")
    return usable


def _read_file(path: Path) -> list[dict[str, Any]]:
    try:
        return _keys_in(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"`jwks_file`: {path} cannot be used: {error}.", hint="Save what the issuer serves at its `jwks_uri`."
        ) from error


def _refused(why: str) -> ApiError:
    return ApiError(status=401, message=f"The token is not accepted: {why}.", code="invalid_token")


def _reason(error: Exception) -> str:
    """What is wrong with a token, without anything that it says."""
    reasons = {
        "InvalidAudienceError": "it is for somebody else (`aud`)",
        "InvalidIssuerError": "it is from another issuer (`iss`)",
        "ImmatureSignatureError": "it is not valid yet (`nbf` or `iat`)",
        "InvalidSignatureError": "its signature is wrong",
        "MissingRequiredClaimError": "it has no `exp`, `iss` or `aud`",
    }
    return reasons.get(type(error).__name__, "it cannot be read")


def _load_jwt() -> Any:
    try:
        import cryptography  # noqa: F401, PLC0415  # without it only shared secrets can be verified
        import jwt  # noqa: PLC0415  # optional
    except ImportError as error:
        raise MissingExtra(
            "`auth.jwt` needs the package PyJWT with cryptography, which is not installed.",
            hint="Install the extra: pip install 'taoloop[jwt]'",
        ) from error
    return jwt
