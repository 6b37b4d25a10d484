"""Who may use a gateway, as its file says: expiry and blocking of keys, admin keys, and tokens."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.serve.gateway.auth.certificates import jwks
from tests.serve.gateway.clients import body_of, post
from tests.serve.gateway.conftest import agent, config_of, gateway, upstream

from taoloop.errors import AgentFileError, ConfigError
from taoloop.serve.gateway.auth.keys import ApiKey, KeyRing, digest_of, new_key
from taoloop.serve.gateway.config.config_summary import config_summary
from taoloop.serve.gateway.config.gateway_file import load_config
from taoloop.serve.gateway.config.model import GatewayConfig
from taoloop.serve.gateway.quotas import Quotas
from taoloop.testing import FakeClock

ONE, TWO = digest_of("one"), digest_of("two")
JWT = {"issuer": "https://id.example", "audience": "tao", "jwks_file": "jwks.json"}


def load(folder: Path, **fields: Any) -> GatewayConfig:
    path = folder / "gate.yaml"
    (folder / "jwks.json").write_text(json.dumps(jwks()))
    path.write_text(yaml.safe_dump({"agents": {"a": {"model": "offline"}}, **fields}))
    return load_config(path, env={})


def test_a_key_expires_at_its_time_and_a_blocked_one_is_refused() -> None:
    key = ApiKey(name="shop", digest=ONE, expires="2027-01-31")
    midnight = datetime(2027, 1, 31, tzinfo=UTC).timestamp()
    assert (key.state_at(midnight - 1), key.state_at(midnight)) == ("active", "expired")
    offset = ApiKey(name="shop", digest=ONE, expires="2027-01-31T01:00:00+01:00")
    assert (offset.state_at(midnight - 1), offset.state_at(midnight)) == ("active", "expired")
    assert ApiKey(name="shop", digest=ONE, blocked=True).state_at(0) == "blocked"
    with pytest.raises(ConfigError, match="expires"):
        ApiKey(name="shop", digest=ONE, expires="31.1.2027")
    with pytest.raises(ConfigError, match="jwt:"):
        KeyRing([ApiKey(name="jwt:ann", digest=ONE)])


def test_clients_are_told_that_a_key_has_expired_or_is_blocked() -> None:
    clock = FakeClock()
    secrets = {name: new_key(name) for name in ("late", "blocked")}
    late = ApiKey(
        name="late", digest=secrets["late"][1].digest, expires=datetime.fromtimestamp(clock.now() + 60, UTC).isoformat()
    )
    blocked = ApiKey(name="blocked", digest=secrets["blocked"][1].digest, blocked=True)
    with upstream("Hello.") as server:
        config = config_of(agent(server), keys=(late, blocked))
        with gateway(config, quotas=Quotas(config.limits, clock=clock)) as running:

            def asked(name: str) -> tuple[int, str | None]:
                status, body = post(running, body_of(), Authorization=f"Bearer {secrets[name][0]}")
                return status, body.get("error", {}).get("code")

            assert asked("late") == (200, None)
            clock.advance(60)
            assert asked("late") == (401, "key_expired")
            assert asked("blocked") == (401, "key_blocked")


def test_the_file_says_it_all_and_the_check_shows_it(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        keys=[{"name": "shop", "digest": ONE, "expires": "2027-01-31", "blocked": True}],
        auth={"admin_keys": [{"name": "root", "digest": TWO, "expires": "2027-02-01"}], "jwt": JWT},
    )
    assert (config.keys[0].expires, config.keys[0].blocked, config.admin_keys[0].expires) == (
        "2027-01-31",
        True,
        "2027-02-01",
    )
    assert config.jwt is not None
    assert config.jwt.jwks_file == tmp_path / "jwks.json"
    assert tmp_path / "jwks.json" in config.files
    text = config_summary(config)
    assert "blocked, expires 2027-01-31" in text
    assert "keys are managed by: root" in text
    assert "https://id.example" in text


def test_the_check_warns_of_keys_that_have_expired(tmp_path: Path) -> None:
    keys = [{"name": "old", "digest": ONE, "expires": "2020-01-31"}]
    auth = {"admin_keys": [{"name": "root", "digest": TWO, "expires": "2020-02-01"}]}
    text = config_summary(load(tmp_path, keys=keys, auth=auth))
    warnings = text[text.index("warnings:") :]
    assert "The key old expired on 2020-01-31" in warnings
    assert "The key root expired on 2020-02-01" in warnings
    keys[0]["expires"] = "2999-01-31"
    assert "The key old" not in config_summary(load(tmp_path, keys=keys))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"keys": [{"name": "x", "digest": ONE, "expires": "soon"}]}, "expires"),
        ({"keys": [{"name": "jwt:x", "digest": ONE}]}, "jwt:"),
        ({"auth": {"admin_keys": [{"name": "x"}]}}, "neither"),
        (
            {"keys": [{"name": "x", "digest": ONE}], "auth": {"admin_keys": [{"name": "r", "digest": ONE}]}},
            "one of `keys`",
        ),
        ({"auth": {"jwt": {**JWT, "algorithms": ["HS256"]}}}, "algorithms"),
        ({"auth": {"jwt": {**JWT, "agents": ["b"]}}}, "no agent is called"),
        ({"auth": {"jwt": {**JWT, "jwks_url": "https://id.example/keys"}}}, "exactly one"),
        ({"auth": {"jwt": {**JWT, "jwks_file": "absent.json"}}}, "jwks_file"),
        ({"auth": {"jwt": {"issuer": "x"}}}, "audience"),
    ],
)
def test_what_could_not_be_held_to_is_refused(tmp_path: Path, fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(AgentFileError, match=problem):
        load(tmp_path, **fields)


def test_with_admin_keys_or_tokens_alone_everybody_needs_a_key(tmp_path: Path) -> None:
    for auth in ({"admin_keys": [{"name": "root", "digest": TWO}]}, {"jwt": JWT}):
        config = load(tmp_path, auth=auth)
        assert config.needs_key
        with gateway(config) as running:
            assert post(running, body_of(model="a"))[0] == 401
