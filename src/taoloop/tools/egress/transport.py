"""Requests under the egress rules: URLs, headers, redirects, and connections only to addresses that were checked.

Imported at the first request; it needs httpx2.
"""

from __future__ import annotations

import asyncio
import errno
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from typing import Any

import httpcore2
import httpx2

from taoloop.errors import EgressFailed, EgressRefused
from taoloop.tools.egress.response import ENCODINGS, EgressResponse, decompress, media_type_of, require_known_coding
from taoloop.tools.egress.rules import DEFAULT_PORTS, EgressRules, Resolver, format_target, normalise_host
from taoloop.tools.egress.texts import TEXTS, egress_failed
from taoloop.tools.texts import system_reason

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


def parse_url(text: str, base: httpx2.URL | None = None) -> httpx2.URL:
    """An http(s) URL as requests use it: without fragment, its host as it is looked up. `base`: it may be relative.

    Raises:
        EgressRefused: it is not valid, contains a user, or can be interpreted differently by different programs.
    """
    try:
        if "\\" in text:
            raise ValueError(TEXTS.run_text("backslash"))
        url = httpx2.URL(text.strip()) if base is None else base.join(text.strip())
        if url.scheme not in DEFAULT_PORTS:
            scheme = url.scheme[:20]
            raise ValueError(TEXTS.run_text("not_http" if scheme else "no_scheme", scheme=scheme))
        host, port = normalise_host(url.raw_host.decode("ascii")), port_of(url)
        if not 0 < port < 65536:
            raise ValueError(TEXTS.run_text("not_a_port", port=port))
        if host is None:
            raise ValueError(TEXTS.run_text("not_a_host" if url.host else "no_host", host=url.host[:60]))
        if url.userinfo:  # it obscures the host and exposes the password
            reason, hint = TEXTS.run_text("userinfo"), TEXTS.run_text("userinfo_hint")
            raise TEXTS.error("bad_url", "bad_url", error_type=EgressRefused, hint=hint, reason=reason)
        return url.copy_with(host=host, fragment=None) if host != url.host or url.fragment else url
    except (httpx2.InvalidURL, ValueError, TypeError) as error:
        raise TEXTS.error("bad_url", "bad_url", error_type=EgressRefused, reason=str(error)[:200]) from error


def host_and_port(url: httpx2.URL) -> str:
    """Host and port of a URL, for messages: without the path, which may contain secrets."""
    return format_target(url.host, port_of(url))


def port_of(url: httpx2.URL) -> int:
    """The port of an http(s) URL, or the default port of its scheme."""
    return DEFAULT_PORTS[url.scheme] if url.port is None else url.port


def require_sendable(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse headers that HTTP cannot carry, before a library reports them with their values, which may be secret.

    Raises:
        EgressFailed: names the header.
    """
    for name, value in headers:
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise unsendable_request(TEXTS.run_text("header_characters", name=name.decode("latin-1")[:60]))


def unsendable_request(reason: str) -> EgressFailed:
    """The error for a request that HTTP cannot carry."""
    return egress_failed("unsendable", "http_broken", was_sent=False, reason=reason)


def root_reason(error: BaseException) -> str:
    """Why the system refused the connection, or else the message of the innermost cause that has one."""
    reason = ""
    inner: BaseException | None = error
    while inner is not None:
        reason = (getattr(inner, "strerror", None) or str(inner) or reason)[:200]
        inner = inner.__cause__
    refused = _system_error(error)
    return system_reason(refused) if refused is not None else reason.rstrip(".") or type(error).__name__


def _system_error(error: BaseException | None) -> OSError | None:
    """The error of the system behind those of the libraries; the first one where several addresses were tried."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in errno.errorcode:
            return error
        group = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
        error = group[0] if group else error.__cause__ or error.__context__  # httpcore2 raises `from None`
    return None


@contextmanager
def _as_httpx_errors() -> Iterator[None]:
    """Raise the errors of the pool as the httpx2 errors of the same names."""
    try:
        yield
    except _CORE_ERRORS as error:
        raise getattr(httpx2, type(error).__name__, httpx2.TransportError)(str(error)) from error


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
            raise egress_failed("name_not_found", "name_not_found", retryable=True, was_sent=False, **values) from error
        *first_addresses, last = self._rules.check_addresses(host, port, addresses)
        timeout_s = CONNECT_TIMEOUT_S if timeout is None else min(timeout, CONNECT_TIMEOUT_S)
        for address in first_addresses:
            try:
                return await self._inner.connect_tcp(address, port, timeout_s, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue  # the next address may accept; the error of the last one is reported
        return await self._inner.connect_tcp(last, port, timeout_s, local_address, socket_options)


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
        url = parse_url(str(request.url))
        port = port_of(url)
        host = self._rules.check_target(url.scheme, url.raw_host.decode("ascii"), port)
        require_sendable(request.headers.raw)
        timeout = request.extensions.get("timeout")
        core_request = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=host.encode(), port=port, target=request.url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions={"timeout": timeout} if timeout else {},  # others could change the name that TLS checks
        )
        with _as_httpx_errors():
            core_response = await self._pool.handle_async_request(core_request)
        stream = _ErrorMappingStream(core_response.stream)
        response = httpx2.Response(
            core_response.status, headers=core_response.headers, stream=stream, extensions=core_response.extensions
        )
        if self._max_bytes is None or _is_stream(request, response):
            return response
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
        with _as_httpx_errors():
            async for piece in self._stream:
                yield piece

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
                    raise egress_failed("too_large", "too_large", target=self._host, max_bytes=self._max_bytes)
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
        raise egress_failed("no_certificates", "tls_failed", was_sent=False, reason=root_reason(error)) from error


def _is_stream(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Whether a response is a requested event stream, whose reader limits the size of each event."""
    kind, accepted = "text/event-stream", request.headers.get("accept", "")
    return response.status_code == 200 and media_type_of(response.headers) == kind and kind in accepted


_CLIENT_HEADERS = frozenset(
    (
        *("accept-encoding", "connection", "content-length", "host", "keep-alive", "proxy-authorization"),
        *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    )
)
"""Headers that the client sets itself; those of the caller are ignored."""

_FORWARDED_HEADERS = frozenset(("accept", "accept-language", "user-agent"))
"""Headers that are also sent to another origin; any other may contain a secret."""


@dataclass(kw_only=True)
class RedirectingRequest:
    """One request with its redirects."""

    transport: CheckedTransport
    """What sends each request."""
    max_bytes: int
    """How much of the body is read, after decompression."""
    max_redirects: int | None
    """How many redirects are followed; None: a redirect is the response."""
    types: Sequence[str]
    """The accepted media types of a response with a status below 300; empty: all."""
    host: str = ""
    """The header `Host` if it differs from the host of the URL; it is never sent to another origin."""
    target: str = ""
    """The current host and port."""
    was_sent: bool = False
    """Whether a server may have received a complete request."""

    async def run(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> EgressResponse:
        """Send the request and follow its redirects. The caller limits the time.

        Raises:
            EgressRefused: the rules do not allow it.
            EgressFailed: there is no usable response.
        """
        request, hops = self._build_request(method.upper(), parse_url(url), headers, body), 0
        while True:
            self.target = host_and_port(request.url)
            try:
                response = await self.transport.handle_async_request(request)
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise self._failure(error) from error
            try:
                next_url = self._redirect_target(request, response)
                if next_url is None:
                    return await self._read_response(request, response, hops)
            finally:
                await response.aclose()
            hops += 1
            if hops > (self.max_redirects or 0):
                code, next_target = "too_many_redirects", host_and_port(next_url)[:200]
                raise egress_failed(code, code, target=self.target, count=hops - 1, next_target=next_target)
            if _origin(next_url) != _origin(request.url):
                self.host, body = "", None
                headers = {name: value for name, value in headers.items() if name.lower() in _FORWARDED_HEADERS}
            request = self._build_request(request.method, next_url, headers, body)

    def _build_request(
        self, method: str, url: httpx2.URL, headers: Mapping[str, str], body: bytes | None
    ) -> httpx2.Request:
        if not (method.isascii() and method.isalpha()):
            raise unsendable_request(TEXTS.run_text("not_a_method", method=method[:20]))
        raw = [_encode_header(name, value) for name, value in headers.items() if name.lower() not in _CLIENT_HEADERS]
        raw.append((b"Accept-Encoding", ENCODINGS.encode()))
        if self.host:
            raw.append(_encode_header("Host", self.host))
        if not any(name.lower() == b"user-agent" for name, _ in raw):
            raw.append((b"User-Agent", b"taoloop"))
        request = httpx2.Request(method, url, headers=raw, content=body)
        request.stream = _TrackedBody(body or b"", self)
        return request

    def _redirect_target(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.URL | None:
        """The target of a redirect; None if the response is final.

        Raises:
            EgressRefused: it must not be followed.
        """
        may_follow = self.max_redirects is not None and request.method in ("GET", "HEAD")
        if not response.has_redirect_location or not may_follow:
            return None
        try:
            url = parse_url(response.headers["location"], request.url)
        except EgressRefused as error:
            values: dict[str, Any] = {"target": self.target, "reason": error.message}
            raise TEXTS.error("redirect_to_bad_url", "bad_url", error_type=EgressRefused, **values) from error
        if request.url.scheme == "https" and url.scheme == "http":
            values = {"target": self.target, "next_target": host_and_port(url)}
            raise TEXTS.run_error(EgressRefused, "redirect_unencrypted", values)
        return url

    async def _read_response(self, request: httpx2.Request, response: httpx2.Response, hops: int) -> EgressResponse:
        require_known_coding(response.headers, self.target)
        kind = media_type_of(response.headers)
        is_accepted = not self.types or any(fnmatchcase(kind, pattern) for pattern in self.types)
        if response.status_code < 300 and not is_accepted:
            media_type, accepted = kind[:60] or TEXTS.run_text("no_media_type"), ", ".join(self.types)
            raise egress_failed(
                "wrong_type", "wrong_type", target=self.target, media_type=media_type, accepted=accepted
            )
        body, size = [], 0
        try:
            async with aclosing(decompress(response, self.target)) as pieces:
                async for piece in pieces:
                    body.append(piece)
                    size += len(piece)
                    if size > self.max_bytes:
                        break
        except httpx2.HTTPError as error:
            raise self._failure(error) from error
        return EgressResponse(
            status=response.status_code,
            headers={k: v for k, v in response.headers.items() if k not in ("content-encoding", "content-length")},
            body=b"".join(body)[: self.max_bytes],
            url=str(request.url),
            is_cut=size > self.max_bytes,
            hops=hops,
        )

    def _failure(self, error: Exception) -> EgressFailed:
        report = partial(egress_failed, target=self.target, was_sent=self.was_sent)
        if (tls_error := _tls_error(error)) is not None:
            reason = getattr(tls_error, "verify_message", "") or tls_error.reason or str(tls_error)
            return report("tls_failed", "tls_failed", retryable=False, reason=reason)
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            is_timeout = isinstance(error, httpx2.TimeoutException)
            reason = TEXTS.run_text("no_connection", seconds=CONNECT_TIMEOUT_S) if is_timeout else root_reason(error)
            return report("unreachable", "connection_failed", retryable=True, reason=reason)
        is_retryable = not isinstance(error, httpx2.LocalProtocolError | httpx2.DecodingError)
        return report("broken", "http_broken", retryable=is_retryable, reason=root_reason(error))


class _TrackedBody(httpx2.AsyncByteStream):
    """A body that records that it is read, which happens once the head of the request has been sent."""

    def __init__(self, body: bytes, request: RedirectingRequest) -> None:
        self._body, self._request = body, request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._request.was_sent = True
        yield self._body


def _encode_header(name: str, value: str) -> tuple[bytes, bytes]:
    try:
        return name.encode("ascii"), value.encode("latin-1")
    except UnicodeEncodeError:  # its message contains the value, which may be secret
        raise unsendable_request(TEXTS.run_text("header_characters", name=name[:60])) from None


def _origin(url: httpx2.URL) -> tuple[str, bytes, int]:
    return url.scheme, url.raw_host, port_of(url)


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return error
        error = error.__cause__ or error.__context__
    return None
