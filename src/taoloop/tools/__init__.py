"""Tools: cards with the code behind them, built in or from elsewhere.

Sources of tools are packages of their own: `taoloop.tools.openapi`, `.mcp`, `.sql`, `.documents` and `.web`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.tools.builtin.catalog import builtin_tools
    from taoloop.tools.builtin.commands import sandbox_tools
    from taoloop.tools.builtin.lookup import lookup_tool
    from taoloop.tools.builtin.time_now import time_now_tool
    from taoloop.tools.from_card import tool_from_card
    from taoloop.tools.from_functions_json import FunctionCards, cards_from_functions, tools_from_functions
    from taoloop.tools.sandbox.limits import SandboxLimits
    from taoloop.tools.tool import Probe, Tool, ToolContext, ToolOutput
    from taoloop.tools.toolbox import LoadProblem, LoadResult, Toolbox


__all__ = [
    "FunctionCards",
    "LoadProblem",
    "LoadResult",
    "Probe",
    "SandboxLimits",
    "Tool",
    "ToolContext",
    "ToolOutput",
    "Toolbox",
    "builtin_tools",
    "cards_from_functions",
    "lookup_tool",
    "sandbox_tools",
    "time_now_tool",
    "tool_from_card",
    "tools_from_functions",
]

__getattr__, __dir__ = lazy_exports(
    globals(),
    {
        "taoloop.tools.builtin.catalog": "builtin_tools",
        "taoloop.tools.builtin.commands": "sandbox_tools",
        "taoloop.tools.builtin.lookup": "lookup_tool",
        "taoloop.tools.builtin.time_now": "time_now_tool",
        "taoloop.tools.from_card": "tool_from_card",
        "taoloop.tools.from_functions_json": "FunctionCards cards_from_functions tools_from_functions",
        "taoloop.tools.sandbox.limits": "SandboxLimits",
        "taoloop.tools.tool": "Probe Tool ToolContext ToolOutput",
        "taoloop.tools.toolbox": "LoadProblem LoadResult Toolbox",
    },
)
