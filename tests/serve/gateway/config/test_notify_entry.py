"""`server.notify` of a gateway file: who is told what waits for a person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.runtime.paying import pay, paying
from tests.serve.gateway.conftest import config_of, gateway, until

from taoloop import Agent, MemoryJournal, ScriptedModel
from taoloop.errors import AgentFileError
from taoloop.runtime.notifications.hooks import NotificationSettings
from taoloop.serve.gateway.config.config_summary import config_summary
from taoloop.serve.gateway.config.gateway_file import load_config
from taoloop.serve.gateway.config.model import GatewayConfig
from taoloop.testing import HttpDouble

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # of nobody


def load(folder: Path, notify: Any, **server: Any) -> GatewayConfig:
    path = folder / "gate.yaml"
    agents = {"payer": {"model": "offline"}}
    path.write_text(yaml.safe_dump({"agents": agents, "server": {"notify": notify, **server}}))
    return load_config(path, env={"HOOK_SECRET": SECRET})


def test_a_file_names_a_webhook_and_a_command_and_its_secret_comes_from_the_environment(tmp_path: Path) -> None:
    entry = {"url": "https://hooks.example/T0K3N", "secret": "${HOOK_SECRET}", "command": ["notify-send", "tao"]}
    config = load(tmp_path, {**entry, "timeout_s": 5})
    assert config.notify == NotificationSettings(
        url="https://hooks.example/T0K3N", secret=SECRET, command=("notify-send", "tao"), timeout_s=5.0
    )
    assert SECRET in config.secrets.values(), "so that it is redacted everywhere"
    summary = config_summary(config)
    assert "told what waits for a person: webhook hooks.example:443, command notify-send" in summary
    assert "T0K3N" not in summary
    assert "whsec" not in summary
    assert load(tmp_path, {"command": ["x"]}).notify == NotificationSettings(command=("x",))


@pytest.mark.parametrize(
    ("notify", "message"),
    [
        ({"url": "https://hooks.example", "secret": SECRET}, "a secret must not be written in a file"),
        ({"url": "https://hooks.example"}, "a webhook needs one"),
        ({"url": "hooks.example", "secret": "${HOOK_SECRET}"}, "this is not an address"),
        ({"url": "https://hooks.example", "secret": "${NONE}"}, "NONE"),
        ({"command": "notify-send tao"}, "list"),
    ],
)
def test_what_could_tell_nobody_is_refused_with_its_field(tmp_path: Path, notify: Any, message: str) -> None:
    with pytest.raises(AgentFileError, match=message) as caught:
        load(tmp_path, notify)
    assert "server.notify" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_the_gateway_tells_what_waits_with_a_link_to_its_panel() -> None:
    script = ScriptedModel([paying(5)])
    agent = Agent(model=script, tools=[pay], name="payer")
    journal = MemoryJournal()
    with HttpDouble([(204, {})]) as double:
        notify = NotificationSettings(url=double.url, secret=SECRET)
        config = config_of(agent, notify=notify, public_url="https://tao.example")
        with gateway(config, journal=journal):
            run_id = Agent(model=script, tools=[pay], name="payer", journal=journal).run_sync("go").run_id
            until(lambda: double.bodies)
    data = json.loads(double.bodies[0])["data"]
    assert (data["run_id"], data["call_id"], data["tools"]) == (run_id, "call_1", ["pay"])
    assert data["url"] == f"https://tao.example/panel/inbox/{run_id}/call_1"
