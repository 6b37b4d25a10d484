"""The tools of an agent as its trials have them: bound to the world of the trial that calls, and kept in its folder."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeGuard

from taoloop.core.decision import Call
from taoloop.evals.trials.write_guard import guarded_writes
from taoloop.evals.trouble.tool_trouble import troubled_tool
from taoloop.evals.worlds import OutsideWrite, current_world
from taoloop.evals.wrapped_tools import is_wrapped, wrapped_tool
from taoloop.runtime.tool_source import resolve_sources
from taoloop.tools.builtin.calculator import calculator
from taoloop.tools.builtin.time_now import time_now
from taoloop.tools.tool import RunContext, Tool
from taoloop.tools.toolbox import Toolbox

_BUILTIN_WITHOUT_FILES = {tool.name: tool for tool in (calculator, time_now)}
"""Built-in tools that need nothing of a trial; the others are made for its workspace, and cannot have trouble."""


def trial_tools(agent_tools: Sequence[Any], suite_tools: Sequence[Any]) -> tuple[Tool | str, ...]:
    """The tools of an agent and those of a suite, which take the place of tools with the same name.

    Raises:
        ConfigError: a tool cannot be used.
    """
    entries: dict[str, Tool | str] = {}
    for item in resolve_sources([*agent_tools, *suite_tools]).tools:
        tool = _BUILTIN_WITHOUT_FILES.get(item, item) if isinstance(item, str) else next(iter(Toolbox([item])))
        if isinstance(tool, str):
            entries[tool] = tool
        else:
            entries[tool.name] = troubled_tool(bound_tool(tool))
    return tuple(entries.values())


def bound_tool(tool: Tool) -> Tool:
    """The tool, bound to the world of whichever trial calls it. Tools of taoloop are left as they are."""
    if tool.runs_inside or _is_own(tool.handler):
        return tool

    def guard() -> AbstractContextManager[None]:
        world = current_world()

        def note(path: str, location: str) -> None:
            world.outside_writes.append(OutsideWrite(path=path, location=location, tool=tool.name))

        return guarded_writes(world.folder, note)

    def end_call(context: RunContext | None, result: Any) -> Any:
        world = current_world()
        if not tool.card.reads_only and context is not None:
            args: Any = next((view.args for view in context.calls() if view.requested.call_id == context.call_id), {})
            is_repeat = tool.card.idempotent and context.attempt > 1 and not world.has_changed
            if not is_repeat:  # of a service that knows the key of the call
                world.effects.append(Call(tool=tool.name, args=args))
        world.save()
        return result

    return wrapped_tool(tool, during=guard, after=end_call)


def bound_names(tools: Iterable[Any]) -> frozenset[str]:
    """The names of the tools that are bound to worlds, which record their effects."""
    return frozenset(
        tool.name for tool in tools if isinstance(tool, Tool) and is_wrapped(tool) and not _is_own(tool.handler)
    )


def is_troubled(tool: object) -> TypeGuard[Tool]:
    """Whether a tool can have the trouble of a trial."""
    return isinstance(tool, Tool) and is_wrapped(tool)


def code_digest(functions: Iterable[Callable[..., Any]]) -> str:
    """The digest of the files with the code of these functions, but for taoloop's own (SHA-256, hexadecimal)."""
    paths = {path for function in functions if (path := _code_file(function)) is not None}
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.encode() + b"\0" + Path(path).read_bytes())
    return digest.hexdigest()


def _code_file(function: Callable[..., Any]) -> str | None:
    if _is_own(function):
        return None
    try:
        return inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:  # an object that can be called
        return None


def _is_own(handler: Callable[..., Any]) -> bool:
    """Whether a handler is one of taoloop's own tools, which have sandboxes of their own."""
    module = getattr(inspect.unwrap(handler), "__module__", None) or type(handler).__module__
    return module.partition(".")[0] == "taoloop" and not module.startswith("taoloop.evals.suites")
