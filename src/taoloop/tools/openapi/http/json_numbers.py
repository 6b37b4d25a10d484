"""Numbers as they go out: every digit that was written, and no exponent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

_quoted = json.encoder.encode_basestring
_quoted_ascii = json.encoder.encode_basestring_ascii


def number_text(number: int | float | Decimal) -> str:
    """The digits of a number: a Decimal as it was written, a float with the fewest digits that mean it exactly."""
    if isinstance(number, int):
        return str(number)
    return format(number if isinstance(number, Decimal) else Decimal(repr(number)), "f")


def to_json(value: Any, *, ascii_only: bool = False) -> str:
    """A JSON value as text on one line, numbers by `number_text`."""
    parts: list[str] = []
    _write(value, parts, _quoted_ascii if ascii_only else _quoted)
    return "".join(parts)


def _write(value: Any, parts: list[str], quoted: Any) -> None:
    if isinstance(value, str):
        parts.append(quoted(value))
    elif value is None:
        parts.append("null")
    elif isinstance(value, bool):
        parts.append("true" if value else "false")
    elif isinstance(value, int | float | Decimal):
        parts.append(number_text(value))
    elif isinstance(value, Mapping):
        before = "{"
        for key, inner in value.items():
            parts += (before, quoted(str(key)), ":")
            _write(inner, parts, quoted)
            before = ","
        parts.append("{}" if before == "{" else "}")
    else:
        before = "["
        for item in value:
            parts.append(before)
            _write(item, parts, quoted)
            before = ","
        parts.append("[]" if before == "[" else "]")


def with_literals(value: Any, literals: Mapping[str, str], place: str = "") -> Any:
    """A JSON value with a Decimal in place of each float that `literals` has a text for, by JSON pointer.

    A text that does not mean the same number is left aside.
    """
    if isinstance(value, Mapping):
        return {key: with_literals(inner, literals, f"{place}/{_step(str(key))}") for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [with_literals(item, literals, f"{place}/{number}") for number, item in enumerate(value)]
    if isinstance(value, float) and (text := literals.get(place)) is not None:
        try:
            written = Decimal(text)
        except InvalidOperation:
            return value
        return written if repr(float(written)) == repr(value) else value
    return value


def _step(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
