"""HTTP to a provider on aiohttp: one POST, an answer of bounded size, or the events of a stream as they come.

The SDKs' own client (httpx2) costs some 1 ms of CPU per call and aiohttp a tenth of it (`benchmarks/model_call.py`),
so an SDK says what a request looks like (`models/http/sdk_request.py`) and this module sends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from taoloop.errors import MissingExtra, ModelError, ModelReplyUnreadable, ModelTimeout, ModelUnavailable
from taoloop.models.providers import shown_address

MAX_REPLY_BYTES = 16 * 1024 * 1024
"""What is read of one reply, and of one event of a stream. The longest replies of today's models have 1 MB."""

MAX_STREAM_BYTES = 16 * MAX_REPLY_BYTES
"""What is read of one stream: there every few characters travel in an envelope of some 250 bytes."""

CONNECT_TIMEOUT_S = 30.0
LAST_WORDS_S = 2.0
"""How long a stream whose reply is whole may be silent before it is left: its usage may still come."""

_MAX_CONNECTIONS = 1000
_DRAIN_S = 0.1  # how long the end of a finished stream is waited for, so that its connection can be used again
_MAX_HEADER_BYTES = 64 * 1024
_STREAM_BEGINS = (b"data:", b"event:", b":")  # some servers do not say in their headers that they stream


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget:
    """Where requests go, and how."""

    name: str
    """The spec of the model, for messages."""

    address: str
    """The address without secrets, for messages."""

    url: str
    """The address as it is called."""

    headers: Mapping[str, str]
    """The headers as they are sent, the key included."""

    proxy: str | None = None
    """The proxy's address."""

    tls: Callable[[], Any] | None = None
    """Makes the context in which certificates are checked; None for an address without TLS."""


class Reader(Protocol):
    """Takes a streamed reply piece by piece."""

    def feed(self, piece: bytes) -> bool:
        """Take a piece of the stream; True once nothing more will come."""
        ...

    @property
    def whole(self) -> bool:
        """Whether the reply has all of its parts."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """What came back."""

    status: int
    """The HTTP status."""

    body: bytes
    """The body; empty where it was streamed to a reader."""

    streamed: bool = False
    """Whether the body was an event stream that went to a reader."""

    headers: Mapping[str, str] = field(default_factory=dict)
    """The headers; their names are found in any case."""

    @property
    def ok(self) -> bool:
        """Whether the status says that this is a reply, and no refusal."""
        return 200 <= self.status < 300


class HttpTransport:
    """Sends requests to one target. Connections belong to an event loop, are kept for the next call, and end with it.

    A run in a loop of its own (`asyncio.run`) needs no `close`: when the loop shuts its async generators down, the
    connections go too.
    """

    def __init__(
        self, target: HttpTarget, *, last_words_s: float = LAST_WORDS_S, max_bytes: int = MAX_REPLY_BYTES
    ) -> None:
        self._target, self._last_words_s, self._max_bytes = target, last_words_s, max_bytes
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[Any, None]]] = (
            WeakKeyDictionary()
        )

    async def post(
        self,
        payload: bytes,
        *,
        timeout_s: float | None,
        headers: Mapping[str, str] | None = None,
        reader: Reader | None = None,
        url: str | None = None,
    ) -> HttpResponse:
        """Send `payload` and return the answer whatever its status. `headers` go over those of the target.

        `url` is another one of the same server.

        An event stream goes to the `reader`, if there is one. `timeout_s` bounds the whole exchange, connecting at most
        `CONNECT_TIMEOUT_S` of it.

        Raises:
            ModelTimeout: no whole answer in time.
            ModelUnavailable: no connection, or it broke off.
            ModelReplyUnreadable: the answer is larger than what is read.
        """
        return await self._exchange("POST", url, payload, timeout_s, headers, reader)

    async def get(self, url: str, *, timeout_s: float | None) -> HttpResponse:
        """What another URL of the same server has, whatever its status.

        Raises:
            ModelTimeout, ModelUnavailable, ModelReplyUnreadable: as `post`.
        """
        return await self._exchange("GET", url, None, timeout_s, None, None)

    async def _exchange(
        self,
        method: str,
        url: str | None,
        payload: bytes | None,
        timeout_s: float | None,
        headers: Mapping[str, str] | None,
        reader: Reader | None,
    ) -> HttpResponse:
        aiohttp = _aiohttp()
        name = self._target.name
        session = await self._session(aiohttp)
        limits = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_TIMEOUT_S)
        try:
            async with await self._send(
                aiohttp, session, (method, url or self._target.url), payload, headers, limits
            ) as response:
                return await self._read_response(response, reader)
        except aiohttp.ConnectionTimeoutError as error:
            raise self._unreachable(f"no connection within {CONNECT_TIMEOUT_S:g} s") from error
        except TimeoutError as error:
            deadline_text = f"within {timeout_s:g} s" if timeout_s is not None else "in time"
            raise ModelTimeout(f"{name} gave no whole reply {deadline_text}.") from error
        except aiohttp.ClientHttpProxyError as error:
            raise self._unreachable(f"it answered {error.status} {error.message}"[:200], error.status >= 500) from error
        except aiohttp.ClientResponseError as error:
            raise ModelReplyUnreadable(f"{name} does not speak HTTP: {error.message[:200]}.") from error
        except aiohttp.ClientConnectorError as error:
            raise self._unreachable(_reason(error)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise ModelUnavailable(f"{name} broke off before its reply was whole: {_reason(error)}.") from error

    async def close(self) -> None:
        """Close the connections of the running loop."""
        entry = self._sessions.pop(asyncio.get_running_loop(), None)
        if entry is not None:
            await entry[1].aclose()

    async def _session(self, aiohttp: Any) -> Any:
        loop = asyncio.get_running_loop()
        entry = self._sessions.get(loop)
        if entry is None:
            generator = self._keep_session(aiohttp, loop)
            entry = self._sessions[loop] = (await anext(generator), generator)
        return entry[0]

    async def _keep_session(self, aiohttp: Any, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[Any, None]:
        """The session of a loop, closed when it is no longer needed or the loop shuts its generators down."""
        try:
            tls = self._target.tls() if self._target.tls is not None else True
        except (OSError, ValueError) as error:
            raise ModelError(
                f"{self._target.name} cannot be called: the trusted certificates cannot be read ({_reason(error)}).",
                hint="Correct SSL_CERT_FILE and SSL_CERT_DIR, or unset them.",
            ) from error
        connector = aiohttp.TCPConnector(limit=_MAX_CONNECTIONS, ssl=tls)
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
        )
        try:
            yield session
        finally:
            self._sessions.pop(loop, None)
            await session.close()

    async def _send(
        self,
        aiohttp: Any,
        session: Any,
        line: tuple[str, str],
        payload: bytes | None,
        headers: Mapping[str, str] | None,
        limits: Any,
    ) -> Any:
        target = self._target
        try:
            return await session.request(
                *line,
                data=payload,
                headers={**target.headers, **headers} if headers else target.headers,
                timeout=limits,
                allow_redirects=False,  # a key goes nowhere but where it was sent
                proxy=target.proxy,
            )
        except aiohttp.ClientConnectorCertificateError as error:  # a ValueError too, as TLS errors of Python are
            raise ModelUnavailable(
                f"{target.name} cannot be trusted at {target.address}: {_reason(error.certificate_error)}.",
                hint="Where the certificate is one of your own, name its file in SSL_CERT_FILE.",
                retryable=False,
            ) from error
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, ValueError) as error:
            raise ModelError(
                f"{target.name} cannot be called: {target.address} is no usable address.",
                hint="Write it like https://HOST/v1, without a user or a key in it.",
            ) from error

    async def _read_response(self, response: Any, reader: Reader | None) -> HttpResponse:
        status, headers, length = response.status, response.headers, response.content_length
        pieces = response.content.iter_any()
        first = await anext(pieces, b"")
        if reader is not None and 200 <= status < 300 and (_is_stream(headers) or first.startswith(_STREAM_BEGINS)):
            await self._stream(first, response, reader)
            return HttpResponse(status=status, body=b"", headers=headers, streamed=True)
        if length is not None and length > self._max_bytes:
            raise too_large(self._target.name, self._max_bytes)
        chunks, size = [first], len(first)
        async for piece in pieces:
            size += len(piece)
            if size > self._max_bytes:
                raise too_large(self._target.name, self._max_bytes)
            chunks.append(piece)
        return HttpResponse(status=status, body=chunks[0] if len(chunks) == 1 else b"".join(chunks), headers=headers)

    async def _stream(self, first: bytes, response: Any, reader: Reader) -> None:
        content, size, piece = response.content, 0, first
        try:
            async with asyncio.timeout(None) as last_words:
                while piece:
                    size += len(piece)
                    if reader.feed(piece):
                        break
                    if size > MAX_STREAM_BYTES:
                        raise too_large(self._target.name)
                    if reader.whole:
                        last_words.reschedule(asyncio.get_running_loop().time() + self._last_words_s)
                    piece = await content.readany()
        except TimeoutError:
            if not last_words.expired():
                raise
            return
        if piece and not content.at_eof():
            with contextlib.suppress(TimeoutError, OSError, _aiohttp().ClientError):
                async with asyncio.timeout(_DRAIN_S):  # the reply is whole; this is only for its connection
                    await content.readany()

    def _unreachable(self, reason: str, retryable: bool = True) -> ModelUnavailable:
        target = self._target
        address, hint = target.address, "Check the address and the network."
        if target.proxy:
            address = f"{target.address} through the proxy {shown_address(target.proxy)}"
            hint = "Check the address, the proxy and the network."
        return ModelUnavailable(
            f"{target.name} cannot be reached at {address}: {reason}.", hint=hint, retryable=retryable
        )


def too_large(name: str, max_bytes: int = MAX_REPLY_BYTES) -> ModelReplyUnreadable:
    """The error for a reply of the model `name` that is larger than what is read."""
    return ModelReplyUnreadable(
        f"{name} sent more than {max_bytes // 1024**2} MiB; the rest was not read.",
        hint="Bound the reply with max_output_tokens, or check the address.",
        retryable=False,
    )


def _aiohttp() -> Any:
    try:
        import aiohttp  # noqa: PLC0415  # optional, and only needed for a call
    except ImportError as error:
        raise MissingExtra(
            "aiohttp, which carries the calls to providers, is not installed: "
            "pip install 'taoloop[openai]' or 'taoloop[anthropic]'."
        ) from error
    return aiohttp


def _is_stream(headers: Mapping[str, str]) -> bool:
    return headers.get("content-type", "").lower().startswith("text/event-stream")


def _reason(error: BaseException) -> str:
    """What a connection failed of, in a few words on one line."""
    cause = getattr(error, "os_error", None) or error
    code: int = getattr(cause, "errno", None) or 0
    known = os.strerror(code) if code in errno.errorcode else getattr(cause, "strerror", None)
    detail = getattr(cause, "verify_message", None) or known or cause  # asyncio says "Connect call failed (…)"
    return " ".join(str(detail).split()).rstrip(".")[:200] or type(cause).__name__
