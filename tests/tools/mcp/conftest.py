from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from taoloop.tools.mcp import McpServer, close_all

from .calling import Make

Good = Callable[..., McpServer]

FAKE, GOOD = (Path(__file__).with_name(f"{name}_server.py") for name in ("fake", "good"))


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture
def fake(tmp_path: Path) -> Make:
    """Settings of a fake server: keywords are settings of ours, `plan` says what it does."""

    def make(plan: dict[str, Any] | None = None, **settings: Any) -> McpServer:
        given = {"name": "fake", "pins": tmp_path / "pins", "timeout_s": 20.0, "start_timeout_s": 20.0, **settings}
        return McpServer(command=sys.executable, args=("-I", str(FAKE), json.dumps(plan or {})), **given)

    return make


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the good server writes what happened to calls."""
    path = tmp_path / "log"
    path.touch()
    return path


@contextmanager
def served(log: Path, port: int = 0) -> Iterator[int]:
    """The good server over HTTP; gives its port."""
    argv = [sys.executable, str(GOOD), "http", str(log), str(port)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("good") / "log"


WAYS = [
    *("stdio auto", "http 2025-11-25"),
    *(pytest.param(way, marks=pytest.mark.nightly) for way in ("stdio 2025-11-25", "http auto")),
]
"""Both transports and both eras (`auto` is the newest); at night each with each."""


@pytest.fixture(scope="module", params=WAYS)
def reached(request: pytest.FixtureRequest, journal: Path) -> Iterator[dict[str, Any]]:
    """How a real server is reached."""
    transport, protocol = request.param.split()
    with ExitStack() as stack:
        if transport == "http":
            port = stack.enter_context(served(journal))
            yield {"url": f"http://127.0.0.1:{port}/mcp", "protocol": protocol}
        else:
            yield {"command": sys.executable, "args": (str(GOOD), "stdio", str(journal)), "protocol": protocol}
        close_all()


@pytest.fixture
def good(reached: dict[str, Any], tmp_path: Path) -> Good:
    """Settings of that server."""
    return lambda **settings: McpServer(**{"name": "good", "pins": tmp_path / "pins", **reached, **settings})
