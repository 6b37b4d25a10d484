"""Passages: their offsets give their text back, and together they are the whole text."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from tests.growth import assert_linear
from tests.sizes import examples

from taoloop.tools.documents.chunking import Chunk, line_starts, split_text

BREAKS = ["\n\n", "\n", "\r\n", "\r", "\u2028", "\x0b", " ", "\t", "\ufeff"]
MARKS = ["# ", "## A\n", "```\n", "~~~", "---\n", "===\n", "- ", "#", "|"]
WORDS = ["word ", "一段中文。", "é", "\U0001f600", "x" * 90, "长" * 150, "a. b! "]
PIECES = st.sampled_from([*BREAKS, *MARKS, *WORDS])
TEXTS = st.one_of(st.lists(PIECES, max_size=60).map("".join), st.text(max_size=2_000))


@given(text=TEXTS, chars=st.integers(100, 400), markdown=st.booleans())
@examples(300)
def test_passages_are_in_order_short_enough_and_hold_every_character(text: str, chars: int, markdown: bool) -> None:
    pieces = split_text(text, chars, markdown=markdown)
    place = 0
    for piece in pieces:
        assert not text[place : piece.start].strip()
        body = text[piece.start : piece.end]
        assert body
        assert body == body.strip()
        assert len(body) <= chars * 1.2
        place = piece.end
    assert not text[place:].strip()


@given(text=TEXTS)
@examples(100)
def test_lines_are_counted_as_editors_do(text: str) -> None:
    starts = line_starts(text)
    assert starts[0] == 0
    assert all(text[start - 1] in "\r\n" for start in starts[1:])
    assert len(starts) == 1 + text.replace("\r\n", "\n").replace("\r", "\n").count("\n")


def test_a_passage_knows_the_headings_above_it() -> None:
    text = "Intro\n\n# A #\n\n## B\ntext b\n\nC\n===\ntext c\n\nD\n---\ntext d\n\n### E\ntext e\n"
    found = [
        (piece.heading, text[piece.start : piece.end].splitlines()[-1])
        for piece in split_text(text, 500, markdown=True)
    ]
    assert found == [
        ((), "Intro"),
        (("A", "B"), "text b"),
        (("C",), "text c"),
        (("C", "D"), "text d"),
        (("C", "D", "E"), "text e"),
    ]


@pytest.mark.parametrize("mark", ["```", "~~~"])
def test_a_heading_in_a_code_block_is_none_and_the_block_stays_whole(mark: str) -> None:
    text = f"# A\n\n{mark}sh\n# comment\n\nmore\n{mark}\n\nend\n"
    (only,) = split_text(text, 500, markdown=True)
    assert only.heading == ("A",)


def test_settings_at_the_top_of_a_page_are_no_heading() -> None:
    text = "---\ntitle: x\n# y\n---\n\n# A\ntext\n"
    assert [piece.heading for piece in split_text(text, 500, markdown=True)] == [(), ("A",)]


def test_a_table_has_no_underlined_heading() -> None:
    text = "a | b\n---\n1 | 2\n"
    assert [piece.heading for piece in split_text(text, 500, markdown=True)] == [()]


def test_long_paragraphs_end_at_sentences() -> None:
    english, chinese = "One sentence of words. " * 40, "这是一个完整的句子。" * 60
    for text in (english, chinese):
        for piece in split_text(text, 200)[:-1]:
            assert text[piece.start : piece.end].endswith((".", "。"))


@pytest.mark.parametrize(
    "unit", [" ", "#", "# ", "\n", "\r", "`", "#\n", "```\n", "一", "---\n", "a\n---\n\n", "- ", "a\n"]
)
def test_no_text_takes_long(unit: str) -> None:
    def pieces(chars: int) -> list[Chunk]:
        return split_text(unit * (chars // len(unit)), 1_000, markdown=True)

    assert_linear(pieces, 80_000)
    assert len(pieces(300_000)) <= 300


def test_code_within_a_line_opens_no_block() -> None:
    pieces = split_text("```one``` is code\n\n# A\n\ntext\n\n# B\n\nmore\n", 1_000, markdown=True)
    assert [piece.heading for piece in pieces] == [(), ("A",), ("B",)]


def test_a_line_between_sections_is_no_edge_of_settings() -> None:
    pieces = split_text("---\n\n# A\n\n---\n\ntext\n", 1_000, markdown=True)
    assert [piece.heading for piece in pieces] == [(), ("A",)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_an_underlined_heading_is_its_line_alone(end: str) -> None:
    (piece,) = split_text(end.join(("Title", "=====", "", "text")), 1_000, markdown=True)
    assert piece.heading == ("Title",)
