"""A set of tools by name, the allow-list of a run, and what a source of tools gave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from taoloop.core.cards.tool_card import ToolCard
from taoloop.errors import ToolDefinitionError, UnknownName
from taoloop.tools.tool import Tool


class Toolbox:
    """Tools by name, in the order in which they were registered. It does not change.

    Raises:
        ToolDefinitionError: two tools have the same name, a function cannot become a tool, or what is given is no
            list of tools.
    """

    __slots__ = ("_tools",)

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for entry in _listed(tools):
            tool = entry if isinstance(entry, Tool) else _to_tool(entry)
            if tool.name in self._tools:
                raise ToolDefinitionError(
                    f"Two tools are called {tool.name!r}.",
                    hint="Rename one: `.with_card(name=…)` or `@tool(name=…)`.",
                )
            self._tools[tool.name] = tool

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
        return tuple(tool.card for tool in self)

    def cards_in(self, language: str) -> tuple[ToolCard, ...]:
        """The cards for a run in `language`, in the order of registration."""
        return tuple(tool.card_in(language) for tool in self)

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
            ToolDefinitionError: one text was given instead of a list of names.
        """
        if isinstance(names, str):
            raise ToolDefinitionError(
                f"The names of tools must be a list, not the text {names[:80]!r}.",
                hint=f"Write it as a list: [{names[:80]!r}].",
            )
        allowed = {self.get(name).name for name in names}
        return Toolbox(tool for tool in self if tool.name in allowed)


def _listed(tools: Any) -> Iterable[Any]:
    """What was given for a list of tools, if it is one."""
    if isinstance(tools, str | bytes):
        raise ToolDefinitionError(
            f"Tools must be given as a list, not as the text {tools[:80]!r}.",
            hint="Give functions or tools, such as `[my_function]`; `builtin_tools()` has the built-in ones by name.",
        )
    if isinstance(tools, Mapping):
        raise ToolDefinitionError("Tools must be given as a list, not by name.", hint="Give the mapping's `.values()`.")
    if isinstance(tools, Iterable):
        return tools
    raise ToolDefinitionError(
        f"Tools must be given as a list, not as one {type(tools).__name__}.",
        hint="Write `[…]` around it." if callable(tools) else "Give functions or tools, such as `[my_function]`.",
    )


def _to_tool(entry: Any) -> Tool:
    if not callable(entry):
        raise ToolDefinitionError(
            f"{str(entry)[:80]!r} is no tool: it is of the type {type(entry).__name__!r}.",
            hint="Give a typed function, or a tool made with @tool.",
        )
    from taoloop.tools.function import function_tool  # noqa: PLC0415  # loads the schema machinery; only for functions

    return function_tool(entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProblem:
    """One thing that a source of tools could not give. Its other tools can be used all the same."""

    source: str
    """The file, address or server."""
    place: str
    """The spot in it, such as `paths./pets.get` or `line 12`; may be empty."""
    message: str
    """What is wrong, as a sentence."""
    hint: str = ""
    """What to do, as a sentence."""

    def __str__(self) -> str:
        """One line."""
        where = f"{self.source}: {self.place}" if self.place else self.source
        return f"{where}: {self.message}" + (f" {self.hint}" if self.hint else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What loading gave: the tools of one source or several, and what was wrong with the others."""

    tools: tuple[Tool, ...] = ()
    """The tools, in their order."""
    problems: tuple[LoadProblem, ...] = ()
    """What could not be used."""


@runtime_checkable
class ToolFolder(Protocol):
    """Settings that an agent takes in place of tools, because loading them is quick and needs nothing but the disk."""

    @property
    def folder(self) -> Path:
        """The folder that is read."""
        ...

    def load_tools(self) -> LoadResult:
        """The tools, and the problems of what could not be used."""
        ...
