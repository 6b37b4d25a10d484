"""URLs, headers, and the transport under the egress rules: it connects only to addresses that the rules have checked.

Imported at the first request; it needs httpx2.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from functools import lru_cache
from typing import Any

import httpcore2
import httpx2

from taoloop.errors import EgressFailed, EgressRefused
from taoloop.tools.egress.response import decompress, media_type_of, require_known_coding
from taoloop.tools.egress.rules import DEFAULT_PORTS, EgressRules, Resolver, normalise_host
from taoloop.tools.egress.texts import TEXTS

_HEADER_NAME = re.compile(rb"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(rb"(?:[^\x00\s]+(?:[ \t]+[^\x00\s]+)*)?")

CONNECT_TIMEOUT_S = 10.0
"""The time limit for one address of a host; then the next one is tried."""

_CORE_ERRORS = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.UnsupportedProtocol,
)


def parse_url(text: str) -> httpx2.URL:
    """An http(s) URL as requests use it: without fragment, its host as it is looked up.

    Raises:
        EgressRefused: it is not valid, contains a user, or can be interpreted differently by different programs.
    """
    try:
        url = httpx2.URL(refuse_backslash(text).strip())
        if url.scheme not in DEFAULT_PORTS:
            scheme = url.scheme[:20]
            raise ValueError(TEXTS.run_text("not_http" if scheme else "no_scheme", scheme=scheme))
        host, _ = normalise_host(url.raw_host.decode("ascii")), port_of(url)
        if host is None:
            raise ValueError(TEXTS.run_text("not_a_host" if url.host else "no_host", host=url.host[:60]))
        if url.userinfo:
            raise userinfo_error()
        return url.copy_with(host=host, fragment=None) if host != url.host or url.fragment else url
    except (httpx2.InvalidURL, ValueError, TypeError) as error:
        raise TEXTS.run_error(EgressRefused, "bad_url", {"reason": str(error)[:200]}, code="bad_url") from error


def host_and_port(url: httpx2.URL) -> str:
    """Host and port of a URL, for messages: without the path, which may contain secrets."""
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{host}:{url.port or DEFAULT_PORTS.get(url.scheme, 0)}"


def port_of(url: httpx2.URL) -> int:
    """The port of a URL, or the default port of its scheme.

    Raises:
        ValueError: it is not valid.
    """
    port = url.port if url.port is not None else DEFAULT_PORTS.get(url.scheme, 0)
    if not 0 < port < 65536 and url.scheme in DEFAULT_PORTS:
        raise ValueError(TEXTS.run_text("not_a_port", port=port))
    return port


def refuse_backslash(text: str) -> str:
    """The text of a URL.

    Raises:
        ValueError: it contains a backslash, so programs may see different hosts in it.
    """
    if "\\" in text:
        raise ValueError(TEXTS.run_text("backslash"))
    return text


def require_sendable(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse headers that HTTP cannot carry, before a library reports them with their values, which may be secret.

    Raises:
        EgressFailed: names the header.
    """
    for name, value in headers:
        if not _HEADER_NAME.fullmatch(name):
            raise unsendable_request(TEXTS.run_text("not_a_header", name=name.decode("latin-1")[:60]))
        if not _HEADER_VALUE.fullmatch(value):
            raise unsendable_request(TEXTS.run_text("header_whitespace", name=name.decode("ascii")[:60]))


def unsendable_request(reason: str) -> EgressFailed:
    """The error for a request that HTTP cannot carry."""
    return TEXTS.run_error(EgressFailed, "unsendable", {"reason": reason}, code="http_broken", was_sent=False)


def userinfo_error() -> EgressRefused:
    """The error for a URL with a user, which obscures the host and exposes the password."""
    values = {"reason": TEXTS.run_text("userinfo")}
    return TEXTS.run_error(EgressRefused, "bad_url", values, code="bad_url", hint=TEXTS.run_text("userinfo_hint"))


def root_reason(error: BaseException) -> str:
    """The message of the innermost cause that has one."""
    reason = ""
    inner: BaseException | None = error
    while inner is not None:
        reason = (getattr(inner, "strerror", None) or str(inner) or reason)[:200]
        inner = inner.__cause__
    return reason.rstrip(".") or type(error).__name__


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to checked addresses. The connection pool still uses the name for Host, SNI and certificate."""

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
        """Resolve once, check every address, and connect to the first one that accepts."""
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._resolver(host, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(TEXTS.run_text("not_resolved", host=host)) from error
        except (OSError, UnicodeError) as error:
            values = {"host": host, "reason": root_reason(error)}
            attributes = {"code": "name_not_found", "retryable": True, "was_sent": False}
            raise TEXTS.run_error(EgressFailed, "name_not_found", values, **attributes) from error
        *first_addresses, last = self._rules.check_addresses(host, port, addresses)
        timeout_s = CONNECT_TIMEOUT_S if timeout is None else min(timeout, CONNECT_TIMEOUT_S)
        for address in first_addresses:
            try:
                return await self._inner.connect_tcp(address, port, timeout_s, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue  # the next address may accept; the error of the last one is reported
        return await self._inner.connect_tcp(last, port, timeout_s, local_address, socket_options)

    async def connect_unix_socket(
        self,
        path: str,  # noqa: ARG002  # the method's signature is the library's
        timeout: float | None = None,  # noqa: ARG002, ASYNC109  # as above
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002  # as above
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: sockets of this machine are not on the network."""
        raise EgressRefused(TEXTS.run_text("unix_socket"))

    async def sleep(self, seconds: float) -> None:
        """Wait, for the pool."""
        await self._inner.sleep(seconds)


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Sends httpx2 requests under the rules; `max_bytes` limits the size of responses after decompression."""

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
            ssl_context=tls() if tls is not None else system_trust_context(),
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=30.0,
            network_backend=CheckedBackend(rules, resolver),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request if the rules allow it; redirects are left to the caller."""
        url = request.url
        if url.userinfo:
            raise userinfo_error()
        try:
            port = port_of(url)
        except ValueError as error:
            raise TEXTS.run_error(EgressRefused, "bad_url", {"reason": error}, code="bad_url", hint="") from error
        host = self._rules.check_target(url.scheme, url.raw_host.decode("ascii"), port)
        require_sendable(request.headers.raw)
        timeout = request.extensions.get("timeout")
        core_request = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=host.encode(), port=port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions={"timeout": timeout} if timeout else {},  # others could change the name that TLS checks
        )
        try:
            core_response = await self._pool.handle_async_request(core_request)
        except _CORE_ERRORS as error:
            raise _to_httpx_error(error) from error
        stream = _ErrorMappingStream(core_response.stream)
        response = httpx2.Response(
            core_response.status, headers=core_response.headers, stream=stream, extensions=core_response.extensions
        )
        if self._max_bytes is None or _is_stream(request, response):
            return response
        try:
            require_known_coding(response.headers, host)
        except EgressFailed:
            await response.aclose()
            raise
        headers = [
            (k, v) for k, v in core_response.headers if k.lower() not in (b"content-encoding", b"content-length")
        ]
        bounded = _BoundedBody(response, self._max_bytes, host)
        return httpx2.Response(
            core_response.status, headers=headers, stream=bounded, extensions=core_response.extensions
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


class _ErrorMappingStream(httpx2.AsyncByteStream):
    """The body of a response as it arrives, with its errors as httpx2 errors."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._stream:
                yield piece
        except _CORE_ERRORS as error:
            raise _to_httpx_error(error) from error

    async def aclose(self) -> None:
        await self._stream.aclose()


class _BoundedBody(httpx2.AsyncByteStream):
    """The decompressed body of a response, up to a size limit."""

    def __init__(self, response: httpx2.Response, max_bytes: int, host: str) -> None:
        self._response, self._max_bytes, self._host = response, max_bytes, host

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async with aclosing(decompress(self._response, self._host)) as pieces:
            async for piece in pieces:
                size += len(piece)
                if size > self._max_bytes:
                    values = {"target": self._host, "max_bytes": self._max_bytes}
                    raise TEXTS.run_error(EgressFailed, "too_large", values, code="too_large")
                yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


@lru_cache(maxsize=1)
def system_trust_context() -> ssl.SSLContext:
    """A context with the certificates that this machine trusts, including `SSL_CERT_FILE` and `SSL_CERT_DIR`.

    They are read once, which takes about 20 ms.

    Raises:
        EgressFailed: they cannot be read.
    """
    try:
        return httpx2.create_ssl_context()
    except OSError as error:  # includes TLS errors
        values = {"reason": root_reason(error)}
        raise TEXTS.run_error(EgressFailed, "no_certificates", values, code="tls_failed", was_sent=False) from error


def _is_stream(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Whether a response is a requested event stream, whose reader limits the size of each event."""
    kind, accepted = "text/event-stream", request.headers.get("accept", "")
    return response.status_code == 200 and media_type_of(response.headers) == kind and kind in accepted


def _to_httpx_error(error: Exception) -> httpx2.TransportError:
    """The corresponding httpx2 error."""
    kind = getattr(httpx2, type(error).__name__, httpx2.TransportError)
    failure: httpx2.TransportError = kind(str(error))
    return failure
