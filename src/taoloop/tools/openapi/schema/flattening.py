"""Flattening an object schema into its properties, so that they can be arguments beside others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_OBJECT_KEYS = frozenset(
    {"type", "properties", "required", "additionalProperties", "description", "allOf", "$ref", "$defs"}
)
_ANNOTATION_KEYS = frozenset({"deprecated", "examples", "default"})
_MAX_DEPTH = 12


@dataclass(frozen=True, slots=True)
class FlatObject:
    """The members of an object schema."""

    properties: Mapping[str, Any]
    """The schemas of the properties by name."""
    required: tuple[str, ...]
    """The names of the required properties."""


def flatten_object(schema: Mapping[str, Any]) -> FlatObject | None:
    """The members of a schema that is only an object with properties; None for any other schema.

    References and `allOf` are followed. An object that allows additional properties cannot be flattened.
    """
    return _flatten(schema, schema.get("$defs", {}), _MAX_DEPTH)


def _flatten(schema: Any, components: Mapping[str, Any], levels: int) -> FlatObject | None:
    if not isinstance(schema, Mapping) or not levels or schema.keys() - _OBJECT_KEYS - _ANNOTATION_KEYS:
        return None
    if schema.get("type", "object") != "object" or schema.get("additionalProperties", False) is not False:
        return None
    parts: list[FlatObject] = []
    members = list(schema.get("allOf", ()))
    if "$ref" in schema:
        members.append(components.get(str(schema["$ref"]).removeprefix("#/$defs/")))
    for part in members:
        flat = _flatten(part, components, levels - 1)
        if flat is None:
            return None
        parts.append(flat)
    if "properties" in schema or "required" in schema:
        parts.append(FlatObject(schema.get("properties", {}), tuple(schema.get("required", ()))))
    return _merge(parts)


def _merge(parts: list[FlatObject]) -> FlatObject | None:
    properties: dict[str, Any] = {}
    required: dict[str, None] = {}
    for part in parts:
        for name, rule in part.properties.items():
            if name in properties and properties[name] != rule:
                return None
            properties[name] = rule
        required.update(dict.fromkeys(part.required))
    return FlatObject(properties, tuple(required)) if properties and required.keys() <= properties.keys() else None
