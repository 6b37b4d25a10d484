"""Tools that are wrong on purpose: they time out, fail, lie, flood, change, or return text of an attacker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from taoloop.errors import ToolError, ToolTimeout, UnknownName
from taoloop.evals.trouble.entries import ToolTrouble
from taoloop.tools.tool import Tool, ToolContext

_CONTEXT = "taoloop_context"
"""The parameter that takes the context of a call where the tool's own handler has none."""

_FILLER = "Nothing of this line matters for the task. "


def troubled_tools(tools: Sequence[Tool], troubles: Iterable[ToolTrouble]) -> list[Tool]:
    """The tools, with the trouble in front of them. Cards stay as they are, so policies judge the same.

    Which call of the run it is follows from the trace; an attempt that repeats a call after trouble has none.

    Raises:
        UnknownName: there is no such tool.
    """
    troubled = {tool.name: tool for tool in tools}
    for trouble in troubles:
        if trouble.tool not in troubled:
            raise UnknownName("tool", trouble.tool, tuple(troubled))
        troubled[trouble.tool] = _with_trouble(troubled[trouble.tool], trouble)
    return [troubled[tool.name] for tool in tools]


def _with_trouble(tool: Tool, trouble: ToolTrouble) -> Tool:
    parameter = tool.context_parameter or _CONTEXT
    if tool.is_async:
        handler: Callable[..., Any] = partial(_invoke_async, tool, trouble, parameter)
    else:
        handler = partial(_invoke, tool, trouble, parameter)
    keeps_form = trouble.failure in ("times_out", "fails")
    return replace(
        tool,
        handler=handler,
        context_parameter=parameter,
        check_output=tool.check_output if keeps_form else None,
    )


def _invoke(tool: Tool, trouble: ToolTrouble, parameter: str, /, **values: Any) -> Any:
    context = values[parameter]
    number = _call_number(tool, trouble, context)
    if number is None:
        return tool.invoke(_without_context(values, parameter), context)
    if _prevents_effect(trouble):
        return _result_without_effect(tool, trouble)
    return _spoiled(tool, trouble, number, tool.invoke(_without_context(values, parameter), context))


async def _invoke_async(tool: Tool, trouble: ToolTrouble, parameter: str, /, **values: Any) -> Any:
    context = values[parameter]
    number = _call_number(tool, trouble, context)
    if number is not None and _prevents_effect(trouble):
        return _result_without_effect(tool, trouble)
    result = tool.invoke(_without_context(values, parameter), context)
    if isinstance(result, Awaitable):
        result = await result
    return result if number is None else _spoiled(tool, trouble, number, result)


def _without_context(values: Mapping[str, Any], parameter: str) -> dict[str, Any]:
    """The arguments of the call, for `Tool.invoke` adds the context itself."""
    return {name: value for name, value in values.items() if name != parameter}


def _call_number(tool: Tool, trouble: ToolTrouble, context: ToolContext) -> int | None:
    """Which call of the tool in its run this is, from 1; None if there is no trouble with it."""
    if context.attempt > 1:
        return None
    number = 0
    for view in context.calls():
        number += view.requested.tool == tool.name
        if view.requested.call_id == context.call_id:
            break
    return number if not trouble.calls or number in trouble.calls else None


def _prevents_effect(trouble: ToolTrouble) -> bool:
    return trouble.failure in ("fails", "lies") or trouble.value == "before_effect"


def _result_without_effect(tool: Tool, trouble: ToolTrouble) -> Any:
    if trouble.failure == "lies":
        return trouble.value
    if trouble.failure == "fails":
        raise ToolError(trouble.value)
    raise ToolTimeout(f"{tool.name} gave no result in time.")


def _spoiled(tool: Tool, trouble: ToolTrouble, number: int, result: Any) -> Any:
    """The result of a call that had its effect, as it arrives."""
    if trouble.failure == "times_out":
        raise ToolTimeout(f"{tool.name} gave no result in time.")
    if trouble.failure == "changes":
        return trouble.value[min(number, len(trouble.value)) - 1]
    text = tool.render(result).text
    if trouble.failure == "floods":
        missing = max(0, trouble.value - len(text))
        return text + "\n" + (_FILLER * (missing // len(_FILLER) + 1))[:missing]
    return f"{text}\n{trouble.value}"
