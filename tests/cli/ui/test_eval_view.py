"""Evaluations on a terminal: tables that fit, verdicts, what failed and the commands that show it."""

from __future__ import annotations

import io
import re

import pytest
from tests.evals.trial_making import scored, trials

from taoloop.cli.ui.eval_view import EvalProgressView, print_results, print_suites
from taoloop.evals.results import Results
from taoloop.evals.suite import Suite
from taoloop.evals.thresholds import threshold_outcomes
from taoloop.evals.trial_records import CheckOutcome
from taoloop.evals.trials.suite_run import SuiteProgress


def printed(results: Results, **thresholds: dict[str, float]) -> str:
    stream = io.StringIO()
    print_results(stream, results, threshold_outcomes(results, thresholds))
    return stream.getvalue()


def test_one_configuration_is_a_table_of_figures_with_intervals_and_numbers() -> None:
    text = printed(scored(trials("x", [True] * 4)), task_success={"at_least": 0.5, "surely_at_least": 0.9})
    assert "task success" in text
    assert "100%  51.0% to 100%" in text
    assert "0 for: no answer, wrong answer, false abstention (0% to 49.0%); " in text
    assert "$0" not in text, "nothing costs anything"
    assert "There was nothing to count for: " in text
    assert ["not met" in line for line in text.splitlines() if " met" in line] == [False, True]


def test_what_failed_is_named_with_its_reason_and_the_command_that_shows_it() -> None:
    checks = (CheckOutcome(kind="exact", passed=False, detail="expected 42\x1b[2J"),)
    text = printed(scored(trials("x", [False] * 7, checks=checks, fault="agent", run_id="r-1")))
    assert "Trials that are not right: fault of the agent 7.\nc0: exact: expected 42\n  tao show r-1 --db" in text
    assert "… and 2 more: --out and --html have all of them." in text
    assert "\x1b" not in text


def test_configurations_are_compared_and_the_verdict_is_said() -> None:
    text = printed(scored(trials("x", [False] * 40), trials("y", [True] * 40)))
    assert "y compared with x" in text
    assert "100% (91.2–100)" in text
    assert any(
        line.startswith("task success") and line.endswith("better") for line in map(str.rstrip, text.splitlines())
    )


def test_what_is_not_decided_has_no_table_of_its_own() -> None:
    assert "y compared with x" not in printed(scored(trials("x", [False, True]), trials("y", [True, True])))


def test_the_fault_of_trials_that_do_not_count_is_said() -> None:
    invalid = trials("y", [[None]], fault="simulator")
    text = printed(scored(trials("x", [False], fault="agent"), invalid))
    assert "Trials that are not right  fault of the agent  invalid: simulator" in text


def test_suites_are_listed_a_line_each_for_programs_and_folded_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "30")
    suites = [
        Suite(name="long", cases=tuple, description="Ten characters，and 一二三四五六。"),
        Suite(name="s", cases=tuple),
    ]
    stream, terminal = io.StringIO(), _Terminal()
    print_suites(stream, suites)
    assert stream.getvalue() == "long  Ten characters，and 一二三四五六。\ns     \n"
    print_suites(terminal, suites)
    lines = re.sub(r"\x1b\[\d*m", "", terminal.getvalue()).splitlines()
    assert lines == ["long  Ten characters，and 一二", "      三四五六。", "s     "]


def test_so_many_configurations_that_nobody_could_read_them_are_an_overview() -> None:
    text = printed(scored(*(trials(f"x{number}", [True]) for number in range(6))))
    assert "--out and --html have all figures of so many configurations." in text
    assert "pass@k" not in text


def test_the_progress_is_ten_lines_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    progress = SuiteProgress(total=200)
    with EvalProgressView(stream) as view:
        view(progress, None)
        for record in trials("x", [True] * 199 + [False]):
            progress.add(record, is_reused=False)
            view(progress, record)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[-1] == "200/200  199 right  1 not right"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_progress_is_a_bar_on_a_terminal_and_leaves_nothing_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = _Terminal()
    progress = SuiteProgress(total=2)
    with EvalProgressView(stream) as view:
        for record in trials("x", [True, False]):
            progress.add(record, is_reused=False)
            view(progress, record)
    text = stream.getvalue()
    assert "━" in text
    assert "2/2" in text
    assert "1 right  1 not right" in text
    assert text.endswith("\x1b[2K"), "the line of the bar is cleared"
