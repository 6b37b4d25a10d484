"""What all requests to a panel share."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from taoloop.errors import JournalError, TaoError
from taoloop.journals.base import Journal
from taoloop.journals.queries import prepare_search
from taoloop.runtime.agent import Agent
from taoloop.runtime.approvals.inbox_items import Inbox
from taoloop.runtime.engine.clock import Clock, SystemClock, random_hex
from taoloop.serve.hosts import AllowedHosts
from taoloop.serve.panel.access import PanelAccess, Sessions
from taoloop.serve.panel.background_runs import AgentSource, BackgroundRuns
from taoloop.serve.panel.evaluation_reading import KnownEvaluations
from taoloop.serve.panel.live import Broadcaster
from taoloop.serve.panel.run_reading import KnownStates, KnownViews

_LOG = logging.getLogger("taoloop.panel")


class HostCheck(Protocol):
    """Knows the names under which the panel is called."""

    def accepts(self, host: str | None) -> bool:
        """Whether a request with this header `Host` is served; None: it has none."""
        ...


@dataclass(kw_only=True)
class PanelState:
    """The journal, the people and the settings of a panel."""

    journal: Journal
    """Where the runs are; it must answer queries (`taoloop.journals.JournalQueries`)."""

    access: PanelAccess
    """Who may see the panel."""

    agents: AgentSource | None = None
    """Makes the agent that continues a run; None: runs are continued elsewhere, and the pages say how."""

    shares_agents: bool = False
    """Whether others use what `agents` returns, too, as in the gateway; else it is closed after use."""

    resumes_itself: bool = False
    """Whether another part of the process resumes runs that were answered, as the gateway does."""

    prefix: str = ""
    """The path under which the panel is mounted, such as `/panel`."""

    hosts: HostCheck = field(default_factory=AllowedHosts)
    """The names under which it is called."""

    clock: Clock = field(default_factory=SystemClock)
    """For times, and the age of sessions."""

    is_secure: bool = False
    """Whether browsers reach it by HTTPS alone, so that cookies need it."""

    navigation: tuple[tuple[str, str], ...] = ()
    """The pages in the navigation: the path of each, and its name."""

    session_name: str = field(default_factory=lambda: f"taoloop_session_{random_hex(4)}")
    """The name of the cookie, another one for each panel: ports do not separate the cookies of two."""

    background: BackgroundRuns = field(default_factory=BackgroundRuns)
    """The runs that this process drives."""

    def __post_init__(self) -> None:
        """Open what depends on the settings."""
        self.sessions = Sessions(self.access, self.clock)
        """The open sessions."""
        self.broadcaster = Broadcaster(self.journal)
        """Tells open pages what is new."""
        self.views = KnownViews(self.journal)
        """Views of the runs that people look at."""
        self.states = KnownStates(self.journal)
        """The runs whose steps people go through, as they were at a step."""
        self.evaluations = KnownEvaluations(self.journal)
        """The results of evaluations."""
        self.inbox = Inbox(self.journal)
        """What waits for a person."""
        self._preparing: asyncio.Task[None] | None = None
        self.inbox_count = 0
        """How much waits, as it was last counted."""

    async def release(self, agent: Agent) -> None:
        """Give back an agent that `agents` returned."""
        if not self.shares_agents:
            await agent.close()

    def prepare_search(self) -> None:
        """Bring the index of the search up to date in the background, once, so that the first search need not wait."""
        if self._preparing is None:
            self._preparing = asyncio.get_running_loop().create_task(self._prepare_search())

    async def _prepare_search(self) -> None:
        try:
            await prepare_search(self.journal)
        except (TaoError, OSError) as error:  # the search itself says it to whoever searches
            _LOG.info("the index of the search could not be prepared: %s", error)

    async def close(self) -> None:
        """Stop what goes on in the background."""
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.wait((self._preparing,))
        await self.background.close()

    async def count_inbox(self) -> None:
        """Count what waits for a person, for the navigation of the next page; the last count stays if that fails."""
        with suppress(JournalError, OSError):
            self.inbox_count = (await self.inbox.count(now=self.clock.now())).total()
