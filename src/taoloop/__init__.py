"""taoloop: a ReAct agent runtime whose every action can be checked, recorded, stopped and replaced.

    from taoloop import Agent, tool

Importing loads no server, no database driver and no SDK; names are found when they are first used.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports
from taoloop.moved_modules import MovedModuleFinder

if TYPE_CHECKING:
    from taoloop.core.agent_spec import Limits as Limits
    from taoloop.core.cards.tool_card import (
        ErrorCard as ErrorCard,
        ExampleCard as ExampleCard,
        JournalConnection as JournalConnection,
        ToolCard as ToolCard,
    )
    from taoloop.core.events import AnyEvent as AnyEvent, Event as Event
    from taoloop.core.images import Image as Image
    from taoloop.core.trace import Trace as Trace
    from taoloop.core.views.transcript import Result as Result
    from taoloop.errors import TaoError as TaoError, ToolError as ToolError
    from taoloop.journals.memory import MemoryJournal as MemoryJournal
    from taoloop.journals.sqlite.journal import SqliteJournal as SqliteJournal
    from taoloop.models.scripted import ScriptedModel as ScriptedModel
    from taoloop.models.settings import Rate as Rate, Retry as Retry
    from taoloop.runtime.after.recovery import recover as recover
    from taoloop.runtime.agent import Agent as Agent
    from taoloop.runtime.agent_settings import RunInfo as RunInfo
    from taoloop.runtime.approvals.request import ApprovalAnswer as ApprovalAnswer, ApprovalRequest as ApprovalRequest
    from taoloop.runtime.chat import Chat as Chat
    from taoloop.runtime.graph import (
        END as END,
        EXIT as EXIT,
        START as START,
        Graph as Graph,
        Node as Node,
        Person as Person,
    )
    from taoloop.runtime.observation.run_observation import RunIdFilter as RunIdFilter
    from taoloop.runtime.observation.telemetry import Telemetry as Telemetry, instrument as instrument
    from taoloop.tools.function import tool as tool
    from taoloop.tools.tool import (
        RunContext as RunContext,
        RunUsage as RunUsage,
        Tool as Tool,
        ToolContext as ToolContext,
    )


__version__ = "0.1.0"

sys.meta_path.append(MovedModuleFinder())

__getattr__, __dir__, __all__ = lazy_exports(
    globals(),
    {
        "taoloop.core.agent_spec": "Limits",
        "taoloop.core.cards.tool_card": "ErrorCard ExampleCard JournalConnection ToolCard",
        "taoloop.core.events": "AnyEvent Event",
        "taoloop.core.images": "Image",
        "taoloop.core.trace": "Trace",
        "taoloop.core.views.transcript": "Result",
        "taoloop.errors": "TaoError ToolError",
        "taoloop.journals.memory": "MemoryJournal",
        "taoloop.journals.sqlite.journal": "SqliteJournal",
        "taoloop.models.scripted": "ScriptedModel",
        "taoloop.models.settings": "Rate Retry",
        "taoloop.runtime.after.recovery": "recover",
        "taoloop.runtime.agent": "Agent",
        "taoloop.runtime.agent_settings": "RunInfo",
        "taoloop.runtime.approvals.request": "ApprovalAnswer ApprovalRequest",
        "taoloop.runtime.chat": "Chat",
        "taoloop.runtime.graph": "END EXIT START Graph Node Person",
        "taoloop.runtime.observation.run_observation": "RunIdFilter",
        "taoloop.runtime.observation.telemetry": "Telemetry instrument",
        "taoloop.tools.function": "tool",
        "taoloop.tools.tool": "RunContext RunUsage Tool ToolContext",
    },
)
