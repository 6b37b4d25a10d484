"""Renaming nested properties whose names providers refuse, and restoring the original names in calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taoloop.tools.openapi.names import argument_name, is_argument_name, original_name_note
from taoloop.tools.openapi.normalisation import INNER, LISTS, MAPS, convert_nested

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


def rename_properties(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """The schema with names that providers accept, and the original name of each property that was renamed."""
    names: dict[str, None] = {}
    _collect_names(schema, names)
    invalid = [name for name in names if not is_argument_name(name)]
    if not invalid:
        return schema, {}
    used = {name for name in names if is_argument_name(name)}
    new_names: dict[str, str] = {}
    for name in invalid:
        new_name = argument_name(name, "field", used)
        used.add(new_name)
        new_names[name] = new_name
    renamed: Mapping[str, Any] = _rename_in(schema, new_names)
    return renamed, {new_name: name for name, new_name in new_names.items()}


def restore_names(value: Any, renamed: Mapping[str, str]) -> Any:
    """Arguments with the names of the document."""
    if isinstance(value, Mapping):
        return {renamed.get(key, key): restore_names(inner, renamed) for key, inner in value.items()}
    return [restore_names(item, renamed) for item in value] if isinstance(value, list) else value


def append_note(rule: Any, note: str) -> Any:
    """A schema with a note appended to its description."""
    if not note or not isinstance(rule, Mapping):
        return {"description": note} if note and rule is True else rule
    return {**rule, "description": f"{rule.get('description', '')} {note}".strip()}


def _collect_names(rule: Any, names: dict[str, None]) -> None:
    """Collect the names of all properties in a schema."""
    if not isinstance(rule, Mapping):
        return
    for key, value in rule.items():
        if key in MAPS or key == "$defs":
            if key == "properties":
                names.update(dict.fromkeys(value))
            for inner in value.values():
                _collect_names(inner, names)
        elif key in LISTS:
            for inner in value:
                _collect_names(inner, names)
        elif key in INNER:
            _collect_names(value, names)


def _rename_in(rule: Any, new_names: Mapping[str, str]) -> Any:
    if not isinstance(rule, Mapping):
        return rule
    result: dict[str, Any] = {}
    for key, value in rule.items():
        if key == "properties":
            result[key] = {}
            for name, inner in value.items():
                arg = new_names.get(name, name)
                result[key][arg] = append_note(_rename_in(inner, new_names), original_name_note(name, arg))
        elif key == "required":
            result[key] = [new_names.get(name, name) for name in value]
        elif key == "dependentRequired":
            renamed = {name: [new_names.get(item, item) for item in names] for name, names in value.items()}
            result[key] = {new_names.get(name, name): names for name, names in renamed.items()}
        else:
            result[key] = convert_nested(key, value, lambda inner: _rename_in(inner, new_names))
    return result
