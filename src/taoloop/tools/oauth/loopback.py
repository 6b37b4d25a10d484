"""A login on this machine: the browser comes back to a server on 127.0.0.1 (RFC 8252, 7.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from taoloop.tools.oauth.redirect_server import RedirectServer
from taoloop.tools.oauth.texts import TEXTS
from taoloop.tools.oauth.user_login import LOGIN_LIFETIME_S, UserLogin

CALLBACK_PATH = "/oauth/callback"
"""The path of the redirect."""


async def log_in(login: UserLogin, user: str, show_url: Callable[[str], Awaitable[None]], *, port: int = 0) -> None:
    """Log a person in with a browser on this machine.

    Args:
        login: Where.
        user: Whose tokens they are; empty: those of whoever uses this machine.
        show_url: Gets the address that the person is to open.
        port: The port of the redirect, for servers that compare the whole address; 0: a free one.

    Raises:
        ToolError: `login_failed`: there is no access.
        TimeoutError: nobody logged in within `LOGIN_LIFETIME_S`.
        OSError: the port is not free.
    """
    redirects: asyncio.Queue[tuple[Mapping[str, str], asyncio.Future[str]]] = asyncio.Queue()

    async def take(fields: Mapping[str, str]) -> str:
        page: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        redirects.put_nowait((fields, page))
        return await page

    async with RedirectServer(CALLBACK_PATH, take, port=port) as server, asyncio.timeout(LOGIN_LIFETIME_S):
        started = await login.begin(user, server.uri)
        await show_url(started.url)
        while True:
            fields, page = await redirects.get()
            if not await login.has_begun(fields.get("state", "")):  # any page can send a browser here
                page.set_result(TEXTS.run_text("page_failed", reason=TEXTS.run_text("state_unknown")))
                continue
            try:
                await login.finish(fields, started.browser)
            except Exception as error:
                page.set_result(TEXTS.run_text("page_failed", reason=str(error)))
                raise
            page.set_result(TEXTS.run_text("page_done", api=login.client.api))
            return
