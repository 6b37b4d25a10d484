"""Who is told what waits for a person, by the options of `tao panel`."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Mapping

import pytest
from tests.runtime.paying import pay
from tests.shell import Shell, call, launch, until_line, until_true

from taoloop import Agent, ScriptedModel, SqliteJournal
from taoloop.cli.notification_options import notification_settings
from taoloop.errors import ConfigError
from taoloop.runtime.notifications.hooks import NotificationSettings
from taoloop.testing import HttpDouble

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # of nobody
ENV = {"TAOLOOP_NOTIFY_SECRET": SECRET}
URL = "https://hooks.example/x"


@pytest.mark.parametrize(
    ("url", "command", "env", "settings"),
    [
        (None, None, ENV, None),
        (URL, None, ENV, NotificationSettings(url=URL, secret=SECRET)),
        (None, None, {**ENV, "TAOLOOP_NOTIFY_URL": URL}, NotificationSettings(url=URL, secret=SECRET)),
        (None, "notify-send 'a b; c'", {}, NotificationSettings(command=("notify-send", "a b; c"))),
        (None, None, {"TAOLOOP_NOTIFY_COMMAND": "beep"}, NotificationSettings(command=("beep",))),
        ("", "", {**ENV, "TAOLOOP_NOTIFY_URL": URL}, None),
    ],
)
def test_options_go_before_the_environment_which_alone_has_the_secret(
    url: str | None, command: str | None, env: Mapping[str, str], settings: NotificationSettings | None
) -> None:
    assert notification_settings(url, command, env) == settings


@pytest.mark.parametrize(
    ("url", "command", "env", "message"),
    [
        (URL, None, {}, "has no secret: set TAOLOOP_NOTIFY_SECRET"),
        (URL, None, {"TAOLOOP_NOTIFY_SECRET": "hunter2"}, "whsec_"),
        ("hooks.example", None, ENV, "not an address"),
        (None, "say 'hello", {}, "cannot be split into words"),
    ],
)
def test_what_could_tell_nobody_is_refused_at_the_start(
    url: str | None, command: str | None, env: Mapping[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        notification_settings(url, command, env)
    assert "hunter2" not in str(caught.value)


def test_the_panel_tells_what_waits_with_a_link_to_it(tao: Shell) -> None:
    async def wait() -> None:
        async with SqliteJournal(tao.folder / "runs.db") as journal:
            model = ScriptedModel([call("pay", to="ann", amount=5)])
            await Agent(model=model, tools=[pay], journal=journal).run("go")

    asyncio.run(wait())
    with HttpDouble([(204, {})]) as double:
        args = ["panel", "--port", "0", "--notify-url", f"{double.url}/hook"]
        process = launch(args, tao.folder, {**tao.env, **ENV}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            address = until_line(process, process.stdout, "/login?token=").split(": ", 1)[1].partition("/login")[0]
            until_true(process, "the notice", lambda: double.bodies)
        finally:
            process.kill()
            process.communicate()
    data = json.loads(double.bodies[0])["data"]
    assert data["tools"] == ["pay"]
    assert data["url"] == f"{address}/inbox/{data['run_id']}/{data['call_id']}"
    assert SECRET not in " ".join(args)
