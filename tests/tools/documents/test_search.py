"""Search: in Chinese and in English, for any text, quick, and by meaning where an embedding model is given."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, strategies as st
from tests.sizes import examples
from tests.tools.documents.conftest import folder_of

from taoloop.testing.fakes import FakeEmbedder
from taoloop.tools.documents.index import Index
from taoloop.tools.documents.index_update import update_index
from taoloop.tools.documents.search import (
    EXACT_BELOW,
    PassageSearch,
    _rank_by_weights,
    _select_words,
    nearest_by_signs,
    sign_bits,
)
from taoloop.tools.embedding import cosine, embed_texts

LINES = {
    "tea": "Ann drinks green tea, never coffee.",
    "ship": "The ship to Ürümqi leaves on Mondays.",
    "rain": "小明住在上海浦东，对花生过敏。",
    "book": "我最喜欢的书是《红楼梦》，作者曹雪芹。",
    "cpp": "Programs in C++ and C# run fast.",
}


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> PassageSearch:
    root = tmp_path_factory.mktemp("search") / "documents"
    root.mkdir()
    for name, line in LINES.items():
        (root / f"{name}.txt").write_text(line, encoding="utf-8")
    index = Index(folder_of(root))
    update_index(index)
    return PassageSearch(index)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("tea", "tea"),
        ("who DRINKS coffee?", "tea"),
        ("drinking", "tea"),
        ("urumqi", "ship"),
        ("Monday", "ship"),
        ("ürüm", "ship"),
        ("上海", "rain"),
        ("小明对什么过敏？", "rain"),
        ("花", "rain"),
        ("红楼梦的作者是谁", "book"),
        ("书", "book"),
        ("ＴＥＡ", "tea"),
        ("C++ programs", "cpp"),
        ("cpp", "cpp"),
        ('"green" AND (tea OR NEAR', "tea"),
    ],
)
def test_a_passage_is_found_by_its_words_in_both_languages(search: PassageSearch, query: str, name: str) -> None:
    assert [hit.passage.file for hit in search.search(query, 3)][:1] == [f"{name}.txt"]


@pytest.mark.parametrize("query", ["北京", "zebra", "?!", "%", '"', "*", "  ", "", "\0", "OR", "NOT", "\U0001f600"])
def test_what_is_not_there_is_not_found(search: PassageSearch, query: str) -> None:
    assert search.search(query, 5) == []


SYNTAX = """" ' * ( ) AND OR NOT NEAR( words: ^ - + ;-- { } \\ passage_words tea 书 红楼梦 C++ 😀 ß İ ก็"""
STRANGE = ["\0", "\ud800", "\u200d", "\n", "\u0301", " "]
QUERIES = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from([*SYNTAX.split(), *STRANGE]), max_size=40).map("".join),
    st.lists(st.sampled_from([*SYNTAX.split(), *STRANGE]), max_size=40).map(" ".join),
)


@given(query=QUERIES)
@examples(300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_a_query(search: PassageSearch, query: str) -> None:
    """Nothing in a query is syntax: quotes, operators, NUL, half characters."""
    hits = search.search(query, 3)
    assert len(hits) <= 3
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)


def test_a_query_of_any_length_is_taken(search: PassageSearch) -> None:
    assert search.search("tea " * 50_000, 3)[0].passage.file == "tea.txt"
    assert search.search("红楼梦" * 50_000, 3)[0].passage.file == "book.txt"
    search.search(" ".join(f"word{number}" for number in range(50_000)), 3)


def test_rare_words_decide_and_common_ones_say_little(tmp_path: Path) -> None:
    root = tmp_path / "documents"
    root.mkdir()
    for number in range(300):
        (root / f"{number}.txt").write_text(f"the report about the year {number}, of the house")
    (root / "garden.txt").write_text("the garden wall is high")
    (root / "both.txt").write_text("the report about the garden wall")
    index = Index(folder_of(root))
    update_index(index)
    found = [
        hit.passage.file
        for hit in PassageSearch(index).search("what does the report of the house say about the garden wall", 2)
    ]
    assert sorted(found) == ["both.txt", "garden.txt"]
    assert {hit.passage.file for hit in PassageSearch(index).search("garden report", 2)} == {"both.txt", "garden.txt"}
    assert len(PassageSearch(index).search("the", 20)) == 20


def test_the_commonest_words_are_left_out_of_a_large_index_unless_a_short_question_needs_them() -> None:
    counts = {"the": 9_000, "notice": 2_000, "period": 2_400, "zebra": 3, "unknown": 0}
    assert select_words(counts) == (["zebra", "notice"], ["period", "the"])
    assert select_words({"the": 9_000}) == (["the"], [])
    assert select_words({"class": 300, "zebra": 200}) == (["zebra", "class"], [])
    assert select_words({}) == ([], [])


def test_words_of_any_question_help_to_choose_sections_in_a_small_index_only() -> None:
    assert select_words({"with": 700, "zebra": 200}) == (["zebra", "with"], [])
    assert select_words({"with": 900, "zebra": 200}) == (["zebra"], ["with"])


def test_files_that_are_added_during_a_search_do_no_harm(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.md").write_text("A zebra.")
    index = Index(folder_of(folder))
    update_index(index)
    with index.open() as database:
        assert len(_rank_by_weights(database, {"zebra": 1.0}, {"zebra": 3}, 1)) == 1


def select_words(counts: dict[str, int]) -> tuple[list[str], list[str]]:
    selected, rest = _select_words({word: 10 / (count + 1) for word, count in counts.items()}, counts)
    return [*selected], rest


def indexed(root: Path, **texts: str) -> PassageSearch:
    root.mkdir()
    for name, text in texts.items():
        (root / f"{name}.md").write_text(text, encoding="utf-8")
    index = Index(folder_of(root, passage_chars=100))
    update_index(index)
    return PassageSearch(index)


def test_a_frequent_word_decides_between_passages_with_the_same_rare_ones(tmp_path: Path) -> None:
    texts = {f"other{number}": f"The class number {number} is here." for number in range(150)}
    search = indexed(tmp_path / "texts", plain="A zebra is a horse.", both="A zebra is a class.", **texts)
    assert search.search("zebra class", 1)[0].passage.file == "both.md"


def test_each_section_is_one_result_and_the_rest_of_it_comes_last(tmp_path: Path) -> None:
    long = "# Zebras\n\n" + "\n\n".join(f"The zebra number {number} lives " + "here " * 18 for number in range(5))
    search = indexed(tmp_path / "texts", long=long, short="# Horses\n\nA horse is no zebra, it is said " + "now " * 20)
    found = [hit.passage.heading for hit in search.search("zebra", 2)]
    assert sorted(found) == [("Horses",), ("Zebras",)]
    assert len(search.search("zebra", 4)) == 4
    assert {hit.passage.heading for hit in search.search("zebra", 4)[:2]} == {("Horses",), ("Zebras",)}


def test_passages_that_say_nearly_the_same_are_one_result(tmp_path: Path) -> None:
    same = "The notice period of a contract for the rooms of the house is three months to the end of a quarter"
    search = indexed(tmp_path / "texts", a=f"{same}.", b=f"{same}!", c="A notice hangs on the door of the house.")
    first, second = search.search("notice period", 5)
    assert {first.passage.file, *(passage.file for passage in first.similar)} == {"a.md", "b.md"}
    assert second.passage.file == "c.md"
    assert second.similar == ()


def test_a_chinese_question_finds_english_passages_where_no_chinese_ones_match(tmp_path: Path) -> None:
    search = indexed(tmp_path / "texts", a="How to delete a channel.", b="How to send an invoice.")
    assert search.search("怎么删除频道", 3)[0].passage.file == "a.md"


def test_words_of_every_question_do_not_decide(tmp_path: Path) -> None:
    root = tmp_path / "documents"
    root.mkdir()
    (root / "a.txt").write_text("How do I know what it is that I do? I do.")
    (root / "b.txt").write_text("An invoice is sent monthly.")
    (root / "c.txt").write_text("什么是什么，怎么是怎么。", encoding="utf-8")
    (root / "d.txt").write_text("发票每月寄出一次。", encoding="utf-8")
    index = Index(folder_of(root))
    update_index(index)
    assert [hit.passage.file for hit in PassageSearch(index).search("how do I get what is an invoice", 5)] == ["b.txt"]
    assert [hit.passage.file for hit in PassageSearch(index).search("发票是什么？怎么寄", 5)] == ["d.txt"]
    assert [hit.passage.file for hit in PassageSearch(index).search("what do I do", 5)] == ["a.txt"]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> PassageSearch:
    """Passages with `gamma`, too many to be searched, and with `alpha` and `beta`, too many for both together."""
    root = tmp_path_factory.mktemp("large") / "documents"
    root.mkdir()
    blocks = [f"{'alpha' if number % 2 else 'beta'} {number} " + "x " * 45 for number in range(3_200)]
    blocks += [f"gamma {number} " + "y " * 45 for number in range(3_050)]
    blocks[1_500] = "alpha beta " + "z " * 45
    blocks[1_600:1_603] = ["zebra one " + "z " * 45, "zebra two gamma " + "z " * 45, "zebra three " + "z " * 45]
    (root / "all.txt").write_text("\n\n".join(blocks))
    index = Index(folder_of(root, passage_chars=100))
    update_index(index)
    return PassageSearch(index)


def test_where_words_are_too_common_passages_with_all_of_them_come_first(large: PassageSearch) -> None:
    assert "alpha beta" in large.search("alpha beta", 1)[0].passage.text


def test_a_word_that_is_too_common_to_find_passages_decides_between_those_found(large: PassageSearch) -> None:
    found = [hit.passage.text[:15] for hit in large.search("gamma zebra", 3)]
    assert found[0] == "zebra two gamma"
    assert len(found) == 3


def test_words_of_any_question_add_a_little(tmp_path: Path) -> None:
    texts = {"a": "A notice hangs here.", "b": "It is what a notice hangs there for.", "c": "An invoice is due for it."}
    found = [hit.passage.file for hit in indexed(tmp_path / "texts", **texts).search("what is a notice for", 3)]
    assert found == ["b.md", "a.md"]


def test_a_search_sees_what_changed_since_the_last(tmp_path: Path) -> None:
    root = tmp_path / "documents"
    root.mkdir()
    (root / "a.txt").write_text("alpha")
    index = Index(folder_of(root))
    update_index(index)
    search = PassageSearch(index)
    assert search.search("beta", 1) == []
    (root / "b.txt").write_text("beta")
    update_index(index)
    assert search.search("beta", 1)[0].passage.file == "b.txt"


def test_words_that_begin_like_the_query_find_the_passage_of_a_section_that_has_them(tmp_path: Path) -> None:
    text = "# Animals\n\n" + "\n\n".join(f"The {name} lives here, as {'people said ' * 8}" for name in ("cow", "zebra"))
    assert indexed(tmp_path / "texts", a=text).search("zeb", 1)[0].passage.text.startswith("The zebra")


def test_an_embedding_model_finds_what_no_word_finds(tmp_path: Path) -> None:
    root = tmp_path / "documents"
    root.mkdir()
    for name, line in LINES.items():
        (root / f"{name}.txt").write_text(line, encoding="utf-8")
    embedder = FakeEmbedder(256, {"beverage": "tea", "vessel": "ship"})
    index = Index(folder_of(root, embedder=embedder))
    update_index(index)
    assert PassageSearch(index).search("beverage", 1) == []
    assert PassageSearch(index, embedder).search("beverage", 1)[0].passage.file == "tea.txt"
    both = [hit.passage.file for hit in PassageSearch(index, embedder).search("vessel coffee", 2)]
    assert sorted(both) == ["ship.txt", "tea.txt"]


def test_many_vectors_are_compared_by_their_signs_first() -> None:
    embedder = FakeEmbedder(256)
    texts = [f"passage number{number} about topic{number % 50}" for number in range(EXACT_BELOW + 500)]
    vectors = embed_texts(embedder, texts)
    known = {number: sign_bits(vector) for number, vector in enumerate(vectors)}
    wanted = embed_texts(embedder, ["number1234 topic34"])[0]
    near = nearest_by_signs(sign_bits(wanted), known)
    assert len(near) < 500
    assert max(near, key=lambda number: cosine(wanted, vectors[number])) == 1234


def test_the_vectors_of_another_model_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("The notice period is three months.")
    mine = folder_of(tmp_path / "texts", embedder=FakeEmbedder(name="mine", synonyms={"resignation": "notice"}))
    update_index(Index(mine))
    theirs = FakeEmbedder(name="theirs", synonyms={"resignation": "notice"})
    assert PassageSearch(Index(mine), mine.embedder).search("resignation", 1)
    assert not PassageSearch(Index(mine), theirs).search("resignation", 1)


def test_a_soft_hyphen_in_a_word_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("The con\u00adtract ends.", encoding="utf-8")
    index = Index(folder_of(tmp_path / "texts"))
    update_index(index)
    assert PassageSearch(index).search("contract", 1)
    assert PassageSearch(index).search("con\u00adtract", 1)
