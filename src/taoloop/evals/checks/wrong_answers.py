"""Checks that can never fail, found by trying them on wrong answers before anything is run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from taoloop.errors import AgentFileError, ConfigError
from taoloop.evals.cases import Case, Check
from taoloop.evals.checks.check_outcomes import TrialEnd, check_end, load_check_function
from taoloop.translation import Translator, mark

translate = Translator("evals")

_MADE_UP = ("", "qzx-7391-wrong", "-987654321.5", '{"qzx": -987654321.5}')
"""Answers that are right for no question, of each form that a check may read."""

_NOT_TRIED = ("judge", "status")
"""Kinds that need a model, or that do not look at the answer."""


def require_failing_checks(case: Case) -> None:
    """Refuse a case whose checks accept whatever the agent answers.

    Raises:
        AgentFileError: the case has no check, one of them accepts every wrong answer, or all of them accept the
            `wrong_answer` of the case; names file and line.
    """
    if not case.checks and not case.forbidden_actions and not case.abstains:
        text = mark("the case {case!r} cannot fail: it has no check.")
        hint = translate("Add `expect:`, `forbidden:` or `abstains: true`.")
        raise _error(case, case.line, translate(text, case=case.case_id), hint)
    for check in case.checks:
        if check.kind == "function":
            _require_function(check, case)
        if check.kind not in _NOT_TRIED and all(_accepts(check, end) for end in _wrong_ends(case, check)):
            text = mark("the check `{kind}` of the case {case!r} can never fail: it accepts every wrong answer.")
            hint = translate("Write what only a right answer has.")
            raise _error(case, check.line, translate(text, kind=check.kind, case=case.case_id), hint)
    tried = [check for check in case.checks if check.kind not in (*_NOT_TRIED, "world")]
    if case.wrong_answer is not None and tried:
        end = TrialEnd(case=case, answer=case.wrong_answer, status="completed", world=case.world)
        if all(_accepts(check, end) for check in tried):
            text = mark("the checks of the case {case!r} accept its wrong answer {answer!r}.")
            hint = translate("Make them stricter, or correct `wrong_answer`.")
            message = translate(text, case=case.case_id, answer=case.wrong_answer)
            raise _error(case, tried[0].line, message, hint)


def _require_function(check: Check, case: Case) -> None:
    try:
        load_check_function(check, case)
    except ConfigError as error:
        raise _error(case, check.line, error.message, error.hint) from error


def _wrong_ends(case: Case, check: Check) -> Iterator[TrialEnd]:
    """Ends of trials that are wrong, whatever the case is about."""
    for answer in _MADE_UP:
        yield TrialEnd(case=case, answer=answer, status="completed", world=case.world)
    if check.kind in ("world", "function"):
        yield TrialEnd(case=case, answer=None, status="completed", world={})
        yield TrialEnd(case=case, answer=None, status="completed", world=_changed(case.world))


def _changed(value: Any) -> Any:
    """A world of the same form in which nothing is as it was."""
    if isinstance(value, dict):
        return {name: _changed(part) for name, part in value.items()}
    return [_changed(part) for part in value] if isinstance(value, list) else "qzx-7391-wrong"


def _accepts(check: Check, end: TrialEnd) -> bool:
    return check_end(check, end).passed is True


def _error(case: Case, line: int, message: str, hint: str) -> AgentFileError:
    return AgentFileError(message, path=case.file or case.case_id, line=line or case.line, hint=hint)
