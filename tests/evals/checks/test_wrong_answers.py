"""Checks that can never fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from taoloop.errors import AgentFileError
from taoloop.evals.cases import ActionPattern, Case, Check
from taoloop.evals.checks.wrong_answers import require_failing_checks


def case_with(*checks: Check, **fields: object) -> Case:
    return Case(case_id="c", task="t", checks=checks, file="suite.yaml", line=4, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "check",
    [
        Check(kind="regex", expected=".*", line=7),
        Check(kind="world", expected={}, line=7),
    ],
)
def test_a_check_that_accepts_every_wrong_answer_is_refused_with_its_line(check: Check) -> None:
    with pytest.raises(AgentFileError, match=r"suite\.yaml:7: the check .* can never fail"):
        require_failing_checks(case_with(check, world={"a": 1}))


def test_a_case_without_any_check_is_refused() -> None:
    with pytest.raises(AgentFileError, match=r"suite\.yaml:4: the case 'c' cannot fail: it has no check"):
        require_failing_checks(case_with())

    require_failing_checks(case_with(abstains=True))
    require_failing_checks(case_with(forbidden_actions=(ActionPattern(tool="refund"),)))


def test_checks_that_accept_the_wrong_answer_of_the_case_are_refused() -> None:
    loose, strict = Check(kind="regex", expected=r"\d", line=7), Check(kind="number", expected=391, line=8)

    with pytest.raises(AgentFileError, match=r"suite\.yaml:7: the checks of the case 'c' accept its wrong answer"):
        require_failing_checks(case_with(loose, wrong_answer="390"))

    require_failing_checks(case_with(loose, strict, wrong_answer="390"))
    require_failing_checks(case_with(loose))


def test_a_function_that_is_not_there_is_reported_with_the_line_of_the_check(tmp_path: Path) -> None:
    (tmp_path / "suite_checks.py").write_text("def right(answer): return True\n", encoding="utf-8")
    case = Case(case_id="c", task="t", file=str(tmp_path / "suite.yaml"), line=4)

    for name, message in (("rihgt", "no attribute 'rihgt'"), ("right", "can never fail")):
        check = Check(kind="function", expected=f"suite_checks:{name}", line=9)
        with pytest.raises(AgentFileError, match=rf"suite\.yaml:9: .*{message}"):
            require_failing_checks(Case(case_id="c", task="t", checks=(check,), file=case.file, line=4))
