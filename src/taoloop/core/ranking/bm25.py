"""BM25 with weighted fields (BM25F): how well each text of a set fits the words of a query. Pure."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from taoloop.core.ranking.query import QueryWord, text_terms

SATURATION = 1.2
"""k1: how soon a further occurrence of a word stops counting."""

COMMON_WEIGHT = 0.15
"""How much a word counts that any question may have."""


@dataclass(frozen=True, slots=True)
class RankedField:
    """How a field of a text counts."""

    weight: float
    """How much an occurrence counts."""
    length_share: float = 0.75
    """b: how far a long field makes each of its words count less, 0 to 1."""


class Bm25Index:
    """Texts of several fields, ranked by the words of a query."""

    def __init__(self, fields: Sequence[RankedField], texts: Iterable[Sequence[str]]) -> None:
        """`texts` are the texts to rank, each with one text per field."""
        terms = [[text_terms(field) for field in text] for text in texts]
        self._size = len(terms)
        self._postings: defaultdict[str, dict[int, float]] = defaultdict(dict)
        for column, field in enumerate(fields):
            lengths = [len(text[column]) for text in terms]
            average = (sum(lengths) / len(lengths) if lengths else 0) or 1
            for number, text in enumerate(terms):
                norm = 1 - field.length_share + field.length_share * lengths[number] / average
                count = field.weight / norm if norm else 0.0  # what an occurrence adds
                for term in text[column]:
                    posting = self._postings[term]
                    posting[number] = posting.get(number, 0.0) + count

    def rank(self, words: Iterable[QueryWord], at_most: int) -> list[tuple[int, float]]:
        """The numbers of the texts that fit best, with their scores, the best first.

        A common word adds to the score of a text that another word has found; by itself it finds a text only where a
        query has no other words.
        """
        scores: dict[int, float] = {}
        ordered = sorted(words, key=lambda word: word.is_common)
        for word in ordered:
            for number, score in self._score_word(word.stems).items():
                if number in scores or not word.is_common or ordered[0].is_common:
                    scores[number] = scores.get(number, 0.0) + (COMMON_WEIGHT if word.is_common else 1.0) * score
        return heapq.nsmallest(at_most, scores.items(), key=lambda item: (-item[1], item[0]))

    def _score_word(self, stems: Mapping[str, float]) -> dict[int, float]:
        """What one word of a query adds: of the stems that stand for it, the one that fits a text best.

        A synonym is never rarer than the word itself, or, where no text has the word, than all synonyms together:
        else a rare synonym would outweigh a word that is meant.
        """
        found = {stem: self._postings[stem] for stem in stems if stem in self._postings}
        if not found:
            return {}
        asked = [stem for stem in found if stems[stem] == 1.0]
        common = self._rarity(len(set().union(*(found[stem] for stem in asked or found))))
        best: dict[int, float] = {}
        for stem, posting in found.items():
            factor = stems[stem] * min(common, self._rarity(len(posting)))
            for number, count in posting.items():
                score = factor * count * (SATURATION + 1) / (count + SATURATION)
                if score > best.get(number, 0.0):
                    best[number] = score
        return best

    def _rarity(self, count: int) -> float:
        return math.log(1 + (self._size - count + 0.5) / (count + 0.5))
