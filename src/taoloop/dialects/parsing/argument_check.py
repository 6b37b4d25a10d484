"""Whether arguments fit the schema of a tool, after lossless corrections: the last judgement over a call.

The part of JSON Schema that decides what a call means: types, enums, required and unknown arguments, bounds, and
references within the schema. Patterns and formats are left to the executor, which validates again. An object whose
schema lists its properties takes no others unless it says so: an unknown argument may carry what the call is about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from taoloop.core.cards.coercion import coerce_args

_MAX_DEPTH = 40
_TYPES: dict[str, type | tuple[type, ...]] = {
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
    return corrected, _violation(corrected, schema, schema, "", _MAX_DEPTH)


def _violation(value: Any, rule: Any, root: Mapping[str, Any], path: str, levels: int) -> str:
    """What is wrong with a value by its rule, in words; empty if nothing is."""
    if rule is False or not levels:
        return f"{path or 'it'} is not allowed"
    if not isinstance(rule, Mapping):
        return ""
    if isinstance(reference := rule.get("$ref"), str):
        return _violation(value, _resolve_reference(reference, root), root, path, levels - 1)
    declared = rule.get("type", ())
    types = (declared,) if isinstance(declared, str) else tuple(declared)
    if types and not any(_has_type(value, kind) for kind in types):
        return f"{path or 'it'} must be {' or '.join(types)}"
    if "enum" in rule and not any(_equals(value, option) for option in rule["enum"]):
        return f"{path or 'it'} must be one of {', '.join(map(str, rule['enum']))}"
    if "const" in rule and not _equals(value, rule["const"]):
        return f"{path or 'it'} must be {rule['const']!r}"
    return (
        _size_violation(value, rule, path)
        or _branch_violation(value, rule, root, path, levels)
        or _member_violation(value, rule, root, path, levels)
    )


def _member_violation(value: Any, rule: Mapping[str, Any], root: Mapping[str, Any], path: str, levels: int) -> str:
    if isinstance(value, list) and "items" in rule:
        violations = (
            _violation(item, rule["items"], root, f"{path}[{index}]", levels - 1) for index, item in enumerate(value)
        )
        return next(filter(None, violations), "")
    if not isinstance(value, dict):
        return ""
    properties: Mapping[str, Any] = rule.get("properties", {})
    missing = [name for name in rule.get("required", ()) if name not in value]
    if missing:
        return f"{', '.join(missing)} is missing"
    additional = rule.get("additionalProperties", not properties and path != "")
    for name, item in value.items():
        rule_of_member = properties.get(name, additional)
        if name not in properties and additional is False:
            return f"{name!r} is not a known argument"
        if violation := _violation(item, rule_of_member, root, f"{path}.{name}" if path else name, levels - 1):
            return violation
    return ""


def _branch_violation(value: Any, rule: Mapping[str, Any], root: Mapping[str, Any], path: str, levels: int) -> str:
    for branch in rule.get("allOf", ()):
        if violation := _violation(value, branch, root, path, levels - 1):
            return violation
    for name in ("anyOf", "oneOf"):
        branches: Sequence[Any] = rule.get(name, ())
        if branches and all(_violation(value, branch, root, path, levels - 1) for branch in branches):
            return f"{path or 'it'} fits none of its alternatives"
    return ""


def _size_violation(value: Any, rule: Mapping[str, Any], path: str) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        for name, holds in _BOUNDS.items():
            if name in rule and not holds(value, rule[name]):
                return f"{path} breaks its {name} of {rule[name]}"
    for name, kind in _SIZES.items():
        if name in rule and isinstance(value, kind):
            size = len(value)
            if size < rule[name] if name.startswith("min") else size > rule[name]:
                return f"{path or 'it'} breaks its {name} of {rule[name]}"
    return ""


def _has_type(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(name, object))


def _equals(left: Any, right: Any) -> bool:
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _resolve_reference(reference: str, root: Mapping[str, Any]) -> Any:
    start, *path = reference.split("/")
    node: Any = root if start == "#" else None
    for key in path:
        node = node.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None
    return {} if node is None else node
