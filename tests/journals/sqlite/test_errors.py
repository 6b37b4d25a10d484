"""Bad input and bad luck: each a clear error that names the file and the way out, and nothing lost."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from taoloop.errors import JournalCorrupt, JournalError, JournalFull, JournalLocked, JournalTooNew, RunNotFound
from taoloop.journals.base import Artifact, Lease
from taoloop.journals.sqlite.file import DatabaseFile, default_path, open_database
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.journals.sqlite.schema import MIGRATIONS, version
from taoloop.testing.journal_contract import STARTED, events, note, refused

if TYPE_CHECKING:
    from collections.abc import Iterator

E = TypeVar("E", bound=JournalError)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def make_journal(path: Path) -> None:
    async def run() -> None:
        async with SqliteJournal(path) as journal:
            await journal.append(await journal.create("r1"), events(STARTED, note(1)))

    asyncio.run(run())


def sql(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def trouble(error: type[E], path: Path, *, read_only: bool = False) -> E:
    """The error of reading and of writing, which are the same; it names the path and says what to do."""

    async def run() -> E:
        journal = SqliteJournal(path, read_only=read_only, lock_timeout_s=0.05)
        try:
            raised = await refused(error, journal.runs())
            if not read_only:
                assert type(await refused(error, journal.create("r9"))) is type(raised)
            return raised
        finally:
            await journal.close()

    raised = asyncio.run(run())
    assert str(path) in raised.message
    assert raised.hint
    return raised


def test_a_newer_database_is_refused_and_not_touched(path: Path) -> None:
    make_journal(path)
    sql(path, "PRAGMA user_version = 99")
    before = path.read_bytes()
    for read_only in (False, True):
        assert "99" in trouble(JournalTooNew, path, read_only=read_only).message
    assert path.read_bytes() == before


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_database_is_refused_and_not_touched(path: Path, read_only: bool) -> None:
    path.write_bytes(b"my holiday pictures " * 500)
    trouble(JournalCorrupt, path, read_only=read_only)
    assert path.read_bytes() == b"my holiday pictures " * 500


@pytest.mark.parametrize("mark", ["", "PRAGMA application_id = 77;", "PRAGMA user_version = 3;"])
def test_a_database_of_another_application_is_refused_and_not_touched(path: Path, mark: str) -> None:
    sql(path, f"CREATE TABLE song (title TEXT); {mark}")
    before = path.read_bytes()
    assert "another application" in trouble(JournalCorrupt, path).message
    assert path.read_bytes() == before


def test_a_torn_database_is_corrupt(path: Path) -> None:
    make_journal(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    trouble(JournalCorrupt, path)


def test_a_folder_that_is_missing_is_created_for_its_owner_only(tmp_path: Path) -> None:
    make_journal(tmp_path / "a" / "b" / "runs.db")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o077 == 0


def test_a_folder_or_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    trouble(JournalError, tmp_path)
    (tmp_path / "file").write_text("x")
    trouble(JournalError, tmp_path / "file" / "runs.db")


def test_a_file_that_is_not_there_cannot_be_read_and_is_not_created(path: Path) -> None:
    assert "there is no journal" in trouble(JournalError, path, read_only=True).message
    assert not path.exists()


def test_an_empty_file_becomes_a_journal(path: Path) -> None:
    path.touch()
    make_journal(path)
    assert path.read_bytes().startswith(b"SQLite format 3")


AS_NOBODY = """
import asyncio, os, sys
from taoloop.errors import JournalError
from taoloop.journals.sqlite.journal import SqliteJournal
async def read():
    async with SqliteJournal(sys.argv[1], read_only=True) as journal:
        return len(await journal.load("r1"))
async def write():
    journal = SqliteJournal(sys.argv[1])
    try:
        await journal.create("r2")
    except JournalError as error:
        print(error.code, error.message)
    await journal.close()
asyncio.run(read())  # root may read all the modules that this needs
os.setgid(65534), os.setuid(65534)
print(asyncio.run(read()))
asyncio.run(write())
"""


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can become somebody else")
def test_who_may_only_read_can_read_and_is_told_why_not_write() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to others
        Path(folder).chmod(0o755)
        path = Path(folder) / "runs.db"
        make_journal(path)
        path.chmod(0o644)
        command = [sys.executable, "-c", AS_NOBODY, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "2"
    assert second.startswith("journal_error ")
    assert str(path) in second


def test_a_file_that_another_process_holds_is_locked_until_it_lets_go(path: Path) -> None:
    async def run() -> None:
        async with SqliteJournal(path, lock_timeout_s=0.05) as journal:
            lease = await journal.create("r1")
            await journal.append(lease, events(STARTED))
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                calls = (journal.append(lease, events(note(1), start=1)), journal.create("r2"))
                for call in calls:
                    error = await refused(JournalLocked, call)
                    assert str(path) in error.message
                    assert "0.05 s" in error.message
                    assert error.retryable
                assert len(await journal.load("r1")) == 1  # readers do not wait for writers
                other.execute("ROLLBACK")
            await journal.append(lease, events(note(1), start=1))
            assert len(await journal.load("r1")) == 2

    asyncio.run(run())


def test_a_file_at_its_size_limit_is_full_and_stays_readable(path: Path) -> None:
    async def run() -> None:
        async with SqliteJournal(path, max_bytes=200_000) as journal:
            lease, other = await journal.create("r1"), await journal.create("r2")
            await journal.append(lease, events(STARTED))
            large = [Artifact(ref="a", body="x" * 400_000)]
            with journal._writer._turn:  # in one batch: what fits goes through
                tasks = [
                    asyncio.create_task(journal.append(lease, events(note(1), start=1), large)),
                    asyncio.create_task(journal.append(other, events(STARTED))),
                ]
                await asyncio.sleep(0)
            full, fits = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(full, JournalFull)
            assert str(path) in full.message
            assert fits is None
            assert await journal.artifact("r1", "a") is None
            assert await journal.load("r1") == events(STARTED)
            await journal.append(lease, events(note(1), start=1))
            assert len(await journal.load("r1")) == 2

    asyncio.run(run())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 1 MB."""
    disk, mount = tmp_path / "disk", shutil.which("mount")
    disk.mkdir()
    command = [mount or "", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if mount is None or os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_on_a_full_disk_nothing_is_lost_and_work_goes_on_when_there_is_space(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 500_000)

    async def fill(journal: SqliteJournal, lease: Lease) -> int:
        for seq in range(1, 10_000):
            artifact = Artifact(ref=str(seq), body="y" * 9_000)
            try:
                await journal.append(lease, events(note(seq), start=seq), [artifact])
            except JournalFull:
                return seq
        raise AssertionError("the disk has no end")

    async def run() -> None:
        async with SqliteJournal(small_disk / "runs.db") as journal:
            lease = await journal.create("r1")
            await journal.append(lease, events(STARTED))
            refused_at = await fill(journal, lease)
            assert len(await journal.load("r1")) == refused_at
            ballast.unlink()
            await journal.append(lease, events(note(refused_at), start=refused_at))
        async with SqliteJournal(small_disk / "runs.db") as journal:
            assert await journal.load("r1") == events(STARTED, *(note(seq) for seq in range(1, refused_at + 1)))

    asyncio.run(run())


@pytest.mark.parametrize("quick_s", [0.0, math.inf])
def test_a_file_that_is_removed_while_it_is_in_use_takes_no_run_with_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, quick_s: float
) -> None:
    monkeypatch.setattr("taoloop.journals.sqlite.writer.QUICK_S", quick_s)
    aside = path.with_name("aside.db")

    def move(source: Path, target: Path) -> None:
        source.rename(target)

    async def run() -> None:
        async with SqliteJournal(path) as journal:
            lease = await journal.create("r1")
            await journal.append(lease, events(STARTED))
            move(path, aside)
            monkeypatch.chdir("/")
            error = await refused(JournalError, journal.append(lease, events(note(1), start=1)))
            assert f"{path}: the database was removed or replaced" in error.message
            move(aside, path)
            await journal.append(lease, events(note(1), start=1))
            assert len(await journal.load("r1")) == 2
            move(path, aside)
            await refused(JournalError, journal.append(lease, events(note(2), start=2)))
            second = await journal.create("r2")  # in a new file
            await journal.append(second, events(STARTED))
            await refused(RunNotFound, journal.append(lease, events(note(2), start=2)))
            assert [row.run_id for row in await journal.runs()] == ["r2"]
        async with SqliteJournal(path) as journal:
            assert [row.run_id for row in await journal.runs()] == ["r2"]
            assert (await journal.verify("r2")).whole

    asyncio.run(run())


V2 = (
    "ALTER TABLE run ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue'",
    "UPDATE run SET colour = 'red' WHERE status = 'running'",
)


def test_an_older_file_is_brought_up_to_date_and_keeps_its_runs(path: Path) -> None:
    make_journal(path)
    with closing(open_database(DatabaseFile(path=path), (*MIGRATIONS, V2))) as connection:
        assert version(connection) == len(MIGRATIONS) + 1
        assert connection.execute("SELECT id, colour FROM run").fetchall() == [("r1", "red")]
        assert connection.execute("SELECT count(*) FROM event").fetchone() == (2,)
    with closing(open_database(DatabaseFile(path=path), (*MIGRATIONS, V2))) as connection:  # not a second time
        assert version(connection) == len(MIGRATIONS) + 1
    trouble(JournalTooNew, path)


def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    make_journal(path)
    with pytest.raises(JournalError, match="no such table: nowhere"):
        open_database(DatabaseFile(path=path), (*MIGRATIONS, (*V2, "UPDATE nowhere SET x = 1")))
    with closing(sqlite3.connect(path)) as connection:
        assert version(connection) == len(MIGRATIONS)
        assert "colour" not in [row[1] for row in connection.execute("PRAGMA table_info(run)")]
    open_database(DatabaseFile(path=path)).close()


def test_an_older_file_can_be_read_and_stays_as_it_is(path: Path) -> None:
    make_journal(path)
    open_database(DatabaseFile(path=path, read_only=True), (*MIGRATIONS, V2)).close()
    with closing(sqlite3.connect(path)) as connection:
        assert version(connection) == len(MIGRATIONS)


def test_an_empty_file_opened_for_reading_says_how_to_fill_it(path: Path) -> None:
    path.touch()
    with pytest.raises(JournalError, match="older schema 0"):
        open_database(DatabaseFile(path=path, read_only=True))


def test_the_place_can_be_chosen_by_the_environment(tmp_path: Path) -> None:
    assert default_path({"TAOLOOP_DB": str(tmp_path / "my.db")}) == tmp_path / "my.db"
    assert default_path({"TAOLOOP_DB": "~/my.db"}) == Path("~/my.db").expanduser()
    for nothing in ({}, {"TAOLOOP_DB": " "}):
        assert default_path(nothing).parts[-2:] == ("taoloop", "runs.db")
