"""HTTP to a provider on aiohttp: one POST, an answer of bounded size, or the events of a stream as they come.

The SDKs' own client (httpx2) costs some 1 ms of CPU per call and aiohttp a tenth of it (`benchmarks/model_call.py`),
so an SDK says what a request looks like (`models/prepared.py`) and this module sends it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from taoloop.errors import MissingExtra, ModelError, ModelReplyUnreadable, ModelTimeout, ModelUnavailable

MAX_REPLY_BYTES = 16 * 1024 * 1024
"""What is read of one reply, and of one event of a stream. The longest replies of today's models have 1 MB."""

MAX_STREAM_BYTES = 16 * MAX_REPLY_BYTES
"""What is read of one stream: there every few characters travel in an envelope of some 250 bytes."""

CONNECT_TIMEOUT_S = 30.0
_MAX_CONNECTIONS = 1000
_DRAIN_S = 0.1  # how long the end of a finished stream is waited for, so that its connection can be used again


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where requests go: `name` and `address` for messages (no secrets), `url` and `headers` as they are sent.

    `proxy` is the proxy's address or None, `tls` makes the context in which certificates are checked.
    """

    name: str
    address: str
    url: str
    headers: Mapping[str, str]
    proxy: str | None = None
    tls: Callable[[], Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back; `body` is empty where a stream was `streamed` to its reader; `headers` take any case."""

    status: int
    body: bytes
    streamed: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


class Wire:
    """Sends requests to one target. Connections belong to an event loop, are kept for the next call, and end with it.

    A run in a loop of its own (`asyncio.run`) needs no `close`: when the loop shuts its async generators down, the
    connections go too.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[Any, None]]] = (
            WeakKeyDictionary()
        )

    async def post(
        self,
        payload: bytes,
        *,
        timeout_s: float | None,
        headers: Mapping[str, str] | None = None,
        on_piece: Callable[[bytes], bool] | None = None,
    ) -> Answer:
        """Send `payload` and return the answer whatever its status. `headers` go over those of the target.

        With `on_piece`, an event stream of status 200 is given to it piece by piece; it returns True once the reply is
        whole. `timeout_s` bounds the whole exchange, connecting at most `CONNECT_TIMEOUT_S` of it.

        Raises:
            ModelTimeout: no whole answer in time.
            ModelUnavailable: no connection, or it broke off.
            ModelReplyUnreadable: the answer is larger than what is read.
        """
        aiohttp = _aiohttp()
        name = self._target.name
        session = await self._session(aiohttp)
        limits = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_TIMEOUT_S)
        try:
            async with await self._send(aiohttp, session, payload, headers, limits) as response:
                return await self._read(response, on_piece)
        except aiohttp.ConnectionTimeoutError as error:
            raise self._unreachable(f"no connection within {CONNECT_TIMEOUT_S:g} s") from error
        except TimeoutError as error:
            within = f"within {timeout_s:g} s" if timeout_s is not None else "in time"
            raise ModelTimeout(f"{name} gave no whole reply {within}.") from error
        except aiohttp.ClientResponseError as error:
            raise ModelReplyUnreadable(f"{name} does not speak HTTP: {error.message[:200]}.") from error
        except aiohttp.ClientConnectorError as error:
            raise self._unreachable(_reason(error)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise ModelUnavailable(f"{name} broke off before its reply was whole: {_reason(error)}.") from error

    async def close(self) -> None:
        """Close the connections of the running loop."""
        held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await held[1].aclose()

    async def _session(self, aiohttp: Any) -> Any:
        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is None:
            generator = self._hold(aiohttp, loop)
            held = self._held[loop] = (await anext(generator), generator)
        return held[0]

    async def _hold(self, aiohttp: Any, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[Any, None]:
        """The session of a loop, closed when it is no longer needed or the loop shuts its generators down."""
        try:
            tls = self._target.tls() if self._target.tls is not None else True
        except (OSError, ValueError) as error:
            raise ModelError(
                f"{self._target.name} cannot be called: the trusted certificates cannot be read ({_reason(error)}).",
                hint="Correct SSL_CERT_FILE and SSL_CERT_DIR, or unset them.",
            ) from error
        connector = aiohttp.TCPConnector(limit=_MAX_CONNECTIONS, ssl=tls)
        session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        try:
            yield session
        finally:
            self._held.pop(loop, None)
            await session.close()

    async def _send(
        self, aiohttp: Any, session: Any, payload: bytes, headers: Mapping[str, str] | None, limits: Any
    ) -> Any:
        target = self._target
        try:
            return await session.post(
                target.url,
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

    async def _read(self, response: Any, on_piece: Callable[[bytes], bool] | None) -> Answer:
        headers = response.headers
        streamed = (
            on_piece is not None
            and response.status == 200
            and headers.get("content-type", "").lower().startswith("text/event-stream")
        )
        if streamed and on_piece is not None:
            await self._stream(response, on_piece)
            return Answer(status=200, body=b"", streamed=True, headers=headers)
        length = response.content_length
        if length is not None and length > MAX_REPLY_BYTES:
            raise self._too_large()
        pieces, size = [], 0
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > MAX_REPLY_BYTES:
                raise self._too_large()
            pieces.append(piece)
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return Answer(status=response.status, body=body, headers=headers)

    async def _stream(self, response: Any, on_piece: Callable[[bytes], bool]) -> None:
        size = 0
        async for piece in response.content.iter_any():
            size += len(piece)
            if on_piece(piece):
                break
            if size > MAX_STREAM_BYTES:
                raise self._too_large()
        else:
            return
        if not response.content.at_eof():
            with contextlib.suppress(TimeoutError, OSError, _aiohttp().ClientError):
                async with asyncio.timeout(_DRAIN_S):  # the reply is whole; this is only for its connection
                    await response.content.readany()

    def _too_large(self) -> ModelReplyUnreadable:
        name, limit = self._target.name, MAX_REPLY_BYTES // 1024**2
        return ModelReplyUnreadable(
            f"{name} sent more than {limit} MiB; the rest was not read.",
            hint="Bound the reply with max_output_tokens, or check the address.",
            retryable=False,
        )

    def _unreachable(self, reason: str) -> ModelUnavailable:
        return ModelUnavailable(
            f"{self._target.name} cannot be reached at {self._target.address}: {reason}.",
            hint="Check the address and the network.",
        )


def _aiohttp() -> Any:
    try:
        import aiohttp  # noqa: PLC0415  # optional, and only needed for a call
    except ImportError as error:
        raise MissingExtra(
            "aiohttp is not installed, which carries the calls to providers.",
            hint="Install the extra: pip install 'taoloop[openai]' or 'taoloop[anthropic]'.",
        ) from error
    return aiohttp


def _reason(error: BaseException) -> str:
    """What a connection failed of, in a few words."""
    cause = getattr(error, "os_error", None) or error
    said = getattr(cause, "verify_message", None) or getattr(cause, "strerror", None) or cause
    return str(said or type(error).__name__).rstrip(".")[:200]
