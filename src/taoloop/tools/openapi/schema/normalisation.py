"""Schemas of any version of OpenAPI as JSON Schema 2020-12.

Documents say one version and write another, so every old form is taken everywhere. What is not understood is left out
rather than believed: a schema that becomes wider refuses no call that the API would take.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from taoloop.tools.openapi.document.plain_data import brief, mapping, text

KINDS: Mapping[str, str] = {
    **{kind: kind for kind in ("object", "array", "string", "boolean", "integer", "number", "null")},
    **dict.fromkeys(("dict", "hashmap", "hashtable", "map", "struct", "json"), "object"),
    **dict.fromkeys(("list", "tuple", "arraylist", "queue", "stack", "set"), "array"),
    **dict.fromkeys(
        ("str", "char", "text", "file", "date", "datetime", "date-time", "uuid", "binary", "byte"), "string"
    ),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("int", "int32", "int64", "long", "short", "bigint", "int8", "int16"), "integer"),
    **dict.fromkeys(("float", "double", "decimal", "numeric"), "number"),
}
"""What people write for a type, in lower case, and the type of JSON that they mean. Anything else means none."""

MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
INNER = frozenset(
    {
        *("items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "propertyNames"),
        *("not", "if", "then", "else"),
    }
)
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_SIZES = (
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
    *("minContains", "maxContains"),
)
_FLAGS = ("uniqueItems", "deprecated")
_COMBINED = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "const", "if"})
_UNTOLD_FORMATS = frozenset({"int32", "int64", "float", "double"})
MOST_DESCRIPTION = 500
_LONGEST_EXAMPLE = 60
_MOST_CHOICES = 20

Inner = Callable[[Any], Any]
"""Brings an inner schema to the same form."""


def normalised(node: Mapping[str, Any], inner: Inner, *, request: bool, joined: Inner | None = None) -> dict[str, Any]:
    """One schema without references of its own, its inner schemas as `inner` gives them, and as `joined` in `allOf`.

    `request`: properties that only a server sets are left out.
    """
    schema: dict[str, Any] = {}
    node = _with_options_inside(node)
    _type(node, schema)
    _values(node, schema)
    _bounds(node, schema)
    _texts(node, schema)
    _parts(node, schema, inner, joined or inner)
    _properties(node, schema, inner, request=request)
    if node.get("nullable") is True or node.get("x-nullable") is True:
        schema = nullable(schema)
    return schema


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with null allowed beside what it allows."""
    if not schema.keys() & _COMBINED:
        kinds = schema.get("type")
        if kinds is not None:
            listed = [kinds] if isinstance(kinds, str) else list(kinds)
            schema["type"] = listed if "null" in listed else [*listed, "null"]
        if "enum" in schema and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
        return schema
    if any(isinstance(one, dict) and one.get("type") == "null" for one in schema.get("anyOf", ())):
        return schema
    told: dict[str, Any] = {key: schema.pop(key) for key in ("description", "default", "deprecated") if key in schema}
    return {"anyOf": [schema, {"type": "null"}], **told}


def without_duplicates(values: Iterable[Any]) -> list[Any]:
    """The values in their order, each once; 1, 1.0 and true are three."""
    return list({json.dumps(value, sort_keys=True, default=str): value for value in values}.values())


def kinds_of(told: Any) -> list[str]:
    """The types of JSON that a `type` of any spelling means; empty for any."""
    listed = told if isinstance(told, list) else [told]
    kinds: list[str] = []
    for one in listed:
        kind = KINDS.get(str(one).lower()) if one is not None else "null"
        if kind is None:
            return []
        if kind not in kinds:
            kinds.append(kind)
    return [kind for kind in kinds if not (kind == "integer" and "number" in kinds)]


@lru_cache(maxsize=4096)
def pattern_works(pattern: str) -> bool:
    """Whether our judge can read a regular expression."""
    from taoloop.errors import ConfigError  # noqa: PLC0415  # only where a document is read
    from taoloop.tools.json_schema import compile_schema  # noqa: PLC0415  # likewise

    try:
        compile_schema({"type": "string", "pattern": pattern}, "A pattern")
    except ConfigError:
        return False
    return True


def _type(node: Mapping[str, Any], schema: dict[str, Any]) -> None:
    kinds = kinds_of(node["type"]) if "type" in node and node["type"] is not None else []
    if kinds:
        schema["type"] = kinds[0] if len(kinds) == 1 else kinds
    elif isinstance(node.get("properties"), Mapping) and not node.keys() & {"allOf", "anyOf", "oneOf", "$ref", "type"}:
        schema["type"] = "object"
    if isinstance(form := node.get("format"), str) and form not in _UNTOLD_FORMATS:
        schema["format"] = form
    if str(node.get("type")).lower() == "file":
        schema["format"] = "binary"
    media = node.get("contentMediaType")
    if media == "application/octet-stream" and "contentEncoding" not in node:
        schema["format"] = "binary"


def _values(node: Mapping[str, Any], schema: dict[str, Any]) -> None:
    options = node.get("enum")
    if isinstance(options, list) and options:
        schema["enum"] = without_duplicates(_fitting(option, schema.get("type")) for option in options)
        if not any(_is_of(option, schema.get("type")) for option in schema["enum"]):
            del schema["type"]  # nothing could be both
    if "const" in node:
        schema["const"] = node["const"]
    default = _fitting(node.get("default"), schema.get("type"))
    if default is not None and _is_of(default, schema.get("type")):
        schema["default"] = default
    if not schema.keys() & {"enum", "const", "default"} and (example := _example(node)) is not None:
        schema["examples"] = [example]


def _with_options_inside(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a list with its `enum` at its items, where people forgot that a list is no option itself."""
    options = node.get("enum")
    if not isinstance(options, list) or kinds_of(node.get("type")) != ["array"]:
        return node
    if any(isinstance(option, list) for option in options):
        return node
    rest = {key: value for key, value in node.items() if key != "enum"}
    items = node.get("items", {})
    if isinstance(items, Mapping) and not items.keys() & {"$ref", "enum", "const"}:
        rest["items"] = {**items, "enum": options}
    return rest


def _is_of(value: Any, kinds: Any) -> bool:
    """Whether a value has one of these types; `None` for any."""
    told = [kinds] if isinstance(kinds, str) else kinds
    if told is None:
        return True
    if isinstance(value, bool):
        return "boolean" in told
    if isinstance(value, int | float):
        return "number" in told or ("integer" in told and value == value // 1)
    return {str: "string", list: "array", dict: "object", type(None): "null"}.get(type(value)) in told


def _example(node: Mapping[str, Any]) -> Any:
    several = node.get("examples")
    one = node.get("example", several[0] if isinstance(several, list) and several else None)
    is_short = isinstance(one, int | float) or (isinstance(one, str) and 0 < len(one) <= _LONGEST_EXAMPLE)
    kinds = kinds_of(node.get("type"))
    if not is_short or isinstance(one, bool) or (isinstance(one, str) and kinds and "string" not in kinds):
        return None
    return _fitting(one, kinds[0] if len(kinds) == 1 else None)


def _fitting(value: Any, kind: Any) -> Any:
    """A value that YAML read as another type than the schema has: `1.0` for a text, `"5"` for a number."""
    if kind == "string" and isinstance(value, int | float | bool):
        return json.dumps(value)
    if kind in ("integer", "number") and isinstance(value, str):
        try:
            number = int(value) if kind == "integer" else float(value)
        except ValueError:
            return value
        return number if -math.inf < number < math.inf else value
    if kind == "boolean" and value in ("true", "false"):
        return value == "true"
    return value


def _bounds(node: Mapping[str, Any], schema: dict[str, Any]) -> None:
    for name in _NUMBERS:
        number = _number(node.get(name))
        if number is not None:
            schema[name] = number
    for name, inclusive in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if node.get(name) is True and inclusive in schema:
            schema[name] = schema.pop(inclusive)
    step = _number(node.get("multipleOf"))
    if step is not None and step > 0:
        schema["multipleOf"] = step
    for name in _SIZES:
        size = _number(node.get(name))
        if size is not None and size >= 0 and size == int(size):
            schema[name] = int(size)
    for name in _FLAGS:
        if node.get(name) is True:
            schema[name] = True


def _number(given: Any) -> int | float | None:
    if isinstance(given, str):
        given = _fitting(_fitting(given, "integer"), "number")
    return given if isinstance(given, int | float) and not isinstance(given, bool) else None


def _texts(node: Mapping[str, Any], schema: dict[str, Any]) -> None:
    pattern = node.get("pattern")
    if isinstance(pattern, str) and pattern_works(pattern):
        schema["pattern"] = pattern
    if isinstance(encoding := node.get("contentEncoding"), str):
        schema["contentEncoding"] = encoding
    told = brief(node.get("description"), MOST_DESCRIPTION)
    if (field := _chooser(node)) and ("oneOf" in node or "anyOf" in node):
        mapped = mapping(mapping(node["discriminator"]).get("mapping"))
        listed = f": {', '.join(list(mapped)[:_MOST_CHOICES])}" if mapped else ""
        told = f"{told} {field!r} says which one it is{listed}.".strip()
    if told:
        schema["description"] = told


def _chooser(node: Mapping[str, Any]) -> str:
    """The property of a discriminator; empty without one."""
    told = node.get("discriminator")
    return text(told.get("propertyName") if isinstance(told, Mapping) else told)


def _parts(node: Mapping[str, Any], schema: dict[str, Any], inner: Inner, joined: Inner) -> None:
    for name in LISTS:
        if isinstance(parts := node.get(name), list) and parts:
            schema[name] = [(joined if name == "allOf" else inner)(part) for part in parts]
    if "oneOf" in schema and "anyOf" not in schema and _chooser(node):
        schema["anyOf"] = schema.pop("oneOf")  # a property chooses, so that a value may well fit two of the forms
    for name in INNER:
        part = node.get(name)
        if isinstance(part, Mapping | bool) and not (name == "items" and isinstance(part, bool) and part):
            schema[name] = inner(part)
    if schema.get("additionalProperties") is False and "allOf" in schema:
        del schema["additionalProperties"]  # it would refuse what the parts of `allOf` ask for
    if isinstance(items := node.get("items"), list) and items:  # a tuple, before 2020-12
        schema["prefixItems"] = [inner(part) for part in items]
        if isinstance(others := node.get("additionalItems"), Mapping | bool):
            schema["items"] = inner(others)


def _properties(node: Mapping[str, Any], schema: dict[str, Any], inner: Inner, *, request: bool) -> None:
    for name in MAPS:
        parts = node.get(name)
        if isinstance(parts, Mapping) and parts:
            schema[name] = {
                str(key): inner(part)
                for key, part in parts.items()
                if not (request and name == "properties" and _is_read_only(part))
                and not (name == "patternProperties" and not pattern_works(str(key)))
            }
    required = node.get("required")
    if isinstance(required, list):
        properties = node.get("properties")
        hidden = {
            str(key)
            for key, part in (properties.items() if request and isinstance(properties, Mapping) else ())
            if _is_read_only(part)
        }
        names = without_duplicates(name for name in required if isinstance(name, str) and name not in hidden)
        if names:
            schema["required"] = names
    dependent = node.get("dependentRequired")
    if isinstance(dependent, Mapping):
        schema["dependentRequired"] = {
            str(key): without_duplicates(name for name in names if isinstance(name, str))
            for key, names in dependent.items()
            if isinstance(names, list)
        }


def _is_read_only(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("readOnly") is True and part.get("writeOnly") is not True
