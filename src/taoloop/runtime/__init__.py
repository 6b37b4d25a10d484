"""What drives agents, answers approvals, and continues, replays, forks or undoes runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.runtime.after.fork import Fork, make_fork
    from taoloop.runtime.after.fork_edits import EditedObservation, Edits
    from taoloop.runtime.after.recovery import Recovered, orphans, recover
    from taoloop.runtime.after.replay import ReplayedEvent, replay
    from taoloop.runtime.after.undo import UndoResult, plan_undo
    from taoloop.runtime.after.undo_plan import PlannedUndo, UndoPlan
    from taoloop.runtime.agent import Agent
    from taoloop.runtime.agent_settings import AgentSettings
    from taoloop.runtime.approvals.in_doubt import settle_doubt
    from taoloop.runtime.approvals.inbox import (
        AnswerRecorded,
        PendingApproval,
        add_note,
        answer_approval,
        pending_approvals,
    )
    from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest, Approver, Settling
    from taoloop.runtime.chat import Chat
    from taoloop.runtime.engine.clock import Clock
    from taoloop.runtime.result import Result
    from taoloop.runtime.runner import Listener
    from taoloop.runtime.subagent import AgentTool, agent_tool
    from taoloop.runtime.tool_call_run import ToolCallRuns

__all__ = [
    "Agent",
    "AgentSettings",
    "AgentTool",
    "AnswerRecorded",
    "ApprovalAnswer",
    "ApprovalRequest",
    "Approver",
    "Chat",
    "Clock",
    "EditedObservation",
    "Edits",
    "Fork",
    "Listener",
    "PendingApproval",
    "PlannedUndo",
    "Recovered",
    "ReplayedEvent",
    "Result",
    "Settling",
    "ToolCallRuns",
    "UndoPlan",
    "UndoResult",
    "add_note",
    "agent_tool",
    "answer_approval",
    "make_fork",
    "orphans",
    "pending_approvals",
    "plan_undo",
    "recover",
    "replay",
    "settle_doubt",
]

__getattr__, __dir__ = lazy_exports(
    globals(),
    {
        "taoloop.runtime.after.fork": "Fork make_fork",
        "taoloop.runtime.after.fork_edits": "EditedObservation Edits",
        "taoloop.runtime.after.recovery": "Recovered orphans recover",
        "taoloop.runtime.after.replay": "ReplayedEvent replay",
        "taoloop.runtime.after.undo": "UndoResult plan_undo",
        "taoloop.runtime.after.undo_plan": "PlannedUndo UndoPlan",
        "taoloop.runtime.agent": "Agent",
        "taoloop.runtime.agent_settings": "AgentSettings",
        "taoloop.runtime.approvals.in_doubt": "settle_doubt",
        "taoloop.runtime.approvals.inbox": "AnswerRecorded PendingApproval add_note answer_approval pending_approvals",
        "taoloop.runtime.approvals.request": "ApprovalAnswer ApprovalRequest Approver Settling",
        "taoloop.runtime.chat": "Chat",
        "taoloop.runtime.engine.clock": "Clock",
        "taoloop.runtime.result": "Result",
        "taoloop.runtime.runner": "Listener",
        "taoloop.runtime.subagent": "AgentTool agent_tool",
        "taoloop.runtime.tool_call_run": "ToolCallRuns",
    },
)
