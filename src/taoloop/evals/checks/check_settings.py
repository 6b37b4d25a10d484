"""What is wrong with a check as it is written, before anything is run. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, get_args

from taoloop.core.events import Status
from taoloop.errors import ConfigError
from taoloop.evals.cases import Check, CheckKind
from taoloop.evals.checks.text_match import path_steps
from taoloop.tools.json_schema import Validator, compile_schema
from taoloop.translation import Translator, mark

translate = Translator("evals")

STATUSES: tuple[str, ...] = get_args(Status)


def problem_of(check: Check) -> str:
    """What is wrong with a check, for people; empty if nothing is."""
    return _PROBLEMS[check.kind](check)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text_problem(check: Check) -> str:
    return "" if isinstance(check.expected, str) else translate("a text is expected; put it in quotes.")


def _exact_problem(check: Check) -> str:
    if isinstance(check.expected, str) and not check.expected.strip():
        return translate("the expected text is empty.")
    return _text_problem(check)


def _number_problem(check: Check) -> str:
    if not _is_number(check.expected):
        return translate("a number is expected.")
    for name in ("tolerance", "relative"):
        setting = check.settings.get(name, 0)
        if not _is_number(setting) or setting < 0:
            return translate("{name} is a number of 0 or more.", name=name)
    return ""


def _regex_problem(check: Check) -> str:
    if problem := _text_problem(check):
        return problem
    try:
        re.compile(check.expected)
    except re.error as error:
        return translate("the pattern cannot be used: {reason}.", reason=error)
    try:
        compile_pattern(check.expected)
    except ConfigError:
        return translate("the pattern has syntax of Python alone; write it as for `pattern` in JSON Schema.")
    return ""


@lru_cache(maxsize=1_000)
def compile_pattern(pattern: str) -> Validator:
    """What judges whether a pattern occurs in an answer, within a bounded number of steps.

    The engine of JSON Schema gives up where `re` would search for ever, without a way to stop it: `^(a+)+$` in a long
    answer. Such an answer does not fit.

    Raises:
        ConfigError: the pattern has syntax that only `re` knows.
    """
    return compile_schema({"type": "string", "pattern": pattern.replace(r"\Z", r"\z")}, "the pattern")


def _json_path_problem(check: Check) -> str:
    path = check.settings.get("path")
    if not isinstance(path, str) or path_steps(path) is None:
        text = mark("`path` is a JSON path of names and indices, such as {example}.")
        return translate(text, example="$.orders[0].total")
    return ""


def _answers_problem(check: Check) -> str:
    answers = answers_of(check)
    if not answers or not all(isinstance(answer, str) and answer.strip() for answer in answers):
        return translate("a text or a list of texts is expected; put each in quotes.")
    at_least = check.settings.get("at_least", 1)
    if not _is_number(at_least) or not 0 < at_least <= 1:
        return translate("{name} is a number above 0 and at most 1.", name="at_least")
    return ""


def _function_problem(check: Check) -> str:
    is_name = isinstance(check.expected, str) and re.fullmatch(r"[\w.]+:[\w.]+", check.expected)
    return "" if is_name else translate("`module:function` is expected.")


def _world_problem(check: Check) -> str:
    return "" if isinstance(check.expected, dict) and check.expected else translate("a mapping is expected.")


def _status_problem(check: Check) -> str:
    return "" if check.expected in STATUSES else translate("one of {names} is expected.", names=", ".join(STATUSES))


def answers_of(check: Check) -> tuple[Any, ...]:
    """The answers that are right, of a check that takes one or several."""
    return tuple(check.expected) if isinstance(check.expected, list | tuple) else (check.expected,)


_PROBLEMS: dict[CheckKind, Callable[[Check], str]] = {
    "exact": _exact_problem,
    "number": _number_problem,
    "regex": _regex_problem,
    "json_path": _json_path_problem,
    "em": _answers_problem,
    "f1": _answers_problem,
    "function": _function_problem,
    "world": _world_problem,
    "judge": _text_problem,
    "status": _status_problem,
}
