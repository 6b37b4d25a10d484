"""A tool file: one YAML or JSON file that names tools of every kind, for a run, a server, and a look at them.

It is a mapping with `tools`, a list of the same forms as in an agent file, and what holds for all of them: `egress`
(rules for where calls may go), `workspace` and `memory` (for the built-in tools that need them).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taoloop.config.agent_file import load_agent
from taoloop.config.document import error_location
from taoloop.config.tool_entries import ToolEntry, entries_in, use_environment
from taoloop.errors import ConfigError, UnknownName
from taoloop.runtime.tool_source import SourceLocation, ToolSource, load_concurrently, merge_origins
from taoloop.tools.builtin.catalog import builtin_tools, offered_tool
from taoloop.tools.settings_check import expand_home
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import LoadProblem, LoadResult


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFile(LoadResult):
    """The tools of a tool file, in their order, and the problems."""

    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The values of the environment that the file uses, by the names of the variables: for `Agent(secrets=…)`, so that
    they reach no trace and no prompt."""

    sources: tuple[ToolSource, ...] = field(default=(), repr=False)
    """The sources of the tools."""

    def close(self) -> None:
        """Close connections and end processes; a tool that is called later opens them again."""
        for source in self.sources:
            source.close()


def load_tools(path: Path | str, *, env: Mapping[str, str] | None = None) -> LoadedFile:
    """Everything that a tool file names. May connect to servers and databases; blocks until they have answered.

    `env` holds the variables for `${NAME}`; None: those of the process. Paths in the file are relative to it.

    Raises:
        AgentFileError: the file cannot be used, a variable is missing, or two tools have the same name; names the file,
            the line and the field. A source that is away is no error but a problem in the result.
    """
    entries = read_tools(path, env=env)
    tools: dict[str, Tool] = {}
    problems: list[LoadProblem] = []
    origins: dict[str, str] = {}
    builtin = builtin_tools(names=[entry.item for entry in entries if isinstance(entry.item, str)])
    sources = tuple(entry.item for entry in entries if isinstance(entry.item, ToolSource))
    load_concurrently(sources)
    for entry in entries:
        loaded = _tools_of(entry, builtin)
        problems += loaded.problems
        with error_location(entry.document, entry.field_path):
            origins = merge_origins(origins, ((tool.name, entry.where) for tool in loaded.tools))
        tools |= {tool.name: tool for tool in loaded.tools}
    return LoadedFile(
        tools=tuple(tools.values()),
        problems=tuple(problems),
        secrets={name: value for source in sources for name, value in source.secrets.items()},
        sources=sources,
    )


def tools_named(path: Path | str, *, env: Mapping[str, str] | None = None) -> tuple[Any, ...]:
    """What a tool file names, for `Agent(tools=…)`: its sources are loaded once the agent needs its tools.

    A run of such an agent knows the file, and so can be resumed without naming it again.

    Raises:
        AgentFileError: the file cannot be used; names the file, the line and the field.
    """
    path = expand_home(path).absolute()
    entries = read_tools(path, env=env)
    return (*(entry.item for entry in entries), named_as(str(path), path))


def named_as(spec: str, file_path: Path) -> ToolSource:
    """A source without tools, beside those that a command line named as `given`: runs remember the name."""
    return ToolSource(SourceLocation(path=file_path, line=1, field=""), LoadResult, secrets={}, given_as=spec)


def read_tools(path: Path | str, *, env: Mapping[str, str] | None = None) -> tuple[ToolEntry, ...]:
    """What a tool file names, checked, and nothing of it loaded yet but code.

    Raises:
        AgentFileError: the file cannot be used; names the file, the line and the field.
    """
    with use_environment(env):
        return entries_in(expand_home(path).absolute(), load_agent)


def _tools_of(entry: ToolEntry, builtin: Mapping[str, Tool]) -> LoadResult:
    """The tools of one entry. A built-in one that this machine cannot serve is a problem."""
    if isinstance(entry.item, ToolSource):
        return entry.item.loaded()
    if isinstance(entry.item, Tool):
        return LoadResult(tools=(entry.item,))
    try:
        return LoadResult(tools=(offered_tool(entry.item, builtin),))
    except (ConfigError, UnknownName) as error:
        return entry.document.location(entry.field_path).without_tools(error.message, hint=error.hint)
