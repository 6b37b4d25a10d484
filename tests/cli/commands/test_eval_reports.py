"""What `tao eval` leaves: files, exit codes of thresholds and baselines, and results for the panel."""

from __future__ import annotations

from pathlib import Path

from tests.shell import Shell

from taoloop.cli import exit_codes as exits
from taoloop.evals.result_files import result_files

CASES = """
suite: sums
thresholds: {task_success: {at_least: 0.9}}
cases:
"""
CASE = """
  - id: sum-{number}
    task: What is {number} plus 1?
    expect: {{exact: "{sum}"}}
    script: ["{sum}"]
    scripts: {{wrong: ["no idea"]}}
"""


def write_suite(folder: Path) -> None:
    cases = "".join(CASE.format(number=number, sum=number + 1) for number in range(12))
    (folder / "sums.yaml").write_text(CASES + cases)


def test_a_threshold_that_is_not_met_has_an_exit_code_of_its_own(tao: Shell) -> None:
    write_suite(tao.folder)
    right = tao("eval", "sums.yaml", "--model", "oracle", "--db", "s.db")
    assert right.code == exits.OK, right.err
    wrong = tao("eval", "sums.yaml", "--model", "script:wrong", "--db", "s.db")
    assert wrong.code == exits.THRESHOLD, wrong.err
    assert "not met" in wrong.out
    assert 'expected "1", and the answer is "no idea"' in wrong.out


def test_what_is_worse_than_the_baseline_has_an_exit_code_of_its_own(tao: Shell) -> None:
    write_suite(tao.folder)
    suite = tao.folder / "sums.yaml"
    suite.write_text(suite.read_text().replace("{at_least: 0.9}", "{at_least: 0}"))
    before = tao("eval", "sums.yaml", "--model", "oracle", "--db", "s.db", "--out", "before.json")
    assert before.code == exits.OK, before.err
    after = tao("eval", "sums.yaml", "--model", "script:wrong", "--db", "s.db", "--baseline", "before.json")
    assert after.code == exits.WORSE, after.err
    assert "worse" in after.out


def test_results_are_written_and_kept_for_the_panel(tao: Shell) -> None:
    write_suite(tao.folder)
    ended = tao("eval", "sums.yaml", "--model", "oracle", "--db", "s.db", "--html", "report.html")
    assert ended.code == exits.OK, ended.err
    assert "<title>Evaluation: sums</title>" in (tao.folder / "report.html").read_text(encoding="utf-8")
    assert len(result_files(tao.folder / "s.db")) == 1
    assert "tao panel --db" in ended.err


def test_a_file_that_cannot_be_written_is_said_and_nothing_is_lost(tao: Shell) -> None:
    write_suite(tao.folder)
    ended = tao("eval", "sums.yaml", "--model", "oracle", "--db", "s.db", "--out", "missing/results.json")
    assert ended.code == exits.USAGE
    assert "missing/results.json cannot be written" in ended.err.splitlines()[-1]
    again = tao("eval", "sums.yaml", "--model", "oracle", "--db", "s.db")
    assert "12 trials were kept from an earlier call" in again.out
