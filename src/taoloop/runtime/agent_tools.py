"""The tools of an agent as its settings name them, with those that accompany others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taoloop.core.cards.tool_search import CALL_TOOL, DESCRIBE_TOOL, FIND_TOOL, PAGING_TOOL
from taoloop.errors import ConfigError
from taoloop.runtime.agent_settings import AgentSettings
from taoloop.runtime.tool_source import resolve_sources
from taoloop.tools.toolbox import Toolbox

FINDERS = (FIND_TOOL.name, DESCRIBE_TOOL.name, CALL_TOOL.name)
"""The tools that find, describe and call the tools that a prompt does not list."""


def build_toolbox(settings: AgentSettings, *, handles: bool) -> Toolbox:
    """The tools by name, built-in ones among them, with those that accompany others.

    `handles`: the model reads no observations; then `ask_about` replaces `read_observation`.

    Raises:
        ConfigError: the tools are not a list, this machine cannot serve one, or a source does not fit its file.
        UnknownName: there is no built-in tool of a name.
    """
    entries: Any = settings.tools
    if isinstance(entries, str) or not isinstance(entries, Iterable):
        raise ConfigError(f"The agent's tools are {entries!r}.", hint="Give a list of tools.")
    tools = resolve_sources(entries)
    if names := [entry for entry in tools if isinstance(entry, str)]:
        from taoloop.tools.builtin.catalog import builtin_tools, offered_tool  # noqa: PLC0415  # only for named tools
        from taoloop.tools.workspace.workspace import Workspace  # noqa: PLC0415  # the same

        folder = Workspace(settings.workspace, create=True).open() if settings.workspace is not None else None
        builtin = builtin_tools(folder, memory=settings.memory, names=names)
        tools = [offered_tool(entry, builtin) if isinstance(entry, str) else entry for entry in tools]
    toolbox = Toolbox(tools)
    if any(not tool.card.listed or tool.whole_schema is not None for tool in toolbox):
        from taoloop.tools.discovery import tool_search_tools  # noqa: PLC0415  # only for many or large tools

        toolbox = Toolbox([*toolbox, *tool_search_tools(tuple(toolbox))])
    if handles:
        from taoloop.tools.builtin.observations import ask_about  # noqa: PLC0415  # loads the schema machinery

        others = [tool for tool in toolbox if tool.name != PAGING_TOOL]
        return Toolbox([*others, ask_about] if others else ())
    if tools and PAGING_TOOL not in toolbox:
        from taoloop.tools.builtin.observations import read_observation  # noqa: PLC0415  # loads the schema machinery

        toolbox = Toolbox([*toolbox, read_observation])
    return toolbox
