"""CPU of one model call above a bare HTTP client, alone and 64 at once; and how late a streamed first token is.

Run: python benchmarks/model_call.py [--json]
Targets: at most 0.5 ms of CPU above the fastest bare client, at 1 and at 64; a first token at most 1 ms after the
provider's. The provider is a raw server in a process of its own on this machine; only the client's CPU counts.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import openai
from serving import serving

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.effects import ModelRequest
from taoloop.core.events import Event, RunStarted
from taoloop.core.message import Delta, Message
from taoloop.core.trace import Trace
from taoloop.models.openai import OpenAIModel
from taoloop.models.providers import Endpoint

CALLS, ROUNDS, STREAMS = 640, 5, 200
Call = Callable[[], Awaitable[object]]
MESSAGES = (
    Message(role="system", content="You are an agent that uses tools. " * 60),
    Message(role="user", content="What is 17 times 23?"),
)
BODY = {"model": "tiny", "messages": [{"role": m.role, "content": m.content} for m in MESSAGES], "temperature": 0.2}
HEADERS = {"content-type": "application/json", "authorization": "Bearer k"}

SERVER = """
REPLY = json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "tiny",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "391. " * 40}}],
    "usage": {"prompt_tokens": 400, "completion_tokens": 80, "total_tokens": 480}}).encode()
WHOLE = whole(REPLY)
HEAD = b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\ntransfer-encoding: chunked\\r\\n\\r\\n"


def chunk(data):
    line = b"data: " + data + b"\\n\\n"
    return b"%x\\r\\n%s\\r\\n" % (len(line), line)


def token(text, **more):
    choice = {"index": 0, "delta": {"content": text}, **more}
    return json.dumps({"id": "c", "model": "tiny", "choices": [choice]}).encode()


class Server(Requests):
    def answer(self, body):
        if b'"stream":true' in body.replace(b" ", b""):
            self.transport.write(HEAD)
            asyncio.get_running_loop().call_later(0.002, self.first)
        else:
            self.transport.write(WHOLE)

    def first(self):
        self.transport.write(chunk(token(str(time.monotonic_ns()))))
        asyncio.get_running_loop().call_later(0.001, self.rest)

    def rest(self):
        self.transport.write(chunk(token("!", finish_reason="stop")) + chunk(b"[DONE]") + b"0\\r\\n\\r\\n")
"""


def raw_client(port: int) -> Call:
    """Raw asyncio sockets with hand-written HTTP: the least that a call can cost."""
    free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def call() -> Any:
        reader, writer = free.pop() if free else await asyncio.open_connection("127.0.0.1", port)
        writer.write(http_request(json.dumps(BODY).encode()))
        head = await reader.readuntil(b"\r\n\r\n")
        start = head.index(b"content-length:") + 15
        value = json.loads(await reader.readexactly(int(head[start:].split(b"\r\n")[0])))
        free.append((reader, writer))
        return value["choices"][0]["message"]["content"]

    return call


def http_request(body: bytes) -> bytes:
    head = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    line = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n{head}content-length: {len(body)}\r\n\r\n"
    return line.encode() + body


def aiohttp_client(session: aiohttp.ClientSession, base: str) -> Call:
    async def call() -> Any:
        data = json.dumps(BODY).encode()
        async with session.post(f"{base}/chat/completions", data=data, headers=HEADERS) as response:
            return json.loads(await response.read())["choices"][0]["message"]["content"]

    return call


def sdk_client(base: str, http_client: Any = None) -> tuple[openai.AsyncOpenAI, Call]:
    client = openai.AsyncOpenAI(api_key="k", base_url=base, max_retries=0, timeout=None, http_client=http_client)

    async def call() -> Any:
        return await client.chat.completions.create(**BODY)  # type: ignore[call-overload]  # plain data

    return client, call


def taoloop_client(base: str, on_delta: Callable[[Delta], None] | None = None) -> tuple[OpenAIModel, Call]:
    spec = AgentSpec(temperature=0.2)
    trace = Trace("r", [Event(0, 0.0, RunStarted(task="x", agent=spec, nonce="n"))])
    request = ModelRequest(
        task="x", trace=trace, messages=MESSAGES, dialect="native", native=True, temperature=0.2, on_delta=on_delta
    )
    model = OpenAIModel(Endpoint(provider="openai", model="tiny", api_key="k", base_url=base))
    return model, lambda: model.complete(request)


async def cpu_ms(call: Call, at_once: int) -> float:
    """Median CPU of one call in milliseconds, after a round that does not count."""
    each = CALLS // at_once

    async def worker(calls: int) -> None:
        for _ in range(calls):
            await call()

    await asyncio.gather(*(worker(3) for _ in range(at_once)))
    costs = []
    for _ in range(ROUNDS):
        began = time.process_time()
        await asyncio.gather(*(worker(each) for _ in range(at_once)))
        costs.append((time.process_time() - began) / (each * at_once) * 1e3)
    return statistics.median(costs)


async def first_token_ms(port: int, base: str) -> dict[str, float]:
    """How long after the provider wrote it the first token is there, and the same over raw sockets."""
    late: list[float] = []

    def heard(delta: Delta) -> None:
        if delta.text.isdigit():
            late.append((time.monotonic_ns() - int(delta.text)) / 1e6)

    model, call = taoloop_client(base, heard)
    for _ in range(STREAMS + 10):
        await call()
    await model.close()
    late = late[10:]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    bare: list[float] = []
    for _ in range(STREAMS):
        writer.write(http_request(json.dumps({**BODY, "stream": True}).encode()))
        await reader.readuntil(b"data: ")
        data = await reader.readuntil(b"\n\n")
        value = json.loads(data)["choices"][0]["delta"]["content"]
        bare.append((time.monotonic_ns() - int(value)) / 1e6)
        await reader.readuntil(b"\r\n0\r\n\r\n")
    writer.close()
    return {
        "taoloop, median": statistics.median(late),
        "taoloop, 95th percentile": statistics.quantiles(late, n=20)[-1],
        "raw sockets, median": statistics.median(bare),
    }


async def measure(port: int) -> dict[str, Any]:
    """All figures, in milliseconds."""
    base = f"http://127.0.0.1:{port}/v1"
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        plain, plain_call = sdk_client(base)
        stack.push_async_callback(plain.close)
        fast, fast_call = sdk_client(base, openai.DefaultAioHttpClient(timeout=None))
        stack.push_async_callback(fast.close)
        model, model_call = taoloop_client(base)
        stack.push_async_callback(model.close)
        clients = {
            "raw sockets": raw_client(port),
            "aiohttp": aiohttp_client(session, base),
            "taoloop": model_call,
            "OpenAI SDK": plain_call,
            "OpenAI SDK on aiohttp": fast_call,
        }
        cpu = {name: {n: await cpu_ms(call, n) for n in (1, 64)} for name, call in clients.items()}
        return {"cpu_ms": cpu, "first_token_ms": await first_token_ms(port, base)}


def main() -> None:
    """Print the figures."""
    with serving(SERVER) as port:
        figures = asyncio.run(measure(port))
    if "--json" in sys.argv:
        print(json.dumps(figures))
        return
    raw = figures["cpu_ms"]["raw sockets"]
    for name, cost in figures["cpu_ms"].items():
        print(
            f"{name:24} {cost[1]:6.3f} ms of CPU alone (+{cost[1] - raw[1]:.3f}), "
            f"{cost[64]:6.3f} ms with 64 at once (+{cost[64] - raw[64]:.3f})"
        )
    for name, value in figures["first_token_ms"].items():
        print(f"first token, {name:26} {value:6.3f} ms after the provider wrote it")


if __name__ == "__main__":
    main()
