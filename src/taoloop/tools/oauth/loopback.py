"""A login on this machine: the browser comes back to a server on 127.0.0.1 (RFC 8252, 7.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from html import escape
from urllib.parse import parse_qsl, urlsplit

from taoloop.tools.oauth.texts import TEXTS
from taoloop.tools.oauth.user_login import LOGIN_LIFETIME_S, UserLogin

CALLBACK_PATH = "/oauth/callback"
"""The path of the redirect."""

_REQUEST_TIMEOUT_S = 10.0
_MAX_LINE = 16_384


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

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _serve(reader, writer, redirects)

    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=_MAX_LINE)
    try:
        async with asyncio.timeout(LOGIN_LIFETIME_S):
            redirect_uri = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{CALLBACK_PATH}"
            started = await login.begin(user, redirect_uri)
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
    finally:
        server.close()


async def _serve(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    redirects: asyncio.Queue[tuple[Mapping[str, str], asyncio.Future[str]]],
) -> None:
    """Answer one request: a redirect with the page of its outcome, anything else with 404."""
    try:
        async with asyncio.timeout(_REQUEST_TIMEOUT_S):
            parts = (await reader.readline()).decode("ascii", "replace").split()
            while (await reader.readline()).strip():
                pass
        url = urlsplit(parts[1] if len(parts) > 1 and parts[0] == "GET" else "")
        if url.path != CALLBACK_PATH:
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        else:
            page: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            redirects.put_nowait((dict(parse_qsl(url.query)), page))
            writer.write(_response(await page))
        await writer.drain()
    except (OSError, ValueError, TimeoutError):
        pass  # a browser that left, or something that is no request: nothing was taken
    finally:
        writer.close()


def _response(text: str) -> bytes:
    body = f"<!doctype html><meta charset=utf-8><title>taoloop</title><p>{escape(text)}</p>".encode()
    head = (
        "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\nreferrer-policy: no-referrer\r\n"
        f"cache-control: no-store\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
