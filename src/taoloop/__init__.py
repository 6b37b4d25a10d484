"""taoloop: a ReAct agent runtime whose every action can be checked, recorded, stopped and replaced.

    from taoloop import Agent, tool

Importing loads no server, no database driver and no SDK; names are found when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taoloop.core.cards import ErrorCard, ExampleCard, ToolCard
    from taoloop.core.connection import JournalConnection
    from taoloop.core.events import Event
    from taoloop.core.limits import Limits
    from taoloop.core.trace import Trace
    from taoloop.errors import TaoError, ToolError
    from taoloop.journals.memory import MemoryJournal
    from taoloop.journals.sqlite import SqliteJournal
    from taoloop.models.scripted import ScriptedModel
    from taoloop.models.settings import Rate, Retry
    from taoloop.runtime.agent import Agent
    from taoloop.runtime.approval import ApprovalAnswer, ApprovalRequest
    from taoloop.runtime.chat import Chat
    from taoloop.runtime.recovery import recover
    from taoloop.runtime.result import Result
    from taoloop.tools.base import Tool, ToolContext
    from taoloop.tools.function import tool

__version__ = "0.1.0"

_PLACES = {
    "Agent": "taoloop.runtime.agent",
    "ApprovalAnswer": "taoloop.runtime.approval",
    "ApprovalRequest": "taoloop.runtime.approval",
    "Chat": "taoloop.runtime.chat",
    "ErrorCard": "taoloop.core.cards",
    "Event": "taoloop.core.events",
    "ExampleCard": "taoloop.core.cards",
    "JournalConnection": "taoloop.core.connection",
    "Limits": "taoloop.core.limits",
    "MemoryJournal": "taoloop.journals.memory",
    "Rate": "taoloop.models.settings",
    "Result": "taoloop.runtime.result",
    "Retry": "taoloop.models.settings",
    "ScriptedModel": "taoloop.models.scripted",
    "SqliteJournal": "taoloop.journals.sqlite",
    "TaoError": "taoloop.errors",
    "Tool": "taoloop.tools.base",
    "ToolCard": "taoloop.core.cards",
    "ToolContext": "taoloop.tools.base",
    "ToolError": "taoloop.errors",
    "Trace": "taoloop.core.trace",
    "recover": "taoloop.runtime.recovery",
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
