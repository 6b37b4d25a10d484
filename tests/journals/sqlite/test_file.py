"""A new file that several open at once, in threads and in processes, becomes one journal for all of them."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from taoloop.errors import JournalCorrupt, JournalLocked
from taoloop.journals.sqlite import schema
from taoloop.journals.sqlite.file import DatabaseFile, OpenedFile, close_database, open_database
from taoloop.journals.sqlite.schema import MIGRATIONS, version

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("between", ["application", "version"])
def test_a_file_that_becomes_a_journal_while_it_is_looked_at_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between: str
) -> None:
    """Another connection makes the tables (if it can) after each thing that is read of the file."""
    place = DatabaseFile(path=tmp_path / "runs.db", lock_timeout_s=0.0)
    read, tried = getattr(schema, between), list[bool]()

    def read_and_let_another_open(connection: sqlite3.Connection) -> int:
        found: int = read(connection)
        if not tried:
            tried.append(True)
            try:
                open_database(place).close()
            except JournalLocked:
                tried.append(False)
        return found

    monkeypatch.setattr(schema, between, read_and_let_another_open)
    open_database(place).close()
    assert tried


def test_threads_open_a_new_file_at_once(tmp_path: Path) -> None:
    count, failed = 4, []
    barrier = threading.Barrier(count)

    def work() -> None:
        for number in range(40):
            barrier.wait()
            try:
                open_database(DatabaseFile(path=tmp_path / f"{number}.db")).close()
            except Exception as error:  # noqa: BLE001  # whatever it is
                failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


CHILD = """
import sys
from pathlib import Path
from taoloop.journals.sqlite.file import DatabaseFile, OpenedFile, close_database, open_database
for number in range(40):
    print(number, flush=True)
    sys.stdin.readline()
    open_database(DatabaseFile(path=Path(sys.argv[1]) / f"{number}.db")).close()
"""


def test_processes_open_a_new_file_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(tmp_path)]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for _ in range(40):  # they start each round together
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
        for child in children:
            assert child.stdin is not None
            if child.poll() is None:
                child.stdin.write("\n")
                child.stdin.flush()
    said = [child.communicate()[1] for child in children]
    assert said == [""] * 4


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("trail", ["-held", "-wal"])
def test_a_journal_that_was_cut_to_nothing_is_not_begun_anew(tmp_path: Path, trail: str, *, read_only: bool) -> None:
    path = tmp_path / "r.db"
    path.touch()
    open_database(DatabaseFile(path=path)).close()  # a file that was only just created is one to begin
    path.write_bytes(b"")
    path.with_name(f"r.db{trail}").write_bytes(b"" if trail == "-held" else b"log")
    with pytest.raises(JournalCorrupt, match="it was a journal"):
        open_database(DatabaseFile(path=path, read_only=read_only))
    assert path.with_name(f"r.db{trail}").exists()


def test_a_copy_without_its_log_is_known_as_a_journal(tmp_path: Path) -> None:
    """What the log alone has is not in the copy; but the tables are, from the first moment on."""
    with closing(open_database(DatabaseFile(path=tmp_path / "r.db"))):
        (tmp_path / "copy.db").write_bytes((tmp_path / "r.db").read_bytes())
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copied:
        assert version(copied) == len(MIGRATIONS)


def sql(path: Path, statement: str) -> None:
    """As another program would do it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_copy_of_a_file_in_use_without_its_log_is_refused_until_it_is_accepted(
    tmp_path: Path, *, read_only: bool
) -> None:
    copy = DatabaseFile(path=tmp_path / "copy.db", read_only=read_only)
    with closing(open_database(DatabaseFile(path=tmp_path / "r.db"))):
        shutil.copy(tmp_path / "r.db", copy.path)
    content = copy.path.read_bytes()
    for _ in range(2):  # and looking at it does not make it whole
        with pytest.raises(JournalCorrupt, match=r"without copy\.db-wal") as refused:
            open_database(copy)
    assert refused.value.hint is not None
    statement = refused.value.hint.partition("sqlite3 copy.db '")[2].partition("'")[0]
    assert copy.path.read_bytes() == content
    sql(copy.path, statement)
    open_database(copy).close()


def test_files_that_lack_nothing_are_opened(tmp_path: Path) -> None:
    original, others = tmp_path / "r.db", tmp_path / "others"
    others.mkdir()
    connection = open_database(DatabaseFile(path=original))
    shutil.copy(original, others / "with-log.db")
    shutil.copy(tmp_path / "r.db-wal", others / "with-log.db-wal")
    with closing(sqlite3.connect(others / "backup.db")) as backup:
        connection.backup(backup)
    close_database(connection, OpenedFile.at(original))
    shutil.copy(original, others / "closed.db")
    open_database(DatabaseFile(path=original)).close()  # as if killed, and another program wrote its log back
    shutil.copy(original, others / "older.db")
    sql(others / "older.db", "DROP VIEW file_identity")
    for path in (original, *others.glob("*.db")):
        for read_only in (True, False):
            close_database(open_database(DatabaseFile(path=path, read_only=read_only)), OpenedFile.at(path))
    with closing(open_database(DatabaseFile(path=others / "backup.db"))):  # by now a file of its own
        shutil.copy(others / "backup.db", tmp_path / "copy.db")
    with pytest.raises(JournalCorrupt):
        open_database(DatabaseFile(path=tmp_path / "copy.db"))
