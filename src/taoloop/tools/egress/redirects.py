"""One request with its redirects: every hop is judged like a first request, and what comes back is bounded.

Imported at the first request; it needs httpx2.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from fnmatch import fnmatchcase

import httpx2

from taoloop.errors import EgressFailed, EgressRefused
from taoloop.tools.egress.client import EgressResponse
from taoloop.tools.egress.decompression import ENCODINGS, decompress, require_known_coding
from taoloop.tools.egress.transport import CONNECT_TIMEOUT_S, CheckedTransport
from taoloop.tools.egress.urls import (
    media_type,
    place_of,
    port_of,
    read_url,
    reason_of,
    unsendable,
    without_backslash,
)

_OURS = frozenset(
    (
        *("accept-encoding", "connection", "content-length", "host", "keep-alive", "proxy-authorization"),
        *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    )
)
"""Headers that belong to the client; given ones are left out."""

_HARMLESS = frozenset(("accept", "accept-language", "user-agent"))  # go to another origin; all else may be a secret
_REDIRECTS = (301, 302, 303, 307, 308)


class RedirectingRequest:
    """One request with its redirects, and the answer.

    `host` is what the header `Host` says, if not the host of the address; never at another origin. `place` is the host
    and port that it is at, `was_sent` whether a server may have got a whole request. None redirects are followed where
    `max_redirects` is None.
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
        self.place, self.was_sent = "", False

    async def run(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> EgressResponse:
        """Send it, and follow redirects.

        Raises:
            EgressRefused: the rules do not let it go there.
            EgressFailed: no usable answer.
            TimeoutError: none of its own; the caller bounds the time.
        """
        request, hops = self._request(method.upper(), read_url(url), headers, body), 0
        while True:
            response = await self._send(request)
            try:
                following = self._following(request, response)
                if following is None:
                    return await self._read(request, response, hops)
            finally:
                await response.aclose()
            hops += 1
            if hops > (self._max_redirects or 0):
                raise EgressFailed(
                    f"{self.place} redirects again after {hops - 1} redirects; the last one leads to "
                    f"{place_of(following)[:200]}.",
                    code="too_many_redirects",
                    hint="Give the address that the page has in the end, if it is known.",
                )
            if _origin(following) != _origin(request.url):
                self._host = ""
                headers, body = {name: value for name, value in headers.items() if name.lower() in _HARMLESS}, None
            request = self._request(request.method, following, headers, body)

    def _request(self, method: str, url: httpx2.URL, headers: Mapping[str, str], body: bytes | None) -> httpx2.Request:
        if not (method.isascii() and method.isalpha()):
            raise unsendable(f"{method[:20]!r} is no method")
        raw = [_raw(name, value) for name, value in headers.items() if name.lower() not in _OURS]
        raw.append((b"Accept-Encoding", ENCODINGS.encode()))
        if self._host:
            raw.append(_raw("Host", self._host))
        if not any(name.lower() == b"user-agent" for name, _ in raw):
            raw.append((b"User-Agent", b"taoloop"))
        request = httpx2.Request(method, url, headers=raw, content=body)
        request.stream = _Body(body or b"", self)
        return request

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        self.place = place_of(request.url)
        try:
            return await self._transport.handle_async_request(request)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._failed(error) from error

    def _following(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.URL | None:
        """Where a redirect leads; None where the response is the answer."""
        location = response.headers.get("location")
        redirects = response.status_code in _REDIRECTS and location is not None
        if not redirects or self._max_redirects is None or request.method not in ("GET", "HEAD"):
            return None
        try:
            url = read_url(str(request.url.join(without_backslash(location or "").strip())))
        except (httpx2.InvalidURL, ValueError, EgressRefused) as error:
            why = error.message if isinstance(error, EgressRefused) else f"{str(error)[:200].rstrip('.')}."
            raise EgressRefused(
                f"{self.place} redirects to what cannot be followed. {why}",
                code="bad_url",
                hint="Use another address.",
            ) from error
        if request.url.scheme == "https" and url.scheme == "http":
            raise EgressRefused(
                f"{self.place} redirects to {place_of(url)} without encryption; that is not followed.",
                hint="Give that address itself if it is meant.",
            )
        return url

    async def _read(self, request: httpx2.Request, response: httpx2.Response, hops: int) -> EgressResponse:
        require_known_coding(response.headers, self.place)
        kind = media_type(response.headers)
        if self._types and response.status_code < 300 and not any(fnmatchcase(kind, one) for one in self._types):
            raise EgressFailed(
                f"{self.place} answered with {kind[:60] or 'no media type'}; only {', '.join(self._types)} is taken.",
                code="wrong_type",
                hint="Give the address of another form of it.",
            )
        kept, size, is_cut = [], 0, False
        try:
            async with aclosing(decompress(response, self.place)) as pieces:
                async for piece in pieces:
                    room = self._max_bytes - size
                    is_cut = len(piece) > room
                    kept.append(piece[:room] if is_cut else piece)
                    size += len(piece)
                    if is_cut:
                        break
        except httpx2.HTTPError as error:
            raise self._failed(error) from error
        return EgressResponse(
            status=response.status_code,
            headers={k: v for k, v in response.headers.items() if k not in ("content-encoding", "content-length")},
            body=kept[0] if len(kept) == 1 else b"".join(kept),
            url=str(request.url),
            is_cut=is_cut,
            hops=hops,
        )

    def _failed(self, error: Exception) -> EgressFailed:
        cause, place = _tls_error(error), self.place
        if cause is not None:
            why = getattr(cause, "verify_message", "") or cause.reason or str(cause)
            return EgressFailed(
                f"{place} cannot be trusted, or does not speak TLS: {why}.",
                code="tls_failed",
                hint="Check the address; a certificate of one's own must be among those that this machine trusts.",
                was_sent=self.was_sent,
            )
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            why = f"no connection within {CONNECT_TIMEOUT_S:g} s" if _is_timeout(error) else reason_of(error)
            return EgressFailed(
                f"{place} cannot be reached: {why}.",
                code="connection_failed",
                retryable=True,
                hint="Check the address; try again later if it is right.",
                was_sent=self.was_sent,
            )
        return EgressFailed(
            f"{place} broke off, or does not speak HTTP: {reason_of(error)}.",
            code="http_broken",
            retryable=not isinstance(error, httpx2.LocalProtocolError | httpx2.DecodingError),
            hint="Try again later, or another address.",
            was_sent=self.was_sent,
        )


class _Body(httpx2.AsyncByteStream):
    """A body that tells its exchange when it is read, which is once the head of the request is out."""

    def __init__(self, body: bytes, exchange: RedirectingRequest) -> None:
        self._body, self._exchange = body, exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._exchange.was_sent = True
        yield self._body


def _raw(name: str, value: str) -> tuple[bytes, bytes]:
    try:
        return name.encode("ascii"), value.encode("latin-1")
    except UnicodeEncodeError:  # which holds the value: not to be told
        raise unsendable(f"the header {name[:60]!r} has characters that HTTP cannot carry") from None


def _origin(url: httpx2.URL) -> tuple[str, bytes, int]:
    return url.scheme, url.raw_host, port_of(url)


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return error
        error = error.__cause__ or error.__context__
    return None


def _is_timeout(error: Exception) -> bool:
    return isinstance(error, httpx2.TimeoutException)
