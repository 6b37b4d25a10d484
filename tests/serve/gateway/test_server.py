"""The server: connections that send no valid request, and `tao serve` as a process, its files and signals."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.serve.gateway.ai_agent import changed
from tests.serve.gateway.clients import post, speak
from tests.serve.gateway.conftest import AGENT, Running, agent, client, config_of, gateway, model_env, until, upstream
from tests.serve.gateway.judging import openai_schema
from tests.serve.gateway.server_process import fetch, is_ready, run, serving
from tests.shell import Shell

from taoloop import MemoryJournal
from taoloop.core.events import Finished
from taoloop.journals.retention import Retention
from taoloop.serve.gateway.auth.keys import digest_of
from taoloop.serve.gateway.config.gateway_file import load_config
from taoloop.serve.gateway.server import _connection_error
from taoloop.testing.journal_contract import STARTED, events


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100 + b"\r\n\r\n",
        b"hello\r\n\r\n",
        b"BREW /v1/responses HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST\r\n\r\n",
        b"POST /v1/chat/completions HTTP/9.9\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nbad header\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer tao-s3cret-in-a-header\x00\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer tao-s3cret-in-a-header"
        + b"x" * 100_000
        + b"\r\n\r\n",
        b"GET /v1/models?" + b"q" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/responses HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n"
        + b"".join(b"h%d: x\r\n" % n for n in range(50_000))
        + b"\r\n",
    ],
)
def test_what_is_no_http_is_refused_and_its_text_does_not_get_into_the_log(
    running: Running, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    said = speak(running, garbage)
    head, _, body = said.partition(b"\r\n\r\n")
    status, told = int(head.split(b" ")[1]), json.loads(body)["error"]
    assert (status, told["code"]) in ((400, "invalid_http"), (431, "header_too_long")), said
    openai_schema("ErrorResponse").validate({"error": told})
    assert b"s3cret" not in said
    assert "s3cret" not in caplog.text
    assert "Traceback" not in caplog.text
    assert post(running, b"", path="/healthz", method="GET")[0] == 200


def test_a_connection_that_brings_no_header_is_closed() -> None:
    with upstream("x") as server, gateway(config_of(agent(server)), idle_s=0.2) as running:
        assert speak(running, b"POST /v1/responses HTT") == b""
        assert speak(running) == b""


def test_it_is_ready_serves_and_ends_with_a_signal(agent_file: Path) -> None:
    with upstream("Hello.") as server, serving(agent_file, server) as served:
        assert served.get("/readyz") == (200, {"status": "ready"})
        status, body = served.ask("Hi.")
        assert (status, body["choices"][0]["message"]["content"]) == (200, "Hello.")
        served.process.send_signal(signal.SIGTERM)
        served.said("The server is shutting down; active runs have 30 s to finish.")
        assert served.process.wait(10) == 0


@pytest.mark.parametrize("by_signal", [True, False])
def test_a_changed_file_is_taken_up_and_a_broken_one_is_not(agent_file: Path, by_signal: bool) -> None:
    with upstream("Hello.") as server, serving(agent_file, server) as served:

        def changed(text: str) -> None:
            agent_file.write_text(text)
            if by_signal:
                served.process.send_signal(signal.SIGHUP)

        changed(AGENT.format(name="assistant", instructions="Speak like a pirate."))
        served.said("The changed configuration is in use.")
        served.ask("Hi.")
        assert "Speak like a pirate." in server.asked[-1]["messages"][0]["content"]
        changed("name: assistant\nmodel: nothing-of-that-kind:x\n")
        served.said("agent.yaml:2")
        status, _ = served.ask("Hi.")
        assert status == 200
        assert "Speak like a pirate." in server.asked[-1]["messages"][0]["content"]


def test_requests_under_way_are_answered_before_it_ends(agent_file: Path) -> None:
    slow = {"text": "At last.", "hangs": True}
    with upstream(slow) as server, serving(agent_file, server) as served:
        found: list[Any] = []
        asking = threading.Thread(target=lambda: found.append(served.ask("Hi.")))
        asking.start()
        assert server.waiting.wait(10)
        served.process.send_signal(signal.SIGTERM)
        until(lambda: not is_ready(served.url))
        server.go_on()
        asking.join(10)
        assert found[0][1]["choices"][0]["message"]["content"] == "At last."
        assert served.process.wait(10) == 0


def test_an_approval_from_another_process_lets_the_run_go_on(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(
        "from taoloop import tool\n\n\n@tool(tier='write')\ndef send_note(to: str) -> str:\n"
        '    """Send a note to a person."""\n    return "sent"\n'
    )
    path = tmp_path / "agent.yaml"
    path.write_text("name: assistant\nmodel: openai:m\ndialect: native\ntools:\n  - notes:send_note\n")
    note = {"tool_calls": [{"name": "send_note", "args": {"to": "Ann"}}]}
    env = {"PYTHONPATH": str(tmp_path)}
    with upstream(note, "Done.") as server, serving(path, server, env=env) as served:
        status, body = served.ask("Be nice to everybody.")
        assert status == 200
        run_id = body["agent"]["run_id"]
        [waits] = body["agent"]["waiting_for"]
        approve = Shell(tmp_path).process("approve", run_id, waits["call_id"], PYTHONPATH=str(tmp_path))
        assert approve.code in (0, 10), approve.err
        until(lambda: served.get(f"/v1/runs/{run_id}")[1]["status"] == "completed")
        assert served.get(f"/v1/runs/{run_id}")[1]["answer"] == "Done."


def test_an_approval_by_the_route_lets_the_run_go_on(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(
        "from taoloop import tool\n\n\n@tool(tier='write')\ndef send_note(to: str) -> str:\n"
        '    """Send a note to a person."""\n    return "sent"\n'
    )
    path = tmp_path / "agent.yaml"
    path.write_text("name: assistant\nmodel: openai:m\ndialect: native\ntools:\n  - notes:send_note\n")
    note = {"tool_calls": [{"name": "send_note", "args": {"to": "Ann"}}]}
    with upstream(note, "Done.") as server, serving(path, server, env={"PYTHONPATH": str(tmp_path)}) as served:
        _, body = served.ask("Be nice to everybody.")
        run_id = body["agent"]["run_id"]
        route = f"{served.url}/v1/runs/{run_id}/approvals"
        status, shown = fetch(route, {"decision": "deny", "note": "not now"})
        assert (status, shown["waiting_for"]) == (200, [])
        assert fetch(route, {"decision": "approve"})[0] == 409
        until(lambda: served.get(f"/v1/runs/{run_id}")[1]["status"] == "completed")
        assert "not now" in json.dumps(server.asked[-1]["messages"])


def test_it_does_not_serve_the_whole_network_without_keys(agent_file: Path) -> None:
    made = run(
        agent_file.parent, agent_file.name, "--host", "::", "--port", "0", env={"OPENAI_API_KEY": "sk-0123456789abcdef"}
    )
    assert made.code == 2
    assert "keys" in made.err
    assert "--new-key" in made.err


@pytest.mark.parametrize("pair", ["llm", "=127.0.0.1:2", "a="])
def test_a_pair_of_another_form_is_refused(pair: str, tmp_path: Path) -> None:
    done = run(tmp_path, "agent.yaml", "--resolve", pair)
    assert done.code == 2
    assert "not of the form NAME=HOST:PORT" in done.err


def test_a_check_refuses_what_the_server_would_refuse(agent_file: Path) -> None:
    env = {"OPENAI_API_KEY": "sk-0123456789abcdef"}
    made = run(agent_file.parent, agent_file.name, "--host", "0.0.0.0", "--check", env=env)  # noqa: S104  # it is refused
    assert made.code == 2
    assert "listens on: 0.0.0.0:8080" in made.out
    assert "the file names no keys" in made.err
    assert run(agent_file.parent, agent_file.name, "--check", env=env).code == 0


def test_a_port_that_is_taken_is_one_clear_line(agent_file: Path) -> None:
    with upstream("x") as server:
        port, db = server.url.rpartition(":")[2], str(agent_file.parent / "r.db")
        made = run(agent_file.parent, agent_file.name, "--port", port, "--db", db, env=model_env(server))
        assert made.code == 2
        assert "cannot be listened on" in made.err
        assert len(made.err.strip().splitlines()) == 1


def test_a_key_is_made_and_only_its_digest_is_for_the_file(tmp_path: Path) -> None:
    made = run(tmp_path, "--new-key", "alice")
    assert made.code == 0
    assert "tao-" in made.out
    assert "sha256:" in made.out


@pytest.mark.parametrize("name", ["alice", "商店", 'a: "b" #c', "no", "7"])
def test_what_goes_into_the_file_is_yaml_whatever_the_name(tmp_path: Path, name: str) -> None:
    secret, _, rest = run(tmp_path, "--new-key", name).out.partition("\n")
    assert yaml.safe_load(rest) == {"keys": [{"name": name, "digest": digest_of(secret)}]}


def test_a_new_file_that_was_broken_is_taken_up_once_it_is_mended(agent_file: Path) -> None:
    gate, more = agent_file.parent / "gate.yaml", agent_file.parent / "more.yaml"
    gate.write_text("agents:\n  assistant: agent.yaml\n")
    with upstream("Hello.") as server:
        load = partial(load_config, gate, env=model_env(server))
        with gateway(load(), load=load, poll_s=0.02) as running:

            def says(text: str) -> None:
                until(lambda: any(text in said for said in running.said))

            gate.write_text("agents:\n  assistant: agent.yaml\n  more: more.yaml\n")
            says("gate.yaml:3: agents.more")  # there is no such file
            more.write_text("model: nothing-of-that-kind:x\n")
            says("more.yaml:1: model")
            assert post(running, {"messages": [{"role": "user", "content": "Hi."}], "model": "assistant"})[0] == 200
            more.write_text("model: offline\n")
            says("The changed configuration is in use.")
            listed = fetch(f"{running.url}/v1/models")[1]["data"]
            assert [one["id"] for one in listed] == ["assistant", "more"]


def test_the_log_keeps_the_secrets_of_a_changed_file_to_itself(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    later = "a-key-that-came-later-91"

    def write(key: str) -> None:
        file.write_text(yaml.safe_dump(changed("06_flat_form.yaml", {"llm.apiKey": key}), allow_unicode=True))

    write("the-key-of-the-beginning")
    with upstream("Hello.") as server, serving(file, server) as served:
        fetch(f"{served.url}/v1/models", headers={"x-request-id": later})
        assert f"request_id={later}" in served.line("route=/v1/models")
        write(later)
        served.process.send_signal(signal.SIGHUP)
        served.said("The changed configuration is in use.")
        fetch(f"{served.url}/v1/models", headers={"x-request-id": later})
        line = served.line("route=/v1/models")
        assert later not in line
        assert "[redacted:" in line


@pytest.mark.parametrize(
    ("of_parser", "told"),
    [
        ("Invalid header token:\n\n  b'x tao-s3cret'\n    ^", ": Invalid header token."),
        ("Duplicate 'Host' header found.", ": Duplicate 'Host' header found."),
        ("Bad status line 'GET / tao-s3cret'", "."),
        ("tao-s3cret", "."),
    ],
)
def test_nothing_of_the_bytes_that_a_parser_shows_is_told(of_parser: str, told: str) -> None:
    """The parser in Python, which serves where the one in C is not built, writes them into the midst."""
    message = _connection_error(400, None, of_parser).message
    assert message == f"This is not a valid HTTP request{told}"


def test_old_runs_are_removed_while_requests_are_answered() -> None:
    journal = MemoryJournal()

    async def fill() -> None:
        finished = Finished(status="completed", answer="5", reason="answered")
        await journal.append(await journal.create("old"), events(STARTED, finished))
        await journal.append(await journal.create("unfinished"), events(STARTED))

    asyncio.run(fill())
    with (
        upstream("Hello.") as server,
        gateway(config_of(agent(server), keep=Retention(days=30)), journal=journal) as running,
    ):
        until(lambda: "old" not in {trace.run_id for trace in running.traces()})
        made = client(running).chat.completions.create(model="assistant", messages=[{"role": "user", "content": "Hi"}])
        assert made.choices[0].message.content == "Hello."
        assert "unfinished" in {trace.run_id for trace in running.traces()}
