"""What there is at the end of a trial."""

from __future__ import annotations

import pytest

from taoloop.evals.cases import Case
from taoloop.evals.checks.check_outcomes import TrialEnd


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
