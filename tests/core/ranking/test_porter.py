"""The stemmer has the results of SQLite's, which indexes passages."""

from __future__ import annotations

import re
import sqlite3
from pydoc_data.topics import topics

from taoloop.core.ranking.porter import porter_stem

STEPS = """
relational conditional valency digitizer conformably radically vilely vietnamization feudalism
decisiveness hopefulness sensibility triplicate formalize electrical goodness revival airliner
adjustable irritant replacement adoption homologous bowdlerize probate controll sky cries agreed
feed plastered conflated troubled sized hopping tanned falling hissing
"""
WORDS = sorted(set(re.findall(r"[a-z]+", topics["specialnames"].lower() + STEPS)))


def test_stems_are_those_of_sqlite() -> None:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE words USING fts5(word, tokenize='porter unicode61')")
    database.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(WORDS))
    database.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(words, 'instance')")
    stems = dict(database.execute("SELECT doc, term FROM stems"))
    database.close()
    assert {word: porter_stem(word) for word in WORDS} == {WORDS[number]: stem for number, stem in stems.items()}


def test_what_is_no_english_word_stays() -> None:
    assert [porter_stem(word) for word in ("v2", "ürüms", "is", "s" * 41)] == ["v2", "ürüms", "is", "s" * 41]
