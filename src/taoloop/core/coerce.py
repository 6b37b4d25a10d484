"""Lossless corrections of argument values: what a careful reader would accept without changing the meaning.

`"5"` for an integer becomes 5, `5.0` becomes 5, `"true"` becomes true, an enum value in another case becomes the
listed one, and null for an optional argument means "not given". Nothing else is touched; the schema judges the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?")
_LONGEST_NUMBER = 24


def coerce_args(args: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `args` with the lossless corrections that `schema` (of an object) allows."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    corrected: dict[str, Any] = {}
    for name, value in args.items():
        rule = properties.get(name)
        if not isinstance(rule, Mapping):
            corrected[name] = value
            continue
        types = schema_types(rule)
        if value is None and name not in required and types and "null" not in types:
            continue
        corrected[name] = _coerce(value, rule, types)
    return corrected


def schema_types(rule: Mapping[str, Any]) -> frozenset[str]:
    """The JSON types that a schema names, alternatives included; empty where it names none."""
    declared = rule.get("type")
    if isinstance(declared, str):
        return frozenset({declared})
    if isinstance(declared, list):
        return frozenset(declared)
    branches = [*rule.get("anyOf", ()), *rule.get("oneOf", ())]
    return frozenset().union(*(schema_types(branch) for branch in branches if isinstance(branch, Mapping)))


def _coerce(value: Any, rule: Mapping[str, Any], types: frozenset[str]) -> Any:
    if isinstance(value, str):
        return _from_text(value, rule, types)
    if isinstance(value, float) and "integer" in types and "number" not in types and value.is_integer():
        return int(value)
    if isinstance(value, dict) and "object" in types:
        return coerce_args(value, rule)
    items = rule.get("items")
    if isinstance(value, list) and "array" in types and isinstance(items, Mapping):
        return [_coerce(item, items, schema_types(items)) for item in value]
    return value


def _from_text(value: str, rule: Mapping[str, Any], types: frozenset[str]) -> Any:
    options = rule.get("enum")
    if options and value not in options:
        same = [option for option in options if isinstance(option, str) and option.casefold() == value.casefold()]
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
