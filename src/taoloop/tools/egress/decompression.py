"""Bodies as they were before compression: in bounded pieces, and never a part for the whole.

Imported at the first request; it needs httpx2.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

import httpx2

from taoloop.errors import EgressFailed

ENCODINGS = "gzip, deflate"
"""What answers may be compressed with; others are refused, since their size could not be bounded."""

_GZIP = frozenset(("gzip", "x-gzip"))
_KNOWN = _GZIP | {"deflate"}
_MOST_CODINGS = 2
_PIECE = 1 << 20


def require_known_coding(headers: httpx2.Headers, place: str) -> list[str]:
    """What an answer is compressed with, in the order in which that was done.

    Raises:
        EgressFailed: it is encoded by what was not asked for, or several times.
    """
    said = [one.strip().lower() for one in headers.get("content-encoding", "").split(",")]
    codings = [one for one in said if one not in ("", "identity")]
    if len(codings) > _MOST_CODINGS or not _KNOWN.issuperset(codings):
        raise EgressFailed(
            f"{place} encoded its answer as {', '.join(codings)[:60]}, which was not asked for.", code="http_broken"
        )
    return codings


async def decompress(response: httpx2.Response, place: str) -> AsyncGenerator[bytes, None]:
    """The body of an answer, decompressed, in pieces of at most 1 MB.

    Raises:
        EgressFailed: it is not what it says, or ends before its end.
    """
    layers = [_Layer(coding) for coding in reversed(require_known_coding(response.headers, place))]
    try:
        async with aclosing(response.aiter_raw()) as pieces:
            async for packed in pieces:
                for piece in _through(layers, packed):
                    yield piece
    except zlib.error as error:
        raise _broken(place, "it cannot be decompressed") from error
    if any(layer.is_open for layer in layers):
        raise _broken(place, "it ends before its end")


def _through(layers: list[_Layer], data: bytes) -> Iterator[bytes]:
    if not layers:
        yield data
        return
    for piece in layers[0].feed(data):
        yield from _through(layers[1:], piece)


def _broken(place: str, why: str) -> EgressFailed:
    return EgressFailed(f"The compressed answer of {place} is broken: {why}.", code="http_broken", retryable=True)


class _Layer:
    """One compression. Members of gzip may follow one another; what follows and is none is left out, as by browsers."""

    def __init__(self, coding: str) -> None:
        self._is_gzip = coding in _GZIP
        self._zlib: Any = None
        self._is_first = self._is_over = self._gave = False

    @property
    def is_open(self) -> bool:
        """Whether data has begun and not ended."""
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
            if not data and len(piece) < _PIECE:  # of a full piece there may be more to come
                return

    def _start(self, data: bytes) -> None:
        self._is_first, self._gave = self._zlib is None, False
        self._is_over = not self._is_first and not self._is_gzip
        bare = not self._is_gzip and data[0] & 15 != 8  # without the frame that the standard asks for: some servers do
        self._zlib = zlib.decompressobj(31 if self._is_gzip else -15 if bare else 15)

    def _decompress(self, data: bytes) -> bytes:
        try:
            piece: bytes = self._zlib.decompress(data, _PIECE)
        except zlib.error:
            if self._is_first or self._gave:
                raise
            self._is_over, piece = True, b""
        self._gave = self._gave or bool(piece)
        return piece
