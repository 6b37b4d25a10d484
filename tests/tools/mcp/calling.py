"""Using a loaded tool as a run does, each time in an event loop of its own."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

from taoloop.tools.mcp import McpServer
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import LoadResult

Make = Callable[..., McpServer]


def only(loaded: LoadResult, name: str) -> Tool:
    """The tool of this name."""
    return {tool.name: tool for tool in loaded.tools}[name]


def use(tool: Tool, **args: Any) -> Any:
    """Call a tool as the runner does, without a time limit."""
    result = asyncio.run(tool.invoke(tool.prepare(args).values, None))
    return json.loads(output.text) if (output := tool.render(result)).form == "json" else output.text


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that another process or thread brings about; at most some seconds."""
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:  # noqa: ASYNC110  # another process gives no event
        await asyncio.sleep(0.01)
    assert condition()


def told(loaded: LoadResult) -> str:
    """All problems in one text."""
    return "\n".join(map(str, loaded.problems))
