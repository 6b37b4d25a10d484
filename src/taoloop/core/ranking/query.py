"""The words of a query, each with the stems that may stand for it in a text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from taoloop.core.ranking.lexicon import chinese_words, synonyms
from taoloop.core.ranking.porter import porter_stem
from taoloop.core.text import lazy_pattern
from taoloop.core.words import CJK, cjk_pairs, name_words

_MAX_CHARS = 1_000
_MAX_PHRASE = 4  # words
_MAX_CHINESE_WORD = 5  # characters
COMMON_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and any are as at be by can could did do does for from has have how i if in into is it its me my of on "
        "or our please should tell that the their them there these they this to us was we were what when where which "
        "who whose why will with would you your "
        "什么 怎么 怎样 如何 为什 是否 哪些 哪个 多少 请问 可以 是什 么是 的是 是谁 吗 呢",
    )
)
"""Words of any question, of Chinese pairs of characters: they may be rare in texts, but say little."""

_PIECE = lazy_pattern(rf"[{CJK}]+|[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a query."""

    stems: Mapping[str, float]
    """What may stand for it in a text, and how much each counts: the word itself 1, another word less."""
    is_common: bool = False
    """Whether any question may have the word, so that it says little."""


def text_terms(text: str) -> list[str]:
    """The terms by which a text is found: stems of its words, of CJK every character and every pair of neighbours."""
    return [term for piece in _PIECE.findall(text) for term in _piece_terms(piece)]


@lru_cache(maxsize=50_000)
def _piece_terms(piece: str) -> tuple[str, ...]:
    """The terms of a run of letters; texts have the same ones over and over."""
    if piece.isascii():
        return tuple(porter_stem(word) for word in name_words(piece))
    return (*piece, *cjk_pairs(piece))


def query_words(text: str) -> list[QueryWord]:
    """The words of a query with their synonyms and translations; a phrase that has synonyms is a word of its own."""
    words: list[QueryWord] = []
    english: list[str] = []
    for piece in _PIECE.findall(text[:_MAX_CHARS]):
        if piece.isascii():
            english += name_words(piece)
        else:
            words += _chinese(piece)
    return [*_english(english), *words]


def _english(words: list[str]) -> Iterator[QueryWord]:
    table, stems = synonyms(), [porter_stem(word) for word in words]
    for word, stem in dict(zip(words, stems, strict=True)).items():
        yield QueryWord({**table.get((stem,), {}), stem: 1.0}, word in COMMON_WORDS)
    for length in range(2, _MAX_PHRASE + 1):
        for start in range(len(stems) - length + 1):
            if others := table.get(tuple(stems[start : start + length])):
                yield QueryWord(others)


def _chinese(run: str) -> Iterator[QueryWord]:
    for term in cjk_pairs(run) or [run]:
        yield QueryWord({term: 1.0}, term in COMMON_WORDS)
    for stems in _translations(run):
        yield QueryWord({stem: 1.0 if number == 0 else 0.8 for number, stem in enumerate(stems)})


def translated_words(text: str) -> list[str]:
    """English stems for the Chinese words of a text, each once."""
    runs = (piece for piece in _PIECE.findall(text[:_MAX_CHARS]) if not piece.isascii())
    return list(dict.fromkeys(stem for run in runs for stems in _translations(run) for stem in stems))


def _translations(run: str) -> Iterator[tuple[str, ...]]:
    """For each Chinese word of a run that the table has, its English stems; the longest word counts."""
    table, start = chinese_words(), 0
    while start < len(run):
        lengths = range(min(_MAX_CHINESE_WORD, len(run) - start), 0, -1)
        word = next((run[start : start + length] for length in lengths if run[start : start + length] in table), "")
        if word:
            yield table[word]
        start += len(word) or 1
