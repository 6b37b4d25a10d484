"""Scores: a passage counts with its section, words as written and their neighbours count more, names by their parts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from tests.tools.documents.test_search import indexed

from taoloop.core.ranking.porter import porter_stem
from taoloop.core.words import index_terms
from taoloop.tools.documents.section_scores import _WordCounter, word_weight

FILLER = "The house has a garden, a wall, and a gate that is closed at night by the man next door."


def first(root: Path, query: str, **texts: str) -> str:
    others = {f"other{number}": f"# Other {number}\n\n{FILLER} {number}" for number in range(8)}
    return indexed(root, **texts, **others).search(query, 1)[0].passage.file


def test_a_passage_counts_with_the_rest_of_its_section(tmp_path: Path) -> None:
    same = f"The zebra eats grass on this farm. {FILLER}"
    whole = f"# Animals\n\n{same}\n\nThe quagga is a kind of it, as people said. {FILLER}"
    assert first(tmp_path / "texts", "zebra quagga", a=f"# Birds\n\n{same}", b=whole) == "b.md"


def test_a_section_counts_to_its_end_and_its_best_passage_is_the_result(tmp_path: Path) -> None:
    middle = "\n\n".join([FILLER] * 5)
    texts = {"a": f"# Birds\n\nThe zebra eats.\n\n{middle}\n\n{FILLER}", "b": f"# Farms\n\nThe zebra eats.\n\n{middle}"}
    texts["b"] += f"\n\n{FILLER} The quagga, too; as a quagga is a zebra."
    hits = indexed(tmp_path / "texts", **texts).search("zebra quagga", 2)
    assert [hit.passage.file for hit in hits] == ["b.md", "a.md"]
    assert "quagga" in hits[0].passage.text


def test_a_section_is_more_about_what_it_says_first(tmp_path: Path) -> None:
    zebra = f"The zebra is striped. {FILLER}"
    blocks = {"a": ["# Birds", FILLER, FILLER, zebra], "b": ["# Farms", zebra, FILLER, FILLER]}
    texts = {name: "\n\n".join(block) for name, block in blocks.items()}
    assert first(tmp_path / "texts", "zebra striped", **texts) == "b.md"


def test_a_section_whose_title_alone_has_words_is_found(tmp_path: Path) -> None:
    assert indexed(tmp_path / "texts", zebra="!!!").search("zebra", 1)[0].passage.text == "!!!"


def test_a_word_as_it_is_written_counts_more_than_another_with_its_stem(tmp_path: Path) -> None:
    texts = {"a": f"The generic zebra. {FILLER}", "b": f"The general zebra. {FILLER}"}
    assert first(tmp_path / "texts", "general zebra", **texts) == "b.md"


def test_a_form_that_few_sections_have_counts_more_than_one_that_most_have(tmp_path: Path) -> None:
    others = {f"number{number}": f"The zebras were striping {number}. {FILLER}" for number in range(6)}
    texts = {"a": f"The zebras were stripes. {FILLER}", "b": f"A zebra was striping. {FILLER}"}
    assert first(tmp_path / "texts", "zebra striping", **others, **texts) == "b.md"


def test_a_word_of_any_question_decides_where_it_is_the_name_of_something(tmp_path: Path) -> None:
    texts = {"a": f"The for statement. {FILLER}", "b": f"The while statement. {FILLER}"}
    assert first(tmp_path / "texts", "how is a for statement run", **texts) == "a.md"


def test_a_word_of_any_question_that_is_rare_in_the_texts_says_little(tmp_path: Path) -> None:
    texts = {"a": f"Why not? {FILLER}", "b": f"The zebra. {FILLER}", "c": f"A zebra, too. {FILLER}"}
    assert word_weight("why", 4.0) == word_weight("why", 2.0) < word_weight("zebra", 2.0)
    assert word_weight("with", 0.3) == 0.3
    assert first(tmp_path / "texts", "why zebra", **texts) in ("b.md", "c.md")


def test_words_side_by_side_count_more_than_the_same_words_apart(tmp_path: Path) -> None:
    texts = {"a": f"A zebra and, far away, a fence. {FILLER}", "b": f"A zebra fence and, far away, nothing. {FILLER}"}
    assert first(tmp_path / "texts", "zebra fence", **texts) == "b.md"


@pytest.mark.parametrize(("query", "file"), [("nginx https", "english.md"), ("nginx https 代理", "chinese.md")])
def test_a_query_without_chinese_finds_the_english_page_before_its_translation(
    tmp_path: Path, query: str, file: str
) -> None:
    chinese = f"# 代理\n\n在 nginx 后面使用 https，证书由 nginx 管理。{'请求先到代理。' * 9}"
    assert (
        first(tmp_path / "texts", query, chinese=chinese, english=f"# Proxies\n\nRun nginx: {FILLER} Then https.")
        == file
    )


def test_a_query_with_chinese_finds_the_chinese_page_before_its_translation(tmp_path: Path) -> None:
    chinese = f"# 记录\n\n最后导出到 Langfuse。{'内容不含密钥。' * 9}"
    english = f"# Logs\n\nThey go to Langfuse. {FILLER}"
    search = indexed(tmp_path / "texts", chinese=chinese, english=english, spanish=f"# Otro\n\nNada. {FILLER}")
    assert [hit.passage.file for hit in search.search("Langfuse", 2)] == ["english.md", "chinese.md"]
    assert [hit.passage.file for hit in search.search("怎样发往 Langfuse", 2)] == ["chinese.md", "english.md"]


@pytest.mark.parametrize(
    ("text", "terms", "cjk_terms"),
    [
        ("Чай и кофе — в кладовой", 5, 0),
        ("├── tea └── cup", 2, 0),
        ("Käse für Zoë", 3, 0),
        ("喝茶 tea", 5, 4),
        ("お茶", 4, 4),
        ("차", 2, 2),
    ],
)
def test_only_chinese_japanese_and_korean_count_by_characters(text: str, terms: int, cjk_terms: int) -> None:
    counts = _WordCounter(["tea"]).count(text)
    assert (counts.terms, counts.cjk_terms) == (terms, cjk_terms)


def test_a_name_in_camel_case_is_found_by_its_words(tmp_path: Path) -> None:
    assert first(tmp_path / "texts", "cancel invoice", a=f"Call cancelInvoice. {FILLER}") == "a.md"


def test_words_are_counted_in_all_their_forms_as_an_index_has_them() -> None:
    text = topics["specialnames"].lower() + "删除消息，消息 api文档 Ürümqi"
    terms = index_terms(text)
    words = {porter_stem(word): word for word in [*index_terms(topics["strings"]), *terms] if word.isascii()}
    counts = _WordCounter([*words.values(), "消息", "图片", "urumqi"]).count(text)
    expected = Counter(stem for stem in map(porter_stem, terms) if stem in words)
    assert {stem: counts.stems.get(stem, 0) for stem in words} == {stem: expected[stem] for stem in words}
    written = Counter(terms)
    assert {word: counts.stems.get(f"={word}", 0) for word in words.values()} == {
        word: written[word] for word in words.values()
    }
    assert counts.stems["消息"] == 2
    assert "图片" not in counts.stems
    assert counts.stems["urumqi"] == counts.stems["=urumqi"] == 1
    assert not _WordCounter([]).count(text).stems
