"""Open WebUI: its requests, replayed; and with `--full` its own server, which asks the gateway."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
from checks.clients.conftest import Served
from checks.clients.open_webui import HEADERS, chat, chat_with_usage, task, with_context

QUESTION = {"role": "user", "content": "Double 4."}
ANSWER = {"role": "assistant", "content": "It is 8."}


def fetch(url: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]) -> str:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, dict(headers))  # noqa: S310  # the gateway of this test
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        return str(answer.read().decode())


def ask(served: Served, path: str, body: Mapping[str, Any] | None = None) -> str:
    """What the gateway answers to a request of Open WebUI."""
    key = {"Authorization": f"Bearer {served.env['GATEWAY_KEY']}"}
    return fetch(f"{served.url}{path}", body, {**HEADERS, **key})


def streamed(text: str) -> tuple[str, list[dict[str, Any]]]:
    """The answer in a stream, and its chunks."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    deltas = [chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk["choices"]]
    return "".join(deltas), chunks


def test_open_webui_lists_the_models(served: Served) -> None:
    listed = json.loads(ask(served, "/models"))
    assert [model["id"] for model in listed["data"]] == ["assistant", "clerk"]


def test_open_webui_streams_an_answer(served: Served) -> None:
    assert streamed(ask(served, "/chat/completions", chat("assistant", [QUESTION])))[0] == "It is 8."
    answer, chunks = streamed(ask(served, "/chat/completions", chat_with_usage("assistant", [QUESTION])))
    assert answer == "It is 8."
    assert chunks[-1]["usage"]["total_tokens"] > 0


def test_open_webui_goes_on_with_a_chat(served: Served) -> None:
    system = {"role": "system", "content": "The user is Ann."}
    asked = [system, QUESTION, ANSWER, {"role": "user", "content": "What is my name?"}]
    assert streamed(ask(served, "/chat/completions", chat("assistant", asked)))[0] == "You are Ann."


@pytest.mark.parametrize("kind", ["title", "tags", "follow_ups"])
def test_open_webui_asks_for_a_title_tags_and_questions(served: Served, kind: str) -> None:
    answer = json.loads(ask(served, "/chat/completions", task("assistant", kind, [QUESTION, ANSWER])))
    json.loads(answer["choices"][0]["message"]["content"])
    assert answer["choices"][0]["finish_reason"] == "stop"


def test_open_webui_writes_context_into_the_question(served: Served) -> None:
    message = with_context("Double 4.", {"sums.txt": "Four doubled is eight."})
    assert streamed(ask(served, "/chat/completions", chat("assistant", [message])))[0] == "It is 8."
    assert "Four doubled is eight." in str(served.model.asked[-1]["messages"])


# Its own server


@contextmanager
def open_webui(served: Served, folder: Path) -> Iterator[str]:
    """Open WebUI on a free port with the gateway as its only connection, and without accounts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    env = {
        **os.environ,
        "DATA_DIR": str(folder),
        "WEBUI_AUTH": "False",
        "WEBUI_SECRET_KEY": "check",
        "ENABLE_OLLAMA_API": "False",
        "OPENAI_API_BASE_URL": served.url,
        "OPENAI_API_KEY": served.env["GATEWAY_KEY"],
        "HF_HUB_OFFLINE": "1",
    }
    program = shutil.which("open-webui")
    assert program is not None
    command = [program, "serve", "--host", "127.0.0.1", "--port", port]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, env=env, stdout=log, stderr=log) as process:
        try:
            url, ends_at = f"http://127.0.0.1:{port}", time.monotonic() + 180
            while True:
                assert time.monotonic() < ends_at, (folder / "log").read_text()
                assert process.poll() is None, (folder / "log").read_text()
                try:
                    fetch(f"{url}/health", None, {})
                    break
                except (URLError, ConnectionError):
                    time.sleep(0.5)
            yield url
        finally:
            process.terminate()


@pytest.mark.skipif(
    shutil.which("open-webui") is None, reason="Open WebUI is not installed: scripts/check-clients --full brings it"
)
def test_the_server_of_open_webui_asks_the_gateway(served: Served, tmp_path: Path) -> None:
    with open_webui(served, tmp_path) as url:
        account = json.loads(fetch(f"{url}/api/v1/auths/signin", {"email": "", "password": ""}, HEADERS))
        headers = {**HEADERS, "Authorization": f"Bearer {account['token']}"}
        assert "assistant" in fetch(f"{url}/api/models", None, headers)
        asked = {"model": "assistant", "messages": [QUESTION], "stream": False}
        answer = json.loads(fetch(f"{url}/api/chat/completions", asked, headers))
        assert answer["choices"][0]["message"]["content"] == "It is 8."
        asked = {"model": "assistant", "messages": [QUESTION, ANSWER]}
        assert fetch(f"{url}/api/v1/tasks/title/completions", asked, headers)
