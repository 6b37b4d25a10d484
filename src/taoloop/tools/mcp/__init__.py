"""MCP servers as sources of tools: their tools, resources and prompts, over stdio and streamable HTTP.

Inside this package `import mcp` still means the official SDK.
"""

from taoloop.tools.mcp.load import approve_changes, mcp_tools, pending_changes
from taoloop.tools.mcp.loop_thread import close_all, close_server
from taoloop.tools.mcp.pins import Change
from taoloop.tools.mcp.settings import McpSandbox, McpServer

__all__ = [
    "Change",
    "McpSandbox",
    "McpServer",
    "approve_changes",
    "close_all",
    "close_server",
    "mcp_tools",
    "pending_changes",
]
