"""The built-in tools by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taoloop.errors import ToolError
from taoloop.tools.base import Tool
from taoloop.tools.calculator import calculator
from taoloop.tools.clock import time_now
from taoloop.tools.files import file_tools
from taoloop.tools.memory import memory_tools
from taoloop.tools.paging import read_observation
from taoloop.tools.table import lookup_tool, workspace_lookup_tool
from taoloop.tools.workspace import Workspace


def builtin_tools(
    workspace: Path | str | Workspace | None = None,
    table: Mapping[str, Any] | Path | str | None = None,
    memory: Path | str | None = None,
) -> dict[str, Tool]:
    """The built-in tools by name; nothing but the file of `table` is opened before a tool is called.

    Without a workspace the file tools answer `no_workspace`, without the file `memory` the memory tools `no_memory`.
    `lookup` reads `table` where it is given, else JSON and YAML files of the workspace.

    Raises:
        ConfigError: the file of `table` cannot be read.
    """
    place = workspace if isinstance(workspace, Workspace) else _place(workspace)
    lookup = workspace_lookup_tool(place) if table is None else lookup_tool(table)
    tools = {one.name: one for one in (calculator, time_now, lookup)}
    return {**tools, **file_tools(place), **memory_tools(memory), read_observation.name: read_observation}


def _place(root: Path | str | None) -> Workspace:
    return _NoWorkspace() if root is None else Workspace(root, create=True)


class _NoWorkspace(Workspace):
    """Stands where no workspace was given: every use says so."""

    def __init__(self) -> None:
        super().__init__(Path())

    def _open(self) -> Any:
        raise ToolError(
            "This run has no workspace, so there are no files to work on.",
            code="no_workspace",
            hint="The user can give one, for example with --workspace DIR.",
        )
