"""Decimals as a model wrote them: `1.10`, `0.12345678901234567890`. Pure.

A float keeps neither. If a tool needs the digits, they are looked up in the reply that asked for the call.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from taoloop.core.search import PointerError, resolve_json_pointer
from taoloop.core.text import lazy_pattern

_MAX_OBJECTS = 200  # positions in a reply at which an object may begin
_MAX_WASTED_CHARS = 10_000  # that are parsed without success, beyond twice the length of the reply
_MAX_DEPTH = 50


class _LiteralFloat(float):
    """A float that knows its text."""

    def __init__(self, text: str) -> None:
        self.text = text


_DECODER = json.JSONDecoder(parse_float=_LiteralFloat)
_DECIMAL = lazy_pattern(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_OPEN = lazy_pattern(r"\{")


def has_float(value: Any) -> bool:
    """Whether a JSON value contains a number that is not whole, so that its digits may matter."""
    if isinstance(value, Mapping):
        return any(has_float(inner) for inner in value.values())
    return any(has_float(item) for item in value) if isinstance(value, list | tuple) else isinstance(value, float)


def decimal_literals(args: Any, sources: Iterable[str]) -> dict[str, str]:
    """The texts of the decimals in `args` by JSON pointer, where they say more than the float itself.

    `sources` are the texts of a reply. An object in them that equals `args` is what was meant; if two such objects
    differ in their digits, it is unclear which, and the result is empty.
    """
    if not has_float(args):
        return {}
    candidates: list[dict[str, str]] = []
    for source in sources:
        end, remaining = 0, _MAX_WASTED_CHARS + 2 * len(source)
        for number, opening in enumerate(_OPEN.finditer(source)):
            if number > _MAX_OBJECTS or remaining < 0:
                break
            if opening.start() < end:
                continue
            try:
                value, end = _DECODER.raw_decode(source, opening.start())
            except (ValueError, RecursionError) as error:
                remaining -= getattr(error, "pos", len(source)) - opening.start()
                continue
            for match in _equal_parts(value, args, 0):
                literals: dict[str, str] = {}
                _collect(match, args, "", literals)
                if literals not in candidates:
                    candidates.append(literals)
    return candidates[0] if len(candidates) == 1 else {}


def _equal_parts(value: Any, args: Any, depth: int) -> list[Any]:
    """Every part of `value` that equals `args`."""
    if depth > _MAX_DEPTH:
        return []
    if value == args:
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [match for item in inner for match in _equal_parts(item, args, depth + 1)]


def carry_over_literals(literals: Mapping[str, str], before: Any, after: Any) -> dict[str, str]:
    """Those of the `literals` of `before` that still mean the number at their position, in `after` too."""
    return {
        pointer: text
        for pointer, text in literals.items()
        if _is_literal_at(pointer, text, before) and _is_literal_at(pointer, text, after)
    }


def _is_literal_at(pointer: str, text: str, value: Any) -> bool:
    """Whether a text is a decimal with exactly the value at a JSON pointer; the sign of a zero counts."""
    try:
        number = resolve_json_pointer(value, pointer)
    except PointerError:
        return False
    return isinstance(number, float) and _DECIMAL.fullmatch(text) is not None and repr(float(text)) == repr(number)


def _collect(value: Any, args: Any, pointer: str, literals: dict[str, str]) -> None:
    """The texts of the decimals in `value`, which equals `args`; not if the sign of a zero differs."""
    if isinstance(value, dict):
        for key, inner in value.items():
            _collect(inner, args[key], f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", literals)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _collect(item, args[number], f"{pointer}/{number}", literals)
    elif isinstance(value, _LiteralFloat) and value.text != (plain := repr(float(value))):
        means_the_same = float(value) != 0 or plain == repr(float(args))
        literals.update({pointer: value.text} if means_the_same else {})
