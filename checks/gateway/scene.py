"""A gateway under attack: `tao serve` as processes, on what `outside` serves; and what an attack consists of."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Generic, TypeVar

from checks.gateway.outside import SHOP, Server, Shop, canary, obey, serving

MODEL_KEY, SHOP_KEY = "sk-upstream-5a1f9c3e7b2d4860", "shop-8c41e0d97f3b25a6"
ANSWER_S = 10.0  # every attack is answered by then, or its connection is closed

KEYED = """\
agents:
  desk: &desk
    model: openai:m
    dialect: native
    policy: {{profile: autonomous, pin: keywords}}
    retry: {{attempts: 1}}
    tools:
      - openapi: {{document: shop.yaml, base_url: "{shop}", auth: {{key: "${{SHOP_KEY}}"}}, retries: 0}}
  guarded:
    <<: *desk
    policy: {{pin: keywords}}
  surfer:
    <<: *desk
    tools:
      - fetch: {{allow: ["127.0.0.1:{shop_port}"], ports: [80, 443, {canary_port}, {shop_port}], timeout_s: 5}}
keys:
  - {{name: alpha, key: "${{ALPHA_KEY}}", task_authority: full}}
  - {{name: beta, key: "${{BETA_KEY}}", agents: [desk, guarded]}}
server: &server
  body_timeout_s: 2
  shutdown_s: 2
"""
OPEN = """\
agents:
  desk: {model: "openai:m", dialect: native, tools: [calculator], retry: {attempts: 1}}
server: {body_timeout_s: 2, shutdown_s: 2}
"""

T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """What came back: status 0 if the connection was closed without an answer."""

    status: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Gateway:
    """A process that serves the API, and ways to talk to it."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, keys: Mapping[str, str], log: Path) -> None:
        self.process, self.port, self.keys, self.log = process, port, keys, log

    @property
    def rss_mb(self) -> float:
        """The memory that the process has now."""
        shown = subprocess.run(
            ["/bin/ps", "-o", "rss=", "-p", str(self.process.pid)], capture_output=True, text=True, check=False
        )
        return int(shown.stdout or 0) / 1024

    def send(self, method: str, path: str, body: Any = None, *, key: str | None = "alpha", **headers: str) -> Answer:
        """One request with the key of this name. Underscores in the names of headers are hyphens."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        lines = {"Content-Type": "application/json"} if data is not None else {}
        if key is not None and self.keys:
            lines["Authorization"] = f"Bearer {self.keys.get(key, key)}"
        lines |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)
        try:
            connection.putrequest(method, path, skip_host="Host" in lines)
            for name, value in lines.items():
                connection.putheader(name, value)
            if data is not None and "Content-Length" not in lines:
                connection.putheader("Content-Length", str(len(data)))
            with suppress(ConnectionError):  # refused while it was sent; the answer may be there
                connection.endheaders(data)
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
            return Answer(response.status, text, {name.lower(): value for name, value in response.getheaders()})
        except (HTTPException, ConnectionError) as error:
            return Answer(0, repr(error))
        finally:
            connection.close()

    def chat(self, text: str, agent: str = "desk", *, key: str | None = "alpha", **fields: Any) -> Answer:
        """A chat completion for one message."""
        messages = fields.pop("messages", [{"role": "user", "content": text}])
        return self.send("POST", "/v1/chat/completions", {"model": agent, "messages": messages, **fields}, key=key)

    def send_bytes(self, data: bytes, wait_s: float = ANSWER_S) -> str:
        """What comes back for these bytes, until the server closes or says no more."""
        pieces = []
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait_s) as connection:
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while piece := connection.recv(65536):
                    pieces.append(piece)
            except TimeoutError:
                pieces.append(b"\r\n(no end within the time)")
            except ConnectionError:
                pass
        return b"".join(pieces).decode(errors="replace")

    @property
    def is_well(self) -> bool:
        """Whether it still answers an ordinary request."""
        return self.process.poll() is None and self.chat("Hello.").status == 200


@dataclass
class Scene:
    """All that an attack needs."""

    keyed: Gateway
    """With keys: alpha may do everything, beta uses two agents and authorises nothing."""
    open: Gateway
    """Without keys."""
    shop: Shop
    model: Server
    canary: Server
    facts: dict[str, Any] = field(default_factory=dict)
    """What a category has prepared before its first attack."""


@dataclass(frozen=True)
class Category(Generic[T]):
    """Attacks of one kind: a table, and one function that carries out a row and says what went through."""

    name: str
    attacks: Sequence[tuple[str, T]]
    """Each with its name; one that ends in `(full)` is only in the full form."""
    run: Callable[[Scene, T], str]
    """Carries out an attack; gives what it achieved, and nothing if it achieved nothing."""
    proof: Sequence[str]
    """Attacks that must succeed against the weak server, in this order: the proof that each verdict can fail."""


@contextmanager
def scene(folder: Path, command: Callable[[bool, Path], Sequence[str]]) -> Iterator[Scene]:
    """Everything, until the end; `command` starts a server with keys or without on a file."""
    shop, model, inner = Shop(), Server(obey), Server(canary)
    with serving(shop.server, model, inner), ExitStack() as stack:
        shop.redirects_to = f"{inner.url}/"
        (folder / "shop.yaml").write_text(SHOP, encoding="utf-8")
        settings = {"shop": shop.server.url, "shop_port": shop.server.port, "canary_port": inner.port}
        keys = {"alpha": "tao-alpha-31c0d94be87f", "beta": "tao-beta-f57a20c61e9d"}
        env = {
            "OPENAI_BASE_URL": f"{model.url}/v1",
            "OPENAI_API_KEY": MODEL_KEY,
            "SHOP_KEY": SHOP_KEY,
            "ALPHA_KEY": keys["alpha"],
            "BETA_KEY": keys["beta"],
        }
        gateways = []
        for name, text in (("keyed", KEYED.format(**settings)), ("open", OPEN)):
            (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
            started = start(command(name == "keyed", folder / f"{name}.yaml"), folder, env, folder / f"{name}.log")
            process = stack.enter_context(started)
            gateways.append(Gateway(process, port_of(folder / f"{name}.log", process), keys, folder / f"{name}.log"))
        gateways[1].keys = {}
        yield Scene(gateways[0], gateways[1], shop, model, inner)


@contextmanager
def start(command: Sequence[str], folder: Path, env: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose errors go to a file; it is killed at the end."""
    with log.open("ab") as written:
        process = subprocess.Popen(
            [*command], cwd=folder, stderr=written, env={**os.environ, "PYTHONUNBUFFERED": "1", **env}
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(20)


def port_of(log: Path, process: subprocess.Popen[bytes], offset: int = 0) -> int:
    """The port that a server reports in its log."""
    ends_at = time.monotonic() + 60
    while time.monotonic() < ends_at and process.poll() is None:
        text = log.read_text(encoding="utf-8")[offset:]
        if " on http://" in text and "\n" in text.partition(" on http://")[2]:
            return int(text.partition(" on http://")[2].split("/")[0].split()[0].rpartition(":")[2])
        time.sleep(0.02)
    raise AssertionError(f"the server did not start: {log.read_text(encoding='utf-8')[offset:]}")


def tao(_: bool, file: Path) -> Sequence[str]:
    """The command of the real server."""
    program = str(Path(sys.executable).with_name("tao"))
    return [program, "serve", str(file), "--port", "0", "--db", str(file.with_suffix(".db"))]


def weak(has_keys: bool, file: Path) -> Sequence[str]:
    """The command of the weak server."""
    return [sys.executable, str(Path(__file__).with_name("weak_server.py")), str(file), str(int(has_keys))]
