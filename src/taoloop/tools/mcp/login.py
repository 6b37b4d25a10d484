"""Logging in to an MCP server in a browser: the redirect comes back to a server on 127.0.0.1 (RFC 8252, 7.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from hmac import compare_digest
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from taoloop.errors import ConfigError, McpFailed
from taoloop.tools.mcp.settings import McpServer
from taoloop.tools.mcp.texts import TEXTS

if TYPE_CHECKING:
    from mcp.shared.auth import AuthorizationCodeResult

LOGIN_TIMEOUT_S = 600.0
"""How long a person has for a login, in seconds."""

_MAX_LINE = 16_384
_PAGE = "<!doctype html><meta charset=utf-8><title>taoloop</title><p>{text}</p>"


class RedirectServer:
    """Takes the redirect of a login from a browser on 127.0.0.1; anything else is answered with 404.

    Any page or program of this machine can send a request here, so only the `state` of the login counts (RFC 6749,
    10.12): others neither end the login nor put a code of theirs into it.
    """

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self._state = ""
        self._answer: asyncio.Future[AuthorizationCodeResult] | None = None

    async def __aenter__(self) -> RedirectServer:
        self._answer = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=_MAX_LINE)
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._server.close()

    @property
    def uri(self) -> str:
        """The address that the browser is sent to."""
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/callback"

    def expect(self, url: str) -> None:
        """Take the redirect of the login at this address, which names its `state`."""
        self._state = parse_qs(urlsplit(url).query).get("state", [""])[0]

    async def result(self) -> AuthorizationCodeResult:
        """What the browser brought.

        Raises:
            McpFailed: the authorization server says that there is no access.
        """
        assert self._answer is not None  # noqa: S101  # it was entered
        return await self._answer

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10.0):
                line = await reader.readline()
                while (await reader.readline()).strip():
                    pass
            status, text = self._take(line.decode("ascii", "replace"))
            body = _PAGE.format(text=text).encode()
            writer.write(
                f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
                "referrer-policy: no-referrer\r\ncache-control: no-store\r\nconnection: close\r\n\r\n".encode()
            )
            writer.write(body)
            await writer.drain()
        except (OSError, ValueError, TimeoutError):
            pass  # a browser that left, or something that is no request: nothing was taken
        finally:
            writer.close()

    def _take(self, line: str) -> tuple[str, str]:
        """The status and the text of the page for a request line; keeps the first redirect."""
        from mcp.shared.auth import AuthorizationCodeResult  # noqa: PLC0415  # needs the SDK, which is optional

        parts = line.split()
        url = urlsplit(parts[1] if len(parts) > 1 and parts[0] == "GET" else "")
        fields = {name: values[0] for name, values in parse_qs(url.query).items()}
        is_redirect = url.path == "/callback" and fields.keys() & {"code", "error"}
        is_ours = self._state and compare_digest(fields.get("state", "").encode(), self._state.encode())
        if not is_redirect or not is_ours or self._answer is None:
            return "404 Not Found", TEXTS.run_text("login_page_unknown")
        if not self._answer.done():
            if "error" in fields:
                reason = fields.get("error_description") or fields["error"]
                self._answer.set_exception(McpFailed(TEXTS.run_text("login_refused", reason=reason[:200])))
            else:
                self._answer.set_result(
                    AuthorizationCodeResult(code=fields["code"], state=fields.get("state"), iss=fields.get("iss"))
                )
        return "200 OK", TEXTS.run_text("login_page_done")


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
    async with RedirectServer(server.oauth.redirect_port) as redirect, asyncio.timeout(LOGIN_TIMEOUT_S):

        async def send_to(url: str) -> None:
            redirect.expect(url)
            await show_url(url)

        auth = PersonProvider(server, login, redirect_uri=redirect.uri, redirect=send_to, callback=redirect.result)
        connection = Connection(replace(server, start_timeout_s=LOGIN_TIMEOUT_S), http_auth=auth)
        try:
            await connection.listing()
        finally:
            await connection.close()
    return "tokens" in login.record


async def log_out(server: McpServer) -> None:
    """Forget the tokens of a server.

    Raises:
        ConfigError: its settings name no OAuth, or the tokens cannot be reached.
    """
    if server.oauth is None:
        raise ConfigError(f"oauth: the MCP server {server.name!r} has no login.")
    from taoloop.tools.mcp.oauth import StoredLogin  # noqa: PLC0415  # needs the SDK, which is optional
    from taoloop.tools.mcp.token_store import token_store  # noqa: PLC0415  # the same

    await StoredLogin(token_store(server)).forget()
