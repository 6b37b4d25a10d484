"""The pure core: events, the trace and its views, cards, limits, policy, redaction. No I/O, no clock, no randomness.

What users of events, traces, cards and custom models need is exported here; the modules behind it may move. A name is
imported when it is first used, because the whole core is much more than most of its users need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taoloop.core.agent_spec import AgentSpec, Limits
    from taoloop.core.cards.card_lint import Finding, lint
    from taoloop.core.cards.tool_card import ErrorCard, ExampleCard, ToolCard
    from taoloop.core.decision import Act, Answer, Call, Problem
    from taoloop.core.effects import ModelRequest
    from taoloop.core.events import (
        ActionRequested,
        ActionStarted,
        ApprovalGiven,
        ApprovalRefused,
        Compacted,
        Compensated,
        DoubtSettled,
        Event,
        Fact,
        Fault,
        Finished,
        InDoubt,
        LimitReached,
        ModelErred,
        ModelReplied,
        Noted,
        Observed,
        Paused,
        Pinned,
        ReadDropped,
        ReplyRejected,
        Resumed,
        RunStarted,
        Source,
        Status,
        Undo,
        Undoing,
        Verdict,
    )
    from taoloop.core.journal_connection import JournalConnection
    from taoloop.core.message import Delta, Message, ModelReply, ToolCallText, Usage
    from taoloop.core.policy import Policy, Rule
    from taoloop.core.prompts import PromptSet
    from taoloop.core.redaction.redactor import Redactor
    from taoloop.core.stored_events import ChainReport, event_line, event_record, fact_of_record, head_of
    from taoloop.core.trace import Trace
    from taoloop.core.views.run_diff import Comparison, Difference, compare
    from taoloop.core.views.steps import CallView, Step
    from taoloop.core.views.transcript import Entry, transcript, transcript_text

_MODULES = {
    "agent_spec": "AgentSpec Limits",
    "cards.card_lint": "Finding lint",
    "cards.tool_card": "ErrorCard ExampleCard ToolCard",
    "decision": "Act Answer Call Problem",
    "effects": "ModelRequest",
    "events": "ActionRequested ActionStarted ApprovalGiven ApprovalRefused Compacted Compensated DoubtSettled Event "
    "Fact Fault Finished InDoubt LimitReached ModelErred ModelReplied Noted Observed Paused Pinned "
    "ReadDropped ReplyRejected Resumed RunStarted Source Status Undo Undoing Verdict",
    "stored_events": "ChainReport event_line event_record fact_of_record head_of",
    "journal_connection": "JournalConnection",
    "message": "Delta Message ModelReply ToolCallText Usage",
    "policy": "Policy Rule",
    "prompts": "PromptSet",
    "redaction.redactor": "Redactor",
    "trace": "Trace",
    "views.run_diff": "Comparison Difference compare",
    "views.steps": "CallView Step",
    "views.transcript": "Entry transcript transcript_text",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "Act",
    "ActionRequested",
    "ActionStarted",
    "AgentSpec",
    "Answer",
    "ApprovalGiven",
    "ApprovalRefused",
    "Call",
    "CallView",
    "ChainReport",
    "Compacted",
    "Comparison",
    "Compensated",
    "Delta",
    "Difference",
    "DoubtSettled",
    "Entry",
    "ErrorCard",
    "Event",
    "ExampleCard",
    "Fact",
    "Fault",
    "Finding",
    "Finished",
    "InDoubt",
    "JournalConnection",
    "LimitReached",
    "Limits",
    "Message",
    "ModelErred",
    "ModelReplied",
    "ModelReply",
    "ModelRequest",
    "Noted",
    "Observed",
    "Paused",
    "Pinned",
    "Policy",
    "Problem",
    "PromptSet",
    "ReadDropped",
    "Redactor",
    "ReplyRejected",
    "Resumed",
    "Rule",
    "RunStarted",
    "Source",
    "Status",
    "Step",
    "ToolCallText",
    "ToolCard",
    "Trace",
    "Undo",
    "Undoing",
    "Usage",
    "Verdict",
    "compare",
    "event_line",
    "event_record",
    "fact_of_record",
    "head_of",
    "lint",
    "transcript",
    "transcript_text",
]


def __getattr__(name: str) -> Any:
    """Import an exported name at its first use."""
    if (module := _MODULE_OF.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(__import__(f"{__name__}.{module}", fromlist=(name,)), name)
    return value


def __dir__() -> list[str]:
    """The exported names and what was imported already."""
    return sorted({*globals(), *__all__})
