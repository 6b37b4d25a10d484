"""JSON without tolerance: what may become the arguments of a tool, and nothing else.

Refused beyond broken syntax: NaN and Infinity (also as 1e999), one key with two different values, nesting
deeper than `MAX_DEPTH`, and halves of surrogate pairs, which no UTF-8 text can hold.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

from taoloop.core.fast_stdlib import json_writer
from taoloop.core.text import RUN_LANGUAGE, lazy_pattern
from taoloop.dialects.texts import LocalizedText

_FENCED = lazy_pattern(r"(?P<before>[^`]*)(?P<fence>`{3,})(?:json)?[ \t]*\n(?P<body>.*?)\n?(?P=fence)\s*", re.DOTALL)


def answer_values(text: str) -> tuple[list[Any], str, str]:
    """What the text of an answer may mean, the most likely value first; the prose before it; why it is not JSON.

    It may be JSON; or one fenced block of JSON at the end, with the reason before it; or a JSON string that contains
    JSON; or, last of all, the bare text itself, for schemas of texts. The error is empty if it is JSON.
    """
    block = _FENCED.fullmatch(text)
    body, before = (block["body"], block["before"].strip()) if block else (text, "")
    try:
        value = loads(body)
    except NotJsonError as error:
        return [text], "", error.text.render(RUN_LANGUAGE.get())
    values = [value]
    if isinstance(value, str):
        with suppress(NotJsonError):
            values.append(loads(value))
    elif not block:
        values.append(text)
    return values, before, ""


MAX_DEPTH = 100


class NotJsonError(ValueError):
    """The text is not acceptable JSON. `str` gives the reason in English, `text` in any language.

    Args:
        name: The name of the reason in the catalogue.
        truncated: The text stops in the middle, as a reply that was cut does.
        unrepairable: The syntax is fine, but a value cannot be believed, so no repair may be tried.
        values: What is filled into the reason.
    """

    def __init__(self, name: str, /, *, truncated: bool = False, unrepairable: bool = False, **values: object) -> None:
        self.truncated, self.unrepairable = truncated, unrepairable
        self.text = LocalizedText(name, values)
        super().__init__(name)

    def __str__(self) -> str:
        return self.text.render("en")

    @classmethod
    def at(cls, position: int, fault: LocalizedText, *, truncated: bool = False) -> NotJsonError:
        """The error for a fault at one position of the text."""
        return cls("json_at", truncated=truncated, fault=fault, position=position + 1)


def decode_at(text: str, position: int = 0) -> tuple[Any, int]:
    """The JSON value that begins at `position`, and where it ends.

    Raises:
        NotJsonError: there is none, or none that may be believed.
    """
    try:
        value, end = _DECODER.raw_decode(text, position)
        _check_value(value, text[position:end])
    except NotJsonError:
        raise
    except json.JSONDecodeError as error:
        truncated = error.msg.startswith("Unterminated") or not text[error.pos :].strip()
        if truncated:
            raise NotJsonError("json_truncated", truncated=True) from None
        raise NotJsonError("json_syntax", error=error.msg, position=error.pos - position + 1) from None
    except RecursionError:
        raise NotJsonError("json_too_deep", unrepairable=True, levels=MAX_DEPTH) from None
    except ValueError as error:  # an integer of thousands of digits, half of a surrogate pair
        raise NotJsonError("json_unstorable", unrepairable=True, error=type(error).__name__) from None
    return value, end


def loads(text: str) -> Any:
    """The JSON value that `text` is, white space around it aside.

    Raises:
        NotJsonError: it is not exactly one acceptable JSON value.
    """
    text = text.strip()
    value, end = decode_at(text)
    if end != len(text):
        raise NotJsonError("json_text_follows", position=end + 1)
    return value


dumps = json_writer(json.JSONEncoder(ensure_ascii=False))
"""A value as JSON on one line, not escaped to ASCII."""


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


compact_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain).encode
"""A value as JSON without blanks between its parts, not escaped to ASCII; what JSON does not have is a text."""


def json_equal(left: Any, right: Any) -> bool:
    """Whether two JSON values are the same: true is not 1, and the order of keys does not matter."""
    if left is right:
        return True
    return canonical_json(left) == canonical_json(right)


def canonical_json(value: Any) -> str:
    """One text for all spellings of the same JSON value."""
    return json.dumps(value, sort_keys=True)


def strings_in(value: Any) -> list[str]:
    """Every text in a JSON value, keys included.

    Raises:
        NotJsonError: the value is nested too deeply.
    """
    strings: list[str] = []
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        next_level: list[Any] = []
        for item in level:
            if isinstance(item, str):
                strings.append(item)
            elif isinstance(item, dict):
                strings.extend(item)
                next_level.extend(item.values())
            elif isinstance(item, list):
                next_level.extend(item)
        if not next_level:
            return strings
        level = next_level
    raise NotJsonError("json_too_deep", unrepairable=True, levels=MAX_DEPTH)


def _check_value(value: Any, source: str) -> None:
    if not source.isascii():
        source.encode()
    if "\\u" in source or (len(source) > MAX_DEPTH and source.count("{") + source.count("[") > MAX_DEPTH):
        for text in strings_in(value):
            text.encode()


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        for key, value in pairs:
            if not json_equal(members[key], value):
                raise NotJsonError("json_duplicate_key", unrepairable=True, key=key[:40])
    return members


def parse_finite(text: str) -> float:
    """The number in a text.

    Raises:
        NotJsonError: it is beyond the range of numbers.
    """
    number = float(text)
    if math.isinf(number):
        raise NotJsonError("json_number_too_large", unrepairable=True, number=text[:40])
    return number


def _reject_constant(name: str) -> NoReturn:
    raise NotJsonError("json_word", unrepairable=True, word=name)


_DECODER = json.JSONDecoder(object_pairs_hook=_build_object, parse_float=parse_finite, parse_constant=_reject_constant)
