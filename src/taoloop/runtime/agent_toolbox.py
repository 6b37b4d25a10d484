"""The tools of an agent by name: those that it names, and those that accompany them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from taoloop.core.agent_spec import Limits, with_default_steps
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import CALL_TOOL, DESCRIBE_TOOL, FIND_TOOL, PAGING_TOOL
from taoloop.core.handles import READER
from taoloop.core.views.plans import MAKE_PLAN, RUN_STEP
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import Toolbox

FINDERS = (FIND_TOOL.name, DESCRIBE_TOOL.name, CALL_TOOL.name)
"""The tools that find, describe and call the tools that a prompt does not list."""

_ACCOMPANYING = frozenset((PAGING_TOOL, READER, *FINDERS, MAKE_PLAN, RUN_STEP))


def default_limits(limits: Limits, cards: Iterable[ToolCard]) -> Limits:
    """The limits of an agent with these tools; those that accompany others do not count."""
    return with_default_steps(limits, sum(card.name not in _ACCOMPANYING for card in cards))


def build_toolbox(
    tools: list[Any], *, workspace: str | Path | None = None, memory: str | Path | None = None, handles: bool = False
) -> Toolbox:
    """The tools by name, built-in ones among them, with those that accompany others.

    `handles`: the model reads no observations; then `ask_about` replaces `read_observation`.

    Raises:
        ConfigError: this machine cannot serve one.
        UnknownName: there is no built-in tool of a name.
    """
    if names := [entry for entry in tools if isinstance(entry, str)]:
        from taoloop.tools.builtin.catalog import builtin_tools, offered_tool  # noqa: PLC0415  # only for named tools
        from taoloop.tools.workspace.workspace import Workspace  # noqa: PLC0415  # the same

        folder = None if workspace is None else Workspace(workspace, create=True).open()
        builtin = builtin_tools(folder, memory=memory, names=names)
        tools = [offered_tool(entry, builtin) if isinstance(entry, str) else entry for entry in tools]
    toolbox = Toolbox(tools)
    if any(not tool.card.listed or tool.whole_schema is not None for tool in toolbox):
        from taoloop.tools.discovery import tool_search_tools  # noqa: PLC0415  # only for many or large tools

        toolbox = Toolbox([*toolbox, *tool_search_tools(tuple(toolbox))])
    return with_paging_tool(toolbox, handles=handles)


def with_paging_tool(tools: Iterable[Tool], *, handles: bool) -> Toolbox:
    """The tools with the one that reads observations, if there are any."""
    toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools)
    if handles:
        from taoloop.tools.builtin.observations import ask_about  # noqa: PLC0415  # loads the schema machinery

        tools = [tool for tool in toolbox if tool.name not in (PAGING_TOOL, READER)]
        return Toolbox([*tools, ask_about] if tools else ())
    if len(toolbox) and PAGING_TOOL not in toolbox:
        from taoloop.tools.builtin.observations import read_observation  # noqa: PLC0415  # loads the schema machinery

        toolbox = Toolbox([*toolbox, read_observation])
    return toolbox
