"""Objects whose properties can stand beside other arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TOLD = frozenset({"type", "properties", "required", "additionalProperties", "description", "allOf", "$ref", "$defs"})
_ALSO = frozenset({"deprecated", "examples", "default"})
_DEEPEST = 12


@dataclass(frozen=True, slots=True)
class Flat:
    """The properties of an object by name, and those that must be there."""

    properties: Mapping[str, Any]
    required: tuple[str, ...]


def plain_object(schema: Mapping[str, Any]) -> Flat | None:
    """The properties of a schema that is nothing but an object with them; None for any other.

    References and `allOf` are followed. An object that takes other properties too is no such schema.
    """
    return _plain(schema, schema.get("$defs", {}), _DEEPEST)


def _plain(schema: Any, components: Mapping[str, Any], levels: int) -> Flat | None:
    if not isinstance(schema, Mapping) or not levels or schema.keys() - _TOLD - _ALSO:
        return None
    if schema.get("type", "object") != "object" or schema.get("additionalProperties", False) is not False:
        return None
    parts: list[Flat] = []
    inner = list(schema.get("allOf", ()))
    if "$ref" in schema:
        inner.append(components.get(str(schema["$ref"]).removeprefix("#/$defs/")))
    for part in inner:
        flat = _plain(part, components, levels - 1)
        if flat is None:
            return None
        parts.append(flat)
    if "properties" in schema or "required" in schema:
        parts.append(Flat(schema.get("properties", {}), tuple(schema.get("required", ()))))
    return _together(parts)


def _together(parts: list[Flat]) -> Flat | None:
    properties: dict[str, Any] = {}
    required: dict[str, None] = {}
    for part in parts:
        for name, rule in part.properties.items():
            if name in properties and properties[name] != rule:
                return None
            properties[name] = rule
        required.update(dict.fromkeys(part.required))
    return Flat(properties, tuple(required)) if properties and required.keys() <= properties.keys() else None
