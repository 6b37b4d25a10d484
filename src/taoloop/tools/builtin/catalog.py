"""The built-in tools by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from taoloop.core.search import suggest_names
from taoloop.errors import ConfigError, UnknownName
from taoloop.tools.builtin.ask_user import ask_user
from taoloop.tools.builtin.calculator import calculator
from taoloop.tools.builtin.commands import COMMAND_TOOLS, command_tools
from taoloop.tools.builtin.files import FILE_TOOLS, file_tools
from taoloop.tools.builtin.lookup import lookup_tool, workspace_lookup_tool
from taoloop.tools.builtin.memory import MEMORY_TOOLS, memory_tools
from taoloop.tools.builtin.observations import read_observation
from taoloop.tools.builtin.time_now import time_now
from taoloop.tools.builtin.todos import TRACK_TODOS
from taoloop.tools.sandbox.sandbox import Sandbox, require_sandbox
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import Tool
from taoloop.tools.workspace.workspace import Workspace

UNDOING = frozenset({"restore_file", "restore_workspace"})
"""Built-in tools that take back what others did. They are called by `tao undo` and offered to no model."""

BUILTIN_NAMES = (
    *("calculator", "time_now", "track_todos", "lookup"),
    *FILE_TOOLS,
    *MEMORY_TOOLS,
    *COMMAND_TOOLS,
    *("restore_workspace", "read_observation", "ask_user"),
)
"""The names of the built-in tools."""


def builtin_tools(
    workspace: Path | str | Workspace | None = None,
    table: Mapping[str, Any] | Path | str | None = None,
    memory: Path | str | None = None,
    *,
    names: Collection[str] | None = None,
) -> dict[str, Tool]:
    """The built-in tools by name; nothing but the file of `table` is opened before a tool is called.

    Without a workspace the file tools answer `no_workspace`, without the file `memory` the memory tools `no_memory`.
    `lookup` reads `table` where it is given, else JSON and YAML files of the workspace. `run_python` and `run_command`
    have no network; on a machine without a sandbox they answer `no_sandbox`. Who offers one of these tools to a model
    takes it by `offered_tool`. With `names`, tools of other names may be missing, which saves the time to make them.

    Raises:
        ConfigError: the file of `table` cannot be read.
    """

    def needs(group: Collection[str]) -> bool:
        return names is None or not set(group).isdisjoint(names)

    if isinstance(workspace, Workspace):
        root = workspace
    else:
        root = _NoWorkspace() if workspace is None else Workspace(workspace, create=True)
    tools = {tool.name: tool for tool in (calculator, time_now, TRACK_TODOS)}
    if needs(("lookup",)):
        tools["lookup"] = workspace_lookup_tool(root) if table is None else lookup_tool(table)
    if needs(FILE_TOOLS):
        tools |= file_tools(root)
    if needs(MEMORY_TOOLS):
        tools |= memory_tools(memory)
    if needs((*COMMAND_TOOLS, "restore_workspace")):
        tools |= command_tools(Sandbox(None if workspace is None else root.root))
    return {**tools, read_observation.name: read_observation, ask_user.name: ask_user}


def offered_tool(name: str, tools: Mapping[str, Tool]) -> Tool:
    """The tool with this name among the built-in ones, if this machine can serve it.

    Raises:
        UnknownName: there is none.
        ConfigError: it needs a sandbox and there is none (says why and what to install), or it undoes other calls.
    """
    if name not in tools:
        known = tuple(known_name for known_name in BUILTIN_NAMES if known_name not in UNDOING)
        near = suggest_names(name, known, at_most=1)
        raise UnknownName("tool", name, known, hint=f"Did you mean {near[0]!r}?" if near else "")
    if name in UNDOING:
        raise ConfigError(
            f"The tool {name!r} takes back what other calls did; it is not offered to a model.",
            hint="`tao undo RUN_ID` calls it, and asks first.",
        )
    if name in COMMAND_TOOLS:
        try:
            require_sandbox()
        except ConfigError as error:
            raise ConfigError(f"The tool {name!r} cannot be offered. {error.message}", hint=error.hint) from error
    return tools[name]


class _NoWorkspace(Workspace):
    """The workspace of a run that has none: every use is refused."""

    def __init__(self) -> None:
        super().__init__(Path())

    def _open(self) -> Any:
        raise TEXTS.error("no_workspace", "no_workspace")
