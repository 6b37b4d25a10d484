"""Fakes of the world outside, for tests: a clock, pauses, host names, an embedding model, and an HTTP server.

They are repeatable and need no network; only the HTTP server opens a socket, on this machine.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import json
import math
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from taoloop.core.words import index_terms


class FakeClock:
    """A `Clock` for tests: starts at `now` and moves only by `advance`, or by `step_s` at each look."""

    def __init__(self, now: float = 1_800_000_000.0, *, step_s: float = 0.0) -> None:
        self._now, self._step_s = now, step_s

    def now(self) -> float:
        """Seconds since the epoch."""
        self._now += self._step_s
        return self._now

    def tick(self) -> float:
        """The same time, as a duration clock."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds


Answer = tuple[int, Any] | Callable[[socket.socket], None]
"""A status, and a body: bytes as they are, anything else as JSON. Or a function that answers on the connection itself,
for streams and broken answers; afterwards the connection is closed."""


_POLL_INTERVAL_S = 0.01
"""How often it looks whether to stop: with the half second of the standard library each test would wait for it."""


class HttpDouble:
    """Answers POST and GET requests in order and keeps what was sent.

    `requests` holds the path and the JSON body of each (of another body the path alone), `bodies` the bytes of the
    body, `headers` its headers (names in lower case). A request beyond the answers gets status 500. Use it as a context
    manager; `url` is its address.
    """

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_INTERVAL_S,), name="taoloop-http-double", daemon=True
        )

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

    def __exit__(self, *_error: object) -> None:
        """Stop, and wait until it has."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(double: HttpDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            double.bodies.append(sent)
            is_json = sent and "json" in self.headers.get("Content-Type", "json")
            double.requests.append({"path": self.path, **(json.loads(sent) if is_json else {})})
            double.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer = double.answers.pop(0) if double.answers else (500, {"error": {"message": "no answer left"}})
            if callable(answer):
                answer(self.connection)
                return
            status, body = answer
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST  # noqa: N815  # the standard library's name

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the standard library's name
            """Stay quiet."""

    return Handler


_TURNS = 20
"""How many turns of the event loop all other tasks get before time moves."""


class FakePace:
    """A `Pace` for `Retrying`, `Fallback` and `RateLimited`: time jumps to the next end of a pause.

    Several tasks may pause at once; the one whose pause ends first continues first. `slept` holds the pauses in
    seconds in the order in which they began; `part` is what `random` gives, from 0 up to and not including 1.
    """

    def __init__(self, clock: FakeClock | None = None, *, part: float = 0.5) -> None:
        self.clock, self.slept = clock or FakeClock(), list[float]()
        self._part, self._ends = part, list[float]()

    def tick(self) -> float:
        """The time of the clock."""
        return self.clock.tick()

    def random(self) -> float:
        """Always the same part."""
        return self._part

    async def sleep(self, seconds: float) -> None:
        """Pause until the clock reaches the end of the pause. If no other pause ends before, the clock is advanced."""
        self.slept.append(seconds)
        end = self.tick() + seconds
        self._ends.append(end)
        try:
            while self.tick() < end:
                for _ in range(_TURNS):
                    await asyncio.sleep(0)
                if self.tick() < end == min(self._ends):
                    self.clock.advance(end - self.tick())
                    if self.tick() < end:  # the sum of floats falls short by a hair
                        self.clock.advance(1e-6)
        finally:
            self._ends.remove(end)


class FakeNames:
    """Gives the addresses of hosts from a mapping; an address is its own, and what is unknown is not found.

    Where a host has several lists of addresses, each question takes the next one and the last one stays: that is how a
    name is rebound. `asked` holds every host that was asked for.
    """

    def __init__(self, names: Mapping[str, Sequence[str] | Sequence[Sequence[str]]] | None = None) -> None:
        self._answers = {
            host: [list(answer) for answer in answers if not isinstance(answer, str)] or [list(map(str, answers))]
            for host, answers in (names or {}).items()
        }
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:  # noqa: ARG002  # as for `Resolver`
        """The addresses of a host.

        Raises:
            OSError: the mapping does not have it.
        """
        self.asked.append(host)
        answers = self._answers.get(host)
        if answers is not None:
            return answers.pop(0) if len(answers) > 1 else answers[0]
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None
        return [host]


class FakeEmbedder:
    """An embedding model: texts that share words are near each other; `synonyms` makes words count as one.

    Each word (of Chinese each character and pair) points into a direction that its digest gives, and a text into the
    sum of its words' directions. `calls` holds the texts of every call.
    """

    def __init__(self, dimensions: int = 64, synonyms: Mapping[str, str] | None = None, name: str = "fake-1") -> None:
        self.name = name
        self.calls: list[tuple[str, ...]] = []
        self._dimensions, self._synonyms = dimensions, dict(synonyms or {})

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of length 1 per text; of a text without words all numbers are 0."""
        self.calls.append(tuple(texts))
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        total = [0.0] * self._dimensions
        for word in index_terms(text):
            for index, number in enumerate(self._direction(self._synonyms.get(word, word))):
                total[index] += number
        length = math.sqrt(sum(number * number for number in total)) or 1.0
        return [number / length for number in total]

    def _direction(self, word: str) -> list[float]:
        bits = hashlib.shake_256(word.encode("utf-8", "surrogatepass")).digest((self._dimensions + 7) // 8)
        return [1.0 if bits[index // 8] >> (index % 8) & 1 else -1.0 for index in range(self._dimensions)]
