"""`tao serve` as a process: readiness, changed files, signals, approvals from elsewhere, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from tests.serve.gateway.ai_agent import changed
from tests.serve.gateway.conftest import Upstream, model_env, until, upstream
from tests.shell import ENTRY, Ended, run_in_process

from taoloop.serve.gateway.config.api_keys import digest_of

TAO = list(ENTRY)

AGENT = """\
name: {name}
model: openai:some-model
dialect: native
instructions: "{instructions}"
tools: [calculator]
"""


class Served:
    """A running `tao serve`."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process, self.url = process, url

    def get(self, path: str) -> tuple[int, Any]:
        return fetch(f"{self.url}{path}")

    def ask(self, text: str, **more: Any) -> tuple[int, Any]:
        messages = more.pop("messages", [{"role": "user", "content": text}])
        return fetch(f"{self.url}/v1/chat/completions", {"model": "assistant", "messages": messages, **more})

    def said(self, text: str) -> None:
        """Wait until the process says so."""
        self.line(text)

    def line(self, text: str) -> str:
        """The next line of the log with this text."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if text in line:
                return line
        raise AssertionError(f"it never said {text!r}")


def fetch(url: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
    """Status and JSON of an answer."""
    status, text = fetch_text(url, body, headers)
    return status, json.loads(text)


def fetch_text(
    url: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Status and text of an answer."""
    place = urlsplit(url)
    connection = HTTPConnection(place.netloc, timeout=20)
    method, data = ("GET", None) if body is None else ("POST", json.dumps(body).encode())
    with closing(connection):
        connection.request(method, place.path, data, {"Content-Type": "application/json", **(headers or {})})
        with connection.getresponse() as answer:
            return answer.status, answer.read().decode()


@contextmanager
def serving(file: Path, server: Upstream, *options: str, env: Mapping[str, str] | None = None) -> Iterator[Served]:
    everything = {**os.environ, **model_env(server), **(env or {})}
    command = [*TAO, "serve", str(file), "--port", "0", "--db", str(file.parent / "runs.db")]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True, env=everything)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "Serving" in line:
                yield Served(process, line.split(" on ")[1].strip().removesuffix("/v1"))
                break
        else:
            raise AssertionError("it ended before it was ready")
    finally:
        process.kill()
        process.wait(10)
        if process.stderr is not None:
            process.stderr.close()


@pytest.fixture
def agent_file(tmp_path: Path) -> Path:
    path = tmp_path / "agent.yaml"
    path.write_text(AGENT.format(name="assistant", instructions="Be brief."))
    return path


def test_it_is_ready_serves_and_ends_with_a_signal(agent_file: Path) -> None:
    with upstream("Hello.") as server, serving(agent_file, server) as served:
        assert served.get("/readyz") == (200, {"status": "ready"})
        status, body = served.ask("Hi.")
        assert (status, body["choices"][0]["message"]["content"]) == (200, "Hello.")
        served.process.send_signal(signal.SIGTERM)
        served.said("The server ends; active runs have 30 s to finish.")
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
        until(lambda: not _takes_connections(served.url))
        server.go_on()
        asking.join(10)
        assert found[0][1]["choices"][0]["message"]["content"] == "At last."
        assert served.process.wait(10) == 0


def _takes_connections(url: str) -> bool:
    try:
        fetch(f"{url}/readyz")
    except OSError:
        return False
    return True


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
        everything = {**os.environ, **env}
        approve = [*TAO, "approve", run_id, waits["call_id"]]
        done = subprocess.run(
            [*approve, "--db", str(tmp_path / "runs.db")], env=everything, capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 10), done.stderr
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


def run(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Ended:
    """`tao serve` where it ends before it serves."""
    return run_in_process(("serve", *arguments), folder, {**os.environ, **(env or {})})


def test_it_does_not_serve_the_whole_network_without_keys(agent_file: Path) -> None:
    made = run(
        agent_file.parent, agent_file.name, "--host", "::", "--port", "0", env={"OPENAI_API_KEY": "sk-0123456789abcdef"}
    )
    assert made.code == 2
    assert "keys" in made.err
    assert "--new-key" in made.err


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
    with upstream("Hello.") as server, serving(gate, server) as served:
        gate.write_text("agents:\n  assistant: agent.yaml\n  more: more.yaml\n")
        served.said("gate.yaml:3: agents.more")  # there is no such file
        more.write_text("model: nothing-of-that-kind:x\n")
        served.said("more.yaml:1: model")
        assert served.ask("Hi.")[0] == 200
        more.write_text("model: offline\n")
        served.said("The changed configuration is in use.")
        assert [one["id"] for one in served.get("/v1/models")[1]["data"]] == ["assistant", "more"]


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
        served.said("The changed configuration is in use.")
        fetch(f"{served.url}/v1/models", headers={"x-request-id": later})
        line = served.line("route=/v1/models")
        assert later not in line
        assert "[redacted:" in line
