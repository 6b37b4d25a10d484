"""A set of tools by name, the allow-list of a run, and the built-in tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from taoloop.core.cards import ToolCard
from taoloop.errors import ToolDefinitionError, ToolError, UnknownName
from taoloop.tools.base import Tool
from taoloop.tools.calculator import calculator
from taoloop.tools.clock import time_now
from taoloop.tools.files import file_tools
from taoloop.tools.function import function_tool
from taoloop.tools.paging import read_observation
from taoloop.tools.table import lookup_tool, workspace_lookup_tool
from taoloop.tools.workspace import Workspace


class Toolbox:
    """Tools by name, in the order in which they were registered. It does not change.

    Raises:
        ToolDefinitionError: two tools have the same name, or a function cannot become a tool.
    """

    __slots__ = ("_tools",)

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for given in tools:
            one = given if isinstance(given, Tool) else _made(given)
            if one.name in self._tools:
                raise ToolDefinitionError(
                    f"Two tools are called {one.name!r}.",
                    hint="Rename one: `.with_card(name=…)` or `@tool(name=…)`.",
                )
            self._tools[one.name] = one

    def __iter__(self) -> Iterator[Tool]:
        """The tools in the order of registration."""
        return iter(self._tools.values())

    def __len__(self) -> int:
        """How many tools there are."""
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        """True if a tool has this name."""
        return name in self._tools

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the order of registration."""
        return tuple(self._tools)

    @property
    def cards(self) -> tuple[ToolCard, ...]:
        """The cards in the order of registration."""
        return tuple(one.card for one in self)

    def get(self, name: str) -> Tool:
        """The tool with this name.

        Raises:
            UnknownName: there is none; lists those that exist.
        """
        try:
            return self._tools[name]
        except KeyError:
            raise UnknownName("tool", name, self.names) from None

    def allow(self, names: Iterable[str]) -> Toolbox:
        """Only the tools with these names, still in the order of registration: the allow-list of a run.

        Raises:
            UnknownName: a name stands for no tool.
        """
        wanted = {self.get(name).name for name in names}
        return Toolbox(one for one in self if one.name in wanted)


def _made(given: Any) -> Tool:
    if not callable(given):
        raise ToolDefinitionError(
            f"{str(given)[:80]!r} is no tool: it is of the type {type(given).__name__!r}.",
            hint="Give a typed function, or a tool made with @tool.",
        )
    return function_tool(given)


def builtin_tools(
    workspace: Path | str | Workspace | None = None, table: Mapping[str, Any] | Path | str | None = None
) -> dict[str, Tool]:
    """The built-in tools by name; nothing but the file of `table` is opened before a tool is called.

    Without a workspace the file tools answer `no_workspace`. `lookup` reads `table` where it is given, else
    JSON and YAML files of the workspace.

    Raises:
        ConfigError: the file of `table` cannot be read.
    """
    place = workspace if isinstance(workspace, Workspace) else _place(workspace)
    lookup = workspace_lookup_tool(place) if table is None else lookup_tool(table)
    tools = {one.name: one for one in (calculator, time_now, lookup)}
    return {**tools, **file_tools(place), read_observation.name: read_observation}


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
