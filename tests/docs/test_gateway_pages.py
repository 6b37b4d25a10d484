"""The tutorial of the gateway is walked as a reader would: its servers are started, and what it asks them is asked.

```sh start     each line is a server, which runs to the end of the page
```sh ask       bash runs it; `RUN_ID` is the newest run, `CODE` what it waits for
```py ask       Python runs it
```text part    stands in what the block above printed, apart from ids, numbers and times
```json part    the answer has these fields with these values, and may have more
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.docs.fenced import ROOT, Block, blocks, without_digits
from tests.shell import ENTRY, launch, run_in_process, until_line

from taoloop.models.providers import variables
from taoloop.runtime.approvals.request import NO_WORDS, YES_WORDS
from taoloop.serve.gateway import errors as refusals, request_schema
from taoloop.serve.gateway.app import ROUTES

PAGES = ("docs/gateway.md", "docs/gateway.zh.md")
API = ("docs/gateway-api.md", "docs/gateway-api.zh.md")
PORTS = ("8080", "8081", "9100", "9101", "9200")
TRIES = 500
MADE = re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}|\b[0-9a-f]{16}\b")
CODE = re.compile(r"(?:code|代码) ([0-9a-f]{16})\)")


class Walk:
    """One reader in one folder, with ports of their own."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder, self._stack = folder, stack
        self._code = ""
        self._ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        kept = {name: value for name, value in os.environ.items() if name not in {"TAOLOOP_MODEL", *variables()}}
        commands = folder / "bin"
        commands.mkdir()
        for name, call in {"tao": ENTRY, "python": (sys.executable,)}.items():
            quoted = " ".join(f"'{word}'" for word in call)
            (commands / name).write_text(f'#!/bin/sh\nexec {quoted} "$@"\n', encoding="utf-8")
            (commands / name).chmod(0o755)
        path = f"{commands}{os.pathsep}{kept['PATH']}"
        self._env = {
            **kept,
            "PATH": path,
            "TAOLOOP_DB": str(folder / "tao.db"),
            "PYTHONUTF8": "1",
            "PYTHONUNBUFFERED": "1",
        }
        self._servers: dict[str, subprocess.Popen[str]] = {}

    def moved(self, text: str) -> str:
        """The text with the ports of this walk."""
        return re.sub("|".join(PORTS), lambda found: self._ports[found[0]], text)

    def start(self, line: str) -> str:
        """Start a server; gives its first line, which says that it is ready. One of the same file is ended first."""
        words = self.moved(line).split()
        if earlier := self._servers.pop(" ".join(words[:3]), None):
            end(earlier)
        if words[0] == "tao" and "--port" not in words:
            words += ["--port", self._ports["8080"]]
        streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        if words[0] == "tao":
            server = launch(words[1:], self.folder, self._env, **streams)
        else:
            server = subprocess.Popen(words, cwd=self.folder, env=self._env, encoding="utf-8", **streams)
        self._servers[" ".join(line.split()[:3])] = server
        self._stack.callback(end, server)
        return until_line(server, server.stdout, "")

    def ask(self, block: Block) -> str:
        """Run a block; gives what it printed."""
        text = self.moved(block.text)
        if "RUN_ID" in text:
            text = text.replace(
                "RUN_ID", run_in_process(["runs", "--limit", "1"], self.folder, self._env).out.split()[0]
            )
        text = text.replace("CODE", self._code)
        args = [sys.executable, "-c", text] if block.language == "py" else ["bash", "-ec", text]
        done = self._run(args)
        assert done.returncode == 0, f"{block.page}:{block.line}: {done.stdout}\n{done.stderr}"
        if found := CODE.search(done.stdout):
            self._code = found[1]
        return done.stdout

    def _run(self, args: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            args, cwd=self.folder, env=self._env, capture_output=True, encoding="utf-8", timeout=120, check=False
        )


@pytest.mark.skipif(
    shutil.which("curl") is None or shutil.which("bash") is None, reason="the page is written for curl and a shell"
)
@pytest.mark.parametrize("page", [PAGES[0], pytest.param(PAGES[1], marks=pytest.mark.nightly)])
def test_the_tutorial_can_be_walked(page: str, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        walk, printed, last = Walk(tmp_path, stack), "", None
        for block in blocks(page):
            where = f"{page}:{block.line}"
            match block.language, block.words:
                case _, (name,) if "." in name:
                    (tmp_path / name).write_text(walk.moved(block.text), encoding="utf-8")
                case "sh", ("start",):
                    (line,) = block.text.strip().splitlines()
                    printed, last = walk.start(line), None
                case (("sh" | "py"), ("ask",)):
                    printed, last = walk.ask(block), block
                case "text", ("part",):
                    shown = without_digits(walk.moved(block.text).strip())
                    assert shown in without_digits(printed), f"{where} shows\n{block.text}\nnot\n{printed}"
                case "json", ("part",):
                    assert last is not None
                    assert comes(walk, last, printed, json.loads(block.text)), (
                        f"{where} shows\n{block.text}\nnot\n{printed}"
                    )


@pytest.mark.parametrize("page", API)
def test_the_page_of_the_api_names_every_route_field_word_and_code(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for method, path, _ in ROUTES:
        assert f"`{method} {path.replace(':.+', '')}`" in text
    fields = {*request_schema.ChatRequest.model_fields, *request_schema.ResponsesRequest.model_fields}
    fields |= {
        *request_schema.ChatRequest.unsupported,
        *request_schema.ResponsesRequest.unsupported,
        *request_schema.StreamOptions.model_fields,
    }
    words = {word.replace("_", " ") for word in (*YES_WORDS, *NO_WORDS)} - {"dont"}
    for name in fields | {word for word in words if word.isascii()}:
        assert f"`{name}`" in text, name
    assert [word for word in words if word not in text] == []
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src/taoloop/serve/gateway").glob("*.py")]
    codes = {code for source in sources for code in re.findall(r'\bcode="(\w+)"', source)}
    codes |= {code for source in sources for code in re.findall(r'(?:invalid|Refusal)\(.*"(\w+_\w+)"\)', source)}
    of_models = refusals._FAILURES.keys() - {"model_context_overflow", "model_content_refused", "unreadable"}
    assert [code for code in sorted(codes | of_models) if f"`{code}`" not in text] == []


def comes(walk: Walk, asked: Block, printed: str, shown: Any) -> bool:
    """Whether the answer has what is shown; what the server does by itself may take a moment."""
    for _ in range(TRIES if "/v1/runs/" in asked.text else 1):
        if has(json.loads(printed.splitlines()[-1]), shown):
            return True
        printed = walk.ask(asked)
    return False


def has(given: Any, shown: Any) -> bool:
    """Whether a value has all that is shown of it; ids and times may be others."""
    if isinstance(shown, dict):
        return isinstance(given, dict) and all(name in given and has(given[name], shown[name]) for name in shown)
    if isinstance(shown, list):
        return isinstance(given, list) and len(given) == len(shown) and all(map(has, given, shown))
    if isinstance(shown, str) and isinstance(given, str):
        return MADE.sub("ID", given) == MADE.sub("ID", shown)
    return bool(given == shown)


def free_ports(count: int) -> Iterator[str]:
    """Ports that nothing listens on."""
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(socket.socket()) for _ in range(count)]
        for line in lines:
            line.bind(("127.0.0.1", 0))
        found = [str(line.getsockname()[1]) for line in lines]
    yield from found


def end(server: subprocess.Popen[str]) -> None:
    """End a server, and wait until it is gone."""
    server.terminate()
    server.communicate(timeout=60)
