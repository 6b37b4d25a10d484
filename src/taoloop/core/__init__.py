"""The pure core: events, the trace and its views, cards, limits, policy, redaction. No I/O, no clock, no randomness.

What users of events, traces, cards and custom models need is exported here; the modules behind it may move. A name is
imported when it is first used, because the whole core is much more than most of its users need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

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
    from taoloop.core.views.transcript import Entry, step_summaries, transcript, transcript_text

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
    "step_summaries",
    "transcript",
    "transcript_text",
]

__getattr__, __dir__ = lazy_exports(
    globals(),
    {
        "taoloop.core.agent_spec": "AgentSpec Limits",
        "taoloop.core.cards.card_lint": "Finding lint",
        "taoloop.core.cards.tool_card": "ErrorCard ExampleCard ToolCard",
        "taoloop.core.decision": "Act Answer Call Problem",
        "taoloop.core.effects": "ModelRequest",
        "taoloop.core.events": "ActionRequested ActionStarted ApprovalGiven ApprovalRefused Compacted Compensated "
        "DoubtSettled Event Fact Fault Finished InDoubt LimitReached ModelErred ModelReplied Noted "
        "Observed Paused Pinned ReadDropped ReplyRejected Resumed RunStarted Source Status Undo "
        "Undoing Verdict",
        "taoloop.core.journal_connection": "JournalConnection",
        "taoloop.core.message": "Delta Message ModelReply ToolCallText Usage",
        "taoloop.core.policy": "Policy Rule",
        "taoloop.core.prompts": "PromptSet",
        "taoloop.core.redaction.redactor": "Redactor",
        "taoloop.core.stored_events": "ChainReport event_line event_record fact_of_record head_of",
        "taoloop.core.trace": "Trace",
        "taoloop.core.views.run_diff": "Comparison Difference compare",
        "taoloop.core.views.steps": "CallView Step",
        "taoloop.core.views.transcript": "Entry step_summaries transcript transcript_text",
    },
)
