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
    from taoloop.config import (
        LoadedFile as LoadedFile,
        load_agent as load_agent,
        load_policy as load_policy,
        load_tools as load_tools,
        tools_named as tools_named,
    )
    from taoloop.core.agent_spec import (
        AgentSpec as AgentSpec,
        Limits as Limits,
        ModelSettings as ModelSettings,
        Submission as Submission,
    )
    from taoloop.core.attachments.files import File as File
    from taoloop.core.cards.tool_card import (
        ErrorCard as ErrorCard,
        ExampleCard as ExampleCard,
        JournalConnection as JournalConnection,
        ToolCard as ToolCard,
    )
    from taoloop.core.decision import Call as Call
    from taoloop.core.events import AnyEvent as AnyEvent, Event as Event
    from taoloop.core.images import Image as Image
    from taoloop.core.message import Delta as Delta, Message as Message
    from taoloop.core.policy import Policy as Policy
    from taoloop.core.prompts import PromptSet as PromptSet
    from taoloop.core.trace import Trace as Trace
    from taoloop.core.views.transcript import Result as Result
    from taoloop.dialects import (
        Dialect as Dialect,
        Reading as Reading,
        get_dialect as get_dialect,
        read_reply as read_reply,
        register_dialect as register_dialect,
    )
    from taoloop.errors import AnswerRefused as AnswerRefused, TaoError as TaoError, ToolError as ToolError
    from taoloop.journals.memory import MemoryJournal as MemoryJournal
    from taoloop.journals.postgres.journal import PostgresJournal as PostgresJournal
    from taoloop.journals.sqlite.journal import SqliteJournal as SqliteJournal
    from taoloop.models.scripted import ScriptedModel as ScriptedModel
    from taoloop.models.settings import Rate as Rate, Retry as Retry
    from taoloop.prompts import load_prompts as load_prompts, prompts_for as prompts_for
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
        RunInfo as RunInfo,
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
    from taoloop.runtime.engine.hooks import Hooks as Hooks, Refusal as Refusal, ToolOutcome as ToolOutcome
    from taoloop.runtime.engine.run_artifacts import Describer as Describer
    from taoloop.runtime.fleet.engine import Advance as Advance, Advanced as Advanced, Engine as Engine
    from taoloop.runtime.fleet.engines import open_engine as open_engine
    from taoloop.runtime.fleet.local_engine import LocalEngine as LocalEngine
    from taoloop.runtime.fleet.submission import cancel_run as cancel_run, release_run as release_run
    from taoloop.runtime.fleet.wakes import wake_run as wake_run
    from taoloop.runtime.fleet.worker import Worker as Worker
    from taoloop.runtime.graph import (
        ELSE as ELSE,
        END as END,
        EXIT as EXIT,
        LIMITS as LIMITS,
        START as START,
        Graph as Graph,
        Node as Node,
        Person as Person,
    )
    from taoloop.runtime.handoff import link_handoffs as link_handoffs
    from taoloop.runtime.live.run_handle import RunHandle as RunHandle, attach as attach
    from taoloop.runtime.live.run_stream import RunStream as RunStream
    from taoloop.runtime.observation.run_observation import RunIdFilter as RunIdFilter
    from taoloop.runtime.observation.telemetry import Telemetry as Telemetry, instrument as instrument
    from taoloop.runtime.runner import Listener as Listener
    from taoloop.runtime.subagent import AgentTool as AgentTool
    from taoloop.runtime.tool_call_run import ToolCallRuns as ToolCallRuns
    from taoloop.strategies import (
        PlanExecute as PlanExecute,
        ReactThenSelfConsistency as ReactThenSelfConsistency,
        Reflect as Reflect,
        SelfConsistency as SelfConsistency,
        SelfConsistencyThenReact as SelfConsistencyThenReact,
        Strategy as Strategy,
        get_strategy as get_strategy,
        normalise_answer as normalise_answer,
        register_strategy as register_strategy,
    )
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
        "taoloop.config": "LoadedFile load_agent load_policy load_tools tools_named",
        "taoloop.core.agent_spec": "AgentSpec Limits ModelSettings Submission",
        "taoloop.core.cards.tool_card": "ErrorCard ExampleCard JournalConnection ToolCard",
        "taoloop.core.decision": "Call",
        "taoloop.core.events": "AnyEvent Event",
        "taoloop.core.attachments.files": "File",
        "taoloop.core.images": "Image",
        "taoloop.core.message": "Delta Message",
        "taoloop.core.policy": "Policy",
        "taoloop.core.prompts": "PromptSet",
        "taoloop.core.trace": "Trace",
        "taoloop.core.views.transcript": "Result",
        "taoloop.dialects": "Dialect Reading get_dialect read_reply register_dialect",
        "taoloop.errors": "AnswerRefused TaoError ToolError",
        "taoloop.journals.memory": "MemoryJournal",
        "taoloop.journals.postgres.journal": "PostgresJournal",
        "taoloop.journals.sqlite.journal": "SqliteJournal",
        "taoloop.models.scripted": "ScriptedModel",
        "taoloop.models.settings": "Rate Retry",
        "taoloop.prompts": "load_prompts prompts_for",
        "taoloop.runtime.after.abandonment": "abandon_run",
        "taoloop.runtime.after.evaluation": "mark_run",
        "taoloop.runtime.after.fork": "Fork make_fork",
        "taoloop.runtime.after.fork_edits": "EditedObservation Edits",
        "taoloop.runtime.after.recovery": "Recovered orphans recover stuck_runs",
        "taoloop.runtime.after.replay": "ReplayedEvent replay",
        "taoloop.runtime.after.undo": "UndoResult plan_undo",
        "taoloop.runtime.after.undo_plan": "PlannedUndo UndoPlan",
        "taoloop.runtime.agent": "Agent",
        "taoloop.runtime.agent_settings": "AgentSettings Handoff HandoffHistory RunInfo",
        "taoloop.runtime.approvals.inbox": (
            "AnswerRecorded PendingApproval add_note answer_approval pending_approvals settle_doubt"
        ),
        "taoloop.runtime.approvals.inbox_items": "Inbox InboxItem InboxListing",
        "taoloop.runtime.approvals.request": "ApprovalAnswer ApprovalRequest Approver Settling",
        "taoloop.runtime.chat": "Chat",
        "taoloop.runtime.engine.clock": "Clock",
        "taoloop.runtime.engine.attachment_sources": "AttachmentSource ImageSource Task load_attachment",
        "taoloop.runtime.engine.run_artifacts": "Describer",
        "taoloop.runtime.fleet.engine": "Advance Advanced Engine",
        "taoloop.runtime.fleet.engines": "open_engine",
        "taoloop.runtime.fleet.local_engine": "LocalEngine",
        "taoloop.runtime.fleet.submission": "cancel_run release_run",
        "taoloop.runtime.fleet.wakes": "wake_run",
        "taoloop.runtime.fleet.worker": "Worker",
        "taoloop.runtime.graph": "ELSE END EXIT Graph LIMITS Node Person START",
        "taoloop.runtime.handoff": "link_handoffs",
        "taoloop.runtime.live.run_handle": "RunHandle attach",
        "taoloop.runtime.live.run_stream": "RunStream",
        "taoloop.runtime.engine.hooks": "Hooks Refusal ToolOutcome",
        "taoloop.runtime.observation.run_observation": "RunIdFilter",
        "taoloop.runtime.observation.telemetry": "Telemetry instrument",
        "taoloop.runtime.runner": "Listener",
        "taoloop.runtime.subagent": "AgentTool",
        "taoloop.runtime.tool_call_run": "ToolCallRuns",
        "taoloop.strategies": (
            "PlanExecute ReactThenSelfConsistency Reflect SelfConsistency SelfConsistencyThenReact Strategy "
            "get_strategy normalise_answer register_strategy"
        ),
        "taoloop.tools.function": "tool",
        "taoloop.tools.tool": "RunContext RunUsage Tool ToolContext",
    },
)
