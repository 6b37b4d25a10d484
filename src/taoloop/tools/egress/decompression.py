"""Decompression of response bodies, in pieces of bounded size; a truncated body is an error.

Imported at the first request; it needs httpx2.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

import httpx2

from taoloop.errors import EgressFailed
from taoloop.tools.egress.texts import TEXTS

ENCODINGS = "gzip, deflate"
"""The accepted compressions; others are refused, because their size could not be bounded."""

_GZIP_CODINGS = frozenset(("gzip", "x-gzip"))
_KNOWN_CODINGS = _GZIP_CODINGS | {"deflate"}
_MAX_CODINGS = 2
_MAX_PIECE_BYTES = 1 << 20


def require_known_coding(headers: httpx2.Headers, server: str) -> list[str]:
    """The compressions of a response, in the order in which they were applied.

    Raises:
        EgressFailed: one of them was not accepted, or there are too many.
    """
    names = [name.strip().lower() for name in headers.get("content-encoding", "").split(",")]
    codings = [name for name in names if name not in ("", "identity")]
    if len(codings) > _MAX_CODINGS or not _KNOWN_CODINGS.issuperset(codings):
        encodings = ", ".join(codings)[:60]
        text = TEXTS.run_text("unknown_encoding", target=server, encodings=encodings)
        raise EgressFailed(text, code="http_broken")
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
    text = TEXTS.run_text("broken_body", target=server, reason=TEXTS.run_text(reason))
    return EgressFailed(text, code="http_broken", retryable=True)


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
            if self._zlib is None or self._zlib.eof:
                self._start(data)
            yield from self._member(data)
            data = self._zlib.unused_data

    def _member(self, data: bytes) -> Iterator[bytes]:
        while not self._is_over and not self._zlib.eof:
            piece = self._decompress(data)
            if piece:
                yield piece
            data = self._zlib.unconsumed_tail
            if not data and len(piece) < _MAX_PIECE_BYTES:  # after a full piece there may be more
                return

    def _start(self, data: bytes) -> None:
        self._is_first, self._gave = self._zlib is None, False
        self._is_over = not self._is_first and not self._is_gzip
        bare = not self._is_gzip and data[0] & 15 != 8  # some servers omit the zlib header that the standard requires
        self._zlib = zlib.decompressobj(31 if self._is_gzip else -15 if bare else 15)

    def _decompress(self, data: bytes) -> bytes:
        try:
            piece: bytes = self._zlib.decompress(data, _MAX_PIECE_BYTES)
        except zlib.error:
            if self._is_first or self._gave:
                raise
            self._is_over, piece = True, b""
        self._gave = self._gave or bool(piece)
        return piece
