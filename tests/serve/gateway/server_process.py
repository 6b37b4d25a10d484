"""`tao serve` as a process, for tests."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.serve.gateway.conftest import Upstream, model_env
from tests.shell import Ended, launch, run_in_process, until_line


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
        return until_line(self.process, self.process.stderr, text)


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
    process = launch_server(file, server, *options, env=env, stderr=subprocess.PIPE)
    try:
        line = until_line(process, process.stderr, "Serving")
        yield Served(process, line.split(" on ")[1].strip().removesuffix("/v1"))
    finally:
        process.kill()
        process.wait(10)
        if process.stderr is not None:
            process.stderr.close()


def launch_server(
    file: Path, server: Upstream, *options: str, env: Mapping[str, str] | None = None, **streams: Any
) -> subprocess.Popen[str]:
    """Start `tao serve` on a free port; `streams` are options of `launch`."""
    everything = {**os.environ, "PYTHONUTF8": "1", **model_env(server), **(env or {})}
    args = ["serve", str(file), "--port", "0", "--db", str(file.parent / "runs.db"), *options]
    return launch(args, Path.cwd(), everything, **streams)


def is_ready(url: str) -> bool:
    """Whether the server takes requests. It answers until it has drained."""
    return fetch(f"{url}/readyz")[0] == 200


def run(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Ended:
    """`tao serve` where it ends before it serves."""
    return run_in_process(("serve", *arguments), folder, {**os.environ, **(env or {})})
