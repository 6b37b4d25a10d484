"""Where traces are kept: in memory, in a SQLite file, in PostgreSQL, or in a journal of your own (`Journal`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.core.decision import Act as Act, Answer as Answer, Problem as Problem, Vote as Vote, Voted as Voted
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
        Status as Status,
        Undo as Undo,
        Undoing as Undoing,
    )
    from taoloop.core.human_input import HookActed as HookActed, InputAnswered as InputAnswered, Marked as Marked
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
    from taoloop.journals.base import (
        Artifact as Artifact,
        Journal as Journal,
        Lease as Lease,
        LockHolder as LockHolder,
        RunLocks as RunLocks,
        RunRow as RunRow,
    )
    from taoloop.journals.costs import CostRow as CostRow, cost_rows as cost_rows
    from taoloop.journals.memory import MemoryJournal as MemoryJournal
    from taoloop.journals.postgres.address import PostgresAddress as PostgresAddress
    from taoloop.journals.postgres.journal import PostgresJournal as PostgresJournal
    from taoloop.journals.queries import (
        Growth as Growth,
        JournalQueries as JournalQueries,
        RunPage as RunPage,
        RunQuery as RunQuery,
        queries_of as queries_of,
    )
    from taoloop.journals.retention import PrunedRun as PrunedRun, PruneReport as PruneReport, Retention as Retention
    from taoloop.journals.sqlite.file import default_path as default_path
    from taoloop.journals.sqlite.journal import SqliteJournal as SqliteJournal
    from taoloop.journals.usage import UsageRow as UsageRow


__getattr__, __dir__, __all__ = lazy_exports(
    globals(),
    {
        "taoloop.core.decision": "Act Answer Problem Vote Voted",
        "taoloop.core.events": (
            "ActionRequested ActionStarted AnyEvent ApprovalGiven ApprovalRefused Compacted Compensated "
            "DoubtSettled Event Fact Fault Finished InDoubt LimitReached ModelErred ModelReplied Noted "
            "Observed Paused Pinned ReadDropped ReplyRejected Resumed RunStarted Status Undo Undoing"
        ),
        "taoloop.core.human_input": "HookActed InputAnswered Marked",
        "taoloop.core.redaction.redactor": "Redactor",
        "taoloop.core.stored_events": "ChainReport event_line event_record fact_of_record head_of",
        "taoloop.core.trace": "Trace",
        "taoloop.core.views.run_diff": "Comparison Difference StepCell StepRow compare",
        "taoloop.core.views.run_figures": "RunFigures run_figures",
        "taoloop.core.views.steps": "CallView Step",
        "taoloop.core.views.transcript": "Entry step_summaries transcript transcript_text",
        "taoloop.journals.base": "Artifact Journal Lease LockHolder RunLocks RunRow",
        "taoloop.journals.costs": "CostRow cost_rows",
        "taoloop.journals.memory": "MemoryJournal",
        "taoloop.journals.postgres.address": "PostgresAddress",
        "taoloop.journals.postgres.journal": "PostgresJournal",
        "taoloop.journals.queries": "Growth JournalQueries RunPage RunQuery queries_of",
        "taoloop.journals.retention": "PruneReport PrunedRun Retention",
        "taoloop.journals.sqlite.file": "default_path",
        "taoloop.journals.sqlite.journal": "SqliteJournal",
        "taoloop.journals.usage": "UsageRow",
    },
)
