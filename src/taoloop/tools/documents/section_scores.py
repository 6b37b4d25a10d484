"""How well passages fit a query, judged together with the sections that they are in. Pure.

The score is BM25 with weighted fields (BM25F): how often a stem occurs in a passage, in its whole section and in the
titles is added up before it counts less and less, so that no field counts the same evidence once more. A passage lacks
words that its section has, and a long section has words that have nothing to do with each other. What a section says
first, like its headings, tells what it is about, and counts more.
A word as the query has it is a term of its own beside its stem, as rare as that form is, and so is a pair of neighbours
in the query: so all that plain BM25 knows of a text is in the sum. Words of any question may be rare in a technical
text ("why"), but say little, so none weighs more than a word that half of the sections have; where they are names
("with", "for", "is"), they are frequent and keep their weight.
A section in Chinese ranks behind its like in English for a query without Chinese, and one in English behind its like in
Chinese for a query with Chinese: who asks so wants to read that.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import compress, filterfalse, pairwise
from typing import NamedTuple, TypeVar

from taoloop.core.ranking.porter import porter_stem
from taoloop.core.ranking.query import COMMON_WORDS
from taoloop.core.text import lazy_pattern
from taoloop.core.words import CJK, clean_text, name_parts
from taoloop.tools.documents.index import TITLE_WEIGHT, IndexedPassage, IndexTotals, title_text

_SATURATION = 3.5  # k1: high, because an occurrence may be in the passage, the section and the titles at once
_LENGTH_SHARE = 0.5  # b: a long section often says more, and not only the same at greater length
_OPENING_CHARS = 150  # of a section that count like its headings: about a sentence
_FOREIGN_SHARE = 0.8  # of the score that a section keeps that is not in the language of the query
_CHINESE_SHARE = 0.25  # of the terms of a section in Chinese, the rest being code and names
_COMMON_RARITY = math.log(2)  # of a word that half of the sections have: at most that of a word of any question
_WRITTEN_WEIGHT = 0.4  # of a word as it is written in the query, beside its stem
_PAIR_WEIGHT = 0.25

_CJK_CHARACTER = lazy_pattern(f"[{CJK}]")
_LETTERS = lazy_pattern(rf"[^\W{CJK}_]+")
# ASCII, dashes, quotation marks, and Chinese with its punctuation: no letters that need more than ASCII or normalizing
_PLAIN = lazy_pattern(r"[\x00-\x7f\u2010-\u2027\u3000-\u3003\u3008-\u301b，：；！？（）\u4e00-\u9fff]*")
_LETTERS_ONLY = bytes(code if code < 128 and chr(code).isalnum() else 32 for code in range(256))
# all but the first bytes of U+3000 to U+D7FF in UTF-8, which are Chinese, Japanese and Korean but for some rare signs
_NOT_CJK = bytes(code for code in range(256) if not 0xE3 <= code <= 0xED)
_Term = TypeVar("_Term")


@dataclass(slots=True)
class _Counts:
    """What a text has of a query."""

    terms: int = 0
    cjk_terms: int = 0
    stems: dict[str, float] = field(default_factory=dict)
    """Of stems, and of words as they are in the query (`_written`)."""
    pairs: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, other: _Counts) -> None:
        self.terms += other.terms
        self.cjk_terms += other.cjk_terms
        _add(self.stems, other.stems)
        if other.pairs:
            _add(self.pairs, other.pairs)


class _SectionCounts(NamedTuple):
    """What a section has of a query."""

    titles: Mapping[str, float]
    """In its headings, its file name and its beginning."""
    passages: Mapping[int, _Counts]
    """In each passage, by its number."""
    whole: _Counts
    """In all of them."""


class _WordCounter:
    """Counts the words of a query in texts, in every form that has the same stem."""

    def __init__(self, words: Sequence[str]) -> None:
        self._runs = [word for word in words if _CJK_CHARACTER.match(word)]
        self.is_latin = not self._runs
        self.stems = {word: word if word in self._runs else porter_stem(_without_accents(word)) for word in words}
        self._wanted = {*self.stems.values()}
        self._beginnings = (*{stem[:2] for stem in self._wanted},)  # which a word and its stem have in common
        self.pairs = {*pairwise(self.stems.values())}
        self._known: set[str] = set()  # of the words of texts
        self._terms: dict[str, list[str]] = {}  # those with stems of the query: these, and forms as they are there
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
                self._rows[word] = [stem for _, stem in forms]
                self._terms[word] = self._rows[word] + [_written(form) for form, _ in forms if form in self.stems]
        cjk_terms = 2 * len(text.encode().translate(None, _NOT_CJK))  # each character, and its pair with the next one
        counts = _Counts(len(words) + cjk_terms, cjk_terms)
        stems, pairs, previous, last = counts.stems, counts.pairs, -1, ""
        for index in compress(range(len(words)), map(self._terms.__contains__, words)):
            word = words[index]
            for term in self._terms[word]:
                stems[term] = stems.get(term, 0.0) + 1
            row = self._rows[word]
            for pair in pairwise((last, *row) if index == previous + 1 else row):
                if pair in self.pairs:
                    pairs[pair] = pairs.get(pair, 0.0) + 1
            previous, last = index, row[-1]
        if self._runs and not text.isascii():
            self._count_runs(text, counts)
        return counts

    def _count_runs(self, text: str, counts: _Counts) -> None:
        """Count what is written without spaces: pairs of characters, and three where two pairs overlap."""
        found = {run: number for run in self._runs if (number := text.count(run))}
        counts.stems |= found
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
    counted = [_count_section(counter, section) for section in sections]
    weights = _weigh_terms(counter, rarities, [section.whole for section in counted])
    pair_weights = {pair: _PAIR_WEIGHT * max(weights[stem] for stem in pair) for pair in counter.pairs}
    best: dict[int, float] = {}
    others: dict[int, float] = {}
    for section in counted:
        whole = section.whole
        norm = _length_norm(whole.terms * totals.sections / totals.terms)
        shared = {stem: TITLE_WEIGHT * number for stem, number in section.titles.items()}
        _add(shared, {stem: number / norm / 2 for stem, number in whole.stems.items()})
        together = _bm25(pair_weights, {pair: number / norm for pair, number in whole.pairs.items()})
        is_foreign = (whole.cjk_terms > _CHINESE_SHARE * whole.terms) == counter.is_latin
        share = _FOREIGN_SHARE if is_foreign else 1.0
        scores: dict[int, float] = {}
        for number, part in section.passages.items():
            norm = _length_norm(part.terms * totals.passages / totals.terms)
            frequencies = {stem: number + part.stems.get(stem, 0.0) / norm / 2 for stem, number in shared.items()}
            scores[number] = round((_bm25(weights, frequencies) + together) * share, 4)
        first = max(scores, key=lambda number: scores[number])
        best[first] = scores.pop(first)
        others |= scores
    return _sort_down(best) | _sort_down(others)


def word_weight(word: str, rarity: float) -> float:
    """What a word of a query weighs that is so rare."""
    return min(rarity, _COMMON_RARITY) if word in COMMON_WORDS else rarity


def _weigh_terms(counter: _WordCounter, rarities: Mapping[str, float], sections: Sequence[_Counts]) -> dict[str, float]:
    """The weights of stems, and of words as they are written: the index has no more than how rare their stems are.

    A form that half of the sections with its stem have is half as frequent; these sections tell how many have it.
    """
    spread = Counter(term for section in sections for term in section.stems)
    weights: dict[str, float] = {}
    for word, stem in counter.stems.items():
        written = _written(word)
        share = (spread[written] + 0.5) / (spread[stem] + 0.5)
        weights[stem] = max(word_weight(word, rarities[word]), weights.get(stem, 0.0))
        weights[written] = _WRITTEN_WEIGHT * word_weight(word, rarities[word] - math.log(share))
    return weights


def _count_section(counter: _WordCounter, section: Sequence[IndexedPassage]) -> _SectionCounts:
    passages = {passage.number: counter.count(passage.text) for passage in section}
    return _SectionCounts(counter.count(_titles_and_opening(section)).stems, passages, _sum(passages.values()))


def _written(word: str) -> str:
    """The term that stands for a word as it is written; no stem has such a sign."""
    return f"={word}"


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


def _add(counts: dict[_Term, float], others: Mapping[_Term, float]) -> None:
    for term, number in others.items():
        counts[term] = counts.get(term, 0.0) + number


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


def _bm25(weights: Mapping[_Term, float], frequencies: Mapping[_Term, float]) -> float:
    return sum(
        weights[term] * frequency * (_SATURATION + 1) / (frequency + _SATURATION)
        for term, frequency in frequencies.items()
    )


def _length_norm(length: float) -> float:
    """What a frequency is divided by in a text of this length, relative to the average."""
    return 1 - _LENGTH_SHARE + _LENGTH_SHARE * length
