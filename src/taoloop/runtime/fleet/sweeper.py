"""Makes up for what an engine was not told: journal and engine are two writes, and whoever made the first may die.

A run that was submitted and is not driven is submitted again, which changes nothing where the engine knows it. A
waiting run to which an answer was added is woken. Runs are read again only once they have grown, and the engine is told
of each state of a run once, so that a sweep of many waiting runs costs one list.
"""

from __future__ import annotations

import time

from taoloop.core.events import Paused
from taoloop.journals.base import RUNNING, WAITING, Journal, RunRow, locks_of
from taoloop.journals.queries import queries_of, rows_with_status
from taoloop.runtime.fleet.engine import Engine
from taoloop.runtime.fleet.wakes import wake_run

SWEEP_S = 30.0
"""How often a worker sweeps, and how long whoever submits or answers has to tell the engine."""


class Sweeper:
    """Sweeps the runs of one journal for one engine."""

    def __init__(self, journal: Journal, engine: Engine, *, patience_s: float = SWEEP_S) -> None:
        self._journal, self._engine, self._patience_s = journal, engine, patience_s
        self._known: dict[str, int] = {}  # by run: its events when it was looked at

    async def sweep(self, now: float | None = None) -> list[str]:
        """Look once; gives the runs of which the engine was told.

        Raises:
            JournalError: the journal cannot be read.
        """
        now = time.time() if now is None else now
        woken, known = [], dict[str, int]()
        for row in await rows_with_status(self._journal, (RUNNING, WAITING)):
            if self._known.get(row.run_id) == row.events:
                known[row.run_id] = row.events
            elif now - row.updated_at >= self._patience_s:
                known[row.run_id] = row.events
                outer = row.run_id if row.parent is None else row.run_id.partition(".")[0]
                if await self._is_due(row) and await wake_run(self._journal, outer, engine=self._engine):
                    woken.append(outer)
        self._known = known
        return woken

    async def _is_due(self, row: RunRow) -> bool:
        """Whether nobody is at work on a run that could go on."""
        if row.status == RUNNING:
            run_locks = locks_of(self._journal)
            return row.parent is None and (run_locks is None or await run_locks.holder(row.run_id) is None)
        last = await queries_of(self._journal).read(row.run_id, last=True, limit=1)
        return bool(last) and not isinstance(last[0].fact, Paused)
