"""JSON as models write it: the same value in a syntax that is nearly right, or that has lost its meaning."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Writer = Callable[[Any], str | None]
"""Writes a value that JSON can hold; None where the drift does not apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """How the parts of a value are written; the defaults are JSON's own."""

    quotes: tuple[str, str] = ('"', '"')
    """The opening and the closing quote of a text."""

    words: tuple[str, str, str] = ("true", "false", "null")
    """The words for these three values."""

    comma: str = ", "
    """What separates entries."""

    colon: str = ": "
    """What separates a key from its value."""

    bare_keys: bool = False
    """Whether keys are written without quotes."""

    def write(self, value: Any) -> str:
        """The value in this spelling."""
        match value:
            case dict():
                entries = (f"{self._key(key)}{self.colon}{self.write(inner)}" for key, inner in value.items())
                return "{" + self.comma.join(entries) + "}"
            case list():
                return "[" + self.comma.join(map(self.write, value)) + "]"
            case str():
                return self._quoted(value)
            case None | True | False:
                return self.words[(True, False, None).index(value)]
            case _:
                return json.dumps(value)

    def _key(self, key: str) -> str:
        return key if self.bare_keys else self._quoted(key)

    def _quoted(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=False) if self.quotes == ('"', '"') else text.join(self.quotes)


def spelled(spelling: Spelling, *, needs: Callable[[Any], bool] = bool) -> Writer:
    """A writer for values that can be written so without losing anything, and where it makes a difference."""

    def write(value: Any) -> str | None:
        quoted = spelling.quotes != ('"', '"')
        if not needs(value) or (quoted and any(set(text) & set("\"'“”\\\n\r\t") for text in texts_in(value))):
            return None
        return spelling.write(value)

    return write


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)


def has_words(value: Any) -> bool:
    """Whether true, false or null is anywhere in a value."""
    if isinstance(value, dict | list):
        return any(has_words(inner) for inner in (value.values() if isinstance(value, dict) else value))
    return value is None or isinstance(value, bool)


def has_plain_keys(value: Any) -> bool:
    """Whether a value is an object whose keys, inner ones included, could be written without quotes."""
    if isinstance(value, dict):
        return bool(value) and all(
            key.isascii() and key.isidentifier() and (not isinstance(inner, dict) or not inner or has_plain_keys(inner))
            for key, inner in value.items()
        )
    return False


def trailing_comma(value: Any) -> str | None:
    """A comma behind the last entry."""
    return json.dumps(value, ensure_ascii=False)[:-1] + ",}" if isinstance(value, dict) and value else None


def comment(value: Any) -> str | None:
    """A remark in the object."""
    text = json.dumps(value, ensure_ascii=False)
    return "{  // as the task asks\n  " + text[1:] if isinstance(value, dict) and value else None


def extra_closer(value: Any) -> str | None:
    """One closing brace too many."""
    return json.dumps(value, ensure_ascii=False) + "}"


def missing_closer(value: Any) -> str | None:
    """The last closing brace is not there; a number at the end could have been cut, so there must be none."""
    text = json.dumps(value, ensure_ascii=False)[:-1]
    return text if isinstance(value, dict) and text.endswith(('"', "}", "]")) else None


def duplicate_key(value: Any) -> str | None:
    """One key with two values."""
    if not isinstance(value, dict) or not value:
        return None
    key = next(iter(value))
    other = {key: other_value(value[key])}
    return json.dumps(value, ensure_ascii=False)[:-1] + ", " + json.dumps(other, ensure_ascii=False)[1:]


def not_a_number(value: Any) -> str | None:
    """NaN in place of the first number of the object."""
    if not isinstance(value, dict):
        return None
    key = next((k for k, v in value.items() if isinstance(v, int | float) and not isinstance(v, bool)), None)
    return None if key is None else json.dumps(value | {key: float("nan")}, ensure_ascii=False)


def cut_inside(value: Any) -> str | None:
    """The text stops in the middle of the last string of the object."""
    text = json.dumps(value, ensure_ascii=False)
    last = next(reversed(list(texts_in(list(value.values())))), "") if isinstance(value, dict) else ""
    at = text.rfind(json.dumps(last, ensure_ascii=False)[:-1]) if len(last) > 1 and last.isalnum() else -1
    return None if at < 0 or not text[at:].rstrip('"}]').endswith(last) else text[: at + 1 + len(last) // 2]


def two_objects(value: Any) -> str | None:
    """A second object behind the first, with another value."""
    return None if (other := other_object(value)) is None else dumps(value) + dumps(other)


def other_object(value: Any) -> Any:
    """The object with another first value; None if it is none, or empty."""
    if not isinstance(value, dict) or not value:
        return None
    key = next(iter(value))
    return value | {key: other_value(value[key])}


def other_value(value: Any) -> Any:
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "2"
        case _:
            return [value]


def dumps(value: Any) -> str:
    """A value as JSON, not escaped to ASCII."""
    return json.dumps(value, ensure_ascii=False)
