"""What drives agents, answers approvals, and continues, replays, forks or undoes runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.core.views.transcript import Result as Result
    from taoloop.runtime.after.abandonment import abandon_run as abandon_run
    from taoloop.runtime.after.evaluation import mark_run as mark_run
    from taoloop.runtime.after.fork import Fork as Fork, make_fork as make_fork
    from taoloop.runtime.after.fork_edits import EditedObservation as EditedObservation, Edits as Edits
    from taoloop.runtime.after.recovery import (
        Recovered as Recovered,
        orphans as orphans,
        recover as recover,
        stuck_runs as stuck_runs,
    )
    from taoloop.runtime.after.replay import ReplayedEvent as ReplayedEvent, replay as replay
    from taoloop.runtime.after.undo import UndoResult as UndoResult, plan_undo as plan_undo
    from taoloop.runtime.after.undo_plan import PlannedUndo as PlannedUndo, UndoPlan as UndoPlan
    from taoloop.runtime.agent import Agent as Agent
    from taoloop.runtime.agent_settings import (
        AgentSettings as AgentSettings,
        Handoff as Handoff,
        HandoffHistory as HandoffHistory,
    )
    from taoloop.runtime.approvals.inbox import (
        AnswerRecorded as AnswerRecorded,
        PendingApproval as PendingApproval,
        add_note as add_note,
        answer_approval as answer_approval,
        pending_approvals as pending_approvals,
        settle_doubt as settle_doubt,
    )
    from taoloop.runtime.approvals.inbox_items import (
        Inbox as Inbox,
        InboxItem as InboxItem,
        InboxListing as InboxListing,
    )
    from taoloop.runtime.approvals.request import (
        ApprovalAnswer as ApprovalAnswer,
        ApprovalRequest as ApprovalRequest,
        Approver as Approver,
        Settling as Settling,
    )
    from taoloop.runtime.chat import Chat as Chat
    from taoloop.runtime.engine.attachment_sources import (
        AttachmentSource as AttachmentSource,
        ImageSource as ImageSource,
        Task as Task,
        load_attachment as load_attachment,
    )
    from taoloop.runtime.engine.clock import Clock as Clock
    from taoloop.runtime.engine.run_artifacts import Describer as Describer
    from taoloop.runtime.handoff import link_handoffs as link_handoffs
    from taoloop.runtime.runner import Listener as Listener
    from taoloop.runtime.subagent import AgentTool as AgentTool, agent_tool as agent_tool
    from taoloop.runtime.tool_call_run import ToolCallRuns as ToolCallRuns

__getattr__, __dir__, __all__ = lazy_exports(
    globals(),
    {
        "taoloop.core.views.transcript": "Result",
        "taoloop.runtime.after.abandonment": "abandon_run",
        "taoloop.runtime.after.evaluation": "mark_run",
        "taoloop.runtime.after.fork": "Fork make_fork",
        "taoloop.runtime.after.fork_edits": "EditedObservation Edits",
        "taoloop.runtime.after.recovery": "Recovered orphans recover stuck_runs",
        "taoloop.runtime.after.replay": "ReplayedEvent replay",
        "taoloop.runtime.after.undo": "UndoResult plan_undo",
        "taoloop.runtime.after.undo_plan": "PlannedUndo UndoPlan",
        "taoloop.runtime.agent": "Agent",
        "taoloop.runtime.agent_settings": "AgentSettings Handoff HandoffHistory",
        "taoloop.runtime.approvals.inbox": "AnswerRecorded PendingApproval add_note answer_approval pending_approvals "
        "settle_doubt",
        "taoloop.runtime.approvals.inbox_items": "Inbox InboxItem InboxListing",
        "taoloop.runtime.approvals.request": "ApprovalAnswer ApprovalRequest Approver Settling",
        "taoloop.runtime.chat": "Chat",
        "taoloop.runtime.engine.clock": "Clock",
        "taoloop.runtime.engine.attachment_sources": "AttachmentSource ImageSource Task load_attachment",
        "taoloop.runtime.engine.run_artifacts": "Describer",
        "taoloop.runtime.handoff": "link_handoffs",
        "taoloop.runtime.runner": "Listener",
        "taoloop.runtime.subagent": "AgentTool agent_tool",
        "taoloop.runtime.tool_call_run": "ToolCallRuns",
    },
)
