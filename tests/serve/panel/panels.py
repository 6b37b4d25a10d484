"""Panels for tests: in the loop of the test with a client, or in a thread of its own for a browser."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient, TestServer
from tests.serve.gateway.conftest import in_thread

from taoloop.journals.base import Journal
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.serve.panel.access import Identity, TokenAccess
from taoloop.serve.panel.app import Panel
from taoloop.serve.panel.background_runs import AgentSource, BackgroundRuns
from taoloop.serve.panel.server import PanelServer
from taoloop.serve.panel.state import PanelState

PEOPLE = (
    Identity(name="ada", role="admin"),
    Identity(name="ann", role="approver"),
    Identity(name="bob", role="viewer"),
)
"""Who may log in to the panels of the tests."""

DIRECT = {"Sec-Fetch-Site": "none"}
"""What a browser sends for an address that a person opened, as from a terminal."""


class Browser:
    """A client with the cookies of one person."""

    def __init__(self, client: TestClient[Any, Any], panel: Panel) -> None:
        self._client, self.panel = client, panel
        self.csrf = ""

    async def log_in(self, name: str) -> None:
        """Follow the link of a person."""
        assert isinstance(self.panel.state.access, TokenAccess)
        path = f"/login?token={self.panel.state.access.tokens[name]}"
        response = await self.request("GET", path, headers=DIRECT)
        assert response.status == 200, await response.text()
        match = re.search(r'name="csrf" value="([^"]+)"', await response.text())
        assert match is not None
        self.csrf = match[1]

    async def request(self, method: str, path: str, **options: Any) -> ClientResponse:
        """Any request."""
        return await self._client.request(method, f"{self.panel.state.prefix}{path}", **options)

    async def get(self, path: str, status: int = 200, *, is_fragment: bool = False) -> str:
        """The text of a page; for htmx that of a part of it."""
        headers = {"HX-Request": "true"} if is_fragment else {}
        response = await self.request("GET", path, headers=headers)
        text = await response.text()
        assert response.status == status, text
        return text

    async def post(self, path: str, status: int = 200, /, **fields: Any) -> str:
        """Send a form with the token of the session; the text of the page after it."""
        response = await self.request("POST", path, data={"csrf": self.csrf, **fields})
        text = await response.text()
        assert response.status == status, text
        return text


@asynccontextmanager
async def browser_of(
    journal: Journal, person: str = "ada", *, agents: AgentSource | None = None, prefix: str = ""
) -> AsyncIterator[Browser]:
    """A panel over a journal, and the browser of a person who is logged in; nobody is if `person` is empty."""
    state = PanelState(journal=journal, access=TokenAccess(PEOPLE), agents=agents, prefix=prefix)
    panel = Panel(state)
    async with TestClient(TestServer(panel.app)) as client:
        browser = Browser(client, panel)
        if person:
            await browser.log_in(person)
        yield browser


def browse(
    journal: Journal, scenario: Callable[[Browser], Awaitable[Any]], person: str = "ada", **options: Any
) -> None:
    """Run a scenario with the browser of a person."""

    async def main() -> None:
        async with browser_of(journal, person, **options) as browser:
            await scenario(browser)

    asyncio.run(main())


async def ended_in_background(background: BackgroundRuns, name: str) -> None:
    """Wait until a panel no longer drives what is under this name."""
    while background.drives(name):  # noqa: ASYNC110  # nothing tells, and nothing else happens meanwhile
        await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class ServedPanel:
    """A panel that a real browser can open."""

    url: str
    """Its address."""
    path: Path
    """Its database."""
    panel: Panel
    """The application, in another thread."""

    def login_url(self, name: str, target: str = "/runs") -> str:
        """The link of a person to a page."""
        assert isinstance(self.panel.state.access, TokenAccess)
        return f"{self.url}/login?token={self.panel.state.access.tokens[name]}&next={target}"


@contextmanager
def served_panel(path: Path, *, agents: AgentSource | None = None) -> Iterator[ServedPanel]:
    """A panel over the database at `path`, in a thread with a loop of its own."""

    async def main(stop: asyncio.Event, tell: Callable[[Any], None]) -> None:
        async with SqliteJournal(path) as journal:
            panel = Panel(PanelState(journal=journal, access=TokenAccess(PEOPLE), agents=agents))
            server = PanelServer(panel, "127.0.0.1", 0)
            serving = asyncio.ensure_future(server.serve(lambda url: tell(ServedPanel(url, path, panel))))
            await stop.wait()
            server.stop.set()
            await serving

    served, stop = in_thread(main)
    try:
        yield served
    finally:
        stop()
