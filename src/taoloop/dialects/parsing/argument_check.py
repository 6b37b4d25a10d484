"""Whether arguments fit the schema of a tool, after lossless corrections: the last judgement over a call.

The part of JSON Schema that decides what a call means: types, enums, required and unknown arguments, bounds, and
references within the schema. Patterns and formats are left to the executor, which validates again. An object whose
schema lists its properties takes no others unless it says so: an unknown argument may carry what the call is about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from taoloop.core.cards.coercion import coerce_args

_DEEPEST = 40
_KINDS: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
_BOUNDS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, limit: value >= limit,
    "maximum": lambda value, limit: value <= limit,
    "exclusiveMinimum": lambda value, limit: value > limit,
    "exclusiveMaximum": lambda value, limit: value < limit,
}
_SIZES: dict[str, type[str] | type[list[Any]] | type[dict[str, Any]]] = {
    "minLength": str,
    "maxLength": str,
    "minItems": list,
    "maxItems": list,
    "minProperties": dict,
    "maxProperties": dict,
}


def coerce_and_validate(args: Any, schema: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The arguments after lossless corrections, and what does not fit (empty: they fit)."""
    if not isinstance(args, dict):
        return {}, "the arguments are no JSON object"
    corrected = coerce_args(args, schema)
    return corrected, _fault(corrected, schema, schema, "", _DEEPEST)


def _fault(value: Any, rule: Any, root: Mapping[str, Any], where: str, levels: int) -> str:
    """What is wrong with a value by its rule, in words; empty if nothing is."""
    if rule is False or not levels:
        return f"{where or 'it'} is not allowed"
    if not isinstance(rule, Mapping):
        return ""
    if isinstance(reference := rule.get("$ref"), str):
        return _fault(value, _target(reference, root), root, where, levels - 1)
    declared = rule.get("type", ())
    kinds = (declared,) if isinstance(declared, str) else tuple(declared)
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"{where or 'it'} must be {' or '.join(kinds)}"
    if "enum" in rule and not any(_equal(value, option) for option in rule["enum"]):
        return f"{where or 'it'} must be one of {', '.join(map(str, rule['enum']))}"
    if "const" in rule and not _equal(value, rule["const"]):
        return f"{where or 'it'} must be {rule['const']!r}"
    return (
        _size_fault(value, rule, where)
        or _branch_fault(value, rule, root, where, levels)
        or _inner_fault(value, rule, root, where, levels)
    )


def _inner_fault(value: Any, rule: Mapping[str, Any], root: Mapping[str, Any], where: str, levels: int) -> str:
    if isinstance(value, list) and "items" in rule:
        found = (_fault(item, rule["items"], root, f"{where}[{n}]", levels - 1) for n, item in enumerate(value))
        return next(filter(None, found), "")
    if not isinstance(value, dict):
        return ""
    properties: Mapping[str, Any] = rule.get("properties", {})
    missing = [name for name in rule.get("required", ()) if name not in value]
    if missing:
        return f"{', '.join(missing)} is missing"
    others = rule.get("additionalProperties", not properties and where != "")
    for name, item in value.items():
        inner = properties.get(name, others)
        if name not in properties and others is False:
            return f"{name!r} is not a known argument"
        if fault := _fault(item, inner, root, f"{where}.{name}" if where else name, levels - 1):
            return fault
    return ""


def _branch_fault(value: Any, rule: Mapping[str, Any], root: Mapping[str, Any], where: str, levels: int) -> str:
    for part in rule.get("allOf", ()):
        if fault := _fault(value, part, root, where, levels - 1):
            return fault
    for name in ("anyOf", "oneOf"):
        branches: Sequence[Any] = rule.get(name, ())
        if branches and all(_fault(value, branch, root, where, levels - 1) for branch in branches):
            return f"{where or 'it'} fits none of its alternatives"
    return ""


def _size_fault(value: Any, rule: Mapping[str, Any], where: str) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        for name, holds in _BOUNDS.items():
            if name in rule and not holds(value, rule[name]):
                return f"{where} breaks its {name} of {rule[name]}"
    for name, kind in _SIZES.items():
        if name in rule and isinstance(value, kind):
            size = len(value)
            if size < rule[name] if name.startswith("min") else size > rule[name]:
                return f"{where or 'it'} breaks its {name} of {rule[name]}"
    return ""


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS.get(kind, object))


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _target(reference: str, root: Mapping[str, Any]) -> Any:
    start, *path = reference.split("/")
    place: Any = root if start == "#" else None
    for step in path:
        place = place.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
    return {} if place is None else place
