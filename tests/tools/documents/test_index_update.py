"""The index follows its folder: new, changed and removed files, by any number of processes; nothing outside is read."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.tools.documents.conftest import folder_of, pdf

from taoloop.errors import ConfigError, ToolError
from taoloop.testing.fakes import FakeEmbedder
from taoloop.tools.documents.index import Index, find_passages
from taoloop.tools.documents.index_update import UpdateResult, update_index
from taoloop.tools.documents.search import PassageSearch


def look(root: Path, **more: Any) -> UpdateResult:
    return update_index(Index(folder_of(root, **more)))


def found(root: Path, query: str, **more: Any) -> list[str]:
    index = Index(folder_of(root, **more))
    return [hit.passage.file for hit in PassageSearch(index).search(query, 5)]


def told(done: UpdateResult) -> list[str]:
    return [str(problem) for problem in done.problems]


def test_every_kind_of_document_is_read(root: Path) -> None:
    done = look(root)
    assert (done.files_read, done.files_removed, done.problems) == (4, 0, ())
    assert found(root, "notice period") == ["handbook.md"]
    assert found(root, "合同通知期") == ["contract.txt"]
    assert found(root, "printer scanner") == ["office/rules.html"]
    assert found(root, "autumn costs") == ["office/report.pdf"]


def test_only_what_changed_is_read_again(texts: Path) -> None:
    assert look(texts).files_read == 2
    assert look(texts).files_read == 0
    (texts / "handbook.md").write_text("# New\n\nZebras are striped.\n")
    (texts / "more.txt").write_text("Giraffes are tall.")
    (texts / "contract.txt").unlink()
    done = look(texts)
    assert (done.files_read, done.files_removed) == (2, 1)
    assert found(texts, "zebra") == ["handbook.md"]
    assert found(texts, "giraffe") == ["more.txt"]
    assert found(texts, "notice period") == found(texts, "合同") == []


def test_a_change_within_one_tick_of_the_clock_and_of_the_same_size_is_seen(texts: Path) -> None:
    path = texts / "a.txt"
    path.write_text("alpha one")
    before = path.stat()
    look(texts)
    path.write_text("gamma two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    look(texts)
    assert found(texts, "gamma") == ["a.txt"]
    assert found(texts, "alpha") == []


def test_ids_stay_where_the_text_stays(texts: Path) -> None:
    def ids() -> dict[str, str]:
        index = Index(folder_of(texts))
        with index.open() as database:
            return {one.text: one.id for one in find_passages(database, "WHERE file.path = ?", ("handbook.md",))}

    look(texts)
    before = ids()
    path = texts / "handbook.md"
    path.write_text("# First\n\nsomething new\n\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    look(texts)
    after = ids()
    assert len(after) > len(before)
    assert sum(after.get(text) == name for text, name in before.items()) >= len(before) - 1


def test_other_settings_make_the_index_anew(texts: Path) -> None:
    look(texts)
    done = look(texts, passage_chars=100)
    assert done.files_read == 2
    assert found(texts, "notice period", passage_chars=100)[0] == "handbook.md"


def test_patterns_choose_the_files(root: Path) -> None:
    look(root)
    done = look(root, include=("*.md", "office/*"), exclude=("*.pdf",))
    assert done.files_removed == 2
    assert found(root, "合同", include=("*.md", "office/*"), exclude=("*.pdf",)) == []


def test_bad_documents_are_named_and_the_others_found(root: Path) -> None:
    (root / "fake.pdf").write_bytes(b"not a pdf")
    (root / "scan.pdf").write_bytes(pdf("", ""))
    (root / "empty.txt").write_text(" \n")
    (root / "binary.txt").write_bytes(b"\0\1\2" * 50)
    (root / "blank.html").write_text("<html><body></body></html>")
    (root / "big.txt").write_text("word " * 100)
    done = look(root, max_file_bytes=2_000)
    first = told(done)
    assert [line.split(": ", 1)[0].removeprefix(f"{root}/") for line in first] == [
        "binary.txt",
        "blank.html",
        "empty.txt",
        "fake.pdf",
        "scan.pdf",
    ]
    assert done.files_read == 5
    again = look(root, max_file_bytes=2_000)
    assert again.files_read == 0
    assert told(again) == first
    assert "It is not a PDF." in first[3]
    assert "probably scanned" in first[4]
    assert found(root, "autumn costs", max_file_bytes=2_000) == ["office/report.pdf"]


def test_a_document_that_became_bad_is_no_longer_found(texts: Path) -> None:
    look(texts)
    (texts / "handbook.md").write_bytes(b"\0\0\0")
    assert len(look(texts).problems) == 1
    assert found(texts, "notice period") == []
    (texts / "handbook.md").write_text("notice period")
    assert look(texts).problems == ()
    assert found(texts, "notice period") == ["handbook.md"]


def test_a_folder_full_of_bad_documents_is_told_in_short(tmp_path: Path) -> None:
    root = tmp_path / "bad"
    root.mkdir()
    for number in range(250):
        (root / f"{number:03}.txt").write_bytes(b"\0")
    lines = told(look(root))
    assert len(lines) == 201
    assert "50 more documents have problems." in lines[-1]


def test_bounds_leave_files_out_and_say_so(texts: Path) -> None:
    (texts / "long.txt").write_text("x " * 2_000)
    done = look(texts, max_files=2, max_file_bytes=1_000)
    assert any("1 files beyond the first 2 are skipped" in line for line in told(done))
    lines = told(look(texts, max_file_bytes=1_000))
    assert [line for line in lines if "long.txt: It has 4,000 bytes; at most 1,000 are read." in line]
    assert look(texts).problems == ()


def test_a_look_that_takes_too_long_stops_and_the_next_goes_on(texts: Path) -> None:
    ticks = iter(range(0, 100_000, 1))
    index = Index(folder_of(texts, max_index_s=3.5))
    first = update_index(index, lambda: float(next(ticks)))
    assert any("1 files or passages could not be read in 3.5 s" in line for line in told(first))
    done = update_index(index)
    assert (first.files_read, done.files_read, done.problems) == (1, 1, ())


def test_links_hard_links_and_hidden_files_are_not_read(texts: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("password zebra")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "also.txt").write_text("password zebra")
    (texts / "link.txt").symlink_to(tmp_path / "secret.txt")
    (texts / "folder").symlink_to(tmp_path / "outside", target_is_directory=True)
    os.link(tmp_path / "secret.txt", texts / "hard.txt")
    (texts / ".hidden").mkdir()
    (texts / ".hidden" / "a.txt").write_text("password zebra")
    os.mkfifo(texts / "pipe.txt")
    done = look(texts)
    assert found(texts, "zebra") == found(texts, "password") == []
    lines = "\n".join(told(done))
    assert "Symbolic links are not followed: folder, link.txt." in lines
    assert "hard.txt: It has hard links." in lines
    assert "pipe.txt" in lines


def test_a_name_that_is_not_utf8_is_told(texts: Path) -> None:
    (texts / os.fsdecode(b"caf\xe9.txt")).write_text("zebra")
    (line,) = told(look(texts))
    assert "caf\\xe9.txt: Its name is not UTF-8." in line


def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        look(tmp_path / "nothing")


def test_vectors_are_made_once_and_anew_for_another_model(texts: Path) -> None:
    one, other = FakeEmbedder(), FakeEmbedder(name="fake-2")
    look(texts, embedder=one)
    count = sum(map(len, one.calls))
    look(texts, embedder=one)
    assert sum(map(len, one.calls)) == count > 0
    look(texts, embedder=other)
    assert sum(map(len, other.calls)) == count


class Broken:
    name = "broken"

    def __init__(self, vectors: Any) -> None:
        self.vectors = vectors

    def embed(self, _texts: Any) -> Any:
        if isinstance(self.vectors, Exception):
            raise self.vectors
        return self.vectors


@pytest.mark.parametrize(
    "vectors", [RuntimeError("no GPU"), [], [[1.0]] * 999, [["x"]], [[float("nan")]] * 9, [[]] * 9, None]
)
def test_an_embedding_model_that_fails_is_told_and_words_still_find(texts: Path, vectors: Any) -> None:
    (line,) = told(look(texts, embedder=Broken(vectors)))
    assert "The embedding model 'broken' failed" in line
    index = Index(folder_of(texts, embedder=Broken(vectors)))
    assert PassageSearch(index, Broken(vectors)).search("notice period", 3)[0].passage.file == "handbook.md"


LOOKER = """
import sys
from pathlib import Path
from taoloop.tools.documents import DocumentFolder
from taoloop.tools.documents.index import Index
from taoloop.tools.documents.index_update import update_index
root = Path(sys.argv[1])
done = update_index(Index(DocumentFolder(path=root, index=root.parent / "index.db")))
assert done.problems == (), done.problems
"""


def test_several_processes_look_at_once(tmp_path: Path) -> None:
    root = tmp_path / "many"
    root.mkdir()
    for number in range(60):
        (root / f"{number}.txt").write_text(f"file number{number} zebra")
    running = [
        subprocess.Popen([sys.executable, "-c", LOOKER, str(root)], stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]
    assert [one.communicate()[1] for one in running] == [""] * 4
    index = Index(folder_of(root))
    with index.open() as database:
        assert database.execute("SELECT count(*), count(DISTINCT file) FROM passage").fetchone() == (60, 60)
        assert database.execute("SELECT count(*) FROM passage_words WHERE passage_words MATCH 'zebra'").fetchone() == (
            60,
        )
    assert found(root, "number7") == ["7.txt"]


def test_nothing_of_a_long_section_is_left_when_its_file_changes(tmp_path: Path) -> None:
    root = tmp_path / "long"
    root.mkdir()
    lines = [f"zebra{number} " + "and so on " * 10 for number in range(40)]
    (root / "a.md").write_text("# Zebras\n\n" + "\n\n".join(lines))
    settings = folder_of(root, passage_chars=100)
    update_index(Index(settings))
    (root / "a.md").write_text("# Zebras\n\nnone")
    update_index(Index(settings))
    with Index(settings).open() as database:
        database.execute("INSERT INTO passage_words (passage_words) VALUES ('integrity-check')")
        left = "SELECT count(*) FROM passage_words WHERE passage_words MATCH '\"zebra\"* NOT zebras OR and'"
        assert database.execute(left).fetchone() == (0,)
        assert database.execute("SELECT count(*) FROM passage_words_docsize").fetchone() == (1,)


def test_the_index_is_readable_by_its_owner_only(texts: Path) -> None:
    look(texts)
    assert Index(folder_of(texts)).path.stat().st_mode & 0o077 == 0


def test_an_index_that_is_no_index_is_refused_and_not_touched(texts: Path, tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    path.write_text("my diary, and not a database at all " * 50)
    with pytest.raises(ToolError, match=r"index\.db: the index cannot be used: file is not a database") as error:
        look(texts)
    assert error.value.code == "documents_unusable"
    assert path.read_text().startswith("my diary")


def test_a_database_of_something_else_is_refused_and_not_touched(texts: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "index.db")) as other, other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    before = (tmp_path / "index.db").read_bytes()
    with pytest.raises(ToolError, match="another kind of database"):
        look(texts)
    assert (tmp_path / "index.db").read_bytes() == before


def test_a_newer_index_is_refused(texts: Path, tmp_path: Path) -> None:
    look(texts)
    with closing(sqlite3.connect(tmp_path / "index.db")) as newer, newer:
        newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(ToolError, match="newer taoloop"):
        look(texts)


def test_the_index_of_another_folder_is_refused(texts: Path, tmp_path: Path) -> None:
    look(texts)
    (tmp_path / "other").mkdir()
    with pytest.raises(ToolError, match=f"index of another folder, {texts}"):
        look(tmp_path / "other")


def test_a_damaged_index_says_that_it_can_be_deleted(texts: Path, tmp_path: Path) -> None:
    look(texts)
    path = tmp_path / "index.db"
    data = bytearray(path.read_bytes())
    data[4_096:] = b"\xff" * (len(data) - 4_096)
    path.write_bytes(bytes(data))
    with pytest.raises(ToolError, match=r"index\.db") as error:
        look(texts)
    assert "Delete this file" in error.value.hint


def test_a_name_with_a_line_break_stays_on_one_line_of_a_message(texts: Path) -> None:
    (texts / "a\nb\x1b[31m.txt").write_bytes(b"")
    (texts / "c\nd.txt").symlink_to("handbook.md")
    lines = told(look(texts))
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)


def test_a_folder_that_lies_too_deep_is_told(texts: Path) -> None:
    deep = texts.joinpath(*"d" * 33)
    deep.mkdir(parents=True)
    (deep / "a.txt").write_text("zebra")
    (line,) = told(look(texts))
    assert line.endswith("This folder cannot be read: it is more than 32 folders deep. Move it up.")


def test_a_file_that_was_read_by_a_clock_ahead_of_time_is_read_again(texts: Path, tmp_path: Path) -> None:
    look(texts)
    with closing(sqlite3.connect(tmp_path / "index.db", isolation_level=None)) as database:
        database.execute("UPDATE file SET read_ns = read_ns + 1000000000000000000")
    (texts / "handbook.md").write_text("zebra")
    look(texts)
    assert found(texts, "zebra") == ["handbook.md"]


def test_a_file_that_goes_while_it_is_looked_for_is_no_problem(texts: Path) -> None:
    class Thief:
        """A clock that takes a file away between the walk and the reading."""

        calls = 0

        def __call__(self) -> float:
            self.calls += 1
            if self.calls == 4:  # the beginning, two entries of the folder, and now the first file
                (texts / "contract.txt").unlink()
            return 0.0

    look(texts)
    (texts / "contract.txt").write_text("changed")
    done = update_index(Index(folder_of(texts)), Thief())
    assert not (texts / "contract.txt").exists()
    assert (done.files_read, done.problems) == (0, ())
    assert look(texts).files_removed == 1


def test_a_folder_whose_name_is_not_utf8_is_searched(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"fold\xff")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system has only names that are UTF-8")
    (folder / "a.txt").write_text("zebra")
    (folder / "b.txt").write_text("")
    (line,) = told(look(folder))
    assert line.isprintable()
    assert r"fold\xff" in line
    assert found(folder, "zebra") == ["a.txt"]
