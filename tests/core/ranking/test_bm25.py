"""BM25 over weighted fields."""

from __future__ import annotations

from taoloop.core.ranking.bm25 import Bm25Index, RankedField
from taoloop.core.ranking.query import QueryWord, query_words

PLAIN = (RankedField(1.0),)


def order(index: Bm25Index, query: str) -> list[int]:
    return [number for number, _ in index.rank(query_words(query), 10)]


def test_a_rare_word_counts_more_than_a_frequent_one() -> None:
    index = Bm25Index(PLAIN, [("red zebra",), ("red blue",), ("red green",), ("black blue",)])
    assert order(index, "blue zebra")[0] == 0


def test_a_long_text_counts_less_and_a_weighty_field_more() -> None:
    assert order(Bm25Index(PLAIN, [("zebra " + "other " * 50,), ("zebra",)]), "zebra") == [1, 0]
    fields = (RankedField(3.0), RankedField(1.0))
    assert order(Bm25Index(fields, [("horse", "zebra"), ("zebra", "horse")]), "zebra") == [1, 0]


def test_a_rare_synonym_does_not_outweigh_the_word_itself() -> None:
    texts = [("obtain",), *(("fetch",) for _ in range(9))]
    word = QueryWord({"fetch": 1.0, "obtain": 0.5})
    ranked = Bm25Index(PLAIN, texts).rank([word], 10)
    assert ranked[-1][0] == 0


def test_common_words_add_and_find_nothing_by_themselves() -> None:
    index = Bm25Index(PLAIN, [("the horse",), ("a zebra",), ("the zebra",)])
    assert order(index, "the zebra") == [2, 1]
    assert order(index, "the quagga") == []
    assert order(index, "the") == [0, 2]


def test_nothing_is_found_in_nothing() -> None:
    assert Bm25Index(PLAIN, []).rank(query_words("zebra"), 5) == []
    assert Bm25Index(PLAIN, [("",)]).rank(query_words("zebra"), 5) == []
