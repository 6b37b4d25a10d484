"""Logging in to an MCP server in a browser: the redirect comes back to a server on 127.0.0.1 (RFC 8252, 7.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from hmac import compare_digest
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from taoloop.errors import ConfigError, McpFailed
from taoloop.tools.mcp.settings import McpServer
from taoloop.tools.mcp.texts import TEXTS
from taoloop.tools.oauth.redirect_server import RedirectServer

if TYPE_CHECKING:
    from mcp.shared.auth import AuthorizationCodeResult

LOGIN_TIMEOUT_S = 600.0
"""How long a person has for a login, in seconds."""

_CALLBACK_PATH = "/callback"


class _Redirect:
    """The one redirect that a login waits for. Only its own `state` counts: others neither end nor feed the login."""

    def __init__(self) -> None:
        self._state = ""
        self._answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    def expect(self, url: str) -> None:
        """Take the redirect of the login at this address, which names its `state`."""
        self._state = parse_qs(urlsplit(url).query).get("state", [""])[0]

    async def result(self) -> AuthorizationCodeResult:
        """What the browser brought.

        Raises:
            McpFailed: the authorization server says that there is no access.
        """
        return await self._answer

    async def take(self, fields: Mapping[str, str]) -> str | None:
        """The text of the page for a redirect; None if it is not the one of this login."""
        from mcp.shared.auth import AuthorizationCodeResult  # noqa: PLC0415  # needs the SDK, which is optional

        is_ours = self._state and compare_digest(fields.get("state", "").encode(), self._state.encode())
        if not is_ours or not fields.keys() & {"code", "error"}:
            return None
        if not self._answer.done():
            if "error" in fields:
                reason = fields.get("error_description") or fields["error"]
                self._answer.set_exception(McpFailed(TEXTS.run_text("login_refused", reason=reason[:200])))
            else:
                self._answer.set_result(
                    AuthorizationCodeResult(code=fields["code"], state=fields.get("state"), iss=fields.get("iss"))
                )
        return TEXTS.run_text("login_page_done")


async def log_in(server: McpServer, show_url: Callable[[str], Awaitable[None]]) -> bool:
    """Log in to a server; its tokens are kept as its settings say. False: it asked for no login.

    `show_url` gets the address that the person is to open in a browser.

    Raises:
        ConfigError: its settings name no login of a person, or the tokens cannot be kept.
        McpFailed: the server is away, or gives no access.
        TimeoutError: the person did not log in within `LOGIN_TIMEOUT_S`.
    """
    if server.oauth is None or server.oauth.grant != "authorization_code":
        raise ConfigError(
            f"oauth: the MCP server {server.name!r} has no login of a person.",
            hint="Add `oauth: {}` to its settings; with the grant client_credentials nobody logs in.",
        )
    from taoloop.tools.mcp.connection import Connection  # noqa: PLC0415  # needs the SDK, which is optional
    from taoloop.tools.mcp.oauth import PersonProvider, StoredLogin  # noqa: PLC0415  # the same
    from taoloop.tools.mcp.token_store import token_store  # noqa: PLC0415  # the same

    login = StoredLogin(token_store(server))
    await login.forget()
    redirect = _Redirect()
    port = server.oauth.redirect_port
    async with (
        RedirectServer(_CALLBACK_PATH, redirect.take, port=port) as redirects,
        asyncio.timeout(LOGIN_TIMEOUT_S),
    ):

        async def send_to(url: str) -> None:
            redirect.expect(url)
            await show_url(url)

        auth = PersonProvider(server, login, redirect_uri=redirects.uri, redirect=send_to, callback=redirect.result)
        connection = Connection(replace(server, start_timeout_s=LOGIN_TIMEOUT_S), http_auth=auth)
        try:
            await connection.listing()
        finally:
            await connection.close()
    return "tokens" in login.record


async def log_out(server: McpServer) -> bool:
    """Forget the tokens of a server. True: their file could not be read, and was removed with all that was in it.

    Raises:
        ConfigError: its settings name no OAuth, or the tokens cannot be reached.
    """
    if server.oauth is None:
        raise ConfigError(f"oauth: the MCP server {server.name!r} has no login.")
    from taoloop.tools.mcp.token_store import token_store  # noqa: PLC0415  # the keyring is optional

    return await token_store(server).forget()
