"""What there is at the end of a trial."""

from __future__ import annotations

import pytest

from taoloop.evals.cases import Case, Check
from taoloop.evals.checks.check_outcomes import TrialEnd
from taoloop.evals.checks.check_settings import compile_pattern, problem_of


@pytest.mark.parametrize(
    ("status", "answer", "abstained"),
    [
        ("completed", "", True),
        ("unsupported", None, True),
        ("completed", "I do not know.", True),
        ("completed", "42", False),
        ("waiting", None, False),
        ("max_steps_exceeded", None, False),
        ("model_failed", None, False),
    ],
)
def test_a_run_abstains_that_ends_by_itself_without_an_answer(status: str, answer: str | None, abstained: bool) -> None:
    assert TrialEnd(case=Case(case_id="a", task="t"), answer=answer, status=status).abstained == abstained


@pytest.mark.parametrize(
    ("pattern", "answer", "fits"),
    [
        (r"^(a+)+$", "a" * 46 + "b", False),
        (r"^(a|a)*(?=b)c", "a" * 46 + "b", False),  # no engine without steps back can judge it
        (r"(?i)\bparis\b", "It is Paris.", True),
        (r"\Ayes\Z", "yes", True),
        ("[一-龥]{2}市", "在北京市", True),
    ],
)
def test_a_pattern_is_judged_within_a_bounded_number_of_steps(pattern: str, answer: str, fits: bool) -> None:
    assert compile_pattern(pattern).compiled.is_valid(answer) is fits


def test_a_pattern_with_syntax_of_python_alone_is_found_before_anything_is_run() -> None:
    assert "JSON Schema" in problem_of(Check(kind="regex", expected=r"(a)?(?(1)b|c)"))
