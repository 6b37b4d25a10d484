"""Values in the JSON types that an argument takes."""

from __future__ import annotations

from typing import Any

from taoloop.models.offline.schema import Param


def as_number(text: str, param: Param) -> int | float | None:
    """A number in the type that the argument takes; None if it does not fit."""
    try:
        number = float(text)
    except ValueError:
        return None
    if abs(number) == float("inf") or number != number:
        return None
    if number.is_integer() and "." not in text and "e" not in text.lower():
        return int(text)
    if "number" not in param.types and "integer" in param.types:
        return int(number) if number.is_integer() else None
    return number


_PYTHON = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}


def fits(value: Any, param: Param) -> bool:
    """True if a value has a JSON type that the argument takes."""
    if not param.types:
        return True
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number" in param.types or ("integer" in param.types and float(value).is_integer())
    return any(isinstance(value, _PYTHON[kind]) for kind in param.types if kind in _PYTHON)
