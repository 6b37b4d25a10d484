"""What a check says of a trial, in the reader's language: the text of each code, with the values of the outcome.

An outcome stores a code and values, no text: so a report in another language than the evaluation's has no foreign
words. Values are shown as JSON, as they stand in suites. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from taoloop.core.text import printable_json
from taoloop.evals.trial_records import CheckOutcome
from taoloop.translation import Translator, mark, translate_error

translate = Translator("evals")

OUTCOME_TEXTS: Mapping[str, str] = mark(
    {
        "not_expected": "expected {expected}, and the answer is {answer}",
        "no_answer": "expected {expected}, and there is no answer",
        "other_status": "expected the status {expected}, and it is {status}",
        "other_world": "the world is not as expected at {differences}",
        "forbidden_calls": "carried out although it is forbidden: {tools}",
        "answered_anyway": "there is no right answer, and the run gave {answer}",
        "not_abstained": "there is no right answer, and the run did not end by saying so",
        "check_raised": "the check raised {error} at {line}",
        "check_returned": "the check {check} returned {value}: true, false or a number from 0 to 1 is expected",
        "nothing_to_judge": "There is no answer to judge.",
        "judge_failed": "The judge {judge} could not be asked: {reason}",
        "judged_right": "The judge {judge} says that the answer is right.",
        "judged_wrong": "The judge {judge} says that the answer is wrong.",
        "judge_unreadable": "The judge {judge} says neither right nor wrong: {reply}. "
        "Ask another model, or a clearer question.",
        "outside_write": "the tool {tool} tried to write {path} outside its folder {folder} ({location})",
        "unexpected_error": "unexpected {error} at {line}",
    }
)
"""The texts by code. Values that are names (`_NAMES`) stand without quotation marks."""

_NAMES = frozenset(
    {"status", "tools", "error", "line", "check", "judge", "reason", "tool", "path", "folder", "location"}
)
_TEXT_CHARS: Final = 120  # of a text that is stored
_STORED_CHARS: Final = 1_000  # of other data
_SHOWN_CHARS: Final = 200
_MOST_DIFFERENCES: Final = 5


def outcome_detail(outcome: CheckOutcome, language: str | None = None) -> str:
    """What was expected and what there was, in `language` (by default that of errors); "" if there is nothing to say.

    An outcome without a known code has a text of its own, in the language in which it was written, but for errors of
    taoloop.
    """
    if outcome.code not in OUTCOME_TEXTS:
        return translate_error(outcome.detail, language)
    values = {name: _value_text(name, value, language) for name, value in outcome.values.items()}
    try:
        return translate(OUTCOME_TEXTS[outcome.code], language, **values)
    except KeyError:  # a file that somebody wrote without all of the values
        return f"{outcome.code} {printable_json(dict(outcome.values))}"


def stored_value(value: Any) -> Any:
    """A value as JSON data that is short enough to be stored with each trial."""
    if isinstance(value, str):
        return _shorten(value, _TEXT_CHARS)
    text = json.dumps(value, ensure_ascii=False, default=str)
    return json.loads(text) if len(text) <= _STORED_CHARS else _shorten(text, _TEXT_CHARS)


def stored_differences(differences: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """The first differences of a world as JSON data: the path of each, and what is there, if anything is."""
    return [[path, *map(stored_value, values)] for path, *values in islice(differences, _MOST_DIFFERENCES)]


def _value_text(name: str, value: Any, language: str | None) -> str:
    if name == "differences" and isinstance(value, list):
        return translate("; ", language).join(_difference_text(each, language) for each in value)
    if name == "reason":
        return translate_error(str(value), language)
    if name in _NAMES:
        return translate(", ", language).join(map(str, value)) if isinstance(value, list) else str(value)
    return _shorten(printable_json(value), _SHOWN_CHARS)


def _difference_text(difference: Any, language: str | None) -> str:
    path, *values = difference if isinstance(difference, list) and difference else [difference]
    shown = _shorten(printable_json(values[0]), _SHOWN_CHARS) if values else translate("nothing", language)
    return translate("{path}: {value}", language, path=path, value=shown)


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
