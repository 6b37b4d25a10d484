"""Writes outside the folder of a trial."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from taoloop.evals.trials.write_guard import guarded_writes


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_text("x"),
        lambda path: path.open("a").close(),
        lambda path: os.close(os.open(path, os.O_WRONLY | os.O_CREAT)),
        lambda path: path.with_name("old").unlink(),
        lambda path: path.with_name("old").rename(path),
        lambda path: path.with_name("old").chmod(0o600),
        lambda path: path.symlink_to("old"),
        lambda path: shutil.copy(__file__, path),
        sqlite3.connect,
        lambda path: sqlite3.connect(path.as_uri(), uri=True),
    ],
)
def test_a_write_outside_is_prevented_and_its_line_is_noted(tmp_path: Path, write: Callable[[Path], object]) -> None:
    inside, outside = tmp_path / "trial", Path(__file__).parent / "never"
    old = outside.with_name("old")
    notes: list[tuple[str, str]] = []

    with (
        guarded_writes(inside, lambda path, location: notes.append((path, location))),
        pytest.raises(PermissionError, match="is outside the folder of the trial"),
    ):
        write(outside)

    ((path, location),) = notes
    assert Path(path) in (outside, old)
    assert location.startswith(f"{__file__}:")
    assert not outside.exists()


def test_reads_and_writes_inside_and_temporary_files_are_allowed(tmp_path: Path) -> None:
    notes: list[str] = []
    inside = tmp_path / "trial"
    inside.mkdir()

    with guarded_writes(inside, lambda path, _location: notes.append(path)):
        (inside / "a").mkdir()
        (inside / "a" / "b.txt").write_text(Path(__file__).read_text("utf-8"), "utf-8")
        with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(b"x")
            Path(folder, "y").write_text("y", "utf-8")
        Path(os.devnull).write_text("x", "utf-8")
    (tmp_path / "after").write_text("x", "utf-8")

    assert notes == []


def test_databases_in_memory_in_the_folder_and_opened_for_reading_are_no_writes(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside.db", tmp_path / "trial"
    inside.mkdir()
    sqlite3.connect(outside).close()

    with guarded_writes(inside, lambda path, _: pytest.fail(path)):
        for name in (":memory:", "", str(inside / "own.db"), f"{outside.as_uri()}?mode=ro", "file::memory:"):
            sqlite3.connect(name, uri=name.startswith("file:")).close()
