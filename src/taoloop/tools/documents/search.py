"""Finding passages: by their words (BM25), and with an embedding model by their meaning too.

The rarest words of a question say the most, and the commonest cost the most. So words that stand in no passage or in
very many are dropped, and of the others the rarest are taken until their passages are enough: a search costs the same
for a long question and in a large folder. Where that leaves out a part of a short question, passages with all of its
words come first.
"""

from __future__ import annotations

import math
import re
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from taoloop.errors import ToolError
from taoloop.tools.documents.embedding import (
    CANDIDATES,
    Embedder,
    cosine,
    from_blob,
    nearest_signs,
    reciprocal_rank_fusion,
    sign_bits,
    vectors_of,
)
from taoloop.tools.documents.index import Index, IndexedPassage, embedded, generation, passages
from taoloop.tools.fts_words import query_terms

_MANY = 3_000  # passages that the words of one search may stand in, together
_COMMON_SHARE = 0.25  # a word in more of the passages than that says little
_FEW = 50  # passages: in an index so small every word counts
_FEW_WORDS = 8  # of a question so short that a passage may hold them all
_ORDER = 50  # how much of each order is joined
_PREFIX_CHARS = 3  # a shorter beginning of a word says too little
_MOST_WORDS = 64  # of a question that are looked up
_MOST_SEARCHED = 24  # of them that are searched for
_MOST_PREFIXES = 4
_ASKING = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can could did do does for from has have how i if in is it its me my of on or should "
        "tell that the there this to was we were what when where which who why will with would you your "
        "什么 怎么 怎样 如何 为什 是否 哪些 哪个 多少 请问 可以 是什 么是 的是 是谁 吗 呢",
    )
)  # words of every question, which may be rare in documents and say nothing of what is looked for


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found, and how well it fits: only for comparison with others of the same search."""

    passage: IndexedPassage
    score: float


@dataclass(slots=True)
class _Known:
    """What is known of one generation of the index."""

    generation: int = -1
    size: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    signs: Mapping[int, int] | None = None


class Search:
    """Searches one index, from any thread."""

    def __init__(self, index: Index, embedder: Embedder | None = None) -> None:
        self._index, self._embedder = index, embedder
        self._known = _Known()
        self._lock = threading.Lock()

    def find(self, query: str, limit: int) -> list[Hit]:
        """The most fitting passages, the best first; any text is a query.

        Where the embedding model fails, those that the words find.

        Raises:
            ToolError: the index cannot be used.
        """
        with self._index.open() as database:
            known = self._of_now(database)
            order = self._by_words(database, known, query, limit if self._embedder is None else max(limit, _ORDER))
            if self._embedder is not None and query.strip():
                order = self._joined(database, known, self._embedder, query, order)
            best = dict(list(order.items())[:limit])
            marks = ",".join("?" * len(best))
            found = {one.number: one for one in passages(database, f"WHERE passage.number IN ({marks})", best)}
        return [Hit(found[number], score) for number, score in best.items() if number in found]

    def _of_now(self, database: sqlite3.Connection) -> _Known:
        present = generation(database)
        with self._lock:
            if self._known.generation != present:
                size = int(database.execute("SELECT count(*) FROM passage").fetchone()[0])
                self._known = _Known(generation=present, size=size)
            return self._known

    def _by_words(self, database: sqlite3.Connection, known: _Known, query: str, limit: int) -> dict[int, float]:
        asked = query_terms(query)
        words = ([word for word in asked if word not in _ASKING] or asked)[:_MOST_WORDS]
        counts = {word: self._count(database, known, word) for word in words}
        telling, left = _telling(counts, known.size)
        if not telling:
            prefixes = [f'"{word}"*' for word in words if len(word) >= _PREFIX_CHARS][:_MOST_PREFIXES]
            return _ranked(database, " OR ".join(prefixes), limit) if prefixes else {}
        found: dict[int, float] = {}
        if left and len(telling) + len(left) <= _FEW_WORDS:
            found = _ranked(database, " AND ".join(f'"{word}"' for word in (*telling, *left)), limit)
        if len(found) < limit:
            least = min(found.values(), default=math.inf)
            some = _ranked(database, " OR ".join(f'"{word}"' for word in telling), limit)
            found |= {number: min(score, least) for number, score in some.items() if number not in found}
        return dict(list(found.items())[:limit])

    def _count(self, database: sqlite3.Connection, known: _Known, word: str) -> int:
        """In how many passages a word stands, as far as it matters."""
        count = known.counts.get(word)
        if count is None:
            query = "SELECT count(*) FROM (SELECT 1 FROM passage_words WHERE passage_words MATCH ? LIMIT ?)"
            count = int(database.execute(query, (f'"{word}"', _MANY + 1)).fetchone()[0])
            if len(known.counts) < 50_000:
                known.counts[word] = count
        return count

    def _joined(
        self, database: sqlite3.Connection, known: _Known, embedder: Embedder, query: str, order: Mapping[int, float]
    ) -> dict[int, float]:
        """The order of the words and that of the meaning as one."""
        if embedded(database) != embedder.name:  # another process has another model, or nothing is embedded yet
            return dict(order)
        try:
            wanted = vectors_of(embedder, [query])[0]
        except ToolError:
            return dict(order)
        if known.signs is None:
            rows = database.execute("SELECT number, signs FROM vector")
            known.signs = {number: int.from_bytes(blob) for number, blob in rows}
        near = {*nearest_signs(sign_bits(wanted), known.signs), *list(order)[:CANDIDATES]}
        marks = ",".join("?" * len(near))
        rows = database.execute(f"SELECT number, vector FROM vector WHERE number IN ({marks})", tuple(near))  # noqa: S608  # question marks
        angles = {
            number: cosine(wanted, vector) for number, blob in rows if len(vector := from_blob(blob)) == len(wanted)
        }
        by_meaning = sorted((number for number in angles if angles[number] > 0), key=lambda number: -angles[number])
        return reciprocal_rank_fusion((list(order)[:_ORDER], by_meaning[:_ORDER]))


def _telling(counts: Mapping[str, int], size: int) -> tuple[list[str], list[str]]:
    """The words to search for, the rarest first, and those that would be, stood they in fewer passages."""
    there = sorted((word for word in counts if counts[word]), key=lambda word: counts[word])
    most = max(size * _COMMON_SHARE, _FEW)
    chosen: list[str] = []
    left: list[str] = []
    total = 0
    for word in there:
        total += counts[word]
        if not chosen or (total <= _MANY and counts[word] <= most and len(chosen) < _MOST_SEARCHED):
            chosen.append(word)
        elif counts[word] <= min(most, _MANY):
            left.append(word)
    return chosen, left


def _ranked(database: sqlite3.Connection, matching: str, limit: int) -> dict[int, float]:
    rows: Sequence[tuple[int, float]] = database.execute(
        "SELECT rowid, rank FROM passage_words WHERE passage_words MATCH ? ORDER BY rank LIMIT ?", (matching, limit)
    ).fetchall()
    return {number: round(-rank, 4) for number, rank in rows}
