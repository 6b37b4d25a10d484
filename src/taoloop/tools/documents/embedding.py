"""Embedding models as plug-ins, and how their order of passages joins that of the words.

A vector is stored as 32-bit floats, and beside it the signs of its numbers as one whole number. To find the nearest of
many vectors, the signs are compared first (an XOR of two integers), and only the best of them by their angle.
"""

from __future__ import annotations

import heapq
import math
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from operator import mul
from typing import Protocol, runtime_checkable

from taoloop.errors import ToolError

EXACT_BELOW = 2_000
"""Up to so many vectors, each is compared by its angle; above it, only those whose signs are nearest."""

CANDIDATES = 200
_RANK_OFFSET = 60  # of reciprocal rank fusion, as in Cormack, Clarke and Büttcher (2009)
_LARGEST = 16_384  # numbers in a vector


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors: a model of yours, local or behind an API. It may block.

    `name` tells one model from another: vectors of another name are made anew. All vectors have the same length.
    """

    @property
    def name(self) -> str:
        """The model, with its version."""
        ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector per text, in the same order."""
        ...


def vectors_of(embedder: Embedder, texts: Sequence[str]) -> list[array[float]]:
    """The vectors of some texts, each of length 1.

    Raises:
        ToolError: `embedding_failed`: the model raised, or gave something else than one vector per text.
    """
    try:
        found = [array("f", vector) for vector in embedder.embed(texts)]
    except Exception as error:  # a plug-in's; whatever it is, the words alone still find passages
        raise _failed(embedder, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}") from error
    if len(found) != len(texts):
        raise _failed(embedder, f"it gave {len(found)} vectors for {len(texts)} texts")
    if len({len(vector) for vector in found}) > 1 or not all(0 < len(vector) <= _LARGEST for vector in found):
        raise _failed(embedder, "its vectors are empty, too long or of different lengths")
    return [_unit(embedder, vector) for vector in found]


def to_blob(vector: array[float]) -> bytes:
    """A vector as it is stored: little-endian on every machine."""
    return _swapped(vector).tobytes()


def from_blob(blob: bytes) -> array[float]:
    """A stored vector."""
    return _swapped(array("f", blob))


def sign_bits(vector: Sequence[float]) -> int:
    """One bit per number: whether it is above zero."""
    return int("".join("1" if number > 0 else "0" for number in vector), 2)


def nearest_signs(wanted: int, known: Mapping[int, int]) -> list[int]:
    """The numbers of the passages whose signs differ least from those that are wanted."""
    if len(known) <= EXACT_BELOW:
        return list(known)
    return heapq.nsmallest(CANDIDATES, known, key=lambda number: (known[number] ^ wanted).bit_count())


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """How near two vectors of length 1 are, from -1 to 1."""
    return math.fsum(map(mul, one, other))


def reciprocal_rank_fusion(orders: Iterable[Sequence[int]]) -> dict[int, float]:
    """Several orders of passages as one: each gives a passage 1 / (60 + its rank), and the sums decide.

    Only ranks count, so that scores of different kinds need no common scale. The best comes first.
    """
    scores: dict[int, float] = {}
    for order in orders:
        for rank, number in enumerate(order, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (_RANK_OFFSET + rank)
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def _unit(embedder: Embedder, vector: array[float]) -> array[float]:
    length = math.sqrt(sum(map(mul, vector, vector)))
    if not math.isfinite(length):
        raise _failed(embedder, "a vector has numbers that are not finite")
    return array("f", (number / length for number in vector)) if length else vector


def _swapped(vector: array[float]) -> array[float]:
    if sys.byteorder == "big":
        vector = vector[:]
        vector.byteswap()
    return vector


def _failed(embedder: Embedder, why: str) -> ToolError:
    return ToolError(
        f"The embedding model {embedder.name!r} failed: {why}.",
        code="embedding_failed",
        retryable=True,
        hint="Passages are found by their words all the same.",
    )
