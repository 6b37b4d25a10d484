"""The MCP server itself: one object that speaks both eras of the protocol, whatever carries it."""

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
    "Tools and agents of taoloop. Every call is a run in the journal of whoever serves it; its id stands in `_meta` as "
    "`taoloop/run_id`. A call that changes something may be put before a person first."
)

PAGE = 200
"""How many tools one page of the list holds."""


def make_server(
    offers: Sequence[ExposedTool],
    *,
    instructions: str = INSTRUCTIONS,
    question_s: float = QUESTION_TIMEOUT_S,
    bus: InMemorySubscriptionBus | None = None,
) -> Server[Any]:
    """A server that offers these tools. `question_s` is how long an answer to a question is waited for.

    Raises:
        ConfigError: two offers have the same name.
    """
    catalogue = _Catalogue(offers)
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
    )  # a state that comes back is one of ours, for exactly this call, and in time
    return server


class _Catalogue:
    """The offers by name."""

    def __init__(self, offers: Sequence[ExposedTool]) -> None:
        self._offers: dict[str, ExposedTool] = {}
        self._listed: list[types.Tool] = []
        for offer in offers:
            listed = offer.listed
            if listed.name in self._offers:
                raise ConfigError(f"Two of the tools to serve are called {listed.name!r}.", hint="Rename one of them.")
            self._offers[listed.name] = offer
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
        """One call; what goes wrong in the tool is a result that says so."""
        offer = self._offers.get(params.name)
        if offer is None:
            known = ", ".join(list(self._offers)[:20]) + (" …" if len(self._offers) > 20 else "")
            message = f"There is no tool called {params.name[:80]!r}. Known: {known}."
            raise MCPError(code=types.INVALID_PARAMS, message=message)
        return await offer.call(ctx, params)

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """The schema of a tool's arguments, for headers that mirror them."""
        offer = self._offers.get(name)
        return None if offer is None else offer.listed.input_schema
