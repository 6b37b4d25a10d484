"""MCP servers as sources of tools: their tools, resources and prompts, over stdio and streamable HTTP.

Inside this package `import mcp` still means the official SDK.
"""

from taoloop.tools.mcp.load import approve_changes, mcp_tools, pending_changes
from taoloop.tools.mcp.login import log_in, log_out
from taoloop.tools.mcp.loop_thread import close_all, close_server
from taoloop.tools.mcp.pins import Change
from taoloop.tools.mcp.settings import McpOAuth, McpSandbox, McpServer

__all__ = [
    "Change",
    "McpOAuth",
    "McpSandbox",
    "McpServer",
    "approve_changes",
    "close_all",
    "close_server",
    "log_in",
    "log_out",
    "mcp_tools",
    "pending_changes",
]
