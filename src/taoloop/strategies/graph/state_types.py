"""Whether a value fits a field of the state, by its JSON Schema. Pure: a replay checks as the run did.

Types, listed values, parts of objects and lists, references, alternatives and bounds are checked. Formats and patterns
are not: a function or a tool that has them checks its result itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taoloop.core.cards.coercion import resolve_reference, schema_types

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict, Mapping),
    "null": (type(None),),
}
_MAX_DEPTH = 32


def misfit(value: Any, rule: Any, root: Mapping[str, Any], path: str = "", depth: int = _MAX_DEPTH) -> str:
    """Why a value does not fit a schema, in words; empty if it does. `root` has what references name."""
    if rule is False:
        return f"{path or 'it'} is not allowed"
    if not isinstance(rule, Mapping) or not depth:
        return ""
    if isinstance(ref := rule.get("$ref"), str):
        return misfit(value, resolve_reference(ref, root), root, path, depth - 1)
    if "const" in rule and not _is_same(value, rule["const"]):
        return f"{path or 'it'} must be {rule['const']!r}"
    if "enum" in rule and not any(_is_same(value, option) for option in rule["enum"]):
        return f"{path or 'it'} must be one of {', '.join(map(repr, rule['enum']))}, not {_short(value)}"
    declared = rule.get("type")
    names = (declared,) if isinstance(declared, str) else tuple(declared or ())
    if names and not any(_is_of(value, name) for name in names):
        return f"{path or 'it'} must be {' or '.join(names)}, not {_short(value)}"
    for part in rule.get("allOf", ()):
        if problem := misfit(value, part, root, path, depth - 1):
            return problem
    for word in ("anyOf", "oneOf"):
        problems = [misfit(value, part, root, path, depth - 1) for part in rule.get(word, ())]
        if problems and all(problems):
            return "; or ".join(dict.fromkeys(problems))
    return _misfit_part(value, rule, root, path, depth)


def parts_at(rule: Any, steps: Sequence[str | int], root: Mapping[str, Any], depth: int = _MAX_DEPTH) -> list[Any]:
    """The schemas of what a value of a schema may have at a path; none if it has nothing there for certain."""
    if rule is False:
        return []
    if not isinstance(rule, Mapping) or not depth or "allOf" in rule:
        return [True]
    if isinstance(ref := rule.get("$ref"), str):
        return parts_at(resolve_reference(ref, root), steps, root, depth - 1)
    if not steps:
        return [rule]
    if arms := [arm for word in ("anyOf", "oneOf") for arm in rule.get(word, ())]:
        return [part for arm in arms for part in parts_at(arm, steps, root, depth - 1)]
    types, step = schema_types(rule, root), steps[0]
    if types and ("array" if isinstance(step, int) else "object") not in types:
        return []
    if isinstance(step, int):
        return parts_at(rule.get("items", True), steps[1:], root, depth - 1)
    properties = rule.get("properties", {})
    inner = properties.get(step, rule.get("additionalProperties", not properties))
    return parts_at(inner, steps[1:], root, depth - 1)


def _misfit_part(value: Any, rule: Mapping[str, Any], root: Mapping[str, Any], path: str, depth: int) -> str:
    """Why the parts or the size of a value do not fit."""
    if isinstance(value, Mapping):
        properties = rule.get("properties", {})
        if lacking := [name for name in rule.get("required", ()) if name not in value]:
            return f"{path or 'it'} lacks {lacking[0]!r}"
        for name, part in value.items():
            inner = properties.get(name, rule.get("additionalProperties", True))
            if problem := misfit(part, inner, root, f"{path}.{name}" if path else name, depth - 1):
                return problem
    elif isinstance(value, list) and "items" in rule:
        for number, part in enumerate(value):
            if problem := misfit(part, rule["items"], root, f"{path}[{number}]", depth - 1):
                return problem
    size = value if _is_of(value, "number") else len(value) if isinstance(value, str | list) else None
    if size is None:
        return ""
    low, high = ("minimum", "maximum") if size is value else ("minLength", "maxLength")
    low, high = ("minItems", "maxItems") if isinstance(value, list) else (low, high)
    outside = (low in rule and size < rule[low]) or (high in rule and size > rule[high])
    if size is value:
        outside |= "exclusiveMinimum" in rule and size <= rule["exclusiveMinimum"]
        outside |= "exclusiveMaximum" in rule and size >= rule["exclusiveMaximum"]
    bounds = (low, high, "exclusiveMinimum", "exclusiveMaximum")
    limits = ", ".join(f"{name} {rule[name]}" for name in bounds if name in rule)
    return f"{path or 'it'} is outside its bounds ({limits}): {_short(value)}" if outside else ""


def _is_of(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(name, object))


def _is_same(value: Any, option: Any) -> bool:
    return value == option and isinstance(value, bool) == isinstance(option, bool)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
