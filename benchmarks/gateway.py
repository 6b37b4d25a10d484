"""Figures of the gateway, each beside a bare server that passes requests on, in the same run and on the same model.

    python benchmarks/gateway.py [--json] [--requests N] [--litellm PATH/TO/litellm]

The model is a server on this machine. The gateway, the bare server and LiteLLM each get one CPU for themselves; the
clients and the model share the others.

1. One client, a model that answers at once: what a run without tools adds to the time of the model's own answer
   (target: at most 2 ms at the median, 10 ms at p99).
2. 64 clients at once, a model that takes 50 ms: answers per second over what that latency allows (target: 60 %).
3. The same, streamed: from the model's first token to the client's (target: at most 5 ms at the median).
4. Memory after 2,000 and after `--requests` answers (20,000), and errors (target: flat, none).
5. Answers per second that one CPU is enough for, by the CPU that each took (target: at least 1,000), and the same for
   runs with two turns of the model and a call of the calculator between them (target: at least 500).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import aiohttp
from aiohttp import web

CLIENTS, MODEL_S = 64, 0.05
ONE_BY_ONE, STREAMED = 400, 100
ANSWER_S = 20.0  # an answer that takes longer is an error
_ANSWER = "The answer is forty-two, as far as anybody can tell. " * 4

AGENT = """\
name: assistant
model: openai:some-model
dialect: native
language: en
tools: [calculator]
"""

LITELLM = """\
model_list:
  - model_name: assistant
    litellm_params:
      model: openai/some-model
      api_base: {url}/v1
      api_key: none
"""


# The model


def completion(model: str, *, calls_tool: bool = False) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": _ANSWER}
    if calls_tool:
        function = {"name": "calculator", "arguments": '{"expression": "17 * 23"}'}
        message = {"role": "assistant", "content": None}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls_tool else "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": 140},
    }
    return json.dumps(body).encode()


async def model_server(delay: Callable[[str], float]) -> Any:
    """A model whose name says how long it takes: `m50` 50 ms; a streamed answer tells when its first token left."""

    async def answer(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        asked = json.dumps(body["messages"][-1])
        await asyncio.sleep(delay(asked))
        if not body.get("stream"):
            calls_tool = "calculate" in asked and body["messages"][-1]["role"] == "user"
            answer = completion(body["model"], calls_tool=calls_tool)
            return web.Response(body=answer, content_type="application/json")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        for number in range(5):
            text = f"{letters(time.perf_counter_ns())} " if number == 0 else "word "
            chunk = {**head, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
            await asyncio.sleep(0.02)
        last = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        await response.write(f"data: {json.dumps(last)}\n\ndata: [DONE]\n\n".encode())
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    return await started(app, 0)


async def started(app: Any, port: int) -> Any:
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    return runner


def serve_model() -> None:
    """Process: the model. A question with the word `slow` takes 50 ms."""

    async def main() -> None:
        runner = await model_server(lambda asked: MODEL_S if "slow" in asked else 0.0)
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())


def serve_bare(upstream: str) -> None:
    """Process: a server that passes requests on, and nothing else."""

    async def main() -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def pass_on(request: web.Request) -> web.StreamResponse:
                body = await request.read()
                asked = json.loads(body)
                async with session.post(f"{upstream}/v1/chat/completions", data=body) as answer:
                    if not asked.get("stream"):
                        return web.Response(body=await answer.read(), content_type="application/json")
                    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
                    await response.prepare(request)
                    async for piece in answer.content.iter_any():
                        await response.write(piece)
                    return response

            app = web.Application()
            app.router.add_post("/v1/chat/completions", pass_on)
            runner = await started(app, 0)
            print(runner.addresses[0][1], flush=True)
            await asyncio.Event().wait()

    asyncio.run(main())


# The clients


class Client:
    """One connection that is kept open."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, text: str, *, stream: bool = False) -> bytes:
        """The body of the answer; for a stream up to and with its first token."""
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        assert self._reader is not None
        asked = {"model": "assistant", "messages": [{"role": "user", "content": text}], "stream": stream}
        body = json.dumps(asked).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        self._writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        headers = await self._reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in headers.split(b"\r\n", 1)[0]:
            raise RuntimeError(headers.decode())
        if stream:
            return await self._first_token()
        length = int(headers.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        return await self._reader.readexactly(length)

    async def _first_token(self) -> bytes:
        assert self._reader is not None
        text, at = b"", 0
        while b"data: [DONE]" not in text:
            if not (piece := await self._reader.read(65_536)):
                raise RuntimeError("the stream ended early")
            if not at and b'"content":' in piece.replace(b'"content": ', b'"content":') and _stamp(piece):
                at = time.perf_counter_ns() - _stamp(piece)
            text += piece
        return str(at).encode()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _stamp(piece: bytes) -> int:
    """When the model wrote its first token, as that token says."""
    for part in piece.replace(b'"content": "', b'"content":"').split(b'"content":"')[1:]:
        word = part.split(b'"')[0].split(b"\\n")[0].strip().decode()
        if len(word) > 8 and set(word) <= set(_LETTERS):
            return int("".join(str(_LETTERS.index(letter)) for letter in word))
    return 0


_LETTERS = "abcdefghij"


def letters(number: int) -> str:
    """A number as a word, for words are passed on at once, and digits may be the beginning of a secret."""
    return "".join(_LETTERS[int(digit)] for digit in str(number))


async def one_by_one(port: int, count: int) -> list[float]:
    client, times = Client(port), []
    for number in range(count + 20):
        began = time.perf_counter()
        await client.ask(f"quick {number}")
        times.append((time.perf_counter() - began) * 1e3)
    client.close()
    return times[20:]  # the first ones warm up


async def first_tokens(port: int, count: int) -> list[float]:
    times = []
    for number in range(count + 5):
        client = Client(port)
        times.append(int(await client.ask(f"quick {number}", stream=True)) / 1e6)
        client.close()
    return times[5:]


async def at_once(port: int, count: int, task: str = "slow") -> tuple[float, int]:
    """Answers per second of 64 clients, and how many had no answer."""
    left, errors = iter(range(count)), 0

    async def go() -> None:
        nonlocal errors
        client = Client(port)
        for number in left:
            try:
                async with asyncio.timeout(ANSWER_S):
                    await client.ask(f"{task} {number}")
            except (RuntimeError, OSError, asyncio.IncompleteReadError, TimeoutError):
                errors += 1
                client.close()
                client = Client(port)
        client.close()

    began = time.perf_counter()
    await asyncio.gather(*(go() for _ in range(CLIENTS)))
    return count / (time.perf_counter() - began), errors


# The measurement


@contextmanager
def process(
    command: Sequence[str], *, cpu: int | None, env: dict[str, str] | None = None, tells_port: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """A server on one CPU. Its output is thrown away, for a pipe that nobody reads stops a server that logs."""
    pin = ["taskset", "-c", str(cpu)] if cpu is not None and sys.platform == "linux" else []
    output = subprocess.PIPE if tells_port else subprocess.DEVNULL
    running = subprocess.Popen([*pin, *command], stdout=output, stderr=subprocess.DEVNULL, text=True, env=env)
    try:
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        try:
            running.wait(20)
        except subprocess.TimeoutExpired:
            running.kill()
        if running.stdout is not None:
            running.stdout.close()


def ready(port: int, path: str, within_s: float = 90.0) -> None:
    """Wait until a server answers at `path`."""
    ended = time.monotonic() + within_s
    while True:
        try:
            with urlopen(f"http://127.0.0.1:{port}{path}", timeout=2):
                return
        except (URLError, OSError):
            if time.monotonic() > ended:
                raise
            time.sleep(0.1)


def rss_mb(pid: int) -> float:
    """Memory of a process and its children."""
    total = 0
    for one in [pid, *(int(child) for child in _children(pid))]:
        status = Path(f"/proc/{one}/status").read_text()
        total += int(status.split("VmRSS:")[1].split()[0])
    return total / 1024


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process and its children have used."""
    total = 0
    for one in [pid, *_children(pid)]:
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(") ")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def _quantile(times: Sequence[float], part: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]


async def measure(
    name: str, port: int, pid: int, requests: int, direct: Sequence[float], *, tool: bool = False
) -> dict[str, Any]:
    single = await one_by_one(port, ONE_BY_ONE)
    tokens = await first_tokens(port, STREAMED)
    _, warm_errors = await at_once(port, min(2_000, requests))
    early, cpu_s = rss_mb(pid), cpu_of(pid)
    rate, errors = await at_once(port, requests)
    cpu_s = cpu_of(pid) - cpu_s
    late = rss_mb(pid)
    tool_cpu_s, tool_errors = await tool_cpu(pid, port, max(requests // 10, 500)) if tool else (0.0, 0)
    return {
        "name": name,
        "added_ms_median": statistics.median(single) - statistics.median(direct),
        "added_ms_p99": _quantile(single, 0.99) - statistics.median(direct),
        "first_token_ms_median": statistics.median(tokens),
        "per_s": rate,
        "of_ideal": rate / (CLIENTS / MODEL_S),
        "cpu_ms_each": cpu_s / requests * 1e3,
        "per_s_and_cpu": requests / cpu_s,
        "tool_per_s_and_cpu": 1 / tool_cpu_s if tool else None,
        "errors": errors + warm_errors + tool_errors,
        "mb_early": early,
        "mb_late": late,
    }


async def tool_cpu(pid: int, port: int, count: int) -> tuple[float, int]:
    """Seconds of CPU of a run with one call of a tool, and how many had no answer."""
    await at_once(port, 100, "slow: calculate")
    before = cpu_of(pid)
    _, errors = await at_once(port, count, "slow: calculate")
    return (cpu_of(pid) - before) / count, errors


async def compare(options: argparse.Namespace, tell: Callable[[dict[str, Any]], None]) -> None:
    python, me = sys.executable, __file__
    cpus = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
    own, others = (cpus[-1], cpus[0]) if len(cpus) > 1 else (None, None)
    if others is not None:
        os.sched_setaffinity(0, set(cpus[:-1]))
    with (
        tempfile.TemporaryDirectory() as folder,
        process([python, me, "--as", "model"], cpu=others, tells_port=True) as model,
    ):
        assert model.stdout is not None
        upstream = int(model.stdout.readline())
        direct = await one_by_one(upstream, ONE_BY_ONE)
        passing_on = [python, me, "--as", "bare", "--upstream", f"http://127.0.0.1:{upstream}"]
        with process(passing_on, cpu=own, tells_port=True) as bare:
            assert bare.stdout is not None
            port = int(bare.stdout.readline())
            tell(await measure("bare server", port, bare.pid, options.requests, direct))
        agent = Path(folder) / "agent.yaml"
        agent.write_text(AGENT)
        env = {
            **os.environ,
            "OPENAI_BASE_URL": f"http://127.0.0.1:{upstream}/v1",
            "OPENAI_API_KEY": "sk-none-0123456789",
        }
        env |= {"TAOLOOP_NO_REAL_CALLS": ""}
        command = [
            str(Path(python).with_name("tao")),
            "serve",
            str(agent),
            "--port",
            "18200",
            "--db",
            f"{folder}/runs.db",
        ]
        with process(command, cpu=own, env=env) as gateway:
            await asyncio.to_thread(ready, 18200, "/readyz")
            tell(await measure("taoloop gateway", 18200, gateway.pid, options.requests, direct, tool=True))
        if options.litellm:
            config = Path(folder) / "litellm.yaml"
            config.write_text(LITELLM.format(url=f"http://127.0.0.1:{upstream}"))
            command = [options.litellm, "--config", str(config), "--port", "18201", "--host", "127.0.0.1"]
            env = {**os.environ, "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
            with process(command, cpu=own, env=env) as litellm:
                await asyncio.to_thread(ready, 18201, "/health/liveliness")
                count = min(options.requests, 500)  # it takes its time
                tell(await measure("LiteLLM proxy", 18201, litellm.pid, count, direct))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, a line each")
    parser.add_argument("--requests", type=int, default=20_000, help="answers in part 2 and 4")
    parser.add_argument("--litellm", help="the litellm command of an environment of its own, to measure beside it")
    parser.add_argument("--as", dest="part", choices=("model", "bare"), help=argparse.SUPPRESS)
    parser.add_argument("--upstream", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part == "model":
        serve_model()
    elif options.part == "bare":
        serve_bare(options.upstream)
    else:
        asyncio.run(compare(options, lambda row: print(json.dumps(row) if options.json else _line(row), flush=True)))


def _line(row: dict[str, Any]) -> str:
    tool_rate = row["tool_per_s_and_cpu"]
    with_tool = "" if tool_rate is None else f" ({tool_rate:.0f}/s with one call of a tool)"
    return (
        f"{row['name']:16} adds {row['added_ms_median']:6.2f} ms (p99 {row['added_ms_p99']:6.2f})"
        f"  first token {row['first_token_ms_median']:6.2f} ms"
        f"  {CLIENTS} clients {row['per_s']:6.0f}/s = {row['of_ideal']:4.0%} of the ideal,"
        f" CPU {row['cpu_ms_each']:.2f} ms each = {row['per_s_and_cpu']:.0f}/s a CPU{with_tool}, {row['errors']} errors"
        f"  {row['mb_early']:.0f} -> {row['mb_late']:.0f} MB"
    )


if __name__ == "__main__":
    main()
