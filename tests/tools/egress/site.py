"""A real server on this machine for the tests of what goes out: it answers by path and keeps what it got."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Reply = tuple[int, Mapping[str, str], bytes]
Route = Reply | Callable[["Got"], Reply | bytes | None]
"""An answer, or what makes one; bytes are sent as they are, None leaves the connection open without a word."""


@dataclass
class Got:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # with 5, a client of many connections tries again after a second


@dataclass
class Site:
    """Serves `routes` by path (without the query) while it is entered; `got` holds the requests."""

    routes: dict[str, Route] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    got: list[Got] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._stop = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self, self._stop))
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def at(self, host: str, path: str = "/") -> str:
        """The address of a path under another name."""
        return f"{'https' if self.tls is not None else 'http'}://{host}:{self.port}{path}"


def page(text: str, kind: str = "text/plain", status: int = 200) -> Reply:
    return status, {"Content-Type": kind}, text.encode()


def redirect(to: str, status: int = 302) -> Reply:
    return status, {"Location": to}, b""


def _handler(site: Site, stop: threading.Event) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except (OSError, ValueError):  # the other side left, or speaks no TLS
                self.close_connection = True

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            got = Got(self.command, self.path, headers, body)
            site.got.append(got)
            route: Any = site.routes.get(self.path.partition("?")[0], (404, {}, b"no such page"))
            reply = route(got) if callable(route) else route
            if reply is None:
                stop.wait(20)
            if reply is None or isinstance(reply, bytes):
                self.wfile.write(reply or b"")
                self.close_connection = True
                return
            status, sent, content = reply
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **sent}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = answer  # noqa: N815  # the standard library's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the standard library's name
            """Stay quiet."""

    return Handler
