"""The transport under the egress rules: it connects to the very addresses that were judged.

Imported at the first request; it needs httpx2.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from functools import lru_cache
from typing import Any

import httpcore2
import httpx2

from taoloop.errors import EgressFailed, EgressRefused
from taoloop.tools.egress.addresses import Resolver
from taoloop.tools.egress.decompression import decompress, require_known_coding
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.egress.urls import media_type, no_user, port_of, reason_of, require_sendable

CONNECT_TIMEOUT_S = 10.0
"""For one address of a host; the next one is tried then."""


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to addresses that were judged. The pool above it keeps the name for Host, SNI and certificate."""

    def __init__(self, rules: EgressRules, resolver: Resolver) -> None:
        self._rules, self._resolver, self._inner = rules, resolver, httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the method's signature is the library's
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve once, judge every address, connect to the first of them that answers."""
        try:
            async with asyncio.timeout(timeout):
                found = await self._resolver(host, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"the host {host} was not found in time") from error
        except (OSError, UnicodeError) as error:
            raise EgressFailed(
                f"The host {host} was not found: {reason_of(error)}.",
                code="name_not_found",
                retryable=True,
                hint="Check the name; try again later if it is right.",
                was_sent=False,
            ) from error
        *others, last = self._rules.judge_addresses(host, port, found)
        within_s = CONNECT_TIMEOUT_S if timeout is None else min(timeout, CONNECT_TIMEOUT_S)
        for address in others:
            try:
                return await self._inner.connect_tcp(address, port, within_s, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue  # the next address may answer; the last one's error is told
        return await self._inner.connect_tcp(last, port, within_s, local_address, socket_options)

    async def connect_unix_socket(
        self,
        path: str,  # noqa: ARG002  # the method's signature is the library's
        timeout: float | None = None,  # noqa: ARG002, ASYNC109  # likewise
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002  # likewise
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: a socket of the machine is not on the network."""
        raise EgressRefused("No request goes to a socket of this machine.")

    async def sleep(self, seconds: float) -> None:
        """Wait, for the pool."""
        await self._inner.sleep(seconds)


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Sends requests of httpx2 under the rules; with `max_bytes`, bounds what comes back after decompression."""

    def __init__(
        self,
        rules: EgressRules,
        resolver: Resolver,
        tls: Callable[[], ssl.SSLContext] | None,
        *,
        max_bytes: int | None = None,
    ) -> None:
        self._rules, self._max_bytes = rules, max_bytes
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls() if tls is not None else trusted(),
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=30.0,
            network_backend=CheckedBackend(rules, resolver),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request, if the rules let it; redirects are the caller's."""
        url = request.url
        if url.userinfo:
            raise no_user()
        try:
            port = port_of(url)
        except ValueError as error:
            raise EgressRefused(f"This is no usable address: {error}.", code="bad_url") from error
        host = self._rules.judge_target(url.scheme, url.raw_host.decode("ascii"), port)
        require_sendable(request.headers.raw)
        timeout = request.extensions.get("timeout")
        sent = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=host.encode(), port=port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions={} if timeout is None else {"timeout": timeout},  # others could change the name that TLS checks
        )
        try:
            got = await self._pool.handle_async_request(sent)
        except _FAILURES as error:
            raise _of_httpx(error) from error
        stream = _Stream(got.stream)
        response = httpx2.Response(got.status, headers=got.headers, stream=stream, extensions=got.extensions)
        if self._max_bytes is None or _is_stream(request, response):
            return response
        try:
            require_known_coding(response.headers, host)
        except EgressFailed:
            await response.aclose()
            raise
        headers = [(k, v) for k, v in got.headers if k.lower() not in (b"content-encoding", b"content-length")]
        bounded = _Bounded(response, self._max_bytes, host)
        return httpx2.Response(got.status, headers=headers, stream=bounded, extensions=got.extensions)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


class _Stream(httpx2.AsyncByteStream):
    """The body of an answer as it comes, with the errors of httpx2."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._stream:
                yield piece
        except _FAILURES as error:
            raise _of_httpx(error) from error

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """The decompressed body of an answer, up to a bound."""

    def __init__(self, response: httpx2.Response, max_bytes: int, host: str) -> None:
        self._response, self._max_bytes, self._host = response, max_bytes, host

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async with aclosing(decompress(self._response, self._host)) as pieces:
            async for piece in pieces:
                size += len(piece)
                if size > self._max_bytes:
                    raise EgressFailed(
                        f"{self._host} sent more than {self._max_bytes:,} bytes; the rest was not read.",
                        code="too_large",
                    )
                yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


@lru_cache(maxsize=1)
def trusted() -> ssl.SSLContext:
    """The certificates that this machine trusts (`SSL_CERT_FILE` and `SSL_CERT_DIR` too); read once, some 20 ms.

    Raises:
        EgressFailed: they cannot be read.
    """
    try:
        return httpx2.create_ssl_context()
    except OSError as error:  # errors of TLS too
        raise EgressFailed(
            f"The certificates that this machine trusts cannot be read: {reason_of(error)}.",
            code="tls_failed",
            hint="Check the files that SSL_CERT_FILE and SSL_CERT_DIR name.",
            was_sent=False,
        ) from error


def _is_stream(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Whether an answer is a stream of events that was asked for, which its reader bounds event by event."""
    kind = "text/event-stream"
    return (
        response.status_code == 200
        and media_type(response.headers) == kind
        and kind in request.headers.get("accept", "")
    )


_FAILURES = (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.UnsupportedProtocol)


def _of_httpx(error: Exception) -> httpx2.TransportError:
    """The same failure as httpx2 calls it."""
    kind = getattr(httpx2, type(error).__name__, httpx2.TransportError)
    failure: httpx2.TransportError = kind(str(error))
    return failure
