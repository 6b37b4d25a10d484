"""The server on 127.0.0.1 to which a browser comes back from a login (RFC 8252, 7.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from html import escape
from urllib.parse import parse_qsl, urlsplit

_REQUEST_TIMEOUT_S = 10.0
_MAX_LINE = 16_384

TakeRedirect = Callable[[Mapping[str, str]], Awaitable[str | None]]
"""Takes the fields of a redirect; gives the text of the page that the browser shows, or None for a 404."""


class RedirectServer:
    """Hands redirects of browsers to `take`, while it is entered; anything else is answered with 404.

    Any page or program of this machine can send a request here, so `take` must look at the `state` of the redirect
    (RFC 6749, 10.12).

    Args:
        path: The path of the redirect, such as `/callback`.
        take: What takes it.
        port: The port, for authorization servers that compare the whole address; 0: a free one.

    Raises:
        OSError: at entering, the port is not free.
    """

    def __init__(self, path: str, take: TakeRedirect, *, port: int = 0) -> None:
        self._path, self._take, self._port = path, take, port

    async def __aenter__(self) -> RedirectServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=_MAX_LINE)
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._server.close()

    @property
    def uri(self) -> str:
        """The address that the browser is sent to."""
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{self._path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                parts = (await reader.readline()).decode("ascii", "replace").split()
                while (await reader.readline()).strip():
                    pass
            url = urlsplit(parts[1] if len(parts) > 1 and parts[0] == "GET" else "")
            text = await self._take(dict(parse_qsl(url.query))) if url.path == self._path else None
            writer.write(_response(text))
            await writer.drain()
        except (OSError, ValueError, TimeoutError):
            pass  # a browser that left, or something that is no request: nothing was taken
        finally:
            writer.close()


def _response(text: str | None) -> bytes:
    if text is None:
        return b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    body = f"<!doctype html><meta charset=utf-8><title>taoloop</title><p>{escape(text)}</p>".encode()
    head = (
        "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\nreferrer-policy: no-referrer\r\n"
        f"cache-control: no-store\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
