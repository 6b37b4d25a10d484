"""The table of what was asked for and the tests that show it: what is missing in it is told."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "requirements_table.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("requirements_table", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ranges_are_written_out(script: ModuleType) -> None:
    ids = script.find_ids("S" + "3-8 to S" + "3-10: x, S" + "3-12, S" + "9-1")  # not whole: this file is read as well
    assert list(ids) == [f"S3-{number}" for number in (8, 9, 10, 12)]


def test_every_due_line_is_named_by_a_test(script: ModuleType) -> None:
    requirements, tests = script.read_requirements(), script.find_tests()
    later = dict.fromkeys(script.find_ids(" ".join(script.NOT_YET_DUE.values())), "later")
    assert len(requirements) == 287
    assert script.find_problems(requirements, tests, later) == []


def test_what_is_missing_is_told(script: ModuleType) -> None:
    requirements = {"DUE": "A. Differs (no such topic): B.", "LATER": "C."}
    tests = {"UNKNOWN": ["tests/x.py::test_y"]}
    problems = script.find_problems(requirements, tests, {"LATER": "panel", "GONE": "panel"})
    assert [problem.partition(":")[0] for problem in problems] == ["UNKNOWN", "GONE", "DUE", "DUE"]
    assert "tests/x.py::test_y" in problems[0]
    assert "no test names it" in problems[2]
    assert "no such topic" in problems[3]
    rows = script.table(requirements, {"DUE": ["tests/x.py::test_y"]}, {"LATER": "panel"}).splitlines()
    assert rows[2].endswith("| `tests/x.py::test_y` |")
    assert rows[3].endswith("| not yet due: panel |")
