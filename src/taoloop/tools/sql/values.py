"""Values of a database as JSON that says exactly what they are."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from taoloop.core.text import replace_surrogates

_MAX_ITEMS = 200  # of one array or object
_DEEPEST = 8


def plain(value: Any, max_chars: int, depth: int = 0) -> Any:
    """One value: a number, a text, true, false or null as it is; what JSON does not have as a text or an object.

    A decimal is its digits, a date or time ISO 8601, bytes `{"bytes": SIZE, "base64": …}`. A text beyond `max_chars`
    is `{"text_start": …, "chars": SIZE}`, longer bytes have `base64_start`.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _text(value, max_chars)
    if isinstance(value, Decimal):
        return _text(f"{value:f}" if _is_short(value) else str(value), max_chars)
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _duration(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value), max_chars)
    if isinstance(value, UUID):
        return str(value)
    if depth < _DEEPEST and isinstance(value, Mapping):
        return {str(key): plain(item, max_chars, depth + 1) for key, item in _first(value.items())}
    if depth < _DEEPEST and isinstance(value, Sequence | set | frozenset):
        items = [plain(item, max_chars, depth + 1) for item in _first(value)]
        return items if len(value) <= _MAX_ITEMS else {"items_start": items, "items": len(value)}
    return _text(str(value), max_chars)


def _is_short(value: Decimal) -> bool:
    """Whether the digits can be written without an exponent, and that is not absurdly long."""
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and abs(exponent) <= 100


def _text(value: str, max_chars: int) -> Any:
    value = replace_surrogates(value)
    return value if len(value) <= max_chars else {"text_start": value[:max_chars], "chars": len(value)}


def _bytes(value: bytes, max_chars: int) -> dict[str, Any]:
    most = max(max_chars // 4 * 3, 3)
    name = "base64" if len(value) <= most else "base64_start"
    return {"bytes": len(value), name: base64.b64encode(value[:most]).decode()}


def _duration(value: timedelta) -> str:
    """As ISO 8601, such as `P1DT2.5S` or `-P1D`; days and seconds only."""
    prefix, value = ("-", -value) if value < timedelta(0) else ("", value)
    seconds = f"{value.seconds}" + (f".{value.microseconds:06d}".rstrip("0") if value.microseconds else "")
    return f"{prefix}P{value.days}DT{seconds}S"


def _first(values: Iterable[Any]) -> list[Any]:
    return [item for _, item in zip(range(_MAX_ITEMS), values, strict=False)]
