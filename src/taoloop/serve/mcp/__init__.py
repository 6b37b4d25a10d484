"""taoloop as an MCP server: tools and agents for any MCP host, over stdio and HTTP, in both eras of the protocol.

`server` makes the server, what it exposes and the results of calls, `stdio` and `http` transport it, and `dispatcher`
drives the runs that calls become and asks the person at the host. Needs the extra `mcp`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.serve.mcp.dispatcher import CallDispatcher as CallDispatcher
    from taoloop.serve.mcp.http import (
        ListenAddress as ListenAddress,
        parse_address as parse_address,
        serve_http as serve_http,
    )
    from taoloop.serve.mcp.server import AgentAsTool as AgentAsTool, CardTool as CardTool, make_server as make_server
    from taoloop.serve.mcp.stdio import serve_stdio as serve_stdio

__getattr__, __dir__, __all__ = lazy_exports(
    globals(),
    {
        "taoloop.serve.mcp.dispatcher": "CallDispatcher",
        "taoloop.serve.mcp.http": "ListenAddress parse_address serve_http",
        "taoloop.serve.mcp.server": "AgentAsTool CardTool make_server",
        "taoloop.serve.mcp.stdio": "serve_stdio",
    },
)
