"""Agents, tools and policies in files: YAML and JSON, with line numbers in every error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.config.agent_file import load_agent as load_agent, load_policy as load_policy
    from taoloop.config.tool_file import LoadedFile as LoadedFile, load_tools as load_tools, tools_named as tools_named

__getattr__, __dir__, __all__ = lazy_exports(
    globals(),
    {
        "taoloop.config.agent_file": "load_agent load_policy",
        "taoloop.config.tool_file": "LoadedFile load_tools tools_named",
    },
)
