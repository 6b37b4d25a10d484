"""Normalisation of the schemas of any OpenAPI version to JSON Schema 2020-12.

Documents declare one version and use the forms of another, so every old form is accepted everywhere. Anything that is
not understood is dropped: a wider schema refuses no call that the API would accept.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from taoloop.core.search import PointerError, resolve_json_pointer
from taoloop.tools.openapi.document import OpenapiDocument, SourceBytes, as_list, as_mapping, as_text, shorten
from taoloop.tools.openapi.references import BrokenReferenceError, References, ResolvedNode

TYPE_SPELLINGS: Mapping[str, str] = {
    **{kind: kind for kind in ("object", "array", "string", "boolean", "integer", "number", "null")},
    **dict.fromkeys(("dict", "hashmap", "hashtable", "map", "struct", "json"), "object"),
    **dict.fromkeys(("list", "tuple", "arraylist", "queue", "stack", "set"), "array"),
    **dict.fromkeys(("str", "char", "text", "file", "date", "datetime", "date-time", "uuid"), "string"),
    "binary": "string",
    "byte": "string",
    "bool": "boolean",
    **dict.fromkeys(("int", "int32", "int64", "long", "short", "bigint", "int8", "int16"), "integer"),
    **dict.fromkeys(("float", "double", "decimal", "numeric"), "number"),
}
"""The spellings of types in documents, in lower case, and the JSON types that they mean. Others mean any type."""

MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
INNER = frozenset(
    {
        *("items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "propertyNames"),
        *("not", "if", "then", "else"),
    }
)
_CONDITIONS = frozenset({"not", "if", "then", "else"})
_MAX_PARTS = 200  # of one schema in which a property of the server is looked for
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_SIZES = (
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
    *("minContains", "maxContains"),
)
_COMBINED = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "const", "if"})
_OMITTED_FORMATS = frozenset({"int32", "int64", "float", "double"})
MAX_DESCRIPTION_CHARS = 500
_MAX_EXAMPLE_CHARS = 60
_MAX_CHOICES = 20


def convert_nested(key: str, value: Any, convert: Callable[[Any], Any]) -> Any:
    """The value of a keyword of a schema, with each schema in it converted."""
    if key in MAPS or key == "$defs":
        return {name: convert(inner) for name, inner in value.items()}
    if key in LISTS:
        return [convert(inner) for inner in value]
    return convert(value) if key in INNER else value


def make_nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, which also accepts null."""
    if not schema.keys() & _COMBINED:
        types = schema.get("type")
        if types is not None:
            schema["type"] = without_duplicates([*([types] if isinstance(types, str) else types), "null"])
        if "enum" in schema and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
        return schema
    if any(isinstance(option, dict) and option.get("type") == "null" for option in schema.get("anyOf", ())):
        return schema
    annotations: dict[str, Any] = {k: schema.pop(k) for k in ("description", "default", "deprecated") if k in schema}
    return {"anyOf": [schema, {"type": "null"}], **annotations}


def without_duplicates(values: Iterable[Any]) -> list[Any]:
    """The values in their order without duplicates; 1, 1.0 and true are different."""
    return list({json.dumps(value, sort_keys=True, default=str): value for value in values}.values())


def json_types(declared: Any) -> list[str]:
    """The JSON types that a `type` of any spelling means; empty for any type."""
    declared_types = declared if isinstance(declared, list) else [declared]
    types: list[str] = []
    for name in declared_types:
        type_name = TYPE_SPELLINGS.get(str(name).lower()) if name is not None else "null"
        if type_name is None:
            return []
        if type_name not in types:
            types.append(type_name)
    return [type_name for type_name in types if not (type_name == "integer" and "number" in types)]


@lru_cache(maxsize=4096)
def is_usable_pattern(pattern: str) -> bool:
    """Whether the validator accepts a regular expression."""
    from taoloop.errors import ConfigError  # noqa: PLC0415  # only if a document is read
    from taoloop.tools.json_schema import compile_schema  # noqa: PLC0415  # as above

    try:
        compile_schema({"type": "string", "pattern": pattern}, "A pattern")
    except ConfigError:
        return False
    return True


def _copy_type(node: Mapping[str, Any], schema: dict[str, Any]) -> None:
    types = json_types(node["type"]) if "type" in node and node["type"] is not None else []
    if types:
        schema["type"] = types[0] if len(types) == 1 else types
    elif isinstance(node.get("properties"), Mapping) and not node.keys() & {"allOf", "anyOf", "oneOf", "$ref", "type"}:
        schema["type"] = "object"
    if isinstance(format_name := node.get("format"), str) and format_name not in _OMITTED_FORMATS:
        schema["format"] = format_name
    is_bytes = node.get("contentMediaType") == "application/octet-stream" and "contentEncoding" not in node
    if is_bytes or str(node.get("type")).lower() == "file":
        schema["format"] = "binary"


def _copy_values(node: Mapping[str, Any], schema: dict[str, Any]) -> None:
    options = node.get("enum")
    if isinstance(options, list) and options:
        schema["enum"] = without_duplicates(_coerce(option, schema.get("type")) for option in options)
        if not any(_has_type(option, schema.get("type")) for option in schema["enum"]):
            del schema["type"]  # no value could satisfy both
    if "const" in node:
        schema["const"] = node["const"]
    default = _coerce(node.get("default"), schema.get("type"))
    if default is not None and _has_type(default, schema.get("type")):
        schema["default"] = default
    if not schema.keys() & {"enum", "const", "default"} and (example := _example(node)) is not None:
        schema["examples"] = [example]


def _move_enum_to_items(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a list whose `enum` has scalars, with that `enum` moved to its items, where it was meant."""
    options = node.get("enum")
    if not isinstance(options, list) or json_types(node.get("type")) != ["array"]:
        return node
    if any(isinstance(option, list) for option in options):
        return node
    rest = {key: value for key, value in node.items() if key != "enum"}
    items = node.get("items", {})
    if isinstance(items, Mapping) and not items.keys() & {"$ref", "enum", "const"}:
        rest["items"] = {**items, "enum": options}
    return rest


def _has_type(value: Any, declared: Any) -> bool:
    """Whether a value has one of these types; None: any type."""
    types = [declared] if isinstance(declared, str) else declared
    if types is None:
        return True
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, int | float):
        return "number" in types or ("integer" in types and value == value // 1)
    return {str: "string", list: "array", dict: "object", type(None): "null"}.get(type(value)) in types


def _example(node: Mapping[str, Any]) -> Any:
    example = node.get("example", next(iter(as_list(node.get("examples"))), None))
    is_short = isinstance(example, int | float) or (isinstance(example, str) and 0 < len(example) <= _MAX_EXAMPLE_CHARS)
    types = json_types(node.get("type"))
    if not is_short or isinstance(example, bool) or (isinstance(example, str) and types and "string" not in types):
        return None
    return _coerce(example, types[0] if len(types) == 1 else None)


def _coerce(value: Any, type_name: Any) -> Any:
    """A value that YAML parsed as another type than that of the schema: `1.0` for a string, `"5"` for a number."""
    if type_name == "string" and isinstance(value, int | float | bool):
        return json.dumps(value)
    if type_name in ("integer", "number") and isinstance(value, str):
        try:
            number = int(value) if type_name == "integer" else float(value)
        except ValueError:
            return value
        return number if -math.inf < number < math.inf else value
    if type_name == "boolean" and value in ("true", "false"):
        return value == "true"
    return value


def _copy_bounds(node: Mapping[str, Any], schema: dict[str, Any]) -> None:
    for name in _NUMBERS:
        if (number := _number(node.get(name))) is not None:
            schema[name] = number
    for name, inclusive in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if node.get(name) is True and inclusive in schema:
            schema[name] = schema.pop(inclusive)
    if (step := _number(node.get("multipleOf"))) is not None and step > 0:
        schema["multipleOf"] = step
    for name in _SIZES:
        if (size := _number(node.get(name))) is not None and size >= 0 and size == int(size):
            schema[name] = int(size)
    schema.update({name: True for name in ("uniqueItems", "deprecated") if node.get(name) is True})


def _number(value: Any) -> int | float | None:
    if isinstance(value, str):
        value = _coerce(_coerce(value, "integer"), "number")
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _copy_texts(node: Mapping[str, Any], schema: dict[str, Any]) -> None:
    pattern = node.get("pattern")
    if isinstance(pattern, str) and is_usable_pattern(pattern):
        schema["pattern"] = pattern
    if isinstance(encoding := node.get("contentEncoding"), str):
        schema["contentEncoding"] = encoding
    description = shorten(node.get("description"), MAX_DESCRIPTION_CHARS)
    if (field := _discriminator_property(node)) and ("oneOf" in node or "anyOf" in node):
        mapping = as_mapping(as_mapping(node["discriminator"]).get("mapping"))
        listed = f": {', '.join(list(mapping)[:_MAX_CHOICES])}" if mapping else ""
        description = f"{description} {field!r} determines which one it is{listed}.".strip()
    if description:
        schema["description"] = description


def _discriminator_property(node: Mapping[str, Any]) -> str:
    """The property of the discriminator; empty if there is none."""
    discriminator = node.get("discriminator")
    return as_text(discriminator.get("propertyName") if isinstance(discriminator, Mapping) else discriminator)


def _texts(names: Any, hidden: Collection[str] = ()) -> list[Any]:
    """The texts in a list, without duplicates and without those that are `hidden`."""
    return without_duplicates(name for name in as_list(names) if isinstance(name, str) and name not in hidden)


def _is_nullable(node: Mapping[str, Any]) -> bool:
    return node.get("nullable") is True or node.get("x-nullable") is True


_INVALID_CHARS = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_DEPTH = 80  # levels of one schema, which are read recursively
_RECURSIVE = frozenset({"$recursiveRef", "$dynamicRef"})
_COMBINING = frozenset({"properties", "allOf", "$ref"})
_SIBLING_KEYS = frozenset({"description", "default", "deprecated", "readOnly", "writeOnly"})

ReportProblem = Callable[[str], None]
"""Reports a problem with a schema, as a sentence."""


class Components:
    """The schemas of one document. `request`: as a client sends them, without properties that only the server sets."""

    def __init__(
        self, references: References, report: ReportProblem, *, siblings_count: bool, request: bool = True
    ) -> None:
        self._references, self._report = references, report
        self._siblings_count, self._request = siblings_count, request
        self._names: dict[tuple[str, str, bool, frozenset[str]], str] = {}
        self._used_names: set[str] = set()
        self._schemas: dict[str, Any] = {}
        self._needs: defaultdict[str, set[str]] = defaultdict(set)
        self._pending: dict[str, tuple[ResolvedNode, bool, frozenset[str]]] = {}
        self._hidden_names: dict[tuple[int, str], tuple[Any, frozenset[str]]] = {}

    def read(self, node: Any, base: str) -> dict[str, Any]:
        """A schema in the file `base`, with all components that it needs, directly or indirectly, under `$defs`."""
        schema, pending = self._read_alone(node, base)
        components: dict[str, Any] = {}
        while pending:
            name = pending.pop()
            if name not in components:
                components[name] = self._component(name)
                pending += sorted(self._needs[name] - components.keys(), reverse=True)
        return {**schema, "$defs": components} if components else schema

    def read_lazily(self, node: Any, base: str) -> dict[str, Any]:
        """A schema as `read` gives it, but a component is only read when it is looked up, as few of a response are."""
        schema, needs = self._read_alone(node, base)
        return {**schema, "$defs": _LazyComponents(self._component, self._used_names)} if needs else schema

    def _read_alone(self, node: Any, base: str) -> tuple[dict[str, Any], list[str]]:
        """A schema, and the names of the components that it refers to, in reverse order."""
        needs: set[str] = set()
        schema = _SchemaWalk(self, base, "", node, needs).schema(node)
        if isinstance(schema, bool):
            schema = {} if schema else {"not": {}}
        return schema, sorted(needs, reverse=True)

    def _component(self, name: str) -> Any:
        """The schema of a component, which is read when it is needed."""
        if name in self._pending:
            target, is_open, hidden = self._pending.pop(name)
            walk = _SchemaWalk(self, target.uri, name, target.value, self._needs[name], hidden)
            self._schemas[name] = walk.read_open(target.value) if is_open else walk.schema(target.value)
        return self._schemas[name]

    def name_of(self, target: ResolvedNode, *, is_open: bool = False, hidden: frozenset[str] = frozenset()) -> str:
        """The name of the target of a reference, which is read later, so that cycles end.

        `is_open`: it is read as a part of `allOf`, of which other parts hide the properties `hidden`.
        """
        key = (target.uri, target.pointer, is_open, hidden)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = self._free_name(target)
            self._pending[name] = (target, is_open, hidden)
        return name

    def hidden_names(self, node: Mapping[str, Any], base: str) -> frozenset[str]:
        """The properties that only the server sets, by a schema or by any part of its `allOf`."""
        if not self._request or node.keys().isdisjoint(_COMBINING):
            return frozenset()
        cached = self._hidden_names.get((id(node), base))
        if cached is None:
            names = (
                str(name)
                for part, uri in self._parts(node, base, ("allOf",))
                for name, rule in as_mapping(part.get("properties")).items()
                if self._is_read_only(rule, uri)
            )
            cached = self._hidden_names[id(node), base] = node, frozenset(names)  # the node keeps its id
        return cached[1]

    def hidden_in(self, target: ResolvedNode, names: frozenset[str]) -> frozenset[str]:
        """Those of the names that the target of a reference does not hide itself, but defines or requires."""
        mentioned = set[str]()
        if names and isinstance(target.value, Mapping):
            names -= self.hidden_names(target.value, target.uri)
            for part, _ in self._parts(target.value, target.uri, ("allOf", "anyOf", "oneOf")) if names else ():
                mentioned |= names.intersection(_texts(part.get("required")))
                mentioned |= names & as_mapping(part.get("properties")).keys()
        return frozenset(mentioned)

    def is_closed(self, target: ResolvedNode) -> bool:
        """Whether a schema refuses additional properties, itself or in a part of its `allOf`."""
        parts = self._parts(target.value, target.uri, ("allOf",))
        return any(part.get("additionalProperties") is False for part, _ in parts)

    def _parts(self, node: Any, base: str, keys: Collection[str]) -> Iterator[tuple[Mapping[str, Any], str]]:
        """A schema, the target of its reference, and the parts in its lists `keys`, each once and with its file.

        At most `_MAX_PARTS` of them: this is asked of each link of a chain, and a chain of thousands is no real schema.
        """
        waiting, visited = [(node, base)], set[int]()
        while waiting and len(visited) < _MAX_PARTS:
            part, uri = waiting.pop()
            if not isinstance(part, Mapping) or id(part) in visited:
                continue
            visited.add(id(part))
            yield part, uri
            if isinstance(reference := part.get("$ref"), str):
                with suppress(BrokenReferenceError):
                    target = self._references.find(reference, uri)
                    waiting.append((target.value, target.uri))
            for key in keys:
                waiting += ((inner, uri) for inner in as_list(part.get(key)))

    def _is_read_only(self, rule: Any, uri: str) -> bool:
        """Whether only the server sets a property: it says so itself, or what it refers to."""
        if not isinstance(rule, Mapping) or rule.get("writeOnly") is True:
            return False
        return any(part.get("readOnly") is True for part, _ in self._parts(rule, uri, ("allOf",)))

    def _free_name(self, target: ResolvedNode) -> str:
        last_step = target.pointer.rpartition("/")[2] or target.uri.rpartition("/")[2].partition(".")[0]
        base = _INVALID_CHARS.sub("_", last_step.replace("~1", "_").replace("~0", "_"))[:60] or "schema"
        name, number = base, 2
        while name in self._used_names:
            name, number = f"{base}_{number}", number + 1
        self._used_names.add(name)
        return name


class _LazyComponents(Mapping[str, Any]):
    """The components of a document by name."""

    def __init__(self, read: Callable[[str], Any], names: Collection[str]) -> None:
        self._read, self._names = read, names

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _SchemaWalk:
    """Converts one schema of one file; `component` is its name if it is a component, else empty."""

    def __init__(
        self,
        components: Components,
        base: str,
        component: str,
        root: Any,
        needs: set[str],
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self._components, self._base, self._component = components, base, component
        self._root, self._needs, self._hidden = root, needs, hidden
        self._depth = 0

    def schema(self, node: Any, *, is_open: bool = False) -> Any:
        if isinstance(node, bool):
            return node
        if isinstance(node, list):  # some documents write alternatives as a list
            return {"anyOf": [self.schema(part) for part in node]} if node else {}
        if not isinstance(node, Mapping):
            return {}
        if self._depth >= _MAX_DEPTH:
            self._components._report("A schema is nested too deeply; its innermost levels accept any value.")
            return {}
        self._depth += 1
        try:
            if isinstance(node.get("$ref"), str):
                return self._read_reference(node)
            if _RECURSIVE & node.keys():
                return self._read_self_reference(node)
            return self._normalise(node, self.read_open if is_open or _combines_several(node) else self.schema)
        finally:
            self._depth -= 1

    def _normalise(self, node: Mapping[str, Any], part_reader: Callable[[Any], Any]) -> dict[str, Any]:
        """One schema without references of its own; the parts of its `allOf` are read by `part_reader`."""
        schema: dict[str, Any] = {}
        outer, self._hidden = self._hidden, self._hidden | self._components.hidden_names(node, self._base)
        node = _move_enum_to_items(node)
        _copy_type(node, schema)
        _copy_values(node, schema)
        _copy_bounds(node, schema)
        _copy_texts(node, schema)
        self._copy_parts(node, schema, part_reader)
        self._copy_properties(node, schema)
        self._hidden = outer
        return make_nullable(schema) if _is_nullable(node) else schema

    def _member(self, node: Any) -> Any:
        """A schema within another one that is not for the same value, but for a property or an item of it."""
        outer, self._hidden = self._hidden, frozenset()
        schema = self.schema(node)
        self._hidden = outer
        return schema

    def _copy_parts(self, node: Mapping[str, Any], schema: dict[str, Any], part_reader: Callable[[Any], Any]) -> None:
        readers: Mapping[str, Callable[[Any], Any]] = {"allOf": part_reader, "prefixItems": self._member}
        for name, parts in node.items():
            if name in LISTS and isinstance(parts, list) and parts:
                schema[name] = [readers.get(name, self.schema)(part) for part in parts]
        if "oneOf" in schema:
            options = schema.pop("oneOf")  # APIs take the first that fits: documents rarely mean "and no other"
            if "anyOf" in schema:
                schema["allOf"] = [*schema.get("allOf", ()), {"anyOf": options}]
            else:
                schema["anyOf"] = options
        for name, part in node.items():
            if name in INNER and isinstance(part, Mapping | bool) and not (name == "items" and part is True):
                schema[name] = (self.schema if name in _CONDITIONS else self._member)(part)
        if schema.get("additionalProperties") is False and "allOf" in schema:
            del schema["additionalProperties"]  # it would refuse what the parts of `allOf` require
        if isinstance(items := node.get("items"), list) and items:  # a tuple, before 2020-12
            schema["prefixItems"] = [self._member(part) for part in items]
            if isinstance(additional := node.get("additionalItems"), Mapping | bool):
                schema["items"] = self._member(additional)

    def _copy_properties(self, node: Mapping[str, Any], schema: dict[str, Any]) -> None:
        """Copy properties and their names, in a request without those that only a server sets."""
        hidden = self._hidden
        for name, parts in node.items():
            if name in MAPS and isinstance(parts, Mapping) and parts:
                read_part = self.schema if name == "dependentSchemas" else self._member
                schema[name] = {
                    str(key): read_part(part)
                    for key, part in parts.items()
                    if not (name == "properties" and str(key) in hidden)
                    and not (name == "patternProperties" and not is_usable_pattern(str(key)))
                }
        if names := _texts(node.get("required"), hidden):
            schema["required"] = names
        dependent = node.get("dependentRequired")
        if isinstance(dependent, Mapping):
            schema["dependentRequired"] = {
                str(key): _texts(names, hidden) for key, names in dependent.items() if isinstance(names, list)
            }

    def read_open(self, node: Any) -> Any:
        """A part of `allOf`, without refusing the properties of its other parts.

        Taken literally, `additionalProperties: false` in a part makes a schema that no value satisfies.
        """
        if not isinstance(node, Mapping):
            return self.schema(node)
        if isinstance(node.get("$ref"), str):
            return self._read_reference(node, is_open=True)
        rest = {key: value for key, value in node.items() if key != "additionalProperties" or value is not False}
        return self.schema(rest, is_open=True)

    def _read_reference(self, node: Mapping[str, Any], *, is_open: bool = False) -> Any:
        components = self._components
        try:
            target = self._find(node["$ref"])
        except BrokenReferenceError as error:
            components._report(f"{error} Any value is accepted there.")
            return self._siblings(node, _SIBLING_KEYS)
        hidden = self._hidden
        if components._siblings_count and len(node) > 1:
            hidden |= components.hidden_names(node, self._base)
        is_open = is_open and components.is_closed(target)
        name = components.name_of(target, is_open=is_open, hidden=components.hidden_in(target, hidden))
        self._needs.add(name)
        counted = node.keys() if components._siblings_count else _SIBLING_KEYS
        outer, self._hidden = self._hidden, hidden
        siblings = self._siblings(node, counted - {"$ref", "nullable", "x-nullable"})
        self._hidden = outer
        schema = {"$ref": f"#/$defs/{name}", **siblings}
        return make_nullable(schema) if _is_nullable(node) else schema

    def _find(self, reference: str) -> ResolvedNode:
        references = self._components._references
        try:
            return references.find(reference, self._base)
        except BrokenReferenceError:
            if not reference.startswith(("#/$defs/", "#/definitions/")):
                raise
            with suppress(PointerError):  # some generators write pointers relative to the schema
                value = resolve_json_pointer(self._root, reference[1:])
                return ResolvedNode(value, self._base, f"{self._component}{reference[1:]}")
            raise

    def _read_self_reference(self, node: Mapping[str, Any]) -> Any:
        """A recursive reference to the component itself, as in 2019-09 and 2020-12."""
        siblings = self._siblings(node, node.keys() - _RECURSIVE)
        if not self._component:
            return siblings
        self._needs.add(self._component)
        return {"$ref": f"#/$defs/{self._component}", **siblings}

    def _siblings(self, node: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
        """The schema of the keywords beside a reference that count."""
        siblings = {key: value for key, value in node.items() if key in keys}
        return self._normalise(siblings, self.schema)


def _combines_several(node: Mapping[str, Any]) -> bool:
    """Whether a schema combines several parts that must all hold."""
    parts = node.get("allOf")
    return isinstance(parts, list) and (len(parts) > 1 or "properties" in node)


def standalone_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema outside a document, with the targets of its internal references under `$defs`."""
    root = dict(schema)
    origin = SourceBytes(data=b"", uri="file:///schema", label="the schema")
    document = OpenapiDocument(root=root, version="3.1", origin=origin)
    components = Components(References(document), lambda _: None, siblings_count=True, request=False)
    return components.read(root, origin.uri)
