"""What is new in the journal, for pages that are open: one look for all of them.

One task follows the journal (`JournalQueries.tail`) while at least one page listens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

from taoloop.errors import TaoError
from taoloop.journals.base import Journal
from taoloop.journals.queries import queries_of

_LOG = logging.getLogger("taoloop.panel")

LOOK_S: Final = 0.02
"""How often to look for new events, so that they are on screen within a tenth of a second."""

RETRY_S: Final = 1.0
"""How long to wait before a journal that could not be read is asked again."""


class Listener:
    """An open page, and the runs that have grown since it was last told."""

    def __init__(self, run_id: str | None) -> None:
        self._run_id = run_id
        self._runs: dict[str, int] = {}
        self.changed = asyncio.Event()

    def add(self, runs: Mapping[str, int]) -> None:
        """Some runs have grown."""
        selected = runs if self._run_id is None else {name: seq for name, seq in runs.items() if name == self._run_id}
        if selected:
            self._runs |= selected
            self.changed.set()

    async def next(self, timeout_s: float) -> dict[str, int]:
        """The runs that have grown, with the seq of their last event; empty after `timeout_s` without any."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.changed.wait()
        self.changed.clear()
        runs, self._runs = self._runs, {}
        return runs


class Broadcaster:
    """Tells open pages what has grown in a journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._listeners: set[Listener] = set()
        self._following: asyncio.Task[None] | None = None
        self._has_begun = asyncio.Event()
        self.is_away = False
        """Whether the journal could not be read when it was last looked at."""
        self.returns = 0
        """How often it could be read again after that, or was replaced by another one."""

    @asynccontextmanager
    async def listen(self, run_id: str | None = None) -> AsyncIterator[Listener]:
        """A listener for everything that is added from now on, or only to this run."""
        listener = Listener(run_id)
        self._listeners.add(listener)
        if self._following is None:
            self._has_begun.clear()
            self._following = asyncio.get_running_loop().create_task(self._follow())
        try:
            await self._has_begun.wait()
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners and self._following is not None:
                self._following.cancel()
                self._following = None

    async def _follow(self) -> None:
        position: str | None = None
        while True:
            try:
                if position is None:
                    position = await queries_of(self._journal).position()
                self._set_away(away=False)
                async for growth in queries_of(self._journal).tail(position, interval_s=LOOK_S):
                    position = growth.position
                    for listener in self._listeners:
                        listener.add(growth.runs)
                    if not growth.runs:
                        self._return()
            except (TaoError, OSError) as error:
                if not self.is_away:
                    _LOG.warning("the runs cannot be read: %s", error)
                self._set_away(away=True)
                await asyncio.sleep(RETRY_S)

    def _set_away(self, *, away: bool) -> None:
        self._has_begun.set()
        if away and not self.is_away:
            self.is_away = True
            self._wake()
        elif self.is_away and not away:
            self.is_away = False
            self._return()

    def _return(self) -> None:
        self.returns += 1
        self._wake()

    def _wake(self) -> None:
        for listener in self._listeners:
            listener.changed.set()
