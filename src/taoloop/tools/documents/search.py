"""Searching passages by their words (BM25) and, with an embedding model, also by meaning.

BM25 gives each word its weight: the rarer, the more. The most common words also cost the most, so in a large index the
rarest find the sections, until they cover enough, and all words then score the best of these: the cost of a search
depends neither on the length of the query nor on the size of the folder. The sections with all words of a short query
are among them. Words of any question find sections only where a query has no others; in a small index they help to
choose among those that the others find. Each section is one result, its best passage, and so are passages that say
nearly the same.
"""

from __future__ import annotations

import heapq
import math
import re
import sqlite3
import sys
import threading
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from taoloop.core.ranking.query import COMMON_WORDS, translated_words
from taoloop.core.words import fold_text, query_terms
from taoloop.errors import ToolError
from taoloop.tools.documents.index import (
    Index,
    IndexedPassage,
    IndexTotals,
    embedder_name,
    find_passages,
    find_sections,
    read_generation,
    read_totals,
)
from taoloop.tools.documents.section_scores import score_sections, word_weight
from taoloop.tools.embedding import Embedder, cosine, embed_texts, reciprocal_rank_fusion

EXACT_BELOW = 2_000
"""Up to this number, all vectors are compared by angle; above it, only those with the most similar signs."""

CANDIDATES = 200
"""How many vectors are compared by angle then."""

_MAX_SECTIONS = 50  # that are scored, of those that words find
_MAX_PASSAGES = 80  # that are scored; the best sections may have more of them than that leaves for the others
_READ_SECTIONS = 10  # that are read at a time
_MAX_MATCHES = 3_000  # sections that the words of one search may cover together
_MAX_COMMON_MATCHES = 1_000  # those that words of any question find too: the more, the less they say
_SHORT_QUERY_WORDS = 8  # of a query so short that a section may contain all of them
_GROUP_FACTOR = 4  # how many passages are looked at for each that is returned
_NEAR_DUPLICATE = 0.85  # the share of words that passages have in common if they say nearly the same
_MIN_COMMON_WORDS = 8  # shorter passages are not compared
_WORD = re.compile(r"\w+")
_MAX_MERGED = 50  # how many passages of each ranking are merged
_MIN_PREFIX_CHARS = 3  # shorter prefixes match too much
_MAX_QUERY_WORDS = 64  # of a query that are looked up
_MAX_SEARCHED_WORDS = 24  # of them that are searched
_MAX_PREFIXES = 4
_LEAST_FTS5_WEIGHT = 1e-6  # in its `bm25`, of a word in more than half of the sections


def to_blobs(vector: array[float]) -> tuple[bytes, bytes]:
    """The signs of a vector and the vector itself as they are stored, little-endian on every machine."""
    bits = sign_bits(vector)
    return bits.to_bytes((bits.bit_length() + 7) // 8), _little_endian(vector).tobytes()


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


def _little_endian(vector: array[float]) -> array[float]:
    if sys.byteorder == "big":
        vector = vector[:]
        vector.byteswap()
    return vector


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A result of a search."""

    passage: IndexedPassage
    """The passage."""
    score: float
    """How well it matches; only comparable within one search."""
    similar: tuple[IndexedPassage, ...] = ()
    """Further passages that say nearly the same."""


@dataclass(slots=True)
class _IndexStatistics:
    """Statistics of one generation of the index."""

    generation: int = -1
    totals: IndexTotals = field(default_factory=IndexTotals)
    counts: dict[str, int] = field(default_factory=dict)
    sign_bits: Mapping[int, int] | None = None


class PassageSearch:
    """Searches one index, from any thread."""

    def __init__(self, index: Index, embedder: Embedder | None = None) -> None:
        self._index, self._embedder = index, embedder
        self._statistics = _IndexStatistics()
        self._lock = threading.Lock()

    def search(self, query: str, limit: int) -> list[SearchHit]:
        """The best matching passages, the best first; any text is a query.

        If the embedding model fails, the ranking by words is used.

        Raises:
            ToolError: the index cannot be used.
        """
        with self._index.open() as database:
            statistics = self._current_statistics(database)
            hits = self._search_words(database, statistics, query, max(limit * _GROUP_FACTOR, _MAX_MERGED))
            if self._embedder is not None and query.strip():
                hits = self._merge_by_meaning(database, statistics, self._embedder, query, hits)
        return group_hits(hits[: limit * _GROUP_FACTOR], limit)

    def _current_statistics(self, database: sqlite3.Connection) -> _IndexStatistics:
        generation = read_generation(database)
        with self._lock:
            if self._statistics.generation != generation:
                self._statistics = _IndexStatistics(generation=generation, totals=read_totals(database))
            return self._statistics

    def _search_words(
        self, database: sqlite3.Connection, statistics: _IndexStatistics, query: str, limit: int
    ) -> list[SearchHit]:
        words = query_terms(query)[:_MAX_QUERY_WORDS]
        counts = {word: self._count_sections(database, statistics, word) for word in words}
        contents = [word for word in words if word not in COMMON_WORDS] or words
        is_known = any(counts[word] for word in contents)
        if not is_known and (english := translated_words(query)):
            return self._search_words(database, statistics, " ".join(english), limit)
        if not is_known:
            prefixes = [word for word in contents if len(word) >= _MIN_PREFIX_CHARS][:_MAX_PREFIXES]
            return _rank_by_prefixes(database, prefixes, limit) if prefixes else []
        sections_in_all = statistics.totals.sections
        rarities = {word: math.log((sections_in_all + 1) / (count + 0.5)) for word, count in counts.items()}
        selected, rest = _select_words(rarities, counts)
        numbers = _rank_by_weights(database, selected, counts, sections_in_all)
        frequent = [word for word in rest if counts[word] <= _MAX_MATCHES and word in contents]
        if frequent and len(selected) + len(frequent) <= _SHORT_QUERY_WORDS:
            every = " AND ".join(f'"{word}"' for word in (*selected, *frequent) if word in contents)
            numbers |= _rank_by_words(database, every, _MAX_SECTIONS)
        sections = [*_read_sections(database, [*numbers])]
        scores = score_sections(sections, rarities, statistics.totals)
        passages = {passage.number: passage for section in sections for passage in section}
        return [SearchHit(passages[number], score) for number, score in islice(scores.items(), limit)]

    def _count_sections(self, database: sqlite3.Connection, statistics: _IndexStatistics, word: str) -> int:
        """How many sections contain a word."""
        count = statistics.counts.get(word)
        if count is None:
            query = "SELECT count(*) FROM passage_words WHERE passage_words MATCH ?"
            count = int(database.execute(query, (f'"{word}"',)).fetchone()[0])
            if len(statistics.counts) < 50_000:
                statistics.counts[word] = count
        return count

    def _merge_by_meaning(
        self,
        database: sqlite3.Connection,
        statistics: _IndexStatistics,
        embedder: Embedder,
        query: str,
        hits: list[SearchHit],
    ) -> list[SearchHit]:
        """Merge the ranking by words with that by meaning."""
        if embedder_name(database) != embedder.name:  # another process uses another model, or there are no vectors yet
            return hits
        try:
            query_vector = embed_texts(embedder, [query])[0]
        except ToolError:
            return hits
        if statistics.sign_bits is None:
            rows = database.execute("SELECT number, signs FROM vector")
            statistics.sign_bits = {number: int.from_bytes(blob) for number, blob in rows}
        passages = {hit.passage.number: hit.passage for hit in hits}
        candidates = {*nearest_by_signs(sign_bits(query_vector), statistics.sign_bits), *list(passages)[:CANDIDATES]}
        placeholders = ",".join("?" * len(candidates))
        query_text = f"SELECT number, vector FROM vector WHERE number IN ({placeholders})"  # noqa: S608  # question marks
        rows = database.execute(query_text, tuple(candidates))
        similarities = {
            number: cosine(query_vector, vector)
            for number, blob in rows
            if len(vector := from_blob(blob)) == len(query_vector)
        }
        by_meaning = sorted(
            (number for number in similarities if similarities[number] > 0), key=lambda number: -similarities[number]
        )
        scores = reciprocal_rank_fusion((list(passages)[:_MAX_MERGED], by_meaning[:_MAX_MERGED]))
        unread = scores.keys() - passages.keys()
        where = f"WHERE passage.number IN ({','.join('?' * len(unread))})"
        passages |= {passage.number: passage for passage in find_passages(database, where, unread)}
        return [SearchHit(passages[number], score) for number, score in scores.items() if number in passages]


def group_hits(hits: Iterable[SearchHit], limit: int) -> list[SearchHit]:
    """The best hits: of each section the best, and of passages that say nearly the same one that names the others.

    Where that leaves fewer than `limit`, further passages of the same sections follow, the best first.
    """
    best: list[tuple[SearchHit, frozenset[str], list[IndexedPassage]]] = []
    sections: set[tuple[str, tuple[str, ...]]] = set()
    further: list[SearchHit] = []
    for hit in hits:
        if len(best) == limit:
            break
        passage = hit.passage
        if passage.heading and (passage.file, passage.heading) in sections:
            further.append(hit)
            continue
        words = frozenset(_WORD.findall(passage.text.casefold()))
        same = next((similar for _, rest, similar in best if _is_near_duplicate(words, rest)), None)
        if same is not None:
            same.append(passage)
        else:
            best.append((hit, words, []))
            sections.add((passage.file, passage.heading))
    grouped = [SearchHit(hit.passage, hit.score, tuple(similar)) for hit, _, similar in best]
    return [*grouped, *further[: limit - len(grouped)]]


def _is_near_duplicate(words: frozenset[str], rest: frozenset[str]) -> bool:
    """Whether two texts have nearly all words in common; in languages without spaces, all clauses."""
    common = len(words & rest)
    return common >= _MIN_COMMON_WORDS and common >= _NEAR_DUPLICATE * len(words | rest)


def _select_words(rarities: Mapping[str, float], counts: Mapping[str, int]) -> tuple[dict[str, float], list[str]]:
    """The words to search for with their weights, and the others, which only add theirs to the score of a section.

    The heaviest are the first, and words of any question the last.
    """
    weights = {word: word_weight(word, rarity) for word, rarity in rarities.items() if counts[word]}
    selected: dict[str, float] = {}
    rest: list[str] = []
    total = 0
    for word in sorted(weights, key=lambda word: (word in COMMON_WORDS, -weights[word])):
        total += counts[word]
        most = _MAX_COMMON_MATCHES if word in COMMON_WORDS else _MAX_MATCHES
        if not selected or (total <= most and len(selected) < _MAX_SEARCHED_WORDS):
            selected[word] = weights[word]
        else:
            rest.append(word)
    return selected, rest


def _read_sections(database: sqlite3.Connection, numbers: Sequence[int]) -> Iterator[list[IndexedPassage]]:
    """The first of these sections, until they have enough passages."""
    taken = 0
    for start in range(0, len(numbers), _READ_SECTIONS):
        for section in find_sections(database, numbers[start : start + _READ_SECTIONS]):
            if taken < _MAX_PASSAGES:
                taken += len(section)
                yield section
        if taken >= _MAX_PASSAGES:
            break


def _rank_by_prefixes(database: sqlite3.Connection, prefixes: Sequence[str], limit: int) -> list[SearchHit]:
    """Of each section the passage that has most of the prefixes."""
    scores = _rank_by_words(database, " OR ".join(f'"{prefix}"*' for prefix in prefixes), limit)
    hits: list[SearchHit] = []
    for section in find_sections(database, scores):
        best = max(section, key=lambda passage: sum(map(fold_text(passage.text).count, prefixes)))
        hits.append(SearchHit(best, scores[best.section]))
    return hits


def _rank_by_weights(
    database: sqlite3.Connection, weights: Mapping[str, float], counts: Mapping[str, int], sections: int
) -> dict[int, float]:
    """The best sections by BM25 with these weights; those of FTS5, which are 0 for frequent words, are taken out."""
    scores: dict[int, float] = {}
    are_common = weights.keys() <= COMMON_WORDS
    for word, weight in weights.items():
        may_find = are_common or word not in COMMON_WORDS
        ratio = (sections - counts[word] + 0.5) / (counts[word] + 0.5)  # below 0 if another process adds files now
        given = math.log(ratio) if ratio > 1 else _LEAST_FTS5_WEIGHT
        rows = database.execute("SELECT rowid, rank FROM passage_words WHERE passage_words MATCH ?", (f'"{word}"',))
        for number, rank in rows:
            if may_find or number in scores:
                scores[number] = scores.get(number, 0.0) - rank * weight / given
    return {number: scores[number] for number in heapq.nlargest(_MAX_SECTIONS, scores, key=lambda each: scores[each])}


def _rank_by_words(database: sqlite3.Connection, matching: str, limit: int) -> dict[int, float]:
    rows: Sequence[tuple[int, float]] = database.execute(
        "SELECT rowid, rank FROM passage_words WHERE passage_words MATCH ? ORDER BY rank LIMIT ?", (matching, limit)
    ).fetchall()
    return {number: round(-rank, 4) for number, rank in rows}
