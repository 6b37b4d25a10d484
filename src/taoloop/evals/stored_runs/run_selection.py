"""Which stored runs an evaluation looks at: the newest that fit, without those that no person asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from taoloop.core.trace import Trace
from taoloop.core.views.marks import run_marks
from taoloop.journals.base import Journal
from taoloop.journals.queries import RunQuery, queries_of

_PAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSelection:
    """The runs that fit every field. Runs inside others and runs that undo are never among them."""

    last: int = 50
    """At most this many: the newest."""
    search: str = ""
    """Words that task, answer, calls and errors have; empty: any."""
    statuses: tuple[str, ...] = ()
    """One of these statuses; empty: any."""
    marked: str | None = None
    """What people say of the run: `right` or `wrong`; None: whatever they say."""


async def selected_runs(journal: Journal, selection: RunSelection) -> AsyncIterator[Trace]:
    """The runs, the newest first, one at a time.

    Raises:
        JournalError: the journal cannot be read, or has no queries.
    """
    query = RunQuery(text=selection.search, statuses=selection.statuses, only_outermost=True)
    cursor, remaining = None, selection.last
    while remaining > 0:
        page = await queries_of(journal).find(query, cursor=cursor, limit=min(remaining, _PAGE))
        for row in page.rows:
            trace = Trace(row.run_id, await journal.load(row.run_id))
            if trace.started is None or trace.started.undoes is not None:
                continue
            if selection.marked is not None and run_marks(trace).verdict != selection.marked:
                continue
            yield trace
            remaining -= 1
            if not remaining:
                return
        cursor = page.cursor
        if cursor is None:
            return
