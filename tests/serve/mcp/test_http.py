"""The protocol over HTTP: who may speak, how much, and that it ends when it is told to."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from taoloop import tool
from taoloop.errors import ConfigError
from taoloop.serve.mcp import http
from taoloop.serve.mcp.http import MAX_BODY_BYTES, ListenAddress, parse_address, serve_http

from .conftest import YES, Served, said, serve

TOKEN = "a-token-of-more-than-sixteen"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@tool(tier="read")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(tier="write", egress=False)
def put(text: str) -> str:
    """Put a text somewhere."""
    return f"put {text}"


@asynccontextmanager
async def listening(
    place: ListenAddress | None = None, tools: Sequence[Any] = (add, put)
) -> AsyncIterator[tuple[str, Served]]:
    """A server on a free port of this machine; stopped at the end."""
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    served = serve(list(tools))
    serving = asyncio.create_task(
        serve_http(served.server, place or ListenAddress(port=0), stop=stop, on_ready=ready.set_result)
    )
    try:
        async with asyncio.timeout(20):
            yield await ready, served
    finally:
        stop.set()
        async with asyncio.timeout(20):
            await serving
        await served.desk.close()


@asynccontextmanager
async def client(url: str, era: str, **headers: str) -> AsyncIterator[Client]:
    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        return YES

    async with httpx2.AsyncClient(headers=headers, timeout=20, trust_env=False) as http:
        carrier = streamable_http_client(url, http_client=http)
        async with Client(carrier, mode=era, elicitation_callback=elicit, cache=None) as connected:
            yield connected


def test_both_eras_are_served_at_one_address(era: str) -> None:
    async def run() -> None:
        async with listening() as (url, served), client(url, era) as host:
            assert [one.name for one in (await host.list_tools()).tools] == ["add", "put"]
            assert said(await host.call_tool("add", {"a": 1, "b": 2})) == "3"
            assert said(await host.call_tool("put", {"text": "x"})) == "put x"
            assert len(await served.traces()) == 2

    asyncio.run(run())


def test_64_clients_at_once_get_their_own_answers(era: str) -> None:
    async def run() -> None:
        async with listening() as (url, _), client(url, era) as one, client(url, era) as other:
            hosts = [one, other] * 32
            found = await asyncio.gather(*(host.call_tool("add", {"a": n, "b": 0}) for n, host in enumerate(hosts)))
            assert [said(result) for result in found] == [str(n) for n in range(64)]

    asyncio.run(run())


async def post(url: str, body: Any = None, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=20, trust_env=False) as http:
        content = body if isinstance(body, bytes) else json.dumps(body or PING).encode()
        given = ACCEPT | {name.replace("_", "-"): value for name, value in headers.items()}
        return await http.post(url, content=content, headers=given)


def test_requests_for_other_hosts_and_from_other_pages_are_refused() -> None:
    async def run() -> None:
        async with listening() as (url, _):
            assert (await post(url, host="evil.example")).status_code == 421
            assert (await post(url, origin="https://evil.example")).status_code == 403
            assert (await post(url, origin="null")).status_code == 403
            port = url.split(":")[2].partition("/")[0]
            assert (await post(url, host=f"localhost:{port}", origin=f"http://localhost:{port}")).status_code < 420

    asyncio.run(run())


def test_a_body_that_is_too_large_is_refused() -> None:
    async def run() -> None:
        async with listening() as (url, _):
            assert (await post(url, b"x" * (MAX_BODY_BYTES + 1))).status_code == 413

    asyncio.run(run())


def test_without_the_token_nobody_gets_anywhere(era: str) -> None:
    async def run() -> None:
        async with listening(ListenAddress(port=0, token=TOKEN)) as (url, _):
            for headers in (
                {},
                {"authorization": "Bearer wrong"},
                {"authorization": f"Basic {TOKEN}"},
                {"authorization": TOKEN},
                {"authorization": f"Bearer {TOKEN}x"},
            ):
                refused = await post(url, **headers)
                assert refused.status_code == 401
                assert refused.headers["www-authenticate"] == "Bearer"
            async with client(url, era, authorization=f"Bearer {TOKEN}") as host:
                assert said(await host.call_tool("add", {"a": 1, "b": 2})) == "3"

    asyncio.run(run())


def test_a_session_of_one_host_is_none_of_another() -> None:
    async def run() -> None:
        async with listening() as (url, _):
            unknown = await post(url, mcp_session_id="0" * 32)
            assert unknown.status_code == 404

    asyncio.run(run())


def test_it_ends_although_a_call_is_under_way(era: str) -> None:
    async def run() -> None:
        begun = asyncio.Event()

        @tool(tier="read")
        async def hold() -> str:
            """Hold on."""
            begun.set()
            await asyncio.Event().wait()
            return "never"

        stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
        served = serve([hold])
        serving = asyncio.create_task(
            serve_http(served.server, ListenAddress(port=0), stop=stop, on_ready=ready.set_result)
        )
        calling: asyncio.Task[Any] | None = None

        async def call() -> None:
            async with client(await ready, era) as host:
                await host.call_tool("hold", {})

        calling = asyncio.create_task(call())
        async with asyncio.timeout(20):
            await begun.wait()
            stop.set()
            await served.desk.close()
            await serving
            calling.cancel()
            await asyncio.wait([calling])
        assert [trace.status for trace in await served.traces()] == ["stopped"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ("8000", ("127.0.0.1", 8000)),
        (":8000", ("127.0.0.1", 8000)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:8000", ("::1", 8000)),
    ],
)
def test_an_address_is_read(given: str, place: tuple[str, int]) -> None:
    found = parse_address(given, token=None)
    assert (found.host, found.port) == place
    assert found.is_local


@pytest.mark.parametrize("given", ["", "here", "127.0.0.1", "127.0.0.1:x", "example.com:80", "127.0.0.1:65536"])
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="not an address to listen on"):
        parse_address(given, token=None)


def test_an_address_that_others_reach_needs_a_token_and_a_name() -> None:
    with pytest.raises(ConfigError, match="there is no token"):
        parse_address("10.1.2.3:80", token=None)
    with pytest.raises(ConfigError, match="at least 16"):
        parse_address("10.1.2.3:80", token="short")
    with pytest.raises(ConfigError, match="nothing says under which name"):
        parse_address("0.0.0.0:80", token=TOKEN)
    place = parse_address("0.0.0.0:80", token=TOKEN, names=["mcp.example.com"])
    assert place.allowed_hosts.accepts("MCP.example.com:80")
    assert not place.allowed_hosts.accepts("localhost:80")
    assert "https://mcp.example.com" in place.allowed_origins(80)
    own = parse_address("10.1.2.3:80", token=TOKEN).allowed_hosts
    assert own.accepts("10.1.2.3")
    assert not own.accepts("10.1.2.4")


def test_at_port_80_an_origin_needs_none() -> None:
    assert {"http://127.0.0.1", "http://localhost", "http://[::1]"} <= ListenAddress(port=80).allowed_origins(80)
    assert "http://127.0.0.1" not in ListenAddress(port=81).allowed_origins(81)


@pytest.mark.parametrize("name", ["", "*", "http://mcp.example.com", "a b", "mcp.example.com:*"])
def test_what_is_no_host_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="is not a host name"):
        ListenAddress(names=(name,))


def test_answers_do_not_wait_for_acknowledgements() -> None:
    with http._listen(ListenAddress(port=0)) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # else asyncio does not turn Nagle's algorithm off


def test_a_port_that_is_taken_is_told() -> None:
    async def run() -> None:
        async with listening() as (url, served):
            port = int(url.split(":")[2].partition("/")[0])
            with pytest.raises(ConfigError, match="cannot be listened on"):
                await serve_http(served.server, ListenAddress(port=port), stop=asyncio.Event())

    asyncio.run(run())
