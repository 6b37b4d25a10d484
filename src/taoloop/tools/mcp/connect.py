"""Opening a connection: the transport, the SDK's client over it, and the wait for notices of changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from taoloop.errors import McpFailed
from taoloop.tools.egress.client import http_client
from taoloop.tools.mcp.stdio import StdioTransport

if TYPE_CHECKING:
    from mcp import Client

    from taoloop.tools.mcp.message_filter import FilteredTransport
    from taoloop.tools.mcp.settings import McpServer

_HTTP_READ_S = 300.0  # streams are silent for long; requests have limits of their own
_LISTEN_TRIES, _LISTEN_PAUSE_S = 5, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What a program may add to a connection: answers to questions of a server, and authentication for HTTP."""

    elicitation: Any = None
    http_auth: Any = None


async def make_transport(
    server: McpServer, hooks: Hooks, stack: AsyncExitStack, on_response: Callable[[Any], Awaitable[None]]
) -> Any:
    """The transport to a server, not yet entered. Its HTTP client is closed with `stack`."""
    if not server.url:
        return StdioTransport(server)
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415  # optional and heavy

    client = await stack.enter_async_context(
        http_client(
            server.rules(),
            headers=server.headers,
            timeout_s=_HTTP_READ_S,
            max_bytes=server.max_message_bytes,
            auth=hooks.http_auth,
            event_hooks={"response": [on_response]},
        )
    )
    return streamable_http_client(server.url, http_client=client, max_sse_event_size=server.max_message_bytes)


def make_client(server: McpServer, hooks: Hooks, transport: FilteredTransport, on_change: Callable[[], None]) -> Client:
    """The SDK's client, not yet entered. `on_change` is called at a notice that the list of tools changed."""
    import mcp_types  # noqa: PLC0415  # optional
    from mcp import Client  # noqa: PLC0415  # optional and heavy

    async def on_message(message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            on_change()

    return Client(
        transport,
        mode="legacy" if server.protocol == "2025-11-25" else "auto",
        read_timeout_seconds=server.start_timeout_s,
        message_handler=on_message,
        client_info=mcp_types.Implementation(name="taoloop", version=version("taoloop")),
        elicitation_callback=hooks.elicitation,
        cache=None,  # a kept answer would hide that a tool changed
    )


def check_protocol_version(server: McpServer, client: Client) -> None:
    """Refuse a server that does not speak the revision that was asked for.

    Raises:
        McpFailed: `server_away`.
    """
    expected, spoken = server.protocol, client.protocol_version
    if expected == "2026-07-28" and spoken < expected:
        raise McpFailed(
            f"{server.display_name} speaks the revision {spoken} and not {expected}.",
            code="server_away",
            hint="Use `protocol: auto`.",
        )


async def listen_for_changes(client: Client, on_change: Callable[[], None]) -> None:
    """In the stateless era: wait for notices that the list of tools changed, as long as the server gives them."""
    from mcp import MCPError  # noqa: PLC0415  # optional
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost  # noqa: PLC0415  # likewise

    tools = client.server_capabilities.tools
    if tools is None or not tools.list_changed:
        return
    for turn in range(_LISTEN_TRIES):
        try:
            async with client.listen(tools_list_changed=True) as notices:
                on_change()  # it may have changed before we listened
                async for _ in notices:
                    on_change()
        except (ListenNotSupportedError, MCPError):
            return  # the list is asked for anew once it is old
        except (SubscriptionLost, TimeoutError):
            on_change()
        await asyncio.sleep(_LISTEN_PAUSE_S * 2**turn)
