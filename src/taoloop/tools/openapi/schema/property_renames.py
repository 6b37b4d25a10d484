"""Names of fields inside arguments that providers refuse: others in the schema, and the document's own in the call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taoloop.tools.openapi.names import argument_name, is_argument_name, own_name_told
from taoloop.tools.openapi.schema.normalisation import INNER, LISTS, MAPS


def rename_properties(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """The schema with names that providers take, and the document's name for each that was changed."""
    known: dict[str, None] = {}
    _gather(schema, known)
    refused = [name for name in known if not is_argument_name(name)]
    if not refused:
        return schema, {}
    taken = {name for name in known if is_argument_name(name)}
    changed: dict[str, str] = {}
    for name in refused:
        other = argument_name(name, "field", taken)
        taken.add(other)
        changed[name] = other
    made: Mapping[str, Any] = _changed(schema, changed)
    return made, {other: name for name, other in changed.items()}


def restore_names(value: Any, renamed: Mapping[str, str]) -> Any:
    """Arguments with the names of the document."""
    if isinstance(value, Mapping):
        return {renamed.get(key, key): restore_names(inner, renamed) for key, inner in value.items()}
    return [restore_names(item, renamed) for item in value] if isinstance(value, list) else value


def with_word(rule: Any, told: str) -> Any:
    """A rule with a word on the name that it has in the document."""
    if not told or not isinstance(rule, Mapping):
        return {"description": told} if told and rule is True else rule
    return {**rule, "description": f"{rule.get('description', '')} {told}".strip()}


def _gather(rule: Any, known: dict[str, None]) -> None:
    """All names of properties in a schema."""
    if not isinstance(rule, Mapping):
        return
    for key, value in rule.items():
        if key in MAPS or key == "$defs":
            if key == "properties":
                known.update(dict.fromkeys(value))
            for inner in value.values():
                _gather(inner, known)
        elif key in LISTS:
            for inner in value:
                _gather(inner, known)
        elif key in INNER:
            _gather(value, known)


def _changed(rule: Any, changed: Mapping[str, str]) -> Any:
    if not isinstance(rule, Mapping):
        return rule
    made: dict[str, Any] = {}
    for key, value in rule.items():
        if key == "properties":
            made[key] = {}
            for name, inner in value.items():
                arg = changed.get(name, name)
                made[key][arg] = with_word(_changed(inner, changed), own_name_told(name, arg))
        elif key == "required":
            made[key] = [changed.get(name, name) for name in value]
        elif key == "dependentRequired":
            made[key] = {changed.get(n, n): [changed.get(one, one) for one in names] for n, names in value.items()}
        elif key in MAPS or key == "$defs":
            made[key] = {name: _changed(inner, changed) for name, inner in value.items()}
        elif key in LISTS:
            made[key] = [_changed(inner, changed) for inner in value]
        elif key in INNER:
            made[key] = _changed(value, changed)
        else:
            made[key] = value
    return made
