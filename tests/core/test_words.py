"""Words: parts of names, stems by a lexicon or without one, pairs of Chinese characters."""

from __future__ import annotations

import pytest

from taoloop.core.words import cjk_pairs, name_words, split_ending, stem

KNOWN = frozenset(["send", "delete", "reply", "cancel", "set", "book", "create"])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("getOrder_v2", ["get", "order", "v", "2"]),
        ("HTTPServer", ["http", "server"]),
        ("list open orders", ["list", "open", "orders"]),
        ("查询", []),
    ],
)
def test_a_name_is_split_at_capitals_digits_and_marks(name: str, words: list[str]) -> None:
    assert name_words(name) == words


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("deleting", ("delete", "ing")),
        ("cancelled", ("cancel", "ed")),
        ("setting", ("set", "ing")),
        ("replies", ("reply", "s")),
        ("replied", ("reply", "ed")),
        ("sent", ("send", "ed")),
        ("books", ("book", "s")),
        ("book's", ("book", "")),
        ("invoicing", ("invoic", "ing")),
        ("as", ("as", "")),
    ],
)
def test_endings_are_taken_off_by_a_lexicon(word: str, parts: tuple[str, str]) -> None:
    assert split_ending(word, KNOWN) == parts


def test_only_the_endings_that_are_allowed_are_taken_off() -> None:
    assert stem("created", KNOWN, ("ing", "es", "s")) == "created"
    assert stem("sent", KNOWN, ("ing", "es", "s")) == "sent"
    assert stem("creates", KNOWN, ("ing", "es", "s")) == "create"


@pytest.mark.parametrize(
    ("word", "singular"), [("invoices", "invoice"), ("queries", "query"), ("class", "class"), ("ties", "tie")]
)
def test_without_a_lexicon_only_a_plural_is_taken_off(word: str, singular: str) -> None:
    assert stem(word) == singular


def test_every_two_neighbours_stand_for_a_word() -> None:
    assert cjk_pairs("查天气") == ["查天", "天气"]
    assert cjk_pairs("查") == []
