"""Under which names the gateway is served: DNS rebinding, and pages of other ports of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.serve.gateway.clients import CHAT, RESPONSES, ask, post
from tests.serve.gateway.conftest import Running, agent, config_of, gateway, upstream

from taoloop.errors import AgentFileError, ConfigError
from taoloop.serve.gateway.auth.keys import new_key
from taoloop.serve.gateway.config.config_summary import config_summary
from taoloop.serve.gateway.config.gateway_file import load_config

PROBES = ("/healthz", "/readyz")
ROUTES_BY_NAME = ("/v1/models", "/metrics", "/openapi.json", "/v1/runs/20270115-080000-1a2b3c4d", "/unknown", "/")


def ask_by_name(running: Running, path: str, host: str, method: str = "GET") -> tuple[int, Any]:
    return post(running, b"", path=path, method=method, Host=host)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "10.0.0.1", "localhost.evil.example"])
def test_without_keys_no_other_name_is_served(host: str) -> None:
    """DNS rebinding: a page whose name resolves to this machine is of the server's origin for its browser."""
    body = {"model": "assistant", "messages": ask("Hi.")}
    same_origin = {"Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin", "Host": host}
    with upstream("Hello.") as server, gateway(config_of(agent(server))) as running:
        for path in (CHAT, RESPONSES):
            status, told = post(running, body, path=path, **same_origin)
            assert (status, told["error"]["code"]) == (421, "host_not_allowed")
        for path in ROUTES_BY_NAME:
            status, told = ask_by_name(running, path, host)
            assert (status, told["error"]["code"]) == (421, "host_not_allowed"), path
        assert "server.allow_hosts" in told["error"]["message"]
        for path in PROBES:
            assert ask_by_name(running, path, host)[0] == 200
        assert running.traces() == []


def test_names_of_this_machine_and_configured_ones_are_served() -> None:
    with upstream("Hello.") as server:
        config = config_of(agent(server), allow_hosts=("chat.example", "api.example:8443"))
        with gateway(config) as running:
            for host in ("localhost", "127.9.9.9:1", "[::1]:8080", "CHAT.example:80", "api.example:8443"):
                assert ask_by_name(running, "/v1/models", host)[0] == 200, host
            status, told = ask_by_name(running, "/v1/models", "api.example")
            assert status == 421
            assert "--allow-host api.example" in told["error"]["message"]


def test_with_keys_every_name_is_served() -> None:
    secret, key = new_key("ann")
    with upstream("Hello.") as server, gateway(config_of(agent(server), keys=(key,))) as running:
        for host in ("chat.example", "10.0.0.1:8080", "localhost"):
            headers = {"Host": host, "Authorization": f"Bearer {secret}"}
            assert post(running, b"", path="/v1/models", method="GET", **headers)[0] == 200


def test_a_page_of_another_port_of_this_machine_may_not_call() -> None:
    body = {"model": "assistant", "messages": ask("Hi.")}
    page = {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site", "Host": "localhost:8080"}
    with upstream("Hello.") as server:
        with gateway(config_of(agent(server))) as running:
            status, told = post(running, body, **page)
            assert (status, told["error"]["code"]) == (403, "origin_not_allowed")
            assert running.traces() == []
        with gateway(config_of(agent(server), allow_origins=("http://localhost:3000",))) as running:
            assert post(running, body, **page)[0] == 200


def test_names_come_from_the_file_or_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    text = "agents:\n  sums: {model: offline}\nserver:\n  allow_hosts: [%s]\n"
    path.write_text(text % "Chat.example, chat.example, 'api.example:8443'")
    config = load_config(path, env={})
    assert config.allow_hosts == ("chat.example", "api.example:8443")
    assert "chat.example, api.example:8443" in config_summary(config)
    assert load_config(path, env={}, allow_hosts=["other.example"]).allow_hosts == ("other.example",)
    with pytest.raises(ConfigError, match="is not a host name"):
        load_config(path, env={}, allow_hosts=["http://x"])
    path.write_text(text % "chat.example, '*'")
    with pytest.raises(AgentFileError, match=r"server\.allow_hosts\[1\].*is not a host name"):
        load_config(path, env={})
