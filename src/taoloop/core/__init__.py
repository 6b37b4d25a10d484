"""The pure core: events, the trace and its views, cards, limits, policy, redaction. No I/O, no clock, no randomness.

What users of events, traces, cards and custom models need is exported here; the modules behind it may move. A name is
imported when it is first used, because the whole core is much more than most of its users need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.core.agent_spec import AgentSpec as AgentSpec, Limits as Limits
    from taoloop.core.attachments.files import File as File, FileInfo as FileInfo
    from taoloop.core.cards.card_lint import Finding as Finding, lint as lint
    from taoloop.core.cards.tool_card import (
        ErrorCard as ErrorCard,
        ExampleCard as ExampleCard,
        JournalConnection as JournalConnection,
        ToolCard as ToolCard,
    )
    from taoloop.core.decision import (
        Act as Act,
        Answer as Answer,
        Call as Call,
        Problem as Problem,
        Vote as Vote,
        Voted as Voted,
    )
    from taoloop.core.effects import ModelRequest as ModelRequest
    from taoloop.core.events import (
        ActionRequested as ActionRequested,
        ActionStarted as ActionStarted,
        AnyEvent as AnyEvent,
        ApprovalGiven as ApprovalGiven,
        ApprovalRefused as ApprovalRefused,
        Compacted as Compacted,
        Compensated as Compensated,
        DoubtSettled as DoubtSettled,
        Event as Event,
        Fact as Fact,
        Fault as Fault,
        Finished as Finished,
        InDoubt as InDoubt,
        LimitReached as LimitReached,
        ModelErred as ModelErred,
        ModelReplied as ModelReplied,
        Noted as Noted,
        Observed as Observed,
        Paused as Paused,
        Pinned as Pinned,
        ReadDropped as ReadDropped,
        ReplyRejected as ReplyRejected,
        Resumed as Resumed,
        RunStarted as RunStarted,
        Source as Source,
        Status as Status,
        Undo as Undo,
        Undoing as Undoing,
        Verdict as Verdict,
    )
    from taoloop.core.human_input import HookActed as HookActed, InputAnswered as InputAnswered, Marked as Marked
    from taoloop.core.images import Image as Image, ImageInfo as ImageInfo
    from taoloop.core.message import (
        Delta as Delta,
        Message as Message,
        ModelReply as ModelReply,
        ToolCallText as ToolCallText,
        Usage as Usage,
    )
    from taoloop.core.policy import Policy as Policy, Rule as Rule
    from taoloop.core.prompts import PromptSet as PromptSet
    from taoloop.core.redaction.redactor import Redactor as Redactor
    from taoloop.core.stored_events import (
        ChainReport as ChainReport,
        event_line as event_line,
        event_record as event_record,
        fact_of_record as fact_of_record,
        head_of as head_of,
    )
    from taoloop.core.trace import Trace as Trace
    from taoloop.core.views.run_diff import (
        Comparison as Comparison,
        Difference as Difference,
        StepCell as StepCell,
        StepRow as StepRow,
        compare as compare,
    )
    from taoloop.core.views.run_figures import RunFigures as RunFigures, run_figures as run_figures
    from taoloop.core.views.steps import CallView as CallView, Step as Step
    from taoloop.core.views.transcript import (
        Entry as Entry,
        step_summaries as step_summaries,
        transcript as transcript,
        transcript_text as transcript_text,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    globals(),
    {
        "taoloop.core.agent_spec": "AgentSpec Limits",
        "taoloop.core.cards.card_lint": "Finding lint",
        "taoloop.core.cards.tool_card": "ErrorCard ExampleCard JournalConnection ToolCard",
        "taoloop.core.decision": "Act Answer Call Problem Vote Voted",
        "taoloop.core.effects": "ModelRequest",
        "taoloop.core.events": "ActionRequested ActionStarted ApprovalGiven ApprovalRefused Compacted Compensated "
        "AnyEvent DoubtSettled Event Fact Fault Finished InDoubt LimitReached ModelErred ModelReplied Noted "
        "Observed Paused Pinned ReadDropped ReplyRejected Resumed RunStarted Source Status Undo "
        "Undoing Verdict",
        "taoloop.core.human_input": "HookActed InputAnswered Marked",
        "taoloop.core.attachments.files": "File FileInfo",
        "taoloop.core.images": "Image ImageInfo",
        "taoloop.core.message": "Delta Message ModelReply ToolCallText Usage",
        "taoloop.core.policy": "Policy Rule",
        "taoloop.core.prompts": "PromptSet",
        "taoloop.core.redaction.redactor": "Redactor",
        "taoloop.core.stored_events": "ChainReport event_line event_record fact_of_record head_of",
        "taoloop.core.trace": "Trace",
        "taoloop.core.views.run_diff": "Comparison Difference StepCell StepRow compare",
        "taoloop.core.views.run_figures": "RunFigures run_figures",
        "taoloop.core.views.steps": "CallView Step",
        "taoloop.core.views.transcript": "Entry step_summaries transcript transcript_text",
    },
)
