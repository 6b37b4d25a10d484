"""The admin API: keys are made, blocked, rotated and deleted while the server runs, and every act is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serve.gateway.clients import body_of, post
from tests.serve.gateway.conftest import Running, agent, config_of, gateway, upstream

from taoloop.serve.gateway.auth.keys import new_key
from taoloop.serve.gateway.shared.database import GatewayDatabase

ADMIN, ADMIN_ENTRY = new_key("root")
SHOP, SHOP_ENTRY = new_key("shop")
KEYS = "/v1/admin/keys"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs.gateway.db"


@pytest.fixture
def running(file: Path) -> Iterator[Running]:
    database = GatewayDatabase(file)
    with upstream("Hello.") as server:
        config = config_of(agent(server), keys=(SHOP_ENTRY,), admin_keys=(ADMIN_ENTRY,))
        with gateway(config, database=database) as made:
            yield made
    database.close()


def act(running: Running, method: str, path: str, body: Any = b"", key: str = ADMIN) -> tuple[int, Any]:
    return post(running, body, path=path, method=method, Authorization=f"Bearer {key}")


def chat(running: Running, key: str) -> tuple[int, str | None]:
    status, body = post(running, body_of(), Authorization=f"Bearer {key}")
    return status, body.get("error", {}).get("code")


def make(running: Running, **settings: Any) -> str:
    status, body = act(running, "POST", KEYS, {"name": "ann", **settings})
    assert status == 201, body
    secret: str = body["key"]
    return secret


def test_a_key_is_made_used_and_shown_only_once(running: Running, file: Path) -> None:
    secret = make(running, requests_per_minute=2)
    assert chat(running, secret) == (200, None)
    assert running.logged[-1].key == "ann"
    status, listed = act(running, "GET", KEYS)
    assert status == 200
    assert [(key["name"], key["state"], key["requests_per_minute"]) for key in listed["data"]] == [("ann", "active", 2)]
    assert chat(running, secret)[0] == 200
    assert chat(running, secret) == (429, "rate_limit_exceeded")  # its settings hold as those of the file's keys
    stored = b"".join(path.read_bytes() for path in file.parent.iterdir())
    assert secret.encode() not in stored
    assert secret.partition(".")[2].encode() not in stored


def test_a_key_is_blocked_unblocked_and_expired_at_once(running: Running) -> None:
    secret = make(running)
    for changes, expected in (
        ({"blocked": True}, (401, "key_blocked")),
        ({"blocked": False}, (200, None)),
        ({"expires": "2020-01-31"}, (401, "key_expired")),
        ({"expires": "2999-01-31T10:00:00+02:00"}, (200, None)),
        ({"expires": None}, (200, None)),
    ):
        assert act(running, "PATCH", f"{KEYS}/ann", changes)[0] == 200
        assert chat(running, secret) == expected


def test_a_rotated_key_refuses_its_old_secret_and_keeps_its_settings(running: Running) -> None:
    old = make(running, agents=["assistant"], task_authority="full")
    status, body = act(running, "POST", f"{KEYS}/ann/rotate")
    assert (status, body["agents"], body["task_authority"]) == (200, ["assistant"], "full")
    assert chat(running, old) == (401, "invalid_api_key")
    assert chat(running, body["key"]) == (200, None)


def test_the_name_of_a_deleted_key_is_not_given_again(running: Running) -> None:
    secret = make(running)
    assert act(running, "DELETE", f"{KEYS}/ann")[0] == 200
    assert chat(running, secret) == (401, "invalid_api_key")
    assert act(running, "GET", f"{KEYS}/ann")[0] == 404
    status, body = act(running, "POST", KEYS, {"name": "ann"})
    assert (status, body["error"]["code"]) == (409, "key_exists")  # its owner's runs are stored under it


def test_every_act_is_recorded_without_a_secret(running: Running) -> None:
    secret = make(running, requests_per_minute=5)
    act(running, "PATCH", f"{KEYS}/ann", {"blocked": True})
    rotated = act(running, "POST", f"{KEYS}/ann/rotate")[1]["key"]
    act(running, "DELETE", f"{KEYS}/ann")
    act(running, "PATCH", f"{KEYS}/nobody", {"blocked": True})  # nothing was done
    status, body = act(running, "GET", "/v1/admin/audit")
    assert status == 200
    acts = [(entry["admin"], entry["action"], entry["key"]) for entry in reversed(body["data"])]
    assert acts == [("root", action, "ann") for action in ("create", "block", "rotate", "delete")]
    assert body["data"][-1]["changes"]["requests_per_minute"] == 5
    assert all(entry["request_id"] for entry in body["data"])
    assert secret not in str(body)
    assert rotated not in str(body)
    page = act(running, "GET", "/v1/admin/audit?limit=1&before=3")[1]["data"]
    assert [entry["action"] for entry in page] == ["block"]
    assert act(running, "GET", "/v1/admin/audit?limit=x")[0] == 400


def test_neither_kind_of_key_opens_what_is_of_the_other(running: Running) -> None:
    assert chat(running, ADMIN) == (401, "invalid_api_key")
    for key in (SHOP, make(running), "tao-nothing", ""):
        status, body = act(running, "GET", KEYS, key=key)
        assert (status, body["error"]["code"]) == (401, "invalid_admin_key")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"name": "shop"}, 409, "key_exists"),  # that of a key in the file
        ({"name": "jwt:ann"}, 400, "invalid_value"),
        ({"name": " "}, 400, "invalid_value"),
        ({"name": "ann", "request_per_minute": 5}, 400, "invalid_value"),  # a typing error would be no limit
        ({"name": "ann", "requests_per_minute": 0}, 400, "invalid_value"),
        ({"name": "ann", "agents": ["nobody"]}, 400, "invalid_value"),
        ({"name": "ann", "expires": "soon"}, 400, "invalid_value"),
        ({}, 400, "missing_required_parameter"),
    ],
)
def test_an_invalid_key_is_not_made(running: Running, body: Any, status: int, code: str) -> None:
    answer_status, answer = act(running, "POST", KEYS, body)
    assert (answer_status, answer["error"]["code"]) == (status, code)
    assert act(running, "GET", KEYS)[1]["data"] == []


def test_without_admin_keys_there_is_no_admin_api() -> None:
    with upstream("x") as server, gateway(config_of(agent(server), keys=(SHOP_ENTRY,))) as running:
        assert act(running, "GET", KEYS)[0] == 404


def test_a_key_holds_in_every_process_of_a_gateway_and_after_a_restart(running: Running, file: Path) -> None:
    secret = make(running)
    database = GatewayDatabase(file)
    with upstream("x") as server:
        config = config_of(agent(server), admin_keys=(ADMIN_ENTRY,))
        with gateway(config, database=database) as other:
            assert chat(other, secret)[0] == 200
            act(running, "PATCH", f"{KEYS}/ann", {"blocked": True})
            assert chat(other, secret) == (401, "key_blocked")
    database.close()
