"""Where notices go; what a webhook sends is verified by an implementation of the specification of its own."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import sys
from pathlib import Path

import pytest

from taoloop.errors import ConfigError
from taoloop.runtime.notifications.hooks import (
    CommandHook,
    DeliveryResult,
    NotificationSettings,
    Webhook,
    hooks_of,
    signature,
    signing_keys,
)
from taoloop.runtime.notifications.notice import Notice
from taoloop.testing import FakeNames, HttpDouble

KEY, NEXT_KEY = bytes(range(32)), bytes(range(32, 64))
SECRET, NEXT_SECRET = (f"whsec_{base64.b64encode(key).decode()}" for key in (KEY, NEXT_KEY))
NOW = 1_800_000_000.75
NOTICE = Notice(
    id="msg_1", kind="approval", run_id="r1", call_id="call_1", task="付 5 元", agent="payer", tools=("pay",),
    tier="write", reasons=("it is owed",), reason_codes=("write",), since=NOW, expires_at=NOW + 60,
    url="https://tao.example/inbox/r1/call_1",
)  # fmt: skip


def verified(double: HttpDouble, index: int, *keys: bytes, now: float = NOW) -> bool:
    """Whether a receiver accepts a message: as https://www.standardwebhooks.com describes it, read anew."""
    headers, body = double.headers[index], double.bodies[index]
    if abs(int(headers["webhook-timestamp"]) - now) > 300:
        return False
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = {b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)) for key in keys}
    return any(
        hmac.compare_digest(part.encode(), good) for part in headers["webhook-signature"].split() for good in expected
    )


def sent(double: HttpDouble, secret: str = SECRET, *, path: str = "/hooks/T0K3N") -> DeliveryResult:
    return asyncio.run(Webhook(double.url + path, secret).send(NOTICE, NOW))


def test_a_webhook_is_signed_so_that_its_receiver_can_verify_it() -> None:
    with HttpDouble([(204, {})]) as double:
        assert sent(double) == DeliveryResult()
    assert verified(double, 0, KEY)
    assert not verified(double, 0, NEXT_KEY), "of another secret"
    assert not verified(double, 0, KEY, now=NOW + 3_600), "sent again much later by somebody who has seen it"
    double.bodies[0] = double.bodies[0].replace(b"call_1", b"call_2")
    assert not verified(double, 0, KEY), "changed on the way"
    assert double.headers[0]["webhook-id"] == "msg_1"
    assert double.headers[0]["content-type"] == "application/json"


def test_the_message_has_what_a_person_needs_to_decide_to_look() -> None:
    with HttpDouble([(200, {})]) as double:
        sent(double)
    message = json.loads(double.bodies[0])
    assert (message["type"], message["timestamp"]) == ("approval.requested", "2027-01-15T08:00:00.750Z")
    assert message["data"] == {
        "id": "msg_1", "kind": "approval", "run_id": "r1", "call_id": "call_1", "agent": "payer", "task": "付 5 元",
        "tools": ["pay"], "tier": "write", "reasons": ["it is owed"], "reason_codes": ["write"],
        "expires_at": "2027-01-15T08:01:00.750Z", "url": "https://tao.example/inbox/r1/call_1",
    }  # fmt: skip
    assert double.bodies[0].isascii(), "what an invisible character would do is left to nobody"


def test_two_secrets_sign_twice_so_that_a_receiver_can_change_from_one_to_the_other() -> None:
    with HttpDouble([(200, {})]) as double:
        sent(double, f"{SECRET} {NEXT_SECRET}")
    assert verified(double, 0, KEY)
    assert verified(double, 0, NEXT_KEY)


def test_the_secret_of_the_specification_signs_as_its_example() -> None:
    """The test vector of the reference libraries (standard-webhooks/standard-webhooks)."""
    keys = signing_keys("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = signature(keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    ("answer", "attempt"),
    [
        ((500, {}), DeliveryResult(problem="status 500")),
        ((307, {}), DeliveryResult(problem="status 307")),
        ((410, {}), DeliveryResult(problem="status 410", is_final=True)),
    ],
)
def test_anything_but_success_is_a_failure(answer: tuple[int, object], attempt: DeliveryResult) -> None:
    with HttpDouble([answer]) as double:
        assert sent(double) == attempt
    assert len(double.bodies) == 1, "a redirect is not followed"


def test_a_receiver_may_ask_for_more_time() -> None:
    def wait(connection: object) -> None:
        connection.sendall(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 90\r\nContent-Length: 0\r\n\r\n")  # type: ignore[attr-defined]  # a socket

    with HttpDouble([wait]) as double:
        assert sent(double) == DeliveryResult(problem="status 429", retry_after_s=90.0)


def test_what_cannot_be_reached_is_a_failure_whose_text_has_no_path() -> None:
    with HttpDouble([]) as double:
        url = double.url
    attempt = asyncio.run(Webhook(f"{url}/hooks/T0K3N", SECRET).send(NOTICE, NOW))
    assert attempt.problem
    assert "T0K3N" not in attempt.problem
    assert "T0K3N" not in Webhook(f"{url}/hooks/T0K3N", SECRET).name


def test_an_address_of_the_operator_may_be_internal_but_not_the_metadata_service() -> None:
    names = FakeNames({"chat.internal": ["169.254.169.254"]})
    hook = Webhook("http://chat.internal/hook", SECRET, resolver=names)
    assert "not allowed" in asyncio.run(hook.send(NOTICE, NOW)).problem


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"url": "https://hooks.example/x"}, "secret"),
        ({"url": "ftp://hooks.example/x", "secret": SECRET}, "url"),
        ({"url": "https://u:p@hooks.example/x", "secret": SECRET}, "URL"),
        ({"url": "https://hooks.example/x", "secret": "hunter2"}, "secret"),
        ({"url": "https://hooks.example/x", "secret": "whsec_c2hvcnQ="}, "secret"),
        ({"url": "https://hooks.example/x", "secret": f"{SECRET} whsec_%%%"}, "secret"),
        ({"command": ("",)}, "command"),
        ({"timeout_s": 0.0}, "timeout_s"),
    ],
)
def test_settings_that_could_deliver_nothing_are_refused(values: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named) as caught:
        NotificationSettings(**values)  # type: ignore[arg-type]  # wrong on purpose
    assert "hunter2" not in str(caught.value), "a secret is in no message"


def test_settings_show_no_secret_and_name_their_hooks() -> None:
    settings = NotificationSettings(url="https://hooks.example/x/T0K3N", secret=SECRET, command=("notify", "--tao"))
    assert SECRET not in repr(settings)
    assert [hook.name for hook in hooks_of(settings)] == ["webhook hooks.example:443", "command notify"]
    assert hooks_of(NotificationSettings()) == hooks_of(None) == []


def python(code: str, *args: str) -> CommandHook:
    return CommandHook([sys.executable, "-S", "-c", code, *args], timeout_s=30.0)


def test_a_command_gets_the_message_on_its_standard_input_and_its_arguments_as_they_are(tmp_path: Path) -> None:
    target = tmp_path / "got; rm -rf $HOME"
    code = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(sys.stdin.read())"
    assert asyncio.run(python(code, str(target)).send(NOTICE, NOW)) == DeliveryResult()
    assert json.loads(target.read_text()) == json.loads(NOTICE.body())


def test_a_command_that_fails_says_why() -> None:
    attempt = asyncio.run(python("import sys; sys.exit('no bus')").send(NOTICE, NOW))
    assert attempt.problem == "exit code 1: no bus"
    missing = asyncio.run(CommandHook(["/no/such/program"]).send(NOTICE, NOW))
    assert missing.problem == "No such file or directory"


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="there are no groups of processes")
def test_a_command_that_hangs_is_ended_with_what_it_has_started(tmp_path: Path) -> None:
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-S', '-c', 'import sys; open(sys.argv[1], \"w\"); input()',"
        " sys.argv[1]], stdin=subprocess.PIPE)\n"
        "child.wait()\n"
    )
    hook = CommandHook([sys.executable, "-S", "-c", code, str(fifo)], timeout_s=30.0)

    async def run() -> bytes:
        sending = asyncio.create_task(hook.send(NOTICE, NOW))
        reading = await asyncio.to_thread(fifo.open, "rb")  # once the child has opened it
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        with reading:
            return await asyncio.to_thread(reading.read)  # its end: nobody holds it open any more

    assert asyncio.run(run()) == b""


def test_a_command_that_takes_too_long_has_failed() -> None:
    hook = CommandHook([sys.executable, "-S", "-c", "import time; time.sleep(600)"], timeout_s=0.01)
    assert asyncio.run(hook.send(NOTICE, NOW)).problem == "no end within 0.01 s"
