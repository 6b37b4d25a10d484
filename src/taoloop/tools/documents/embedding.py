"""Embedding models as plug-ins, and the ranking of passages by their vectors.

A vector is stored as 32-bit floats, together with the signs of its components as one integer. To find the nearest of
many vectors, the signs are compared first (the XOR of two integers), and only the best candidates by their angle.
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
"""Up to this number, all vectors are compared by angle; above it, only those with the most similar signs."""

CANDIDATES = 200
"""How many vectors are compared by angle then."""

_RANK_OFFSET = 60  # the constant of reciprocal rank fusion, as in Cormack, Clarke and Büttcher (2009)
_MAX_DIMENSIONS = 16_384  # of a vector


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors: your own model, local or behind an API. It may block.

    `name` identifies the model: vectors of another model are computed again. All vectors have the same length.
    """

    @property
    def name(self) -> str:
        """The model, with its version."""
        ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector per text, in the same order."""
        ...


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> list[array[float]]:
    """The unit vectors of some texts.

    Raises:
        ToolError: `embedding_failed`: the model raised an error, or did not return one vector per text.
    """
    try:
        vectors = [array("f", vector) for vector in embedder.embed(texts)]
    except Exception as error:  # any error of a plug-in; search by words still works
        raise _embedding_error(embedder, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}") from error
    if len(vectors) != len(texts):
        raise _embedding_error(embedder, f"it returned {len(vectors)} vectors for {len(texts)} texts")
    if len({len(vector) for vector in vectors}) > 1 or not all(
        0 < len(vector) <= _MAX_DIMENSIONS for vector in vectors
    ):
        raise _embedding_error(embedder, "its vectors are empty, too long or of different lengths")
    return [_normalise_vector(embedder, vector) for vector in vectors]


def to_blob(vector: array[float]) -> bytes:
    """A vector in the form in which it is stored, little-endian on every machine."""
    return _little_endian(vector).tobytes()


def from_blob(blob: bytes) -> array[float]:
    """A stored vector."""
    return _little_endian(array("f", blob))


def sign_bits(vector: Sequence[float]) -> int:
    """One bit per component: whether it is above zero."""
    return int("".join("1" if number > 0 else "0" for number in vector), 2)


def nearest_by_signs(query_bits: int, bits_by_number: Mapping[int, int]) -> list[int]:
    """The numbers of the passages whose signs differ least from those of the query."""
    if len(bits_by_number) <= EXACT_BELOW:
        return list(bits_by_number)
    return heapq.nsmallest(
        CANDIDATES, bits_by_number, key=lambda number: (bits_by_number[number] ^ query_bits).bit_count()
    )


def cosine(first: Sequence[float], second: Sequence[float]) -> float:
    """The cosine similarity of two unit vectors, from -1 to 1."""
    return math.fsum(map(mul, first, second))


def reciprocal_rank_fusion(orders: Iterable[Sequence[int]]) -> dict[int, float]:
    """Merge several rankings of passages: each adds 1 / (60 + rank) to a passage, and the sums decide.

    Only ranks count, so scores of different kinds need no common scale. The best passage is first.
    """
    scores: dict[int, float] = {}
    for order in orders:
        for rank, number in enumerate(order, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (_RANK_OFFSET + rank)
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def _normalise_vector(embedder: Embedder, vector: array[float]) -> array[float]:
    length = math.sqrt(sum(map(mul, vector, vector)))
    if not math.isfinite(length):
        raise _embedding_error(embedder, "a vector has components that are not finite")
    return array("f", (number / length for number in vector)) if length else vector


def _little_endian(vector: array[float]) -> array[float]:
    if sys.byteorder == "big":
        vector = vector[:]
        vector.byteswap()
    return vector


def _embedding_error(embedder: Embedder, reason: str) -> ToolError:
    return ToolError(
        f"The embedding model {embedder.name!r} failed: {reason}.",
        code="embedding_failed",
        retryable=True,
        hint="Search by words still works.",
    )
