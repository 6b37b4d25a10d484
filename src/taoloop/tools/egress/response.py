"""The response to a request, and its body, which is decompressed in pieces of bounded size.

A truncated body is an error.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taoloop.errors import EgressFailed
from taoloop.tools.egress.texts import TEXTS, egress_failed

if TYPE_CHECKING:
    import httpx2

_BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)

ENCODINGS = "gzip, deflate"
"""The accepted compressions; others are refused, because their size could not be bounded."""

_GZIP_CODINGS = frozenset(("gzip", "x-gzip"))
_KNOWN_CODINGS = _GZIP_CODINGS | {"deflate"}
_MAX_CODINGS = 2
_MAX_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressResponse:
    """A response whose body was read completely, or up to the size limit."""

    status: int
    """The HTTP status."""
    headers: Mapping[str, str]
    """Header values by name in lower case."""
    body: bytes
    """The decompressed body."""
    url: str
    """The URL that sent it, after redirects."""
    is_cut: bool = False
    """Whether the body was larger than the size limit; `body` is its beginning then."""
    hops: int = 0
    """How many redirects were followed."""

    @property
    def media_type(self) -> str:
        """The media type in lower case without parameters; empty if the headers name none."""
        return media_type_of(self.headers)

    @property
    def charset(self) -> str:
        """The charset in lower case; empty if the headers name none."""
        match = _CHARSET.search(self.headers.get("content-type", ""))
        return match[1].lower() if match else ""

    @property
    def text(self) -> str:
        """The body as text: by its byte order mark, else its charset, else UTF-8. Undecodable bytes are replaced."""
        for bom, name in _BYTE_ORDER_MARKS.items():
            if self.body.startswith(bom):
                return self.body.decode(name, "replace")
        try:
            return self.body.decode(self.charset or "utf-8", "replace")
        except (LookupError, ValueError):  # the codec is unknown, or is not for text
            return self.body.decode("utf-8", "replace")


def media_type_of(headers: Mapping[str, str]) -> str:
    """The media type that headers name, in lower case without parameters; empty if none."""
    value = headers.get("content-type", "")
    return value.partition(";")[0].partition(",")[0].strip().lower()  # a repeated header is joined by commas


def require_known_coding(headers: httpx2.Headers, server: str) -> list[str]:
    """The compressions of a response, in the order in which they were applied.

    Raises:
        EgressFailed: one of them was not accepted, or there are too many.
    """
    names = [name.strip().lower() for name in headers.get("content-encoding", "").split(",")]
    codings = [name for name in names if name not in ("", "identity")]
    if len(codings) > _MAX_CODINGS or not _KNOWN_CODINGS.issuperset(codings):
        raise egress_failed("unknown_encoding", "http_broken", target=server, encodings=", ".join(codings)[:60])
    return codings


async def decompress(response: httpx2.Response, server: str) -> AsyncGenerator[bytes, None]:
    """The decompressed body of a response, in pieces of at most 1 MB.

    Raises:
        EgressFailed: it is not compressed as its headers say, or is truncated.
    """
    layers = [_Layer(coding) for coding in reversed(require_known_coding(response.headers, server))]
    try:
        async with aclosing(response.aiter_raw()) as pieces:
            async for chunk in pieces:
                for piece in _decode_layers(layers, chunk):
                    yield piece
    except zlib.error as error:
        raise _broken_body(server, "not_decompressible") from error
    if any(layer.is_open for layer in layers):
        raise _broken_body(server, "truncated")


def _decode_layers(layers: list[_Layer], data: bytes) -> Iterator[bytes]:
    if not layers:
        yield data
        return
    for piece in layers[0].feed(data):
        yield from _decode_layers(layers[1:], piece)


def _broken_body(server: str, reason: str) -> EgressFailed:
    reason = TEXTS.run_text(reason)
    return egress_failed("broken_body", "http_broken", retryable=True, target=server, reason=reason)


class _Layer:
    """One compression. A gzip body may have several members; other data after a member is ignored, as in browsers."""

    def __init__(self, coding: str) -> None:
        self._is_gzip = coding in _GZIP_CODINGS
        self._zlib: Any = None
        self._is_first = self._is_over = self._gave = False

    @property
    def is_open(self) -> bool:
        """Whether its data has begun and not ended."""
        return self._zlib is not None and not self._zlib.eof and (self._is_first or self._gave) and not self._is_over

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self._is_over:
            if self._zlib is None or (self._zlib.eof and self._is_gzip):
                self._start(data)
            elif self._zlib.eof:
                return  # only gzip has several members
            is_full = True
            while not self._zlib.eof and (data or is_full):  # after a full piece there may be more
                try:
                    piece: bytes = self._zlib.decompress(data, _MAX_PIECE_BYTES)
                except zlib.error:
                    if self._is_first or self._gave:
                        raise
                    self._is_over = True
                    return
                if piece:
                    self._gave = True
                    yield piece
                data, is_full = self._zlib.unconsumed_tail, len(piece) == _MAX_PIECE_BYTES
            data = self._zlib.unused_data

    def _start(self, data: bytes) -> None:
        self._is_first, self._gave = self._zlib is None, False
        bare = not self._is_gzip and data[0] & 15 != 8  # some servers omit the zlib header that the standard requires
        self._zlib = zlib.decompressobj(31 if self._is_gzip else -15 if bare else 15)
