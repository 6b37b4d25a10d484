"""A query as words with their stems, synonyms and translations."""

from __future__ import annotations

from taoloop.core.ranking.lexicon import chinese_words, synonyms
from taoloop.core.ranking.query import query_words, text_terms, translated_words


def test_names_paths_and_chinese_become_terms() -> None:
    assert text_terms("listAllBranches /users/{user_id} 中国人") == [
        *("list", "all", "branch", "user", "user", "id", "中", "国", "人", "中国", "国人"),
    ]


def test_a_word_brings_its_synonyms_for_less_than_itself() -> None:
    (word,) = query_words("deleting")
    assert word.stems["delet"] == 1.0
    assert 0 < word.stems["remov"] < 1
    assert not word.is_common


def test_a_phrase_is_a_word_of_its_own() -> None:
    assert any("count" in word.stems for word in query_words("how many orders"))
    assert not any("count" in word.stems for word in query_words("many how"))


def test_words_of_any_question_are_common() -> None:
    assert [word.is_common for word in query_words("what is zebra")] == [True, True, False]
    assert [word.is_common for word in query_words("什么")] == [True]


def test_chinese_words_are_translated_the_longest_first() -> None:
    assert translated_words("取消归档频道") == ["unarch", "channel", "convers"]
    assert translated_words("cancel 甲乙") == []
    stems = [set(word.stems) for word in query_words("删除消息")]
    assert {"delet", "remov"} in stems
    assert {"messag"} in stems
    assert {"消息"} in stems


def test_a_long_query_is_bounded() -> None:
    assert len(query_words("word " * 10_000)) == 1
    assert len(query_words("删" * 10_000)) <= 2_000


def test_the_tables_hold_words_in_their_scripts() -> None:
    assert all(stem.isascii() for phrase, stems in synonyms().items() for stem in (*phrase, *stems))
    assert all(not word.isascii() and stems for word, stems in chinese_words().items())


def test_more_words_of_people_find_those_of_interfaces() -> None:
    assert "reaction" in query_words("who reacted")[-1].stems
    assert translated_words("内容是否违规")[-1] == "moder"
