"""Who may ask what, and how much: keys, agents of a key, budgets, and the size and the time of a body."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
import tracemalloc
import zlib
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.serve.gateway.clients import NOTE, SENT, body_of, post, send_note, speak
from tests.serve.gateway.conftest import Running, config_of, gateway, model_env, until, upstream
from tests.serve.gateway.server_process import fetch, fetch_text

from taoloop import Agent, tool
from taoloop.serve.gateway.auth.keys import ApiKey, new_key
from taoloop.serve.gateway.config.model import ServerLimits

MEGABYTE = 1024 * 1024


def test_a_body_that_says_that_it_is_too_large_is_refused_before_it_comes(running: Running) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 104857600\r\n\r\n"
    said = speak(running, head, until_closed=False)
    assert said.startswith(b"HTTP/1.1 413 ")
    assert b"request_too_large" in said or b"Content-Length" in said


@pytest.mark.parametrize("packed", [False, True])
def test_a_hundred_megabytes_are_not_read_into_memory(running: Running, packed: bool) -> None:
    if packed:
        data = gzip.compress(bytes(100 * MEGABYTE), 9)
        head = b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(data)
        pieces = [data]
    else:
        head = b"Transfer-Encoding: chunked\r\n\r\n"
        pieces = [b"%x\r\n%s\r\n" % (MEGABYTE, b" " * MEGABYTE)] * 100 + [b"0\r\n\r\n"]
    tracemalloc.start()
    try:
        start = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        said = speak(running, start + head, *pieces)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert said.startswith(b"HTTP/1.1 413 "), said[:200]
    assert b"request_too_large" in said
    assert most < 20 * MEGABYTE


def test_a_packed_body_is_read_as_any_other(running: Running) -> None:
    body = json.dumps(body_of()).encode()
    for pack, kind in ((gzip.compress, "gzip"), (zlib.compress, "deflate")):
        assert post(running, pack(body), **{"Content-Encoding": kind})[0] == 200


@pytest.mark.parametrize("kind", ["gzip", "deflate", "br", "zstd", "compress", "nonsense"])
def test_a_body_that_cannot_be_unpacked_is_refused(running: Running, kind: str) -> None:
    status, told = post(running, b"\x1f\x8bthis is not packed", **{"Content-Encoding": kind})
    assert status in (400, 415), told


def test_a_body_that_breaks_off_when_unpacked_is_refused(running: Running) -> None:
    status, told = post(running, gzip.compress(json.dumps(body_of()).encode())[:-12], **{"Content-Encoding": "gzip"})
    assert status == 400, told


def test_a_sender_that_is_too_slow_is_told_so(running: Running) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n"
    said = speak(running, head + b'{"model": ', until_closed=False)
    assert said.startswith(b"HTTP/1.1 408 ")


def test_a_sender_that_breaks_off_costs_nothing(running: Running) -> None:
    count = len(running.traces())
    address = urlsplit(running.url)
    for bad in (b"", b'{"model": ', b"zz\r\n"):
        with socket.create_connection((address.hostname or "", address.port or 0), timeout=20) as line:
            line.sendall(b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + bad)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert post(running, body_of())[0] == 200
    assert len(running.traces()) == count + 1


def ask(url: str, secret: str = "", model: str = "assistant", text: str = "Hi.", **more: Any) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    body = {"model": model, "messages": [{"role": "user", "content": text}], **more}
    return fetch(f"{url}/v1/chat/completions", body, headers)


def keyed(name: str, **allowed: Any) -> tuple[str, ApiKey]:
    secret, key = new_key(name)
    return secret, replace(key, **allowed)


def test_with_keys_nobody_asks_without_one_and_each_only_its_agents() -> None:
    (alice, one), (bob, two) = keyed("alice"), keyed("bob", agents=("other",))
    with upstream("Hello.") as server:
        agents = [Agent(model="openai:m", env=model_env(server), name=name) for name in ("assistant", "other")]
        with gateway(config_of(*agents, keys=(one, two))) as running:
            assert ask(running.url)[0] == 401
            status, body = ask(running.url, "tao-wrong")
            assert (status, body["error"]["code"]) == (401, "invalid_api_key")
            assert "tao-wrong" not in str(body)
            assert ask(running.url, alice)[0] == 200
            assert ask(running.url, bob)[0] == 404
            assert ask(running.url, bob, "other")[0] == 200
            _, listed = fetch(f"{running.url}/v1/models", None, {"Authorization": f"Bearer {bob}"})
            assert [one["id"] for one in listed["data"]] == ["other"]
            run_id = next(trace.run_id for trace in running.traces() if trace.agent.name == "assistant")
            for secret, expected in ((alice, 200), (bob, 404)):
                assert fetch(f"{running.url}/v1/runs/{run_id}", None, {"x-api-key": secret})[0] == expected


def test_a_key_that_asks_too_often_is_told_when_to_come_back() -> None:  # S3-46
    secret, key = keyed("alice", requests_per_minute=2)
    with upstream("Hello.") as server:
        agent = Agent(model="openai:m", env=model_env(server), name="assistant")
        with gateway(config_of(agent, keys=(key,))) as running:
            assert [ask(running.url, secret)[0] for _ in range(3)] == [200, 200, 429]
            _, body = ask(running.url, secret)
            assert body["error"]["code"] == "rate_limit_exceeded"


def test_tokens_that_were_used_count_and_unpriced_models_are_told() -> None:
    secret, key = keyed("alice", tokens_per_minute=20)
    with upstream("Hello.") as server:
        agent = Agent(model="openai:m", env=model_env(server), name="assistant")
        with gateway(config_of(agent, keys=(key,))) as running:
            assert [ask(running.url, secret)[0] for _ in range(3)] == [200, 200, 429]  # 13 tokens each


@pytest.mark.parametrize("streamed", [False, True])
def test_a_full_server_refuses_at_once_and_takes_requests_again(streamed: bool) -> None:
    with upstream({"text": "At last.", "hangs": True}, "Hello.") as server:
        agent = Agent(model="openai:m", env=model_env(server), name="assistant")
        with gateway(config_of(agent, limits=ServerLimits(max_runs=1))) as running:
            found: list[Any] = []
            first = threading.Thread(target=lambda: found.append(ask(running.url)))
            first.start()
            assert server.waiting.wait(10)
            status, body = ask(running.url, stream=streamed)
            assert (status, body["error"]["code"]) == (429, "server_busy")
            server.go_on()
            first.join(10)
            assert found[0][0] == 200
            assert ask(running.url)[0] == 200
            _, page = fetch_text(f"{running.url}/metrics")
            assert 'taoloop_refusals_total{kind="runs"} 1.0' in page
            assert "taoloop_runs_under_way 0.0" in page


def test_a_key_without_the_right_may_not_approve() -> None:
    SENT.clear()
    secret, key = keyed("alice", may_approve=False, task_authority="full")
    with upstream(NOTE, "Done.") as server:
        agent = Agent(model="openai:m", env=model_env(server), name="assistant", tools=[send_note], dialect="native")
        with gateway(config_of(agent, keys=(key,))) as running:
            _, body = ask(running.url, secret, text="Be nice to everybody.")
            content = body["choices"][0]["message"]["content"]
            messages = [
                {"role": "user", "content": "Be nice to everybody."},
                {"role": "assistant", "content": content},
                {"role": "user", "content": "yes"},
            ]
            status, told = ask(running.url, secret, messages=messages)
            assert (status, told["error"]["code"]) == (403, "approval_not_allowed")
            assert SENT == []


def test_what_does_not_end_in_time_at_a_shutdown_is_stopped_and_can_be_resumed() -> None:
    with upstream({"text": "At last.", "hangs": True}) as server:
        agent = Agent(model="openai:m", env=model_env(server), name="assistant")
        limits = ServerLimits(shutdown_s=0.2)
        with gateway(config_of(agent, limits=limits)) as running:
            found: list[Any] = []

            def asking() -> None:
                try:
                    found.append(ask(running.url))
                except OSError as error:
                    found.append(error)

            first = threading.Thread(target=asking)
            first.start()
            assert server.waiting.wait(10)
        first.join(10)
        assert running.traces()[0].status == "stopped"
        assert len(found) == 1


def test_the_journal_is_asked_for_nothing_by_health_checks() -> None:
    with upstream("x") as server:
        agent = Agent(model="openai:m", env=model_env(server), name="assistant")
        with gateway(config_of(agent)) as running:
            assert fetch(f"{running.url}/healthz") == (200, {"status": "ok"})
            until(lambda: fetch(f"{running.url}/readyz")[0] == 200)
            assert running.traces() == []


@tool(tier="destructive")
def wipe(disk: str) -> str:
    """Wipe a disk."""
    SENT.append({"disk": disk})
    return "wiped"


@pytest.mark.parametrize(("word", "wiped"), [("ok", 0), ("yes", 1)])
def test_what_is_hard_to_undo_takes_a_whole_word(word: str, wiped: int) -> None:
    SENT.clear()
    call = {"tool_calls": [{"name": "wipe", "args": {"disk": "sda"}}]}
    with upstream(call, "Done.") as server:
        agent = Agent(model="openai:m", env=model_env(server), name="assistant", tools=[wipe], dialect="native")
        with gateway(config_of(agent)) as running:
            _, body = ask(running.url, text="Tidy up here.")
            messages = [
                {"role": "user", "content": "Tidy up here."},
                {"role": "assistant", "content": body["choices"][0]["message"]["content"]},
                {"role": "user", "content": word},
            ]
            status, told = ask(running.url, messages=messages)
            assert status == 200
            assert len(SENT) == wiped
            assert told["agent"]["status"] == ("completed" if wiped else "waiting")
