"""An embedding model for tests: no network, no weights, the same vectors on every machine."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence

from taoloop.tools.fts_words import index_terms


class FakeEmbedder:
    """Texts that share words are near each other; `synonyms` makes words count as one.

    Each word (of Chinese each character and pair) points into a direction that its digest gives, and a text into the
    sum of its words' directions. `calls` holds the texts of every call.
    """

    def __init__(self, dimensions: int = 64, synonyms: Mapping[str, str] | None = None, name: str = "fake-1") -> None:
        self.name = name
        self.calls: list[tuple[str, ...]] = []
        self._dimensions, self._synonyms = dimensions, dict(synonyms or {})

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of length 1 per text; of a text without words all numbers are 0."""
        self.calls.append(tuple(texts))
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        total = [0.0] * self._dimensions
        for word in index_terms(text):
            for index, number in enumerate(self._direction(self._synonyms.get(word, word))):
                total[index] += number
        length = math.sqrt(sum(number * number for number in total)) or 1.0
        return [number / length for number in total]

    def _direction(self, word: str) -> list[float]:
        bits = hashlib.shake_256(word.encode("utf-8", "surrogatepass")).digest((self._dimensions + 7) // 8)
        return [1.0 if bits[index // 8] >> (index % 8) & 1 else -1.0 for index in range(self._dimensions)]
