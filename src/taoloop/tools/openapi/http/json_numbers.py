"""JSON output that keeps every digit of a number as it was written, and never uses an exponent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

_quote = json.encoder.encode_basestring
_quote_ascii = json.encoder.encode_basestring_ascii


def number_text(number: int | float | Decimal) -> str:
    """The digits of a number: a Decimal as written, a float with the fewest digits that represent it exactly."""
    if isinstance(number, int):
        return str(number)
    return format(number if isinstance(number, Decimal) else Decimal(repr(number)), "f")


def to_json(value: Any, *, ascii_only: bool = False) -> str:
    """A JSON value as one line of text, with numbers formatted by `number_text`."""
    parts: list[str] = []
    _write_json(value, parts, _quote_ascii if ascii_only else _quote)
    return "".join(parts)


def _write_json(value: Any, parts: list[str], quote: Any) -> None:
    if isinstance(value, str):
        parts.append(quote(value))
    elif value is None:
        parts.append("null")
    elif isinstance(value, bool):
        parts.append("true" if value else "false")
    elif isinstance(value, int | float | Decimal):
        parts.append(number_text(value))
    elif isinstance(value, Mapping):
        before = "{"
        for key, inner in value.items():
            parts += (before, quote(str(key)), ":")
            _write_json(inner, parts, quote)
            before = ","
        parts.append("{}" if before == "{" else "}")
    else:
        before = "["
        for item in value:
            parts.append(before)
            _write_json(item, parts, quote)
            before = ","
        parts.append("[]" if before == "[" else "]")


def apply_literals(value: Any, literals: Mapping[str, str], pointer: str = "") -> Any:
    """A JSON value in which each float with a literal in `literals` (by JSON pointer) becomes a Decimal.

    A literal that denotes a different number is ignored.
    """
    if isinstance(value, Mapping):
        return {
            key: apply_literals(inner, literals, f"{pointer}/{_escape_pointer(str(key))}")
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [apply_literals(item, literals, f"{pointer}/{index}") for index, item in enumerate(value)]
    if isinstance(value, float) and (text := literals.get(pointer)) is not None:
        try:
            written = Decimal(text)
        except InvalidOperation:
            return value
        return written if repr(float(written)) == repr(value) else value
    return value


def _escape_pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
