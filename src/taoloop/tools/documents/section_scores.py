"""How well passages fit a query, judged together with the sections that they are in. Pure.

The score is a sum of BM25 over the stems of a passage, over those of its whole section, over the words of the section
as they are written, and over pairs of neighbours in the query that are neighbours in the section. Where one of them
errs, the others seldom do: a passage lacks words that its section has, two words share a stem, and words far apart have
nothing to do with each other. What a section says first, like its headings, tells what it is about, and counts more.
A section in Chinese ranks behind its like in English for a query without Chinese: who asks so wants to read that.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import filterfalse, pairwise
from typing import TypeVar

from taoloop.core.ranking.bm25 import COMMON_WEIGHT, SATURATION
from taoloop.core.ranking.porter import porter_stem
from taoloop.core.ranking.query import COMMON_WORDS
from taoloop.core.text import lazy_pattern
from taoloop.core.words import CJK, clean_text, name_parts
from taoloop.tools.documents.index import TITLE_WEIGHT, IndexedPassage, IndexTotals, title_text

_STEM_SATURATION = 2.0  # k1 for stems, of which a text has more than of one form
_LENGTH_SHARE = 0.6  # b: a long section often says more, and not only the same at greater length
_OPENING_CHARS = 150  # of a section that count like its headings: about a sentence
_FOREIGN_SHARE = 0.8  # of the score that a section in Chinese keeps for a query without Chinese
_WRITTEN_WEIGHT = 0.5
_PAIR_WEIGHT = 0.5

_CJK_CHARACTER = lazy_pattern(f"[{CJK}]")
_LETTERS = lazy_pattern(rf"[^\W{CJK}_]+")
# ASCII, dashes, quotation marks, and Chinese with its punctuation: no letters that need more than ASCII or normalizing
_PLAIN = lazy_pattern(r"[\x00-\x7f\u2010-\u2027\u3000-\u3003\u3008-\u301b，：；！？（）\u4e00-\u9fff]*")
_LETTERS_ONLY = bytes(code if code < 128 and chr(code).isalnum() else 32 for code in range(256))
_Term = TypeVar("_Term")
_GAP = ("",)


@dataclass(slots=True)
class _Counts:
    """What a text has of a query."""

    terms: int = 0
    cjk_terms: int = 0
    stems: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    pairs: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, other: _Counts) -> None:
        self.terms += other.terms
        self.cjk_terms += other.cjk_terms
        _add(self.stems, other.stems)
        _add(self.written, other.written)
        if other.pairs:
            _add(self.pairs, other.pairs)


class _WordCounter:
    """Counts the words of a query in texts, in every form that has the same stem."""

    def __init__(self, words: Sequence[str]) -> None:
        self._runs = [word for word in words if _CJK_CHARACTER.match(word)]
        self.is_latin = not self._runs
        self.stems = {word: word if word in self._runs else porter_stem(_without_accents(word)) for word in words}
        self._wanted = {*self.stems.values()}
        self._beginnings = (*{stem[:2] for stem in self._wanted},)  # which a word and its stem have in common
        self.pairs = {*pairwise(self.stems[word] for word in words if word not in COMMON_WORDS)}
        self._known: set[str] = set()  # of the words of texts
        self._forms: dict[str, list[tuple[str, str]]] = {}  # those with a stem of the query: what they are, and stems
        self._rows: dict[str, list[str]] = {}  # their stems alone

    def count(self, text: str) -> _Counts:
        if not (text.isascii() or _PLAIN.fullmatch(text)):
            text = clean_text(text)
            words = _LETTERS.findall(text)
        else:
            words = text.encode().translate(_LETTERS_ONLY).decode().split()
        unknown = {*filterfalse(self._known.__contains__, words)}
        self._known |= unknown
        for word in unknown:
            may_fit = word.startswith(self._beginnings) or not (word.islower() and word.isascii())
            if may_fit and (forms := [form for form in _word_forms(word) if form[1] in self._wanted]):
                self._forms[word] = forms
                self._rows[word] = [stem for _, stem in forms]
        cjk_terms = len(text.encode()) - len(text)  # a character of CJK has three bytes, and counts as two terms
        counts = _Counts(len(words) + cjk_terms, cjk_terms)
        hits = [*filter(self._forms.__contains__, words)]
        for word in hits:
            for form, stem in self._forms[word]:
                counts.written[form] = counts.written.get(form, 0) + 1
                counts.stems[stem] = counts.stems.get(stem, 0) + 1
        if len(hits) > 1 and any(first in counts.stems and second in counts.stems for first, second in self.pairs):
            row: list[str] = []
            for word in filterfalse(COMMON_WORDS.__contains__, words):
                row += self._rows.get(word, _GAP)
            _add(counts.pairs, Counter(filter(self.pairs.__contains__, pairwise(row))))
        if self._runs and not text.isascii():
            self._count_runs(text, counts)
        return counts

    def _count_runs(self, text: str, counts: _Counts) -> None:
        """Count what is written without spaces: pairs of characters, and three where two pairs overlap."""
        found = {run: number for run in self._runs if (number := text.count(run))}
        counts.stems |= found
        counts.written |= found
        for first, second in self.pairs:
            if first in found and second in found and first[-1] == second[0]:
                _add(counts.pairs, {(first, second): text.count(first + second[1:])})


def score_sections(
    sections: Iterable[Sequence[IndexedPassage]], rarities: Mapping[str, float], totals: IndexTotals
) -> dict[int, float]:
    """The scores of the passages of sections by their numbers: of each section the best one first, then the others.

    `rarities` are the words of the query in their order, each with its weight.
    """
    counter = _WordCounter([*rarities])
    stems: dict[str, float] = {}
    for word, rarity in rarities.items():
        weight = rarity * (COMMON_WEIGHT if word in COMMON_WORDS else 1.0)
        stems[counter.stems[word]] = max(weight, stems.get(counter.stems[word], 0.0))
    pairs = {pair: _PAIR_WEIGHT * max(stems[stem] for stem in pair) for pair in counter.pairs}
    written = {word: _WRITTEN_WEIGHT * rarity for word, rarity in rarities.items()}
    best: dict[int, float] = {}
    others: dict[int, float] = {}
    for section in sections:
        titles = counter.count(_titles_and_opening(section))
        counts = {passage.number: counter.count(passage.text) for passage in section}
        whole = _sum(counts.values())
        length = whole.terms * totals.sections / totals.terms
        score = _bm25(stems, whole.stems, length, _STEM_SATURATION, titles.stems, TITLE_WEIGHT)
        score += _bm25(written, whole.written, length, SATURATION, titles.written)
        score += _bm25(pairs, whole.pairs, length, SATURATION)
        share = _FOREIGN_SHARE if counter.is_latin and whole.cjk_terms > whole.terms / 2 else 1.0
        scores: dict[int, float] = {}
        for number, part in counts.items():
            length = part.terms * totals.passages / totals.terms
            own = _bm25(stems, part.stems, length, _STEM_SATURATION, titles.stems, TITLE_WEIGHT)
            scores[number] = round((score + own) * share, 4)
        first = max(scores, key=lambda number: scores[number])
        best[first] = scores.pop(first)
        others |= scores
    return _sort_down(best) | _sort_down(others)


def _sort_down(scores: Mapping[int, float]) -> dict[int, float]:
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def _sum(parts: Iterable[_Counts]) -> _Counts:
    whole = _Counts()
    for part in parts:
        whole.add(part)
    return whole


def _titles_and_opening(section: Sequence[IndexedPassage]) -> str:
    """What says what a section is about: its headings and file name, and how it begins."""
    opening = "\n".join(passage.text[:_OPENING_CHARS] for passage in section[:2])  # the first may be a heading alone
    return f"{title_text(section[0].file, section[0].heading)}\n{opening[:_OPENING_CHARS]}"


def _add(counts: dict[_Term, int], others: Mapping[_Term, int]) -> None:
    for term, number in others.items():
        counts[term] = counts.get(term, 0) + number


@lru_cache(maxsize=50_000)
def _word_forms(word: str) -> tuple[tuple[str, str], ...]:
    """A word of a text as it is compared and, of a name in camel case, the words in it; each with its stem."""
    forms = (_without_accents(word.casefold()), *(() if word.islower() else name_parts(word)))
    return tuple((form, porter_stem(form)) for form in forms)


def _without_accents(word: str) -> str:
    """A word as FTS5 compares it."""
    if word.isascii():
        return word
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))


def _bm25(
    weights: Mapping[_Term, float],
    counts: Mapping[_Term, int],
    length: float,
    saturation: float,
    titles: Mapping[_Term, int] | None = None,
    title_weight: float = 1.0,
) -> float:
    """`length`: that of the text, relative to the average."""
    norm = 1 - _LENGTH_SHARE + _LENGTH_SHARE * length
    titles = titles or {}
    score = 0.0
    for term in counts.keys() | titles.keys():
        if (weight := weights.get(term)) is not None:
            frequency = counts.get(term, 0) / norm + title_weight * titles.get(term, 0)
            score += weight * frequency * (saturation + 1) / (frequency + saturation)
    return score
