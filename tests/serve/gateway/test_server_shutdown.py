"""`tao serve` told to end: at a terminal, by a second signal, and what is left in the journal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.serve.gateway.conftest import config_of, gateway, model_env, until, upstream
from tests.serve.gateway.server_process import fetch, fetch_text, is_ready, launch_server, serving
from tests.shell import run_in_process, waiting

from taoloop import Agent
from taoloop.serve.gateway.config.model import ServerLimits

SLOW = {"text": "At last.", "hangs": True}


def statuses(path: Path) -> list[str]:
    made = run_in_process(("runs", "--db", str(path)), path.parent, os.environ)
    assert made.code == 0, made.err
    return [word for word in ("stopped", "running", "completed") if word in made.out]


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_second_signal_ends_it_at_once_and_parks_its_runs(agent_file: Path, second: int, streamed: bool) -> None:
    with upstream(SLOW) as server, serving(agent_file, server) as served:
        found: list[Any] = []

        def asking() -> None:
            try:
                found.append(served.ask("Hi.", stream=streamed))
            except (OSError, ValueError) as error:
                found.append(error)

        thread = threading.Thread(target=asking)
        thread.start()
        assert server.waiting.wait(20)
        served.process.send_signal(signal.SIGTERM)
        served.said("active runs have")
        with pytest.raises(subprocess.TimeoutExpired):
            served.process.wait(0.2)  # the run has its time
        served.process.send_signal(second)
        assert served.process.wait(20) == 0
        thread.join(20)
        assert served.process.stderr is not None
        assert "Traceback" not in served.process.stderr.read()
        assert statuses(agent_file.parent / "runs.db") == ["stopped"]


def reading(url: str, path: str, body: dict[str, Any], into: list[str]) -> threading.Thread:
    """A client in a thread of its own; what it got comes after its status."""

    def read() -> None:
        try:
            into.extend(map(str, fetch_text(f"{url}{path}", body)))
        except OSError as error:
            into.extend(("no answer", repr(error)))

    thread = threading.Thread(target=read)
    thread.start()
    return thread


WAYS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi."}]}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi."}], "stream": True}),
    ("/v1/responses", {"input": "Hi."}),
    ("/v1/responses", {"input": "Hi.", "stream": True}),
]


@pytest.mark.parametrize("hurried", [False, True])
@pytest.mark.parametrize(("path", "body"), WAYS)
def test_who_gets_no_answer_because_the_server_ends_is_told_so(path: str, body: dict[str, Any], hurried: bool) -> None:
    limits = ServerLimits(shutdown_s=60 if hurried else 0.1)
    reply = {"pieces": ["One ", "two."], "waits": True} if body.get("stream") else SLOW
    with upstream(reply) as server:
        agent = Agent(name="assistant", model="openai:m", env=model_env(server))
        with gateway(config_of(agent, limits=limits)) as running:
            got: list[str] = []
            thread = reading(running.url, path, {"model": "assistant", **body}, got)
            assert server.waiting.wait(20)
            running.end()
            if hurried:
                until(lambda: not is_ready(running.url))
                running.end(at_once=True)
            thread.join(20)
        assert [trace.status for trace in running.traces()] == ["stopped"]
    status, text = got
    assert '"run_stopped"' in text
    assert "can be resumed" in text
    if body.get("stream"):
        assert status == "200"
        assert "One" in text
        assert text.endswith("data: [DONE]\n\n" if "chat" in path else "\n\n")
        assert "chat" in path or "event: error\n" in text
    else:
        assert status == "503"


def test_ctrl_c_at_a_terminal_ends_it(agent_file: Path) -> None:
    with upstream("Hello.") as server:
        ours, theirs = pty.openpty()
        process = launch_server(agent_file, server, stdin=theirs, stdout=theirs, stderr=theirs, has_terminal=True)
        os.close(theirs)
        said = b""
        with waiting(process, "the address", lambda: said.decode()):
            while b"Serving" not in said or b"/v1" not in said:
                said += os.read(ours, 1_000)
        url = said.decode().split(" on ")[1].split("/v1")[0].strip()
        assert fetch(f"{url}/readyz")[0] == 200
        os.write(ours, b"\x03")
        assert process.wait(10) == 0
        try:
            while more := os.read(ours, 1_000):
                said += more
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        assert b"Traceback" not in said
        assert b"Aborted" not in said


DOWN = """
agents:
  assistant: {model: "openai:m", tools: [calculator]}
  shop:
    model: "openai:m"
    tools:
      - openapi: {document: "http://127.0.0.1:9/openapi.json"}
  desk:
    model: "openai:m"
    tools:
      - mcp: {name: desk, command: no-such-program-anywhere}
"""


def test_an_agent_whose_tools_are_down_at_the_start_does_not_keep_the_others_from_serving(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(DOWN)
    with upstream("Hello.") as server, serving(path, server) as served:
        assert served.ask("Hi.")[1]["choices"][0]["message"]["content"] == "Hello."
