"""The protocol over two file descriptors: hosts that send rubbish, too much, or nothing more."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

from taoloop import tool
from taoloop.runtime.threads import POOL
from taoloop.serve.mcp import stdio
from taoloop.serve.mcp.stdio import serve_stdio

from .conftest import serve

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@tool(tier="read")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(tier="write", egress=False)
def put(text: str) -> str:
    """Put a text somewhere."""
    raise AssertionError("nobody allowed it")


class Host:
    """The other end of the two pipes."""

    def __init__(self, write_fd: int, read_fd: int) -> None:
        self.write_fd, self._read_fd, self._buffer = write_fd, read_fd, b""

    async def send(self, message: dict[str, Any] | bytes) -> None:
        data = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        view = memoryview(data)
        while view:
            written = await POOL.run(lambda view=view: os.write(self.write_fd, view[:65_536]))  # type: ignore[misc]
            view = view[written:]

    async def receive(self) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            self._buffer += await POOL.run(lambda: os.read(self._read_fd, 65_536))
        line, _, self._buffer = self._buffer.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    async def greet(self, **capabilities: Any) -> None:
        await self.send({"id": 1, "method": "initialize", "params": HELLO | {"capabilities": capabilities}})
        assert (await self.receive())["result"]["serverInfo"]["name"] == "taoloop"
        await self.send({"method": "notifications/initialized"})

    async def add(self, number: int) -> str:
        params = {"name": "add", "arguments": {"a": number, "b": 1}}
        await self.send({"id": number, "method": "tools/call", "params": params})
        return str((await self.receive())["result"]["content"][0]["text"])

    def leave(self) -> None:
        os.close(self.write_fd)


def between(talk: Callable[[Host], Awaitable[None]]) -> None:
    """Let a host talk to a server; the server must end when the host leaves."""

    async def run() -> None:
        to_server, from_host = os.pipe()
        from_server, to_host = os.pipe()
        served = serve([add, put])
        serving = asyncio.create_task(serve_stdio(served.server, to_server, to_host))
        host = Host(from_host, from_server)
        async with asyncio.timeout(20):
            await talk(host)
            await serving
        await served.desk.close()
        for fd in (to_server, to_host, from_server):
            os.close(fd)

    asyncio.run(run())


def test_a_host_greets_calls_and_leaves() -> None:
    async def talk(host: Host) -> None:
        await host.greet()
        assert await host.add(41) == "42"
        host.leave()

    between(talk)


def test_rubbish_is_answered_and_the_next_line_is_served() -> None:
    async def talk(host: Host) -> None:
        await host.greet()
        for rubbish in (b"hello\n", b"{}\n", b"\xff\xfe\n", b'{"jsonrpc": "2.0"\n'):
            await host.send(rubbish)
            assert (await host.receive())["error"]["code"] == -32700
        await host.send(b"\n  \n")
        assert await host.add(1) == "2"
        host.leave()

    between(talk)


def test_a_call_that_cannot_be_read_is_answered_under_its_id() -> None:
    half_an_emoji = b'"method":"tools/call","params":{"name":"add","arguments":{"a":"\\ud83d"}}}\n'

    async def talk(host: Host) -> None:
        await host.greet()
        for number in (b"7", b'"seven"', b"null", b'"\\ud800"', b"true"):
            await host.send(b'{"jsonrpc":"2.0","id":' + number + b"," + half_an_emoji)
            answer = await host.receive()
            assert answer["error"]["code"] == -32700
            assert answer["id"] == (json.loads(number) if number in (b"7", b'"seven"') else None)
        for number in (b"null", b"1.5", b"true", b"{}"):
            await host.send(b'{"jsonrpc":"2.0","method":"ping","id":' + number + b"}\n")
            assert "needs an id" in (await host.receive())["error"]["message"]
        assert await host.add(1) == "2"
        host.leave()

    between(talk)


def test_what_is_no_answer_to_a_question_is_a_no() -> None:
    async def talk(host: Host) -> None:
        await host.greet(elicitation={})
        for number, answer in enumerate(
            ({"foo": 1}, {"action": "maybe"}, {"action": "accept", "content": {"allow": {}}}), 2
        ):
            await host.send(
                {"id": number, "method": "tools/call", "params": {"name": "put", "arguments": {"text": "x"}}}
            )
            question = await host.receive()
            await host.send({"id": question["id"], "result": answer})
            text = (await host.receive())["result"]["content"][0]["text"]
            assert text.startswith("refused: The call was not made: the client sent something else than an answer")
        host.leave()

    between(talk)


def test_a_line_that_is_too_long_is_dropped_and_the_next_one_served() -> None:
    async def talk(host: Host) -> None:
        await host.greet()
        await host.send(b"x" * (stdio.MAX_LINE_BYTES + 100_000) + b"\n")
        assert "4,194,304 bytes" in (await host.receive())["error"]["message"]
        assert await host.add(1) == "2"
        host.leave()

    between(talk)


def test_a_host_that_leaves_in_the_middle_of_a_line_ends_the_server() -> None:
    async def talk(host: Host) -> None:
        await host.greet()
        await host.send(b'{"jsonrpc": "2.0", "id": 5')
        host.leave()

    between(talk)


def test_a_server_that_is_told_to_stop_does_not_wait_for_a_silent_host() -> None:
    async def run() -> None:
        to_server, from_host = os.pipe()
        from_server, to_host = os.pipe()
        served = serve([add])
        stop = asyncio.Event()
        serving = asyncio.create_task(serve_stdio(served.server, to_server, to_host, stop=stop))
        host = Host(from_host, from_server)
        async with asyncio.timeout(20):
            await host.greet()
            stop.set()
            await serving
        os.close(from_host)  # lets go of the thread that reads
        for fd in (to_host, from_server):
            os.close(fd)

    asyncio.run(run())
