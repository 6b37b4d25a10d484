"""Lossless corrections of argument values: what a careful reader would accept without changing the meaning.

`"5"` for an integer becomes 5, `5.0` becomes 5, `"true"` becomes true, an enum value in another case becomes the
listed one, and null for an optional argument means "not given". Nothing else is touched; the schema judges the rest.
References within the schema and alternatives are followed; where they leave open what is meant, nothing is corrected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?")
_LONGEST_NUMBER = 24
_DEEPEST = 32  # levels of a value that are corrected
_MOST_ALTERNATIVES = 64  # references and branches that are followed for one value

_Rule = Mapping[str, Any]
_ANYTHING: _Rule = {}


def coerce_args(args: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `args` with the lossless corrections that `schema` (of an object) allows."""
    return _object(args, schema, schema, _DEEPEST)


def coerce_value(value: Any, schema: Mapping[str, Any]) -> Any:
    """Any value with the lossless corrections that its `schema` allows."""
    return _coerce(value, _alternatives(schema, schema), schema, _DEEPEST)


def schema_types(rule: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> frozenset[str]:
    """The JSON types that a schema names, alternatives included; empty where one of them may be anything.

    `root` is the schema that `rule` is a part of, to which its references point.
    """
    return _types(_alternatives(rule, rule if root is None else root))


def _object(args: Mapping[str, Any], rule: _Rule, root: _Rule, levels: int) -> dict[str, Any]:
    properties: Mapping[str, Any] = rule.get("properties", {})
    required = rule.get("required", ())
    others = rule.get("additionalProperties")
    corrected: dict[str, Any] = {}
    for name, value in args.items():
        one = properties.get(name, others)
        if not isinstance(one, Mapping):
            corrected[name] = value
            continue
        alternatives = _alternatives(one, root)
        types = _types(alternatives)
        if value is None and name in properties and name not in required and types and "null" not in types:
            continue
        corrected[name] = _coerce(value, alternatives, root, levels)
    return corrected


def _coerce(value: Any, alternatives: Sequence[_Rule], root: _Rule, levels: int) -> Any:
    types = _types(alternatives)
    if isinstance(value, str):
        return _from_text(value, alternatives, types)
    if isinstance(value, float) and "integer" in types and "number" not in types and value.is_integer():
        return int(value)
    if isinstance(value, dict | list) and levels:
        kind = "object" if isinstance(value, dict) else "array"
        fitting = [one for one in alternatives if kind in _named_types(one)]
        if len(fitting) > 1 and isinstance(value, dict):
            fitting = [one for one in fitting if _is_tagged(value, one)]
        if len(fitting) == 1 and isinstance(value, dict):
            return _object(value, fitting[0], root, levels - 1)
        items = fitting[0].get("items") if len(fitting) == 1 else None
        if isinstance(items, Mapping):
            inner = _alternatives(items, root)
            return [_coerce(item, inner, root, levels - 1) for item in value]
    return value


def _is_tagged(value: Mapping[str, Any], rule: _Rule) -> bool:
    """True if the value has what this one of several objects is told by: its constant properties."""
    properties = rule.get("properties", {})
    tags = {name: one["const"] for name, one in properties.items() if isinstance(one, Mapping) and "const" in one}
    return bool(tags) and all(name in value and value[name] == tag for name, tag in tags.items())


def _from_text(value: str, alternatives: Sequence[_Rule], types: frozenset[str]) -> Any:
    options = {option for one in alternatives for option in _options(one) or () if isinstance(option, str)}
    if value in options or any(_options(one) is None and "string" in _named_types(one) for one in alternatives):
        return value
    same = [option for option in options if option.casefold() == value.casefold()]
    if len(same) == 1:
        return same[0]
    if "string" in types or len(value) > _LONGEST_NUMBER:
        return value
    if "boolean" in types and value.casefold() in ("true", "false"):
        return value.casefold() == "true"
    if ("integer" in types or "number" in types) and _INTEGER.fullmatch(value):
        return int(value)
    if "number" in types and _NUMBER.fullmatch(value):
        return float(value)
    return value


def _alternatives(rule: _Rule, root: _Rule) -> list[_Rule]:
    """What a value may be: `rule` itself, or what its references and branches come to."""
    found: list[_Rule] = []
    followed: set[str] = set()
    waiting: list[Any] = [rule]
    for one in waiting:  # grows while it is read
        if len(waiting) > _MOST_ALTERNATIVES:
            return [_ANYTHING]
        if not isinstance(one, Mapping):
            found += [] if one is False else [_ANYTHING]
        elif isinstance(ref := one.get("$ref"), str):
            if ref not in followed:
                followed.add(ref)
                waiting.append(_target(ref, root))
        elif "type" in one or not (branches := _branches(one)):
            found.append(one)
        else:
            waiting += branches
    return found


def _branches(rule: _Rule) -> list[Any]:
    branches = [*rule.get("anyOf", ()), *rule.get("oneOf", ())]
    together = rule.get("allOf", ())
    return branches or (list(together) if len(together) == 1 else [])


def _target(ref: str, root: _Rule) -> Any:
    """The part of `root` that a reference within it names; anything for any other reference."""
    start, *path = ref.split("/")
    if start != "#":
        return _ANYTHING
    place: Any = root
    for step in path:
        place = place.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
    return place


def _types(alternatives: Sequence[_Rule]) -> frozenset[str]:
    """All types that the alternatives name; empty where one names nothing at all."""
    if any(not _named_types(one) and _options(one) is None for one in alternatives):
        return frozenset()
    return frozenset().union(*map(_named_types, alternatives))


def _named_types(rule: _Rule) -> frozenset[str]:
    declared = rule.get("type", ())
    return frozenset({declared}) if isinstance(declared, str) else frozenset(declared)


def _options(rule: _Rule) -> Sequence[Any] | None:
    """The values that a rule lists, None where it lists none."""
    return [rule["const"]] if "const" in rule else rule.get("enum")
