"""One request with its redirects: every hop is checked like a first request, and the response size is limited.

Imported at the first request; it needs httpx2.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from fnmatch import fnmatchcase

import httpx2

from taoloop.errors import EgressFailed, EgressRefused
from taoloop.tools.egress.response import ENCODINGS, EgressResponse, decompress, media_type_of, require_known_coding
from taoloop.tools.egress.texts import TEXTS
from taoloop.tools.egress.transport import (
    CONNECT_TIMEOUT_S,
    CheckedTransport,
    host_and_port,
    parse_url,
    port_of,
    refuse_backslash,
    root_reason,
    unsendable_request,
)

_CLIENT_HEADERS = frozenset(
    (
        *("accept-encoding", "connection", "content-length", "host", "keep-alive", "proxy-authorization"),
        *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    )
)
"""Headers that the client sets itself; those of the caller are ignored."""

_FORWARDED_HEADERS = frozenset(("accept", "accept-language", "user-agent"))
"""Headers that are also sent to another origin; any other may contain a secret."""
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)


class RedirectingRequest:
    """One request with its redirects.

    `host` is the header `Host` if it differs from the host of the URL; it is never sent to another origin. `target` is
    the current host and port, `was_sent` whether a server may have received a complete request. If `max_redirects` is
    None, redirects are not followed.
    """

    def __init__(
        self,
        transport: CheckedTransport,
        *,
        max_bytes: int,
        max_redirects: int | None,
        types: tuple[str, ...],
        host: str = "",
    ) -> None:
        self._transport, self._max_bytes, self._max_redirects = transport, max_bytes, max_redirects
        self._types, self._host = types, host
        self.target, self.was_sent = "", False

    async def run(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> EgressResponse:
        """Send the request and follow its redirects. The caller limits the time.

        Raises:
            EgressRefused: the rules do not allow it.
            EgressFailed: there is no usable response.
        """
        request, hops = self._build_request(method.upper(), parse_url(url), headers, body), 0
        while True:
            response = await self._send(request)
            try:
                next_url = self._redirect_target(request, response)
                if next_url is None:
                    return await self._read_response(request, response, hops)
            finally:
                await response.aclose()
            hops += 1
            if hops > (self._max_redirects or 0):
                values = {"target": self.target, "count": hops - 1, "next_target": host_and_port(next_url)[:200]}
                raise TEXTS.run_error(EgressFailed, "too_many_redirects", values, code="too_many_redirects")
            if _origin(next_url) != _origin(request.url):
                self._host, body = "", None
                headers = {name: value for name, value in headers.items() if name.lower() in _FORWARDED_HEADERS}
            request = self._build_request(request.method, next_url, headers, body)

    def _build_request(
        self, method: str, url: httpx2.URL, headers: Mapping[str, str], body: bytes | None
    ) -> httpx2.Request:
        if not (method.isascii() and method.isalpha()):
            raise unsendable_request(TEXTS.run_text("not_a_method", method=method[:20]))
        raw = [_encode_header(name, value) for name, value in headers.items() if name.lower() not in _CLIENT_HEADERS]
        raw.append((b"Accept-Encoding", ENCODINGS.encode()))
        if self._host:
            raw.append(_encode_header("Host", self._host))
        if not any(name.lower() == b"user-agent" for name, _ in raw):
            raw.append((b"User-Agent", b"taoloop"))
        request = httpx2.Request(method, url, headers=raw, content=body)
        request.stream = _TrackedBody(body or b"", self)
        return request

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        self.target = host_and_port(request.url)
        try:
            return await self._transport.handle_async_request(request)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._failure(error) from error

    def _redirect_target(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.URL | None:
        """The target of a redirect; None if the response is final.

        Raises:
            EgressRefused: it must not be followed.
        """
        location = response.headers.get("location")
        redirects = response.status_code in _REDIRECT_STATUSES and location is not None
        if not redirects or self._max_redirects is None or request.method not in ("GET", "HEAD"):
            return None
        try:
            url = parse_url(str(request.url.join(refuse_backslash(location or "").strip())))
        except (httpx2.InvalidURL, ValueError, EgressRefused) as error:
            if isinstance(error, EgressRefused):
                reason = error.message
            else:
                reason = TEXTS.run_text("sentence", text=str(error)[:200].rstrip("."))
            values = {"target": self.target, "reason": reason}
            raise TEXTS.run_error(EgressRefused, "redirect_to_bad_url", values, code="bad_url") from error
        if request.url.scheme == "https" and url.scheme == "http":
            values = {"target": self.target, "next_target": host_and_port(url)}
            raise TEXTS.run_error(EgressRefused, "redirect_unencrypted", values)
        return url

    async def _read_response(self, request: httpx2.Request, response: httpx2.Response, hops: int) -> EgressResponse:
        require_known_coding(response.headers, self.target)
        kind = media_type_of(response.headers)
        is_accepted = not self._types or any(fnmatchcase(kind, pattern) for pattern in self._types)
        if response.status_code < 300 and not is_accepted:
            media_type = kind[:60] or TEXTS.run_text("no_media_type")
            values = {"target": self.target, "media_type": media_type, "accepted": ", ".join(self._types)}
            raise TEXTS.run_error(EgressFailed, "wrong_type", values, code="wrong_type")
        pieces_read, size, is_cut = [], 0, False
        try:
            async with aclosing(decompress(response, self.target)) as pieces:
                async for piece in pieces:
                    remaining = self._max_bytes - size
                    is_cut = len(piece) > remaining
                    pieces_read.append(piece[:remaining] if is_cut else piece)
                    size += len(piece)
                    if is_cut:
                        break
        except httpx2.HTTPError as error:
            raise self._failure(error) from error
        return EgressResponse(
            status=response.status_code,
            headers={k: v for k, v in response.headers.items() if k not in ("content-encoding", "content-length")},
            body=pieces_read[0] if len(pieces_read) == 1 else b"".join(pieces_read),
            url=str(request.url),
            is_cut=is_cut,
            hops=hops,
        )

    def _failure(self, error: Exception) -> EgressFailed:
        if (tls_error := _tls_error(error)) is not None:
            code, is_retryable = "tls_failed", False
            reason = getattr(tls_error, "verify_message", "") or tls_error.reason or str(tls_error)
            text = "tls_failed"
        elif isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            code, is_retryable = "connection_failed", True
            is_timeout = isinstance(error, httpx2.TimeoutException)
            reason = TEXTS.run_text("no_connection", seconds=CONNECT_TIMEOUT_S) if is_timeout else root_reason(error)
            text = "unreachable"
        else:
            code, is_retryable = "http_broken", not isinstance(error, httpx2.LocalProtocolError | httpx2.DecodingError)
            reason, text = root_reason(error), "broken"
        attributes = {"code": code, "retryable": is_retryable, "was_sent": self.was_sent}
        return TEXTS.run_error(EgressFailed, text, {"target": self.target, "reason": reason}, **attributes)


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
