"""A small HTTP server that answers as it is told, over a real socket on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Answer = tuple[int, Any]
"""A status, and a body: bytes as they are, anything else as JSON."""


class HttpDouble:
    """Answers POST requests in order and keeps what was sent.

    `requests` holds the path and the JSON body of each, `headers` its headers (names in lower case). A request
    beyond the answers gets status 500. Use it as a context manager; `url` is its address.
    """

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, name="taoloop-http-double", daemon=True)

    @property
    def port(self) -> int:
        """The port, chosen by the system."""
        return self._server.server_port

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        """Start to serve."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, and wait until it has."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(double: HttpDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            double.requests.append({"path": self.path, **json.loads(body)})
            double.headers.append({name.lower(): value for name, value in self.headers.items()})
            status, answer = (
                double.answers.pop(0) if double.answers else (500, {"error": {"message": "no answer left"}})
            )
            raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the standard library's name
            """Stay quiet."""

    return Handler
