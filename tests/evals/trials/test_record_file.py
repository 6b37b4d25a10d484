"""The file of finished trials."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import pytest

from taoloop.errors import JournalError, JournalFull, RunHeld
from taoloop.evals.trial_records import TrialRecord
from taoloop.evals.trials.record_file import RecordFile, open_records, record_path


def record_of(case_id: str, configuration: str = "agent", trial: int = 0) -> TrialRecord:
    return TrialRecord(
        case_id=case_id,
        category="normal",
        configuration=configuration,
        trial=trial,
        run_id=f"{case_id}-{trial}",
        status="completed",
        answer="5",
        passed=True,
    )


def test_trials_are_found_by_key_and_by_what_they_are_of(tmp_path: Path) -> None:
    path = record_path(tmp_path / "evals.db")
    world = {"state": {"n": 1}, "effects": []}
    with open_records(path, "sums", "abc") as file:
        assert file.is_new
        file.add("key1", "measure", record_of("a"), world)
    with open_records(path, "sums", "def") as file:
        stored = file.find("key1")

        assert (file.is_new, file.evaluation) == (False, "abc")
        assert stored is not None
        assert (stored.record, file.world(stored)) == (record_of("a"), world)
        assert file.find_alike("a", "agent", 0) is stored
        assert file.find_alike("a", "agent", 1) is file.find("key2") is None
        with pytest.raises(RunHeld), open_records(path, "sums", "ghi"):
            pass


def test_fresh_removes_the_trials_of_its_suite_alone_and_keeps_a_copy(tmp_path: Path) -> None:
    path = record_path(tmp_path / "evals.db")
    for suite in ("sums", "products"):
        with open_records(path, suite, "abc") as file:
            file.add("key", "measure", record_of(suite), {})

    with open_records(path, "sums", "def", fresh=True) as file:
        assert (file.is_new, file.evaluation, file.find("key")) == (True, "def", None)

    assert path.read_text("utf-8").count('"suite": "') == 1
    with open_records(path, "products", "ghi") as file:
        stored = file.find("key")
        assert stored is not None
        assert (file.evaluation, stored.record.case_id) == ("def", "products")
        assert file.world(stored) == {}
    assert Path(f"{path}.earlier").read_text("utf-8").count('"suite": "') == 2


class FullDisk(io.StringIO):
    """A file for which there is no room."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_said_so_and_nothing_is_half_written(tmp_path: Path) -> None:
    record_path(tmp_path / "evals.db").touch()
    disk = FullDisk("header\n")
    file = RecordFile(tmp_path / "evals.db.trials.jsonl", disk, "abc", "sums", {}, is_new=True)

    with pytest.raises(JournalFull, match="a trial cannot be recorded: No space left on device") as error:
        file.add("key", "measure", record_of("a"), {})

    assert disk.getvalue() == "header\n"
    assert file.find("key") is None
    assert "run the same command again" in error.value.hint


def test_a_file_that_was_removed_meanwhile_is_said_to_be_gone(tmp_path: Path) -> None:
    path = record_path(tmp_path / "evals.db")
    with open_records(path, "sums", "abc") as file:
        file.add("key1", "measure", record_of("a"), {})
        path.unlink()
        with pytest.raises(JournalError, match="was removed while it was in use"):
            file.add("key2", "measure", record_of("b"), {})
