"""Tools that are wrong on purpose: they time out, fail, lie, flood, change, or return text of an attacker."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from taoloop.errors import ToolError, ToolTimeout
from taoloop.evals.trouble.entries import ToolTrouble, current_troubles
from taoloop.evals.wrapped_tools import wrapped_tool
from taoloop.tools.tool import RunContext, Tool, ToolOutput

_FILLER = "Nothing of this line matters for the task. "


def troubled_tool(tool: Tool) -> Tool:
    """The tool, wrong in those calls that the trial's trouble names (`current_troubles`). Policies judge it the same.

    Which call of its run a call is follows from the trace; an attempt that repeats a call after trouble has none.
    """

    def before(context: RunContext) -> ToolOutput | None:
        trouble = _preventing(_troubles_with(tool, context))
        return None if trouble is None else _result_without_effect(tool, trouble)

    def after(context: RunContext, result: Any) -> Any:
        return _spoiled(tool, context, _troubles_with(tool, context), result)

    return wrapped_tool(tool, before=before, after=after)


def _troubles_with(tool: Tool, context: RunContext) -> list[ToolTrouble]:
    """What is wrong with this call."""
    candidates = [trouble for trouble in current_troubles().tools if trouble.tool == tool.name]
    if not candidates or context.attempt > 1:
        return []
    number = _call_number(tool, context)
    return [
        trouble
        for trouble in candidates
        if (not trouble.calls or number in trouble.calls) and _happens(trouble, number)
    ]


def _call_number(tool: Tool, context: RunContext) -> int:
    """Which call of the tool in its run this is, from 1."""
    number = 0
    for view in context.calls():
        number += view.requested.tool == tool.name
        if view.requested.call_id == context.call_id:
            break
    return number


def _happens(trouble: ToolTrouble, number: int) -> bool:
    if trouble.rate >= 1:
        return True
    troubles = current_troubles()
    chance = random.Random(f"{troubles.seed}/{troubles.trial}/{trouble}/{number}")  # noqa: S311  # to be repeatable
    return chance.random() < trouble.rate


def _preventing(troubles: Sequence[ToolTrouble]) -> ToolTrouble | None:
    """The trouble for which the effect does not happen."""
    return next((each for each in troubles if each.failure in ("fails", "lies") or each.value == "before_effect"), None)


def _result_without_effect(tool: Tool, trouble: ToolTrouble) -> ToolOutput:
    if trouble.failure == "lies":
        return ToolOutput(trouble.value, "text")
    if trouble.failure == "fails":
        raise ToolError(trouble.value)
    raise ToolTimeout(f"{tool.name} gave no result in time.")


def _spoiled(tool: Tool, context: RunContext, troubles: Sequence[ToolTrouble], result: Any) -> Any:
    """The result of a call that had its effect, as it arrives."""
    for trouble in troubles:
        if trouble.failure == "times_out":
            raise ToolTimeout(f"{tool.name} gave no result in time.")
        if trouble.failure == "changes":
            number = _call_number(tool, context)
            result = ToolOutput(trouble.value[min(number, len(trouble.value)) - 1], "text")
        else:
            text = tool.render(result).text
            addition = _filler(trouble.value - len(text)) if trouble.failure == "floods" else trouble.value
            result = ToolOutput(f"{text}\n{addition}", "text")
    return result


def _filler(length: int) -> str:
    return (_FILLER * (max(0, length) // len(_FILLER) + 1))[: max(0, length)]
