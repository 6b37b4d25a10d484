"""Results are kept beside the database of their runs, and the oldest make way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.evals.trial_making import scored, trials

from taoloop.evals.result_files import MOST_KEPT, keep_results, result_files, results_folder
from taoloop.evals.results import read_results, write_results


def test_the_newest_come_first_with_those_of_the_databases_of_evaluations(tmp_path: Path) -> None:
    results = scored(trials("x", [True]))
    (tmp_path / "evals").mkdir()
    keep_results(replace(results, created_at=1e9, suite="../a b"), tmp_path / "runs.db")
    path = keep_results(replace(results, created_at=2e9), tmp_path / "evals" / "smoke.db")
    assert list(result_files(tmp_path / "runs.db")) == [
        "smoke.db.s-20330518T033320Z",
        "runs.db.a-b-20010909T014640Z",
    ]
    assert list(result_files(tmp_path / "evals" / "smoke.db")) == ["smoke.db.s-20330518T033320Z"]
    assert read_results(path).created_at == 2e9
    assert results_folder(tmp_path / "runs.db").stat().st_mode & 0o077 == 0, "answers are private"


def test_the_oldest_make_way(tmp_path: Path) -> None:
    results = scored(trials("x", [True]))
    for second in range(MOST_KEPT + 2):
        keep_results(replace(results, created_at=1e9 + second), tmp_path / "runs.db")
    names = list(result_files(tmp_path / "runs.db"))
    assert len(names) == MOST_KEPT
    assert names[-1].endswith("T014642Z")


def test_results_that_cannot_be_written_leave_no_part_behind(tmp_path: Path) -> None:
    (tmp_path / "out.json").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_results(scored(trials("x", [True])), tmp_path / "out.json")
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
