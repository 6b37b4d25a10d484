"""Where traces are kept: in memory, in a SQLite file, or in a journal of your own (`Journal`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
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
    from taoloop.journals.queries import (
        Growth as Growth,
        JournalQueries as JournalQueries,
        RunPage as RunPage,
        RunQuery as RunQuery,
        queries_of as queries_of,
    )
    from taoloop.journals.retention import (
        PrunedRun as PrunedRun,
        PruneReport as PruneReport,
        Retention as Retention,
    )
    from taoloop.journals.sqlite.file import default_path as default_path
    from taoloop.journals.sqlite.journal import SqliteJournal as SqliteJournal
    from taoloop.journals.usage import UsageRow as UsageRow

__getattr__, __dir__, __all__ = lazy_exports(
    globals(),
    {
        "taoloop.journals.base": "Artifact Journal Lease LockHolder RunLocks RunRow",
        "taoloop.journals.costs": "CostRow cost_rows",
        "taoloop.journals.memory": "MemoryJournal",
        "taoloop.journals.queries": "Growth JournalQueries RunPage RunQuery queries_of",
        "taoloop.journals.retention": "PrunedRun PruneReport Retention",
        "taoloop.journals.sqlite.file": "default_path",
        "taoloop.journals.sqlite.journal": "SqliteJournal",
        "taoloop.journals.usage": "UsageRow",
    },
)
