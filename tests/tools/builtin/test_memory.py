"""`remember` and `recall`: found in both languages, safe for any text and any number of processes."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, strategies as st
from tests.sizes import examples

from taoloop import Agent, ScriptedModel
from taoloop.core.cards.card_lint import lint
from taoloop.core.events import Observed
from taoloop.core.words import index_terms, query_terms
from taoloop.errors import InvalidArguments, ToolError
from taoloop.tools.builtin.memory import Notes, memory_tools
from taoloop.tools.tool import ToolContext

ANN = "Ann drinks green tea, never coffee."
SHIP = "The ship to Ürümqi leaves on Mondays."
RAIN = "小明住在上海浦东，对花生过敏。"
BOOK = "我最喜欢的书是《红楼梦》，作者曹雪芹。"


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    notes = Notes(tmp_path / "notes.db")
    for number, text in enumerate((ANN, SHIP, RAIN, BOOK)):
        notes.add(text, "", at=1000.0 + number, origin=("run", f"call_{number}"))
    return notes


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("tea", ANN),
        ("who drinks TEA?", ANN),
        ("drinking", ANN),
        ("urumqi", SHIP),
        ("Monday", SHIP),
        ("上海", RAIN),
        ("小明对什么过敏？", RAIN),
        ("花", RAIN),
        ("红楼梦", BOOK),
        ("喜欢读什么书", BOOK),
        ("书", BOOK),
        ("ＴＥＡ", ANN),
        ("《红", BOOK),
    ],
)
def test_a_note_is_found_by_its_words_in_both_languages(notes: Notes, query: str, found: str) -> None:
    """S4-38. Chinese has no spaces: pairs of characters stand for words, single ones where they stand alone."""
    assert [note.text for note in notes.find(query, 5)][:1] == [found]


@pytest.mark.parametrize("query", ["北京", "zebra", "?!", "%", '"', "*", "  "])
def test_what_nobody_kept_is_not_found(notes: Notes, query: str) -> None:
    assert notes.find(query, 5) == []


def test_a_part_of_a_word_is_found_as_it_stands(notes: Notes) -> None:
    assert [note.text for note in notes.find("rüm", 5)] == [SHIP]


def test_the_best_comes_first_and_not_more_than_asked_for(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "n.db")
    for number in range(10):
        notes.add(f"The meeting number {number} is about money.", "", at=0, origin=("r", "c"))
    notes.add("The meeting about the garden and the garden wall.", "garden", at=0, origin=("r", "c"))
    found = notes.find("garden meeting", 3)
    assert len(found) == 3
    assert "wall" in found[0].text


def test_a_note_tells_which_call_it_comes_from(notes: Notes) -> None:
    [note] = notes.find("coffee", 1)
    assert (note.run_id, note.call_id, note.at) == ("run", "call_0", 1000.0)


def test_the_same_words_again_are_the_same_note(notes: Notes) -> None:
    assert notes.add(ANN, "", at=5, origin=("other", "call")) == 1
    assert notes.add(ANN, "people", at=5, origin=("other", "call")) == 5


def test_a_note_that_was_deleted_in_the_file_is_found_no_more(notes: Notes) -> None:
    with closing(sqlite3.connect(notes.path)) as database, database:
        database.execute("DELETE FROM note WHERE text = ?", (BOOK,))
    database.close()
    assert notes.add("Something else.", "", at=0, origin=("r", "c")) == 5
    assert notes.find("红楼梦", 5) == []


def test_a_new_file_is_the_owners_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "notes.db"
    Notes(path).find("x", 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_another_file_is_refused_and_not_touched(tmp_path: Path) -> None:
    other, text, newer = tmp_path / "other.db", tmp_path / "text.db", tmp_path / "newer.db"
    with closing(sqlite3.connect(other)) as database, database:
        database.execute("CREATE TABLE mine (x)")
    database.close()
    text.write_text("This is no database at all, whatever it is called." * 50)
    Notes(newer).find("x", 1)
    with closing(sqlite3.connect(newer)) as database, database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    for path, said in ((other, "another kind"), (text, "not a database"), (newer, "newer taoloop"), (tmp_path, "open")):
        before = path.read_bytes() if path.is_file() else b""
        with pytest.raises(ToolError, match=said) as caught:
            Notes(path).add("x", "", at=0, origin=("r", "c"))
        assert caught.value.code == "memory_unusable"
        assert not path.is_file() or path.read_bytes() == before


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(), st.text(min_size=1))
def test_any_text_can_be_kept_and_looked_for(tmp_path: Path, kept: str, query: str) -> None:
    kept, query = (text.encode("utf-8", "replace").decode() for text in (kept, query))
    notes = Notes(tmp_path / "any.db")
    number = notes.add(kept, "", at=0, origin=("r", "c"))
    notes.find(query, 5)
    if query_terms(kept):
        assert (number, kept) in [(note.number, note.text) for note in notes.find(kept, 10_000)]


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet="天地玄黄宇宙洪荒日月盈昃abc xyz,。", min_size=4, max_size=30), st.data())
def test_every_two_neighbours_of_a_note_find_it(tmp_path: Path, text: str, data: Any) -> None:
    notes = Notes(tmp_path / "pairs.db")
    number = notes.add(text, "", at=0, origin=("r", "c"))
    place = data.draw(st.integers(0, len(text) - 2))
    pair = text[place : place + 2]
    if all("\u4e00" <= char <= "\u9fff" for char in pair):
        assert number in [note.number for note in notes.find(pair, 10_000)]


@given(st.text())
def test_words_hold_nothing_that_the_index_would_read_as_its_own_syntax(text: str) -> None:
    for word in (*index_terms(text), *query_terms(text)):
        assert not set(word) & set("\"'*^:()+- ")
        assert word


PROCESS = """
import sys
from taoloop.tools.builtin.memory import Notes
notes = Notes("shared.db")
for number in range(25):
    notes.add(f"note {number} of {sys.argv[1]}", "", at=0, origin=("r", "c"))
"""


def test_several_processes_may_write_at_once(tmp_path: Path) -> None:
    """Also the first ones, which find no file yet."""
    running = [subprocess.Popen([sys.executable, "-c", PROCESS, name], cwd=tmp_path, env=os.environ) for name in "abcd"]
    assert [process.wait(60) for process in running] == [0] * 4
    with closing(sqlite3.connect(tmp_path / "shared.db")) as database, database:
        counts = [database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("note", "note_words")]  # noqa: S608
    database.close()
    assert counts == [100, 100]


# As tools


def test_the_cards_have_nothing_to_improve_and_say_what_a_call_does() -> None:
    tools = memory_tools(None)
    assert {name: (one.card.tier, lint(one.card)) for name, one in tools.items()} == {
        "remember": ("draft", ()),
        "recall": ("read", ()),
    }


def test_without_a_file_there_is_no_memory() -> None:
    for name, args in (("remember", {"text": "x", "context": ToolContext()}), ("recall", {"query": "x"})):
        with pytest.raises(ToolError) as caught:
            memory_tools(None)[name](**args)
        assert caught.value.code == "no_memory"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("remember", {"text": ""}),
        ("remember", {"text": "x" * 4_001}),
        ("remember", {"text": "x", "topic": "y" * 101}),
        ("recall", {"query": ""}),
        ("recall", {"query": "x", "limit": 21}),
    ],
)
def test_sizes_are_bounded(name: str, args: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments):
        memory_tools(None)[name].prepare(args)


def test_what_one_run_remembers_another_recalls_as_an_observation(tmp_path: Path) -> None:
    keep = {"tool_calls": [{"name": "remember", "args": {"text": RAIN, "topic": "people"}}]}
    find = {"tool_calls": [{"name": "recall", "args": {"query": "小明过敏吗"}}]}
    runs = [
        Agent(
            model=ScriptedModel([reply, "done"]), tools=["remember", "recall"], memory=tmp_path / "notes.db"
        ).run_sync("x")
        for reply in (keep, find)
    ]
    outputs = [event.fact.output for run in runs for event in run.trace.events if isinstance(event.fact, Observed)]
    assert outputs[0] == "kept as note 1"
    [note] = json.loads(outputs[1])
    assert (note["text"], note["topic"], note["id"]) == (RAIN, "people", 1)
    assert note["when"].endswith("Z")
    [kept] = Notes(tmp_path / "notes.db").find("小明", 1)
    assert (kept.run_id, kept.call_id) == (runs[0].run_id, "call_1")
    assert runs[0].trace.agent.memory == str(tmp_path / "notes.db")
