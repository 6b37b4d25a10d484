"""Tokens of an identity provider: accepted with the issuer's signature, name and audience, and in time; else not."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from tests.serve.gateway.auth.certificates import OTHER_RSA_KEY, RSA_KEY, jwks, token
from tests.serve.gateway.clients import body_of, post
from tests.serve.gateway.conftest import agent, config_of, gateway, upstream

from taoloop.errors import ConfigError, EgressFailed
from taoloop.serve.gateway.auth.keys import ApiKey, new_key
from taoloop.serve.gateway.auth.tokens import ClaimNames, JwtSettings, TokenVerifier, is_token
from taoloop.serve.gateway.errors import ApiError
from taoloop.testing import FakeClock
from taoloop.tools.egress.client import EgressClient
from taoloop.tools.egress.response import EgressResponse


def jwt_settings(folder: Path, keys: Any = None, **changes: Any) -> JwtSettings:
    path = folder / "jwks.json"
    path.write_text(json.dumps(jwks() if keys is None else keys))
    return JwtSettings(**{"issuer": "https://id.example", "audience": "tao", "jwks_file": path, **changes})


def verify(settings: JwtSettings, text: str) -> ApiKey:
    return asyncio.run(TokenVerifier(settings).verify(text))


def refusal(settings: JwtSettings, text: str) -> tuple[int, str | None]:
    with pytest.raises(ApiError) as raised:
        verify(settings, text)
    return raised.value.status, raised.value.code


def test_a_user_is_known_by_the_token_and_has_the_settings_of_all_users(tmp_path: Path) -> None:
    key = verify(jwt_settings(tmp_path, requests_per_minute=5), token())
    assert (key.name, key.requests_per_minute, key.task_authority, key.agents) == ("jwt:ann", 5, "values", ())
    assert verify(jwt_settings(tmp_path), token(kid=None)).name == "jwt:ann"  # the only key
    claims = ClaimNames(user="email")
    assert verify(jwt_settings(tmp_path, claims=claims), token(email="a@b.example")).name == "jwt:a@b.example"


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"exp": 1_000_000}, "token_expired"),
        ({"exp": None}, "invalid_token"),
        ({"nbf": time.time() + 3600}, "invalid_token"),
        ({"aud": "other"}, "invalid_token"),
        ({"aud": None}, "invalid_token"),
        ({"iss": "https://id.example.evil"}, "invalid_token"),
        ({"iss": None}, "invalid_token"),
        ({"sub": None}, "invalid_token"),
        ({"sub": "a\nb"}, "invalid_token"),
        ({"sub": "x" * 200}, "invalid_token"),
        ({"key": OTHER_RSA_KEY}, "invalid_token"),
        ({"kid": "k2"}, "invalid_token"),
        ({"algorithm": "PS256"}, "invalid_token"),  # not one of those that the operator accepts
    ],
)
def test_a_token_that_is_not_exactly_right_is_refused(tmp_path: Path, claims: dict[str, Any], code: str) -> None:
    assert refusal(jwt_settings(tmp_path), token(**claims)) == (401, code)


def test_neither_no_signature_nor_one_by_the_public_key_is_accepted(tmp_path: Path) -> None:
    settings = jwt_settings(tmp_path)
    unsigned = token("", algorithm="none")
    assert refusal(settings, unsigned) == (401, "invalid_token")
    public = RSA_KEY.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    head, body, signature = token().split(".")
    header = base64.urlsafe_b64encode(b'{"alg": "HS256", "typ": "JWT", "kid": "k1"}').rstrip(b"=").decode()
    forged = base64.urlsafe_b64encode(hmac.digest(public, f"{header}.{body}".encode(), "sha256")).rstrip(b"=").decode()
    assert refusal(settings, f"{header}.{body}.{forged}") == (401, "invalid_token")
    assert refusal(settings, f"{head}.{body}.{signature[:-4]}AAAA") == (401, "invalid_token")
    for algorithm in ("HS256", "none"):
        with pytest.raises(ConfigError, match="algorithms"):
            jwt_settings(tmp_path, algorithms=(algorithm,))


def test_a_set_without_a_public_key_for_signatures_is_refused(tmp_path: Path) -> None:
    symmetric = {"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "k1"}]}
    sets: list[Any] = [symmetric, jwks(use="enc"), {"keys": []}, [1]]
    for keys in sets:
        with pytest.raises(ConfigError, match="jwks_file"):
            TokenVerifier(jwt_settings(tmp_path, keys))


def test_claims_give_no_more_than_the_settings(tmp_path: Path) -> None:
    names = ClaimNames(agents="tao_agents", task_authority="tao_authority")
    settings = jwt_settings(tmp_path, claims=names, agents=("a", "b"), task_authority="values")
    key = verify(settings, token(tao_agents="b c", tao_authority="full"))
    assert (key.agents, key.task_authority) == (("b",), "values")
    assert verify(settings, token(tao_agents=["a"])).task_authority == "none"
    for agents in (None, [], "", ["c"], {"a": 1}, [1]):
        assert refusal(settings, token(tao_agents=agents)) == (403, "no_agents")
    assert refusal(settings, token(tao_agents="a", tao_authority="root")) == (401, "invalid_token")


@pytest.mark.parametrize("url", ["http://id.example/keys", "ftp://id.example/keys", "id.example", "file:///etc/x"])
def test_keys_are_fetched_over_tls_only(url: str) -> None:
    with pytest.raises(ConfigError, match="https"):
        JwtSettings(issuer="i", audience="a", jwks_url=url)


def test_a_key_is_no_token() -> None:
    assert is_token(token())
    assert not is_token(new_key("x")[0])
    assert not is_token("tao-0123456789abcdef.abc")


class KeyServer(EgressClient):
    """Answers requests for keys, and counts them."""

    def __init__(self, answers: Sequence[Any]) -> None:
        super().__init__()
        self.answers, self.count = list(answers), 0

    async def send(self, method: str, url: str, **_: Any) -> EgressResponse:
        assert method == "GET"
        self.count += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            raise EgressFailed("down")
        return EgressResponse(status=200, headers={}, body=json.dumps(answer).encode(), url=url)


def test_keys_are_fetched_once_and_again_for_an_unknown_one_at_a_bounded_rate() -> None:
    server, clock = KeyServer([jwks(), jwks(OTHER_RSA_KEY, "k2")]), FakeClock()
    settings = JwtSettings(issuer="https://id.example", audience="tao", jwks_url="https://id.example/keys")
    verifier = TokenVerifier(settings, client=server, clock=clock)
    rotated = token(OTHER_RSA_KEY, kid="k2")

    async def scenario() -> None:
        await asyncio.gather(*(verifier.verify(token()) for _ in range(5)))
        assert server.count == 1
        for _ in range(5):  # whatever arrives, the issuer is not asked again at once
            with pytest.raises(ApiError):
                await verifier.verify(rotated)
        assert server.count == 1
        clock.advance(31)
        assert (await verifier.verify(rotated)).name == "jwt:ann"
        assert server.count == 2
        with pytest.raises(ApiError):  # the issuer has withdrawn it
            await verifier.verify(token())

    asyncio.run(scenario())


def test_keys_stay_in_use_for_a_while_where_they_cannot_be_fetched_again() -> None:
    server, clock = KeyServer([None, jwks(), None]), FakeClock()
    settings = JwtSettings(issuer="https://id.example", audience="tao", jwks_url="https://id.example/keys")
    verifier = TokenVerifier(settings, client=server, clock=clock)

    async def scenario() -> None:
        with pytest.raises(ApiError) as raised:
            await verifier.verify(token())
        assert (raised.value.status, raised.value.code) == (503, "jwks_unavailable")
        clock.advance(31)
        await verifier.verify(token())
        clock.advance(3600)
        await verifier.verify(token())
        clock.advance(86_400)
        with pytest.raises(ApiError):
            await verifier.verify(token())

    asyncio.run(scenario())


def test_a_token_opens_the_gateway_beside_keys(tmp_path: Path) -> None:
    secret, entry = new_key("shop")
    with upstream("Hello.") as server:
        config = config_of(agent(server), keys=(entry,), jwt=jwt_settings(tmp_path))
        with gateway(config) as running:
            for presented in (token(), secret):
                assert post(running, body_of(), Authorization=f"Bearer {presented}")[0] == 200
            status, body = post(running, body_of(), Authorization=f"Bearer {token(aud='other')}")
            assert (status, body["error"]["code"]) == (401, "invalid_token")
            assert post(running, b"", path="/healthz", method="GET", Authorization=f"Bearer {token(aud='x')}")[0] == 200
        assert {trace.started.labels["key"] for trace in running.traces() if trace.started} == {"jwt:ann", "shop"}


def test_the_tests_sign_as_issuers_do() -> None:
    assert jwt.get_unverified_header(token())["alg"] == "RS256"
