"""The program that the conformance suite runs as a client: our client in every scenario.

The suite gives the address of its server as the last argument, and the scenario, its context (JSON) and the revision of
the protocol in variables.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp_types as types
from conformance_auth import auth_of  # type: ignore[import-not-found]  # beside this program, which is run by its path

from taoloop.errors import TaoError
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.mcp import McpServer, close_all
from taoloop.tools.mcp.connection import Connection
from taoloop.tools.mcp.load import prompt_tools, resource_tools
from taoloop.tools.mcp.loop_thread import resident, use_connection_sync

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
IS_NEW = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2026-07-28") >= "2026"
# The server of this scenario knows the handshake only, whatever revision the suite names.
HANDSHAKE = ("json-schema-ref-no-deref",)
ARGUMENTS = {"string": "x", "integer": 5, "number": 3, "boolean": True, "object": {}, "array": [], "null": None}
# The suite's servers, of authorization too, have ports of their own on this machine.
HERE = EgressRules(allow=("127.0.0.0/8", "::1/128"), ports=tuple(range(1, 65_536)))


async def accept(_context: Any, params: Any) -> types.ElicitResult:
    """Say yes to every question, with the defaults of its form."""
    fields = getattr(params, "requested_schema", {}).get("properties", {})
    content = {name: rule["default"] for name, rule in fields.items() if "default" in rule}
    return types.ElicitResult(action="accept", content=content or {"confirmed": True})


async def each_tool(connection: Connection) -> None:
    """List the tools and call each of them once; what a call gives is the suite's to judge."""
    for name, definition in (await connection.listing()).definitions.items():
        schema = definition.raw["inputSchema"]
        args = {
            field: ARGUMENTS.get(str(rule.get("type")) if isinstance(rule, dict) else "", "x")
            for field, rule in schema.get("properties", {}).items()
            if field in schema.get("required", ()) or name == "add_numbers"
        }
        await tried(connection.call(definition, args, is_read=False))


async def given_calls(connection: Connection) -> None:
    """The calls that the suite gives, as it gives them."""
    definitions = (await connection.listing()).definitions
    for one in CONTEXT.get("toolCalls", ()):
        if one["name"] in definitions:
            await tried(connection.call(definitions[one["name"]], one.get("arguments") or {}, is_read=False))


async def echo_schema(connection: Connection) -> None:
    """Send a schema back as the server sent it."""
    definitions = (await connection.listing()).definitions
    schema = definitions["json_schema_2020_12_tool"].raw["inputSchema"]
    await connection.call(definitions["json_schema_echo"], {"schema": schema}, is_read=False)


async def list_only(connection: Connection) -> None:
    """List the tools, and nothing else."""
    await connection.listing()


async def tried(call: Awaitable[Any]) -> None:
    """Await it; a failure that is one of ours is part of the scenario."""
    try:
        await call
    except TaoError as error:
        sys.stderr.write(f"{error}\n")


STEPS: dict[str, Callable[[Connection], Awaitable[None]]] = {
    "initialize": list_only,
    "json-schema-ref-no-deref": list_only,
    "json-schema-2020-12-preservation": echo_schema,
    "http-custom-headers": given_calls,
}


def first_of_each(server: McpServer) -> None:
    """Read the first resource and the first prompt, through the tools that a model has for them."""

    async def use() -> None:
        list_resources, read_resource = (tool.handler for tool in resource_tools(server))
        list_prompts, get_prompt = (tool.handler for tool in prompt_tools(server))
        for one in (await list_resources())["resources"][:1]:
            await read_resource(one["uri"])
        for one in (await list_prompts())["prompts"][:1]:
            await get_prompt(one["name"])

    asyncio.run(use())


def main() -> None:
    """Run one scenario."""
    address = sys.argv[-1]
    with tempfile.TemporaryDirectory() as pins:
        server = McpServer(
            name="suite",
            url=address,
            protocol="auto" if IS_NEW and SCENARIO not in HANDSHAKE else "2025-11-25",
            egress=HERE,
            pins=Path(pins),
            start_timeout_s=25.0,
            timeout_s=25.0,
        )

        async def run(_plain: Connection) -> None:
            auth = await auth_of(SCENARIO, CONTEXT, address) if SCENARIO.startswith("auth/") else None
            connection = Connection(server, elicitation=accept, http_auth=auth)
            resident().connections[server.key] = connection
            await STEPS.get(SCENARIO, each_tool)(connection)

        try:
            use_connection_sync(server, run)
            if SCENARIO == "http-standard-headers":
                first_of_each(server)
        finally:
            close_all()


if __name__ == "__main__":
    main()
