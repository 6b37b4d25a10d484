"""What each field of stored results may be, so that nothing is read silently that no evaluation could have written.

A problem knows where it is in the data, and `line_of` finds the line of the file. Pure.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from taoloop.core.text import is_number, printable_json
from taoloop.translation import Translator, mark

translate = Translator("evals")

DataPath = tuple[str | int, ...]
"""Names and indices that lead to a value."""


class StoredProblem(ValueError):
    """Stored data that no evaluation wrote. `path` says where it is."""

    def __init__(self, text: str, *path: str | int) -> None:
        super().__init__(text)
        self.text, self.path = text, path


class Kind(NamedTuple):
    """What a field may be."""

    holds: Callable[[Any], bool]
    """Whether a value is of this kind."""
    text: str
    """What is expected, for people, to be translated."""
    names: str = ""
    """What the text is filled in with."""

    def or_null(self) -> Kind:
        """The same, or null."""
        return self._replace(holds=lambda value: value is None or self.holds(value))


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


TEXT = Kind(lambda value: isinstance(value, str), mark("a text is expected"))
FLAG = Kind(lambda value: isinstance(value, bool), mark("true or false is expected"))
WHOLE = Kind(lambda value: type(value) is int and value >= 0, mark("a whole number of 0 or more is expected"))
AMOUNT = Kind(
    lambda value: type(value) in (int, float) and 0 <= value < math.inf, mark("a number of 0 or more is expected")
)
NUMBER = Kind(is_number, mark("a finite number is expected"))
SHARE = Kind(lambda value: type(value) in (int, float) and 0 <= value <= 1, mark("a number from 0 to 1 is expected"))
MAPPING = Kind(lambda value: isinstance(value, dict), mark("a mapping is expected"))
LIST = Kind(lambda value: isinstance(value, list), mark("a list is expected"))
TEXTS = Kind(_is_texts, mark("a list of texts is expected"))


def choice(names: Collection[str]) -> Kind:
    """One of some names."""
    text = mark("one of {names} is expected")
    return Kind(lambda value: isinstance(value, str) and value in names, text, ", ".join(names))


def check_fields(record: Any, kinds: Mapping[str, Kind], required: Collection[str] = ()) -> None:
    """Check a mapping: every field is known and of its kind, and none that is required is missing.

    Raises:
        StoredProblem: one is not.
    """
    check_kind(record, MAPPING)
    for name, value in record.items():
        kind = kinds.get(name)
        if kind is None:
            text = mark("unknown field `{name}`; the fields are {names}")
            raise StoredProblem(translate(text, name=name, names=", ".join(kinds)), name)
        if not kind.holds(value):
            raise StoredProblem(_kind_text(kind, value), name)
    for name in required:
        if name not in record:
            raise StoredProblem(translate("the field `{name}` is missing", name=name))


def check_kind(value: Any, kind: Kind) -> None:
    """Check one value.

    Raises:
        StoredProblem: it is not of the kind.
    """
    if not kind.holds(value):
        raise StoredProblem(_kind_text(kind, value))


def check_finite(data: Any) -> None:
    """Check that no number anywhere in the data is infinite or NaN, which JSON does not have.

    Raises:
        StoredProblem: one is.
    """
    if isinstance(data, float) and not math.isfinite(data):
        raise StoredProblem(_kind_text(NUMBER, data))
    if isinstance(data, dict | list):
        for name, value in data.items() if isinstance(data, dict) else enumerate(data):
            with at_path(name):
                check_finite(value)


@contextmanager
def at_path(*path: str | int) -> Iterator[None]:
    """A part of the data: problems in the block are at this path and what they say themselves."""
    try:
        yield
    except StoredProblem as problem:
        raise StoredProblem(problem.text, *path, *problem.path) from problem


def _kind_text(kind: Kind, value: Any) -> str:
    shown = printable_json(value)
    shown = shown if len(shown) <= _SHOWN_CHARS else f"{shown[: _SHOWN_CHARS - 1]}…"
    return translate("{what}, not {value}", what=translate(kind.text, names=kind.names), value=shown)


_SHOWN_CHARS = 80
_SPACE = re.compile(r"[\s,:]*")
_DECODER = json.JSONDecoder()


def line_of(text: str, path: DataPath) -> int:
    """The line, from 1, where the value at a path begins in a JSON text; of its parent, if it is not there."""
    position = _after_space(text, 0)
    for name in path:
        child = _child_position(text, position, name)
        if child is None:
            break
        position = child
    return text.count("\n", 0, position) + 1


def _child_position(text: str, position: int, name: str | int) -> int | None:
    """Where the value of a field or of an index of a list begins."""
    is_mapping = text[position] == "{"
    position, index = _after_space(text, position + 1), 0
    while text[position] not in "]}":
        key: str | int = index
        if is_mapping:
            key, position = _DECODER.raw_decode(text, position)
            position = _after_space(text, position)
        if key == name:
            return position
        _, position = _DECODER.raw_decode(text, position)
        position, index = _after_space(text, position), index + 1
    return None


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def path_text(path: DataPath) -> str:
    """A path for people, such as `trials[3].cost_usd`."""
    parts = (f"[{name}]" if isinstance(name, int) else f".{name}" for name in path)
    return "".join(parts).removeprefix(".")
