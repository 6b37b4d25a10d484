"""Input and output of one HTTP request: its body within bounds, and a stream of events as the answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from taoloop.serve.gateway.errors import ApiError, ApiErrorRaised
from taoloop.serve.gateway.schema.chat import HEARTBEAT

if TYPE_CHECKING:
    from taoloop.serve.gateway.config.model import ServerLimits

_CHUNK_BYTES = 64 * 1024
_LOG = logging.getLogger("taoloop.gateway")

WRITE_TIMEOUT_S = 30.0
"""How long a client may leave a piece of its stream unread before it counts as disconnected."""


FINAL_WRITE_TIMEOUT_S = 1.0
"""The same during shutdown."""


async def read_body(request: web.Request, limits: ServerLimits) -> bytes:
    """The whole body, within its bounds.

    Raises:
        ApiErrorRaised: it is too large, comes too slowly, or cannot be decoded.
    """
    max_bytes = limits.max_body_bytes
    if (request.content_length or 0) > max_bytes:
        raise _too_large(max_bytes)
    body = bytearray()
    try:
        if request.content.is_eof():  # all of it has arrived, as nearly always: nothing to wait for
            whole = request.content.read_nowait()
            if len(whole) > max_bytes:
                raise _too_large(max_bytes)
            return whole
        async with asyncio.timeout(limits.body_timeout_s):
            async for chunk in request.content.iter_chunked(_CHUNK_BYTES):
                body += chunk
                if len(body) > max_bytes:
                    raise _too_large(max_bytes)
    except TimeoutError:
        message = f"The body did not arrive within {limits.body_timeout_s:g} s."
        raise ApiErrorRaised(ApiError(status=408, message=message, code="request_timeout")) from None
    except (HttpProcessingError, web.RequestPayloadError, web.PayloadAccessError) as error:
        _LOG.debug("a body cannot be read: %s", error)
        message = "The body cannot be decoded: it is not in the transfer or content encoding that its headers name."
        raise ApiErrorRaised(ApiError(status=400, message=message, code="invalid_body")) from None
    return bytes(body)


def _too_large(max_bytes: int) -> ApiErrorRaised:
    message = f"The body is larger than {max_bytes:,} bytes, which is the limit."
    return ApiErrorRaised(ApiError(status=413, message=message, code="request_too_large"))


class EventStream:
    """The answer to one request as server-sent events. Nothing is sent before there is something to send.

    So an error before that has a status of its own; after that an error is an event.
    """

    def __init__(
        self, request: web.Request, heartbeat_s: float, headers: dict[str, str], *, write_s: float = WRITE_TIMEOUT_S
    ) -> None:
        self._request, self._heartbeat_s, self._write_s = request, heartbeat_s, write_s
        self.response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-cache",
                "X-Accel-Buffering": "no",
                **headers,
            }
        )

    @property
    def has_begun(self) -> bool:
        """Whether the status has been sent."""
        return self.response.prepared

    async def send(self, data: bytes) -> None:
        """Send some events.

        Raises:
            ConnectionError: the client has left, or no longer reads.
        """
        if not data:
            return
        try:
            async with asyncio.timeout(self._write_s):
                if not self.response.prepared:
                    await self.response.prepare(self._request)
                await self.response.write(data)
        except TimeoutError:
            raise ConnectionResetError("the client reads nothing") from None

    async def end(self, data: bytes) -> None:
        """Send the last events in a hurry; a client that does not read them is ignored."""
        self._write_s = min(self._write_s, FINAL_WRITE_TIMEOUT_S)
        with suppress(ConnectionError):
            await self.send(data)
            await self.response.write_eof()

    async def follow(self, queue: asyncio.Queue[bytes], work: asyncio.Task[object]) -> None:
        """Send what comes into the queue until the work is done, and a heartbeat comment in longer pauses."""
        while True:
            getting = asyncio.ensure_future(queue.get())
            try:
                done, _ = await asyncio.wait(
                    (getting, work), timeout=self._heartbeat_s, return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                if not getting.done():
                    getting.cancel()
            if getting in done:
                data = getting.result()
                while not queue.empty():
                    data += queue.get_nowait()
                await self.send(data)
            elif work in done:
                return
            else:
                await self.send(HEARTBEAT)


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
