"""Embedding models of your own, for search by meaning: of passages, and of the tools that a prompt does not list."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from operator import mul
from typing import Any, Protocol, runtime_checkable

from taoloop.errors import ToolError
from taoloop.tools.settings_check import invalid_field

BATCH_SIZE = 64
"""How many texts one call of an embedding model gets at most."""

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


def check_embedder(owner: str, embedder: object) -> None:
    """Check the setting `embedder` of the class `owner`; None is valid.

    Raises:
        ConfigError: it is a class, or has no name or method.
    """
    name: Any = getattr(embedder, "name", None)
    is_named = isinstance(name, str) and bool(name) and not any("\ud800" <= char <= "\udfff" for char in name)
    is_model = is_named and not isinstance(embedder, type) and callable(getattr(embedder, "embed", None))
    if embedder is not None and not is_model:
        expected = "an object, not a class, with a text `name` and a method `embed`"
        raise invalid_field(owner, "embedder", embedder, expected)


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


def cosine(first: Sequence[float], second: Sequence[float]) -> float:
    """The cosine similarity of two unit vectors, from -1 to 1."""
    return math.fsum(map(mul, first, second))


def reciprocal_rank_fusion(orders: Iterable[Sequence[int]]) -> dict[int, float]:
    """Merge several rankings of numbered things: each adds 1 / (60 + rank) to one, and the sums decide.

    Only ranks count, so scores of different kinds need no common scale. The best is first; of equals the one that an
    earlier ranking has first.
    """
    scores: dict[int, float] = {}
    for order in orders:
        for rank, number in enumerate(order, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (_RANK_OFFSET + rank)
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def _normalise_vector(embedder: Embedder, vector: array[float]) -> array[float]:
    length = math.sqrt(sum(map(mul, vector, vector)))
    if not math.isfinite(length):
        raise _embedding_error(embedder, "a vector has components that are not finite")
    return array("f", (number / length for number in vector)) if length else vector


def _embedding_error(embedder: Embedder, reason: str) -> ToolError:
    return ToolError(
        f"The embedding model {embedder.name!r} failed: {reason}.",
        code="embedding_failed",
        retryable=True,
        hint="Search by words still works.",
    )
