"""Tools: cards with the code behind them, built in or from elsewhere.

Sources of tools are packages of their own: `taoloop.tools.openapi`, `.mcp`, `.sql`, `.documents` and `.web`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.tools.builtin.catalog import builtin_tools as builtin_tools
    from taoloop.tools.builtin.commands import sandbox_tools as sandbox_tools
    from taoloop.tools.builtin.lookup import lookup_tool as lookup_tool
    from taoloop.tools.builtin.time_now import time_now_tool as time_now_tool
    from taoloop.tools.from_card import tool_from_card as tool_from_card
    from taoloop.tools.from_functions_json import (
        FunctionCards as FunctionCards,
        cards_from_functions as cards_from_functions,
        tools_from_functions as tools_from_functions,
    )
    from taoloop.tools.sandbox.confinement import SandboxLimits as SandboxLimits
    from taoloop.tools.tool import (
        Probe as Probe,
        RunContext as RunContext,
        RunUsage as RunUsage,
        Tool as Tool,
        ToolContext as ToolContext,
        ToolOutput as ToolOutput,
    )
    from taoloop.tools.toolbox import LoadProblem as LoadProblem, LoadResult as LoadResult, Toolbox as Toolbox

__getattr__, __dir__, __all__ = lazy_exports(
    globals(),
    {
        "taoloop.tools.builtin.catalog": "builtin_tools",
        "taoloop.tools.builtin.commands": "sandbox_tools",
        "taoloop.tools.builtin.lookup": "lookup_tool",
        "taoloop.tools.builtin.time_now": "time_now_tool",
        "taoloop.tools.from_card": "tool_from_card",
        "taoloop.tools.from_functions_json": "FunctionCards cards_from_functions tools_from_functions",
        "taoloop.tools.sandbox.confinement": "SandboxLimits",
        "taoloop.tools.tool": "Probe RunContext RunUsage Tool ToolContext ToolOutput",
        "taoloop.tools.toolbox": "LoadProblem LoadResult Toolbox",
    },
)
