"""Tools of trials with something around their calls: trouble, the world of the trial, or the death of the process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import wraps
from typing import Any

from taoloop.tools.tool import RunContext, Tool

_CONTEXT = "trial_call_context"
"""The parameter that takes the context of a call where the tool's own handler has none."""


def _no_result(_context: RunContext) -> None:
    return None


def wrapped_tool(
    tool: Tool,
    *,
    after: Callable[[RunContext, Any], Any],
    before: Callable[[RunContext], Any] = _no_result,
    during: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Tool:
    """The tool with something around its calls. Models and policies see the same tool: its card stays.

    Args:
        tool: The tool, sync or async.
        after: Called with the result of a call; gives the result that arrives.
        before: Gives a result in place of the call, which is then not made; None: it is made.
        during: Makes what is entered while the tool's own code runs.
    """
    parameter = tool.context_parameter or _CONTEXT

    def own_values(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name != parameter}

    @wraps(tool.handler)
    def call(**values: Any) -> Any:
        context = values[parameter]
        if (replacement := before(context)) is not None:
            return replacement
        with during():
            result = tool.invoke(own_values(values), context)
        return after(context, result)

    @wraps(tool.handler)
    async def call_async(**values: Any) -> Any:
        context = values[parameter]
        if (replacement := before(context)) is not None:
            return replacement
        with during():
            result = await tool.invoke(own_values(values), context)
        return after(context, result)

    return replace(tool, handler=call_async if tool.is_async else call, context_parameter=parameter)


def is_wrapped(tool: Tool) -> bool:
    """Whether something is around the calls of a tool."""
    return hasattr(tool.handler, "__wrapped__")
