"""Applies a retention to a journal again and again, beside other work, as a server does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from taoloop.journals.base import Journal
from taoloop.journals.retention import Retention
from taoloop.runtime.engine.clock import Clock, SystemClock

_LOG = logging.getLogger("taoloop")

INTERVAL_S = 3_600.0
"""How often retention is applied."""


class RetentionTask:
    """Prunes a journal by the retention that holds at the time. What it did, and what it could not do, is logged."""

    def __init__(self, journal: Journal, keep: Callable[[], Retention | None], *, clock: Clock | None = None) -> None:
        self._journal, self._keep, self._clock = journal, keep, clock or SystemClock()

    async def repeat(self, interval_s: float = INTERVAL_S) -> None:
        """Apply it now and after each interval, until cancelled."""
        while True:
            await self.apply()
            await asyncio.sleep(interval_s)

    async def apply(self) -> None:
        """Apply it once. Errors of the journal are logged: the next time it may work again."""
        keep = self._keep()
        if keep is None:
            return
        try:
            report = await self._journal.prune(keep, now=self._clock.now())
        except Exception as error:  # noqa: BLE001  # whatever it is: it must not end the other work of a server
            _LOG.warning("retention could not be applied: %r", error)
            return
        if report.pruned:
            first, last = report.pruned[0], report.pruned[-1]
            text = "retention removed %d runs (%s to %s) and kept a record of each: tao verify --all"
            _LOG.warning(text, len(report.pruned), first.run_id, last.run_id)
        for run_id in report.damaged:
            _LOG.warning(
                "run %s was changed after it was written, so retention keeps it: tao verify %s", run_id, run_id
            )
