"""taoloop: a ReAct agent runtime whose every action can be checked, recorded, stopped and replaced.

    from taoloop import Agent, tool

Importing loads no server, no database driver and no SDK; names are found when they are first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from taoloop.moved_modules import MovedModuleFinder

if TYPE_CHECKING:
    from taoloop.core.agent_spec import Limits
    from taoloop.core.cards.tool_card import ErrorCard, ExampleCard, ToolCard
    from taoloop.core.events import Event
    from taoloop.core.journal_connection import JournalConnection
    from taoloop.core.trace import Trace
    from taoloop.errors import TaoError, ToolError
    from taoloop.journals.memory import MemoryJournal
    from taoloop.journals.sqlite.journal import SqliteJournal
    from taoloop.models.scripted import ScriptedModel
    from taoloop.models.settings import Rate, Retry
    from taoloop.runtime.after.recovery import recover
    from taoloop.runtime.agent import Agent
    from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest
    from taoloop.runtime.chat import Chat
    from taoloop.runtime.result import Result
    from taoloop.tools.function import tool
    from taoloop.tools.tool import Tool, ToolContext

__version__ = "0.1.0"

sys.meta_path.append(MovedModuleFinder())

_PLACES = {
    "Agent": "taoloop.runtime.agent",
    "ApprovalAnswer": "taoloop.runtime.approvals.request",
    "ApprovalRequest": "taoloop.runtime.approvals.request",
    "Chat": "taoloop.runtime.chat",
    "ErrorCard": "taoloop.core.cards.tool_card",
    "Event": "taoloop.core.events",
    "ExampleCard": "taoloop.core.cards.tool_card",
    "JournalConnection": "taoloop.core.journal_connection",
    "Limits": "taoloop.core.agent_spec",
    "MemoryJournal": "taoloop.journals.memory",
    "Rate": "taoloop.models.settings",
    "Result": "taoloop.runtime.result",
    "Retry": "taoloop.models.settings",
    "ScriptedModel": "taoloop.models.scripted",
    "SqliteJournal": "taoloop.journals.sqlite.journal",
    "TaoError": "taoloop.errors",
    "Tool": "taoloop.tools.tool",
    "ToolCard": "taoloop.core.cards.tool_card",
    "ToolContext": "taoloop.tools.tool",
    "ToolError": "taoloop.errors",
    "Trace": "taoloop.core.trace",
    "recover": "taoloop.runtime.after.recovery",
    "tool": "taoloop.tools.function",
}

__all__ = [
    "Agent",
    "ApprovalAnswer",
    "ApprovalRequest",
    "Chat",
    "ErrorCard",
    "Event",
    "ExampleCard",
    "JournalConnection",
    "Limits",
    "MemoryJournal",
    "Rate",
    "Result",
    "Retry",
    "ScriptedModel",
    "SqliteJournal",
    "TaoError",
    "Tool",
    "ToolCard",
    "ToolContext",
    "ToolError",
    "Trace",
    "recover",
    "tool",
]


def __getattr__(name: str) -> Any:
    """Find an exported name at its first use."""
    if (place := _PLACES.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(place), name)
    return value


def __dir__() -> list[str]:
    """The exported names."""
    return sorted({*globals(), *__all__})
