"""A new file that several open at once, in threads and in processes, becomes one journal for all of them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from taoloop.errors import JournalCorrupt, JournalLocked
from taoloop.journals.sqlite import schema
from taoloop.journals.sqlite.file import DatabaseFile, open_database
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
from taoloop.journals.sqlite.file import DatabaseFile, open_database
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
