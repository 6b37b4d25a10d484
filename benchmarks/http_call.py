"""What a tool call over HTTP costs above the bare client: a GET and a POST of an OpenAPI tool against a local server.

Run: python benchmarks/http_call.py [--json]
Target: at most 0.3 ms above the bare httpx2 client, from arguments to observation. The server is in a process of its
own on this machine; rounds are in turn, so that a slow moment of the machine hits both. What counts is the CPU of this
process (all that a call costs above the client is work in it: no more turns of the event loop, no other thread); the
time on the clock is that of calls which nothing else on the machine held up, the fastest in a hundred.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
from serving import serving

from taoloop.runtime.engine.clock import SystemClock
from taoloop.runtime.engine.tool_execution import execute_tool
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.tool import RunContext, Tool

CALLS, ROUNDS = 40, 41
TARGET_MS = 0.3
Call = Callable[[], Awaitable[object]]

SERVER = """
ORDERS = [{"id": n, "state": "open", "lines": [{"sku": f"A-{n}", "count": 2}]} for n in range(20)]
WHOLE = whole(json.dumps({"orders": ORDERS}).encode())


class Server(Requests):
    def answer(self, body):
        self.transport.write(WHOLE)
"""

LINES = {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}}}
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Orders", "version": "1"},
    "servers": [{"url": "https://orders.example.com"}],
    "paths": {
        "/customers/{id}/orders": {
            "get": {
                "operationId": "list_orders",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
                    {"name": "state", "in": "query", "schema": {"type": "string", "enum": ["open", "closed"]}},
                    {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 100}},
                ],
            },
            "post": {
                "operationId": "create_order",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": {"type": "object", "properties": {"lines": LINES}}},
                    },
                },
            },
        }
    },
    "security": [{"key": []}],
    "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
}
GET_ARGS: dict[str, Any] = {"id": 4242, "state": "open", "limit": 20}
POST_ARGS: dict[str, Any] = {"id": 4242, "lines": [{"sku": f"A-{n}"} for n in range(10)]}


def tool_call(tool: Tool, args: dict[str, Any]) -> Call:
    """A whole call as a run makes it: arguments judged, request built and sent, observation made."""
    clock = SystemClock()

    async def call() -> object:
        outcome = await execute_tool(tool, tool.prepare(args).values, "call_1", RunContext(), 30.0, clock)
        assert outcome.observed.ok, outcome.observed.error
        return outcome

    return call


async def cost_ms(call: Call) -> tuple[float, list[float]]:
    """CPU of one call in milliseconds, and the time of each."""
    times = []
    worked = time.process_time()
    for _ in range(CALLS):
        began = time.perf_counter()
        await call()
        times.append((time.perf_counter() - began) * 1e3)
    return (time.process_time() - worked) / CALLS * 1e3, times


async def measure(port: int) -> dict[str, dict[str, float]]:
    """CPU (median of the rounds) and time (of the fastest) of one call in milliseconds, by the name of the call."""
    url = f"http://127.0.0.1:{port}"
    source = OpenapiSource(document=json.dumps(DOCUMENT), base_url=url, auth={"key": "key-for-tests"}, cache=False)
    tools = {tool.name: tool for tool in openapi_tools(source).tools}
    headers = {"Authorization": "Bearer key-for-tests"}
    async with httpx2.AsyncClient(trust_env=False, headers=headers) as client:

        async def get() -> object:
            return (await client.get(f"{url}/customers/4242/orders?state=open&limit=20")).content

        async def post() -> object:
            return (await client.post(f"{url}/customers/4242/orders", json={"lines": POST_ARGS["lines"]})).content

        calls: dict[str, Call] = {
            "bare GET": get,
            "tool GET": tool_call(tools["list_orders"], GET_ARGS),
            "bare POST": post,
            "tool POST": tool_call(tools["create_order"], POST_ARGS),
        }
        costs: dict[str, list[tuple[float, list[float]]]] = {name: [] for name in calls}
        for _ in range(ROUNDS + 1):
            for name, call in calls.items():
                costs[name].append(await cost_ms(call))
    return {
        name: {
            "cpu": statistics.median(cpu for cpu, _ in found[1:]),
            "time": statistics.quantiles([ms for _, times in found[1:] for ms in times], n=100)[0],
        }
        for name, found in costs.items()
    }


def main() -> None:
    """Print the figures; fail where they miss the target."""
    with serving(SERVER) as port:
        figures = asyncio.run(measure(port))
    above = {
        kind: {what: figures[f"tool {kind}"][what] - figures[f"bare {kind}"][what] for what in ("cpu", "time")}
        for kind in ("GET", "POST")
    }
    if "--json" in sys.argv:
        print(json.dumps({"ms": figures, "above_ms": above, "target_ms": TARGET_MS}))
    else:
        for name, value in figures.items():
            print(f"{name:10} {value['cpu']:6.3f} ms of CPU, {value['time']:6.3f} ms on the clock")
        for kind, value in above.items():
            told = f"{value['cpu']:+6.3f} ms of CPU ({value['time']:+.3f} on the clock)"
            print(f"{kind:10} {told} above the bare client (target: at most {TARGET_MS})")
    sys.exit(max(ms for value in above.values() for ms in value.values()) > TARGET_MS)


if __name__ == "__main__":
    main()
