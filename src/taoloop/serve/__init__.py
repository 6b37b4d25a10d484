"""taoloop for others: the gateway, the MCP server and the panel, to be started from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.serve.gateway.config.config_summary import config_summary as config_summary
    from taoloop.serve.gateway.config.gateway_file import load_config as load_config
    from taoloop.serve.gateway.config.model import GatewayConfig as GatewayConfig
    from taoloop.serve.gateway.server import GatewayServer as GatewayServer
    from taoloop.serve.mcp.dispatcher import CallDispatcher as CallDispatcher
    from taoloop.serve.mcp.http import (
        ListenAddress as ListenAddress,
        parse_address as parse_address,
        serve_http as serve_http,
    )
    from taoloop.serve.mcp.server import AgentAsTool as AgentAsTool, CardTool as CardTool, make_server as make_server
    from taoloop.serve.mcp.stdio import serve_stdio as serve_stdio
    from taoloop.serve.panel.app import Panel as Panel


__getattr__, __dir__, __all__ = lazy_exports(
    globals(),
    {
        "taoloop.serve.gateway.config.config_summary": "config_summary",
        "taoloop.serve.gateway.config.gateway_file": "load_config",
        "taoloop.serve.gateway.config.model": "GatewayConfig",
        "taoloop.serve.gateway.server": "GatewayServer",
        "taoloop.serve.mcp.dispatcher": "CallDispatcher",
        "taoloop.serve.mcp.http": "ListenAddress parse_address serve_http",
        "taoloop.serve.mcp.server": "AgentAsTool CardTool make_server",
        "taoloop.serve.mcp.stdio": "serve_stdio",
        "taoloop.serve.panel.app": "Panel",
    },
)
