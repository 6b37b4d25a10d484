"""Where traces are kept: in memory, in a SQLite file, or in a journal of your own (`Journal`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.journals.base import Artifact, Journal, Lease, LockHolder, RunLocks, RunRow
    from taoloop.journals.costs import CostRow, cost_rows
    from taoloop.journals.memory import MemoryJournal
    from taoloop.journals.sqlite.file import default_path
    from taoloop.journals.sqlite.journal import SqliteJournal


__all__ = [
    "Artifact",
    "CostRow",
    "Journal",
    "Lease",
    "LockHolder",
    "MemoryJournal",
    "RunLocks",
    "RunRow",
    "SqliteJournal",
    "cost_rows",
    "default_path",
]

__getattr__, __dir__ = lazy_exports(
    globals(),
    {
        "taoloop.journals.base": "Artifact Journal Lease LockHolder RunLocks RunRow",
        "taoloop.journals.costs": "CostRow cost_rows",
        "taoloop.journals.memory": "MemoryJournal",
        "taoloop.journals.sqlite.file": "default_path",
        "taoloop.journals.sqlite.journal": "SqliteJournal",
    },
)
