"""Addresses where something else answers, or nothing."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from taoloop.errors import ConfigError, McpFailed, McpLost, TaoError
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.mcp import McpServer, close_server, mcp_tools

from .calling import only, told, use

ANSWERS: dict[str, tuple[int, dict[str, str], bytes]] = {
    "broken": (500, {}, b"oops"),
    "closed": (401, {"www-authenticate": "Bearer"}, b""),
    "page": (200, {"content-type": "text/html"}, b"<html>"),
    "json": (200, {"content-type": "application/json"}, b"{}"),
    "endless": (200, {"content-type": "application/json"}, b"["),
    "stream": (200, {"content-type": "text/event-stream"}, b"data: "),
    "stopped": (200, {"content-type": "text/event-stream"}, b": hello\n\n"),
    "redirect": (307, {"location": "http://169.254.169.254/latest"}, b""),
}


SEEN: list[dict[str, str]] = []


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.send_error(405)

    def do_DELETE(self) -> None:
        RELEASED.wait(60)
        ENDED.append(self.path)
        self.send_error(405)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        SEEN.append({name.lower(): value for name, value in self.headers.items()})
        how = self.path.strip("/")
        status, headers, body = ANSWERS[how]
        if self.headers.get("x-works-until") == "call" and asked["method"] != "tools/call":
            status, headers, body = self.good(asked)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
            for _ in range(200 if how in ("endless", "stream") else 0):
                self.wfile.write(b"[" * 100_000)
        except OSError:
            pass

    def good(self, asked: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        if "id" not in asked:
            return 202, {"content-length": "0"}, b""
        about = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "x", "version": "1"},
        }
        results = {"initialize": about, "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}}
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]}).encode()
        return 200, {"content-type": "application/json", "mcp-session-id": "s"}, body


RELEASED = threading.Event()
ENDED: list[str] = []


@pytest.fixture
def address() -> Iterator[str]:
    RELEASED.clear()
    ENDED.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        RELEASED.set()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("broken", "it answered with the HTTP status 500"),
        ("closed", "the HTTP status 401. It wants to know who asks: give a token in `headers`"),
        ("page", "Unexpected content type: text/html"),
        ("json", "Failed to parse JSON response. "),
        ("endless", "sent more than 1,000,000 bytes"),
        ("stream", "exceeded the 1000000 byte limit"),
        ("redirect", "Redirect to http://169.254.169.254/latest not followed"),
    ],
)
def test_what_is_no_server_is_a_problem_that_names_it(address: str, tmp_path: Path, how: str, reason: str) -> None:
    server = McpServer(name="web", url=f"{address}/{how}", pins=tmp_path, max_message_bytes=1_000_000)
    loaded = mcp_tools(server)
    assert not loaded.tools
    assert f"MCP server 'web': cannot be reached at {address}/{how}: " in told(loaded)
    assert reason in told(loaded)


@pytest.mark.parametrize(
    ("how", "error", "reason"),
    [
        ("broken", McpLost, "HTTP status 500. Nobody can tell"),
        ("page", McpLost, "Unexpected content type: text/html. Nobody can tell"),
        ("json", McpLost, "Failed to parse JSON response. Nobody can tell"),
        ("stopped", McpLost, "SSE stream ended without a response"),
        ("closed", McpFailed, r"refuses the tool 't': Server returned an error response \(HTTP status 401\)"),
    ],
)
def test_a_call_is_in_doubt_unless_it_was_surely_refused(
    address: str, tmp_path: Path, how: str, error: type[TaoError], reason: str
) -> None:
    secret = {"x-works-until": "call", "authorization": "Bearer s3cret-value"}
    server = McpServer(name="web", url=f"{address}/{how}", pins=tmp_path, headers=secret, protocol="2025-11-25")
    loaded = mcp_tools(server)
    with pytest.raises(error, match=reason):
        use(only(loaded, "web.t"))
    assert "s3cret-value" in only(loaded, "web.t").secrets.values(), "so that runs redact it"
    if how == "broken":
        close_server(server)
        assert ENDED == [], "a server that does not hear of the end of its session is not waited for"


def test_an_address_where_nobody_listens_is_a_problem(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    loaded = mcp_tools(McpServer(name="web", url=f"http://127.0.0.1:{port}/mcp?token=secret", pins=tmp_path))
    assert ": Connection refused" in told(loaded)
    assert "secret" not in told(loaded)


def test_the_rules_for_going_out_hold(address: str, tmp_path: Path) -> None:
    server = McpServer(name="web", url=f"{address}/json", pins=tmp_path, egress=EgressRules(deny=("127.0.0.0/8",)))
    before = len(SEEN)
    assert "deny list" in told(mcp_tools(server))
    assert len(SEEN) == before


def test_headers_go_with_every_request_and_stand_in_no_message(address: str, tmp_path: Path) -> None:
    server = McpServer(name="web", url=f"{address}/broken", pins=tmp_path, headers={"Authorization": "Bearer secret"})
    assert "secret" not in told(mcp_tools(server)) + repr(server)
    assert SEEN[-1]["authorization"] == "Bearer secret"


@pytest.mark.parametrize("url", ["ftp://x", "http://user:pass@x/", "no address", "http://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="not a usable URL"):
        McpServer(name="web", url=url)
