"""Lossless corrections of argument values: what a careful reader would accept without changing the meaning.

`"5"` for an integer becomes 5, `5.0` becomes 5, `"true"` becomes true, an enum value in another case becomes the listed
one, `{"base64": "…"}` for bytes becomes its text, and null for an optional argument means "not given". Nothing else is
touched; the schema judges the rest.
References within the schema and alternatives are followed; if they leave open what is meant, nothing is corrected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taoloop.core.text import lazy_pattern

_INTEGER = lazy_pattern(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = lazy_pattern(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?")
_MAX_NUMBER_CHARS = 24
_MAX_DEPTH = 32  # levels of a value that are corrected
_MAX_ALTERNATIVES = 64  # references and branches that are followed for one value

_Rule = Mapping[str, Any]
_ANYTHING: _Rule = {}


def coerce_args(args: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `args` with the lossless corrections that `schema` (of an object) allows."""
    return _coerce_object(args, schema, schema, _MAX_DEPTH)


def coerce_value(value: Any, schema: Mapping[str, Any]) -> Any:
    """Any value with the lossless corrections that its `schema` allows."""
    return _coerce(value, _alternatives(schema, schema), schema, _MAX_DEPTH)


def schema_types(rule: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> frozenset[str]:
    """The JSON types that a schema names, alternatives included; empty where one of them may be anything.

    `root` is the schema that `rule` is a part of, to which its references point.
    """
    return _types(_alternatives(rule, rule if root is None else root))


def _coerce_object(args: Mapping[str, Any], rule: _Rule, root: _Rule, levels: int) -> dict[str, Any]:
    properties: Mapping[str, Any] = rule.get("properties", {})
    required = rule.get("required", ())
    extra_rule = rule.get("additionalProperties")
    corrected: dict[str, Any] = {}
    for name, value in args.items():
        property_rule = properties.get(name, extra_rule)
        if not isinstance(property_rule, Mapping):
            corrected[name] = value
            continue
        alternatives = _alternatives(property_rule, root)
        if value is None and name in properties and name not in required:
            types = _types(alternatives)
            if types and "null" not in types:
                continue
        corrected[name] = _coerce(value, alternatives, root, levels)
    return corrected


def _coerce(value: Any, alternatives: Sequence[_Rule], root: _Rule, levels: int) -> Any:
    if isinstance(value, str):
        return _coerce_text(value, alternatives)
    if isinstance(value, float):
        types = _types(alternatives)
        return int(value) if "integer" in types and "number" not in types and value.is_integer() else value
    if isinstance(value, dict) and value.keys() == {"base64"} and _is_base64(alternatives):
        return value["base64"]
    if isinstance(value, dict | list) and levels:
        kind = "object" if isinstance(value, dict) else "array"
        fitting = [option for option in alternatives if kind in _declared_types(option)]
        if len(fitting) > 1 and isinstance(value, dict):
            fitting = [option for option in fitting if _is_tagged(value, option)]
        if len(fitting) == 1 and isinstance(value, dict):
            return _coerce_object(value, fitting[0], root, levels - 1)
        items = fitting[0].get("items") if len(fitting) == 1 else None
        if isinstance(items, Mapping):
            inner = _alternatives(items, root)
            return [_coerce(item, inner, root, levels - 1) for item in value]
    return value


def _is_base64(alternatives: Sequence[_Rule]) -> bool:
    """Whether bytes are meant: as results have them, with the encoding as the key, they are the same bytes."""
    is_encoded = any(option.get("contentEncoding") == "base64" for option in alternatives)
    return is_encoded and "object" not in _types(alternatives)


def _is_tagged(value: Mapping[str, Any], rule: _Rule) -> bool:
    """True if the value has the constant properties that distinguish this one of several objects."""
    properties = rule.get("properties", {})
    tags = {
        name: property_rule["const"]
        for name, property_rule in properties.items()
        if isinstance(property_rule, Mapping) and "const" in property_rule
    }
    return bool(tags) and all(name in value and value[name] == tag for name, tag in tags.items())


def _coerce_text(value: str, alternatives: Sequence[_Rule]) -> Any:
    options = {
        option for alternative in alternatives for option in _options(alternative) or () if isinstance(option, str)
    }
    if value in options or any(
        _options(alternative) is None and "string" in _declared_types(alternative) for alternative in alternatives
    ):
        return value
    same = [option for option in options if option.casefold() == value.casefold()]
    if len(same) == 1:
        return same[0]
    types = _types(alternatives)
    if "string" in types or len(value) > _MAX_NUMBER_CHARS:
        return value
    if "boolean" in types and value.casefold() in ("true", "false"):
        return value.casefold() == "true"
    if ("integer" in types or "number" in types) and _INTEGER.fullmatch(value):
        return int(value)
    if "number" in types and _NUMBER.fullmatch(value):
        return float(value)
    return value


def _alternatives(rule: _Rule, root: _Rule) -> list[_Rule]:
    """What a value may be: `rule` itself, or what its references and branches lead to."""
    alternatives: list[_Rule] = []
    followed: set[str] = set()
    queue: list[Any] = [rule]
    for candidate in queue:  # grows while it is read
        if len(queue) > _MAX_ALTERNATIVES:
            return [_ANYTHING]
        if not isinstance(candidate, Mapping):
            alternatives += [] if candidate is False else [_ANYTHING]
        elif isinstance(ref := candidate.get("$ref"), str):
            if ref not in followed:
                followed.add(ref)
                queue.append(resolve_reference(ref, root))
        elif "type" in candidate or not (branches := _branches(candidate)):
            alternatives.append(candidate)
        else:
            queue += branches
    return alternatives


def _branches(rule: _Rule) -> list[Any]:
    branches = [*rule.get("anyOf", ()), *rule.get("oneOf", ())]
    together = rule.get("allOf", ())
    return branches or (list(together) if len(together) == 1 else [])


def resolve_reference(ref: str, root: Mapping[str, Any]) -> Any:
    """The part of `root` that a reference within it names, None if there is none; anything for any other reference."""
    start, *path = ref.split("/")
    if start != "#":
        return _ANYTHING
    value: Any = root
    for step in path:
        value = value.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(value, Mapping) else None
    return value


def _types(alternatives: Sequence[_Rule]) -> frozenset[str]:
    """All types that the alternatives name; empty where one names nothing at all."""
    if any(not _declared_types(alternative) and _options(alternative) is None for alternative in alternatives):
        return frozenset()
    return frozenset().union(*map(_declared_types, alternatives))


def _declared_types(rule: _Rule) -> frozenset[str]:
    declared = rule.get("type", ())
    return frozenset({declared}) if isinstance(declared, str) else frozenset(declared)


def _options(rule: _Rule) -> Sequence[Any] | None:
    """The values that a rule lists; None if it lists none."""
    return [rule["const"]] if "const" in rule else rule.get("enum")
