"""What the checks of a case say of a finished trial.

A check that cannot decide (a function that raises, a judge that answers nonsense) has the outcome None, which is
neither a success nor a failure of the agent.
"""

from __future__ import annotations

import inspect
import math
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taoloop.config.import_attribute import load_attribute
from taoloop.core.trace import Trace
from taoloop.evals.action_patterns import fits_pattern
from taoloop.evals.cases import Case, Check, CheckKind
from taoloop.evals.checks.check_settings import answers_of, compile_pattern
from taoloop.evals.checks.outcome_texts import stored_differences, stored_value
from taoloop.evals.checks.text_match import (
    exact_match,
    f1_score,
    json_in,
    last_number,
    path_steps,
    plain_answer,
    state_differences,
    value_at,
)
from taoloop.evals.trial_records import CheckOutcome

DEFAULT_F1 = 0.5
"""The F1 from which an answer counts as right, unless the check says otherwise: half of the words."""

FORBIDDEN_ACTION = "forbidden_action"
ABSTENTION = "abstention"
"""Kinds of outcomes beside those of `Check`."""

_ERROR_CHARS = 120
_ABSTAINING_STATUSES = ("completed", "unsupported")
"""How a run ends that gives no answer of its own accord: with an empty one, or with one that it holds back."""

_NO_ANSWER_WORDS = re.compile(
    r"\b(?:no answer|cannot be (?:answered|determined)|can(?:no|')t (?:answer|determine|be answered|tell|find)"
    r"|unable to|not enough information|insufficient|do(?:es)? not know|don't know|unknown|unanswerable"
    r"|not (?:available|specified|stated|mentioned|possible))\b"
    r"|无法(?:回答|确定|得知|判断)|不知道|不清楚|没有(?:答案|足够)|未(?:提及|说明)|信息不足|不能(?:回答|确定)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEnd:
    """What there is at the end of a trial, for checks to look at."""

    case: Case
    """The case."""
    answer: str | None
    """The answer; None if there is none."""
    status: str
    """How the run ended."""
    world: Mapping[str, Any] = field(default_factory=dict)
    """The state that the tools left."""
    files: Path | None = None
    """The folder with the files of the trial."""
    trace: Trace | None = None
    """The trace; None where checks are only tried on an answer."""

    @property
    def abstained(self) -> bool:
        """Whether the run ended by itself without an answer, or with one that says that there is none.

        A run that waits for a person, failed or reached a limit did not decide to abstain.
        """
        if self.answer is None or not self.answer.strip():
            return self.status in _ABSTAINING_STATUSES
        return bool(_NO_ANSWER_WORDS.search(self.answer))


def check_end(check: Check, end: TrialEnd) -> CheckOutcome:
    """What a check that asks no model says."""
    return _CHECKS[check.kind](check, end)


def own_outcomes(end: TrialEnd) -> tuple[CheckOutcome, ...]:
    """What a case requires beside its checks: no forbidden action carried out, no answer where none is right."""
    outcomes = []
    if end.case.forbidden_actions:
        outcomes.append(_forbidden(end))
    if end.case.abstains:
        outcomes.append(_abstention(end))
    return tuple(outcomes)


def _abstention(end: TrialEnd) -> CheckOutcome:
    if end.abstained:
        return CheckOutcome(kind=ABSTENTION, passed=True)
    if end.answer is None:
        return CheckOutcome(kind=ABSTENTION, passed=False, code="not_abstained")
    values = {"answer": stored_value(end.answer)}
    return CheckOutcome(kind=ABSTENTION, passed=False, code="answered_anyway", values=values)


def _forbidden(end: TrialEnd) -> CheckOutcome:
    calls = () if end.trace is None else end.trace.calls.values()
    done = [
        view.requested.tool
        for view in calls
        if (view.attempts or (view.observed is not None and view.observed.ok))
        and any(fits_pattern(pattern, view.requested.tool, view.args) for pattern in end.case.forbidden_actions)
    ]
    if not done:
        return CheckOutcome(kind=FORBIDDEN_ACTION, passed=True)
    return CheckOutcome(kind=FORBIDDEN_ACTION, passed=False, code="forbidden_calls", values={"tools": done})


def _outcome(check: Check, passed: bool, end: TrialEnd, score: float | None = None) -> CheckOutcome:
    """The outcome of a comparison with the answer."""
    if passed:
        return CheckOutcome(kind=check.kind, passed=True, score=score)
    code, values = "no_answer", {"expected": stored_value(check.expected)}
    if end.answer is not None:
        code, values = "not_expected", {**values, "answer": stored_value(end.answer)}
    return CheckOutcome(kind=check.kind, passed=False, score=score, code=code, values=values)


def _exact(check: Check, end: TrialEnd) -> CheckOutcome:
    return _outcome(check, plain_answer(end.answer or "") == " ".join(check.expected.split()), end)


def _number(check: Check, end: TrialEnd) -> CheckOutcome:
    number = last_number(plain_answer(end.answer or ""))
    tolerance = max(check.settings.get("tolerance", 0), check.settings.get("relative", 0) * abs(check.expected))
    is_near = number is not None and (
        abs(number - check.expected) <= tolerance or math.isclose(number, check.expected, rel_tol=1e-12)
    )
    return _outcome(check, is_near, end)


def _regex(check: Check, end: TrialEnd) -> CheckOutcome:
    fits = end.answer is not None and compile_pattern(check.expected).compiled.is_valid(plain_answer(end.answer))
    return _outcome(check, fits, end)


def _json_path(check: Check, end: TrialEnd) -> CheckOutcome:
    steps = path_steps(check.settings["path"]) or ()
    try:
        value = value_at(json_in(end.answer or ""), steps)
    except (ValueError, LookupError):
        return _outcome(check, False, end)
    return _outcome(check, not any(state_differences({"": check.expected}, {"": value})), end)


def _em(check: Check, end: TrialEnd) -> CheckOutcome:
    answer = plain_answer(end.answer or "")
    is_right = any(exact_match(answer, expected) for expected in answers_of(check))
    return _outcome(check, is_right, end, 1.0 if is_right else 0.0)


def _f1(check: Check, end: TrialEnd) -> CheckOutcome:
    answer = plain_answer(end.answer or "")
    score = max(f1_score(answer, expected) for expected in answers_of(check))
    return _outcome(check, score >= check.settings.get("at_least", DEFAULT_F1), end, score)


def _status(check: Check, end: TrialEnd) -> CheckOutcome:
    if end.status == check.expected:
        return CheckOutcome(kind=check.kind, passed=True)
    values = {"expected": check.expected, "status": end.status}
    return CheckOutcome(kind=check.kind, passed=False, code="other_status", values=values)


def _world(check: Check, end: TrialEnd) -> CheckOutcome:
    differences = stored_differences(state_differences(check.expected, end.world))
    if not differences:
        return CheckOutcome(kind=check.kind, passed=True)
    return CheckOutcome(kind=check.kind, passed=False, code="other_world", values={"differences": differences})


def load_check_function(check: Check, case: Case) -> Callable[..., Any]:
    """The function of a check, beside the file of its case.

    Raises:
        AgentFileError: it cannot be loaded.
    """
    function: Callable[..., Any] = load_attribute(check.expected, Path(case.file).parent if case.file else Path.cwd())
    return function


def _function(check: Check, end: TrialEnd) -> CheckOutcome:
    """Ask a function of the suite: it takes `answer`, and `case`, `world`, `files`, `status`, `trace` if it names them.

    It returns whether the trial is right, or a score from 0 to 1 (right from 0.5 on), or either with a text; or an
    outcome of its own, such as one of the kind `simulator`.
    """
    values = {
        "answer": end.answer,
        "case": end.case,
        "world": end.world,
        "files": end.files,
        "status": end.status,
        "trace": end.trace,
    }
    try:
        function = load_check_function(check, end.case)
        first, *further = inspect.signature(function).parameters
        names = [name for name in further if name in values]
        result = function(values.get(first, end.answer), **{name: values[name] for name in names})
        return _result_outcome(check, result)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever the suite's code does, the other trials go on
        values = {"error": _error_text(error), "line": _last_line(error)}
        return CheckOutcome(kind=check.kind, passed=None, code="check_raised", values=values)


def _result_outcome(check: Check, result: Any) -> CheckOutcome:
    if isinstance(result, CheckOutcome):
        return result
    detail = ""
    if isinstance(result, tuple) and len(result) == 2:
        result, detail = result
    if isinstance(result, bool):
        return CheckOutcome(kind=check.kind, passed=result, detail=str(detail))
    if isinstance(result, int | float) and 0 <= result <= 1:
        return CheckOutcome(kind=check.kind, passed=result >= DEFAULT_F1, score=float(result), detail=str(detail))
    values = {"check": check.expected, "value": stored_value(result)}
    return CheckOutcome(kind=check.kind, passed=None, code="check_returned", values=values)


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_ERROR_CHARS]


def _last_line(error: BaseException) -> str:
    """Where an error came from in the code of a suite: file and line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


_CHECKS: dict[CheckKind, Callable[[Check, TrialEnd], CheckOutcome]] = {
    "exact": _exact,
    "number": _number,
    "regex": _regex,
    "json_path": _json_path,
    "em": _em,
    "f1": _f1,
    "function": _function,
    "world": _world,
    "status": _status,
}
