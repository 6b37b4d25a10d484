"""Names of tools, arguments and nested properties that every provider accepts: unique, and the same in every run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from taoloop.tools.openapi.schemas import convert_nested

MAX_NAME_CHARS = 64
RESERVED = frozenset({"read_observation", "ask_about", "find_tool", "call_tool", "describe_tool"})
"""The names of tools that the runtime itself adds."""

_ARGUMENT = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_NOT_IN_ARGUMENTS = re.compile(r"[^A-Za-z0-9_.-]+")
_TEMPLATE = re.compile(r"\{([^{}/]*)\}")
_WORDS = re.compile(r"[A-Za-z0-9_]+")
_SYMBOL_WORDS = {"<": "_lt", ">": "_gt", "=": "_eq", "!": "_not", "[]": "", "$": "", "@": "", "*": "_all"}


def tool_name(operation_id: str, method: str, path: str, *, prefix: str, used: Collection[str]) -> str:
    """The name of the tool for an operation, which is not among those `used`.

    It is the operation id if that is readable in ASCII, else method and path. A name that is used already, reserved or
    too long gets a few digits of a digest of method and path.
    """
    from_id = _name_from_id(operation_id)
    base = from_id or _name_from_path(method, path)
    name = f"{prefix}_{base}" if prefix else base
    is_readable = _WORDS.search(base) and (from_id or base != method.lower())  # not only in another script
    if is_readable and len(name) <= MAX_NAME_CHARS and name not in used and name not in RESERVED:
        return name
    digest = hashlib.sha256(f"{method.upper()} {path}".encode("utf-8", "surrogatepass")).hexdigest()
    stems = ((name[: MAX_NAME_CHARS - length - 1].rstrip("_-"), length) for length in range(6, len(digest)))
    return next(tool for stem, length in stems if (tool := f"{stem}_{digest[:length]}") not in used)


def argument_name(name: str, fallback: str, used: Collection[str]) -> str:
    """The name of the argument for a parameter or property; `fallback` is the prefix of a name that is in use."""
    base = name
    if not _ARGUMENT.fullmatch(name):
        for symbol, word in _SYMBOL_WORDS.items():
            base = base.replace(symbol, word)
        base = _NOT_IN_ARGUMENTS.sub("_", base).rstrip("_")[:MAX_NAME_CHARS] or fallback
    candidate, number = base, 1
    while candidate in used:
        prefixed = f"{fallback}_{base}" if number == 1 and base != fallback else f"{base}_{max(number, 2)}"
        candidate, number = prefixed[-MAX_NAME_CHARS:], number + 1
    return candidate


def original_name_note(name: str, arg: str) -> str:
    """A note with the original name of an argument that lost letters of another script; otherwise empty."""
    is_lossy = arg != name and any(char.isalnum() and not char.isascii() for char in name)
    return f"The API calls it {name}." if is_lossy else ""


def is_argument_name(name: str) -> bool:
    """Whether every provider accepts it as an argument name."""
    return bool(_ARGUMENT.fullmatch(name))


def is_header_name(name: str) -> bool:
    """Whether it is a valid name of an HTTP header."""
    return bool(_HEADER.fullmatch(name))


def _name_from_id(operation_id: str) -> str:
    """The id with invalid characters as underscores; empty if that would lose letters of another script."""
    if any(char.isalnum() and not char.isascii() for char in operation_id):
        return ""
    return _NOT_IN_NAMES.sub("_", operation_id.strip()).strip("_") if _WORDS.search(operation_id) else ""


def _name_from_path(method: str, path: str) -> str:
    """`get_pets_by_petId` for `GET /pets/{petId}`."""
    parts = [method.lower()]
    for segment in path.split("/"):
        variables = _TEMPLATE.findall(segment)
        literal = _NOT_IN_NAMES.sub("_", _TEMPLATE.sub(" ", segment)).strip("_-")
        parts += [literal] if literal else []
        parts += [f"by_{_NOT_IN_NAMES.sub('_', name).strip('_')}" for name in variables if _WORDS.search(name)]
    if len(parts) == 1 and not path.strip("/"):
        return f"{parts[0]}_root"
    return "_".join(parts)


_OBJECT_KEYS = frozenset(
    (
        *("type", "properties", "required", "additionalProperties", "description", "allOf", "$ref", "$defs"),
        *("deprecated", "examples", "default"),
    )
)


class FlatObject(NamedTuple):
    """The members of an object schema."""

    properties: Mapping[str, Any]
    """The schemas of the properties by name."""
    required: tuple[str, ...]
    """The names of the required properties."""


_MAX_PARTS = 1_000  # schemas that are combined to one object: references in `allOf` may double with each level


def flatten_object(schema: Any) -> FlatObject | None:
    """The members of a schema that is only an object with properties; None for any other schema.

    References to its components and `allOf` are followed. An object that allows
    additional properties, or one of very many parts, cannot be flattened.
    """
    components = schema.get("$defs", {}) if isinstance(schema, Mapping) else {}
    return _flatten(schema, components, 12, [_MAX_PARTS])


def requires_members(schema: Any) -> bool:
    """Whether a value must be an object with some member to match a schema, by whatever part or alternative of it."""
    components = schema.get("$defs", {}) if isinstance(schema, Mapping) else {}
    return _requires_members(schema, components, 12, [_MAX_PARTS])


def _requires_members(schema: Any, components: Mapping[str, Any], max_depth: int, room: list[int]) -> bool:
    room[0] -= 1
    if not isinstance(schema, Mapping) or not max_depth or room[0] < 0 or schema.get("type", "object") != "object":
        return False
    if schema.get("required"):
        return True
    parts = list(schema.get("allOf", ()))
    if "$ref" in schema:
        parts.append(components.get(str(schema["$ref"]).removeprefix("#/$defs/")))
    alternatives = schema.get("anyOf", ())
    return any(_requires_members(part, components, max_depth - 1, room) for part in parts) or (
        bool(alternatives) and all(_requires_members(part, components, max_depth - 1, room) for part in alternatives)
    )


def _flatten(schema: Any, components: Mapping[str, Any], max_depth: int, room: list[int]) -> FlatObject | None:
    room[0] -= 1
    if not isinstance(schema, Mapping) or not max_depth or room[0] < 0 or schema.keys() - _OBJECT_KEYS:
        return None
    if schema.get("type", "object") != "object" or schema.get("additionalProperties", False) is not False:
        return None
    parts = list(schema.get("allOf", ()))
    if "$ref" in schema:
        parts.append(components.get(str(schema["$ref"]).removeprefix("#/$defs/")))
    members = (_flatten(part, components, max_depth - 1, room) for part in parts)
    own = FlatObject(schema.get("properties", {}), tuple(schema.get("required", ())))
    properties: dict[str, Any] = {}
    required: dict[str, None] = {}
    for flat in chain(members, [own]):
        if flat is None or any(properties.get(name, rule) != rule for name, rule in flat.properties.items()):
            return None
        properties |= flat.properties
        required |= dict.fromkeys(flat.required)
    return FlatObject(properties, tuple(required)) if properties and required.keys() <= properties.keys() else None


ComponentNames = dict[int, tuple[Any, dict[str, None]]]
"""Components of schemas by their id, each with the names of the properties in it."""


def rename_properties(
    schema: Mapping[str, Any], known: ComponentNames | None = None
) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """The schema with names that providers accept, and the original name of each property that was renamed.

    `known` collects the names in components, for further schemas that have the same ones.
    """
    known = {} if known is None else known
    names: dict[str, None] = {}
    _collect_names({key: value for key, value in schema.items() if key != "$defs"}, names)
    for component in schema.get("$defs", {}).values():
        if id(component) not in known:
            known[id(component)] = component, {}
            _collect_names(component, known[id(component)][1])
        names.update(known[id(component)][1])
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
    for key, value in rule.items() if isinstance(rule, Mapping) else ():
        if key == "properties":
            names.update(dict.fromkeys(value))
        convert_nested(key, value, partial(_collect_names, names=names))


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
