"""A gateway in a thread of its own, and a model server that replies as it is told and keeps what was asked."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from openai import OpenAI
from tests.serve.gateway.judging import Judge

from taoloop import Agent, MemoryJournal, tool
from taoloop.core.trace import Trace
from taoloop.models.settings import Retry
from taoloop.serve.gateway.config.model import GatewayConfig, ServedAgent, ServerLimits
from taoloop.serve.gateway.observe.request_log import RequestRecord
from taoloop.serve.gateway.quotas import Quotas
from taoloop.serve.gateway.server import IDLE_TIMEOUT_S, POLL_INTERVAL_S, GatewayServer
from taoloop.serve.gateway.shared.database import GatewayDatabase

Reply = Any
"""A text; a mapping with `text`, `tool_calls` (name, args), `pieces`; a status with a body; or a function of the body
that gives one of these."""


def until(holds: Callable[[], Any], within_s: float = 60.0) -> None:
    """Wait for something to hold: what another thread or process does."""
    ends_at = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < ends_at, "it did not come to that"
        threading.Event().wait(0.01)


def in_thread(main: Callable[[asyncio.Event, Callable[[Any], None]], Any]) -> tuple[Any, Callable[[], None]]:
    """Run a coroutine function in a loop of its own until it is told to stop; gives what it says once it is ready."""
    ready: threading.Event = threading.Event()
    box: dict[str, Any] = {}

    def tell(value: Any) -> None:
        box["value"] = value
        ready.set()

    async def body() -> None:
        box["stop"], box["loop"] = asyncio.Event(), asyncio.get_running_loop()
        await main(box["stop"], tell)

    def run() -> None:
        try:
            asyncio.run(body())
        except BaseException as error:  # noqa: BLE001  # raised where the test waits
            box["error"] = error
        finally:
            ready.set()

    thread = threading.Thread(target=run, name="test-server", daemon=True)
    thread.start()
    assert ready.wait(20), "the server did not come up"
    if "error" in box:
        raise box["error"]

    def stop() -> None:
        with suppress(RuntimeError):  # it has ended by itself
            box["loop"].call_soon_threadsafe(box["stop"].set)
        thread.join(20)
        assert not thread.is_alive(), "the server did not end"
        if "error" in box:
            raise box["error"]

    return box["value"], stop


class Upstream:
    """An OpenAI-compatible model server. Replies come in order; the last one again where they run out."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self.replies = list(replies)
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.going_on: asyncio.Event | None = None  # a stream waits for it after its first piece
        self.cancelled = threading.Event()
        self.waiting = threading.Event()
        self.url = ""
        self._loop: asyncio.AbstractEventLoop | None = None

    def go_on(self) -> None:
        """Let a reply that waits be written."""
        assert self._loop is not None
        assert self.going_on is not None
        self._loop.call_soon_threadsafe(self.going_on.set)

    async def main(self, stop: asyncio.Event, tell: Callable[[Any], None]) -> None:
        self._loop, self.going_on = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/{path:.*}", self._answer)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        tell(self.url)
        await stop.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        self.asked.append(body)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.paths.append(request.path)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if callable(reply):
            reply = reply(body)
        if isinstance(reply, tuple):
            status, text = reply
            headers = {"Retry-After": "7"} if status == 429 else {}
            return web.Response(
                status=status, text=text if isinstance(text, str) else json.dumps(text), headers=headers
            )
        if isinstance(reply, str):
            reply = {"text": reply}
        if reply.get("hangs"):
            self.waiting.set()
            try:
                assert self.going_on is not None
                await self.going_on.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        if body.get("stream"):
            return await self._stream(request, body, reply)
        return web.json_response(_completion(body, reply))

    async def _stream(
        self, request: web.Request, body: Mapping[str, Any], reply: Mapping[str, Any]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}

        async def send(delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> None:
            chunk = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())

        for number, piece in enumerate(reply.get("pieces") or _pieces(reply.get("text", ""))):
            await send({"content": piece})
            if reply.get("waits") and number == 0:
                self.waiting.set()
                assert self.going_on is not None
                await self.going_on.wait()
        for index, call in enumerate(reply.get("tool_calls", ())):
            await send({"tool_calls": [{"index": index, **_call(index, call)}]})
        if "raw" in reply:  # whatever a server may write in the middle of a stream, and nothing after it
            await response.write(reply["raw"])
            return response
        if reply.get("breaks"):
            assert request.transport is not None
            request.transport.abort()
            return response
        await send({}, "tool_calls" if reply.get("tool_calls") else reply.get("finish_reason", "stop"))
        usage = {**head, "choices": [], "usage": _usage()}
        await response.write(f"data: {json.dumps(usage)}\n\ndata: [DONE]\n\n".encode())
        return response


def _pieces(text: str) -> list[str]:
    return [text[start : start + 4] for start in range(0, len(text), 4)]


def _call(index: int, call: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": call["name"], "arguments": json.dumps(call["args"])}
    return {"id": f"up_{index}", "type": "function", "function": function}


def _usage() -> dict[str, int]:
    return {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}


def _completion(body: Mapping[str, Any], reply: Mapping[str, Any]) -> dict[str, Any]:
    calls = [_call(index, call) for index, call in enumerate(reply.get("tool_calls", ()))]
    text = reply.get("text") or "".join(reply.get("pieces", ())) or None
    message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
    finish = "tool_calls" if calls else reply.get("finish_reason", "stop")
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": choices,
        "usage": _usage(),
    }


@contextmanager
def upstream(*replies: Reply) -> Iterator[Upstream]:
    """A model server that gives these replies."""
    server = Upstream(replies or ["Hello."])
    _, stop = in_thread(server.main)
    try:
        yield server
    finally:
        server.go_on()
        stop()


def model_env(server: Upstream) -> dict[str, str]:
    """The environment that makes `openai:` models those of the server."""
    return {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "sk-upstream-0123456789abcdef"}


@dataclass
class Running:
    """A gateway that serves, with its journal."""

    url: str
    journal: Any
    process: GatewayServer
    loop: asyncio.AbstractEventLoop
    logged: list[RequestRecord] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def end(self, *, at_once: bool = False) -> None:
        """What a signal does: end with time for the runs under way, or, like a second one, at once."""
        event = self.process.hurry if at_once else self.process.stop
        self.loop.call_soon_threadsafe(event.set)

    def reload(self) -> None:
        """What a SIGHUP does."""
        self.loop.call_soon_threadsafe(self.process.request_reload)

    def traces(self) -> list[Trace]:
        """The runs in the journal, the oldest first."""

        async def load() -> list[Trace]:
            rows = await self.journal.runs(limit=1_000)
            return [Trace(row.run_id, await self.journal.load(row.run_id)) for row in reversed(rows)]

        return asyncio.run(load())


@contextmanager
def gateway(
    config: GatewayConfig,
    *,
    journal: Any = None,
    load: Callable[[], GatewayConfig] | None = None,
    idle_s: float = IDLE_TIMEOUT_S,
    poll_s: float = POLL_INTERVAL_S,
    database: GatewayDatabase | None = None,
    quotas: Quotas | None = None,
) -> Iterator[Running]:
    """A gateway on a free port of this machine. All that it answers is judged; what is wrong fails the test."""
    judge = Judge()
    journal = journal if journal is not None else MemoryJournal()
    config = replace(config, port=0)
    logged: list[RequestRecord] = []
    said: list[str] = []

    async def main(stop: asyncio.Event, tell: Callable[[Any], None]) -> None:
        process = GatewayServer(
            config,
            journal,
            load=load or (lambda: config),
            quotas=quotas or Quotas(config.limits),
            on_request=logged.append,
            say=said.append,
            idle_timeout_s=idle_s,
            poll_interval_s=poll_s,
            database=database,
        )
        process.stop = stop
        judge.attach(process.gateway.app)
        await process.serve(on_ready=lambda url: tell((url, process, asyncio.get_running_loop())))

    (url, process, loop), stop = in_thread(main)
    try:
        yield Running(url=url, journal=journal, process=process, loop=loop, logged=logged, said=said)
    finally:
        stop()
    assert not judge.wrong, "\n".join(judge.wrong)


def config_of(*agents: Agent | ServedAgent, **changes: Any) -> GatewayConfig:
    """A configuration with these agents."""
    served = [one if isinstance(one, ServedAgent) else ServedAgent(name=one.name, agent=one) for one in agents]
    return GatewayConfig(path=Path("test.yaml"), form="own", agents={one.name: one for one in served}, **changes)


@pytest.fixture
def user() -> Callable[..., list[dict[str, Any]]]:
    """The messages of a question."""
    return lambda text: [{"role": "user", "content": text}]


@pytest.fixture
def agent_file(tmp_path: Path) -> Path:
    path = tmp_path / "agent.yaml"
    path.write_text(AGENT.format(name="assistant", instructions="Be brief."))
    return path


@pytest.fixture(autouse=True)
def close_clients() -> Iterator[None]:
    yield
    while _CLIENTS:
        _CLIENTS.pop().close()


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with upstream("Hello.") as server, gateway(config_of(agent(server), limits=LIMITS)) as made:
        yield made


@tool(tier="read", egress=False)
def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


def agent(server: Upstream, **changes: Any) -> Agent:
    options: dict[str, Any] = {"tools": [double], "name": "assistant", "retry": Retry(attempts=1), "dialect": "native"}
    return Agent(model="openai:m", env=model_env(server), **{**options, **changes})


_CLIENTS: list[OpenAI] = []


def client(running: Running, **options: Any) -> OpenAI:
    made = OpenAI(base_url=f"{running.url}/v1", api_key=options.pop("api_key", "none"), max_retries=0, **options)
    _CLIENTS.append(made)
    return made


LIMITS = ServerLimits(max_body_bytes=1024 * 1024, body_timeout_s=0.3)


AGENT = """\
name: {name}
model: openai:some-model
dialect: native
instructions: "{instructions}"
tools: [calculator]
"""
