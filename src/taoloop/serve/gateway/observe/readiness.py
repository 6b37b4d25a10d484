"""What `/readyz` says: whether the server takes requests, which it does not while it drains or cannot store runs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Literal

from taoloop.errors import JournalError
from taoloop.journals.base import Journal

_LOG = logging.getLogger("taoloop.gateway")

ServerState = Literal["starting", "ready", "draining"]
"""starting: it does not listen yet. draining: it is told to end, and lets active runs finish."""

_FRESH_S = 1.0
"""For how long a result is used again, so that probes do not keep the disk busy."""


class StorageProbe:
    """Tests whether the journal can be written now. A journal that has no `check_storage` always can.

    Args:
        journal: The journal.
        tick: A clock that never goes back, in seconds.
    """

    def __init__(self, journal: Journal, *, tick: Callable[[], float] = time.monotonic) -> None:
        self._check: Callable[[], Awaitable[None]] | None = getattr(journal, "check_storage", None)
        self._tick, self._tested_at = tick, float("-inf")
        self._problem = ""
        self._lock = asyncio.Lock()

    async def works(self) -> bool:
        """Whether it can be written. The log says once why it cannot, and once that it can again."""
        if self._check is None:
            return True
        async with self._lock:
            if self._tick() - self._tested_at < _FRESH_S:
                return not self._problem
            try:
                await self._check()
                problem = ""
            except JournalError as error:
                problem = str(error)
            if problem and not self._problem:
                _LOG.warning("the journal cannot be written, so /readyz is 503: %s", problem)
            elif self._problem and not problem:
                _LOG.warning("the journal can be written again")
            self._problem, self._tested_at = problem, self._tick()
            return not problem
