"""The MCP server itself: one object that supports both eras of the protocol, over any transport."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError

import taoloop
from taoloop.errors import ConfigError
from taoloop.serve.mcp.dispatcher import QUESTION_TIMEOUT_S, Answer
from taoloop.serve.mcp.exposed_tools import ExposedTool

NAME = "taoloop"

INSTRUCTIONS = (
    "Tools and agents of taoloop. Every call is a run in the journal of the server; its id is in `_meta` as "
    "`taoloop/run_id`. A call that changes something may be put before a person first."
)

PAGE = 200
"""How many tools are on one page of the list."""


def make_server(
    tools: Sequence[ExposedTool],
    *,
    instructions: str = INSTRUCTIONS,
    question_s: float = QUESTION_TIMEOUT_S,
    bus: InMemorySubscriptionBus | None = None,
) -> Server[Any]:
    """A server with these tools. `question_s` is how long a question stays open.

    Raises:
        ConfigError: two tools have the same name.
    """
    catalogue = _Catalogue(tools)
    server: Server[Any] = Server(
        NAME,
        version=taoloop.__version__,
        title=NAME,
        instructions=instructions,
        on_list_tools=catalogue.list_tools,
        on_call_tool=catalogue.call_tool,
        on_subscriptions_listen=ListenHandler(bus or InMemorySubscriptionBus()),
        get_tool_input_schema=catalogue.input_schema,
    )
    server.middleware.append(
        RequestStateBoundary(RequestStateSecurity.ephemeral(ttl=question_s), default_audience=NAME)
    )  # only accepts states that this server made, for exactly this call, and in time
    return server


class _Catalogue:
    """The tools by name."""

    def __init__(self, tools: Sequence[ExposedTool]) -> None:
        self._tools: dict[str, ExposedTool] = {}
        self._listed: list[types.Tool] = []
        for tool in tools:
            listed = tool.listed
            if listed.name in self._tools:
                raise ConfigError(f"Two of the tools to serve are called {listed.name!r}.", hint="Rename one of them.")
            self._tools[listed.name] = tool
            self._listed.append(listed)

    async def list_tools(
        self, _ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """One page of the tools."""
        cursor = params.cursor if params is not None else None
        start = 0 if cursor is None else int(cursor) if cursor.isdecimal() and len(cursor) < 8 else -1
        if start < 0 or (start and start >= len(self._listed)):
            raise MCPError(code=types.INVALID_PARAMS, message="There is no such page of the list.")
        end = start + PAGE
        following = str(end) if end < len(self._listed) else None
        return types.ListToolsResult(tools=self._listed[start:end], next_cursor=following)

    async def call_tool(self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> Answer:
        """One call; an error of the tool is a result that says so."""
        tool = self._tools.get(params.name)
        if tool is None:
            known = ", ".join(list(self._tools)[:20]) + (" …" if len(self._tools) > 20 else "")
            message = f"There is no tool called {params.name[:80]!r}. Known: {known}."
            raise MCPError(code=types.INVALID_PARAMS, message=message)
        return await tool.call(ctx, params)

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """The schema of a tool's arguments, for headers that mirror them."""
        tool = self._tools.get(name)
        return None if tool is None else tool.listed.input_schema
