"""Self-contained schemas: each schema of a document as one JSON Schema 2020-12, with its references under `$defs`.

A component is converted once, however many operations use it. Cycles remain references.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from taoloop.core.search import PointerError, resolve_json_pointer
from taoloop.tools.openapi.document import OpenapiDocument, SourceBytes
from taoloop.tools.openapi.normalisation import make_nullable, normalise
from taoloop.tools.openapi.refs import BrokenReferenceError, References, ResolvedNode

_INVALID_CHARS = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_DEPTH = 80  # levels of one schema, which are read recursively
_RECURSIVE = frozenset({"$recursiveRef", "$dynamicRef"})
_SIBLING_KEYS = frozenset({"description", "default", "deprecated", "readOnly", "writeOnly"})

ReportProblem = Callable[[str], None]
"""Reports a problem with a schema, as a sentence."""


@dataclass(slots=True)
class _Component:
    schema: Any = True
    needs: set[str] = field(default_factory=set)


class Components:
    """The schemas of one document. `request`: as a client sends them, without properties that only the server sets."""

    def __init__(
        self, references: References, report: ReportProblem, *, siblings_count: bool, request: bool = True
    ) -> None:
        self._references, self._report = references, report
        self._siblings_count, self._request = siblings_count, request
        self._names: dict[tuple[str, str, bool], str] = {}
        self._used_names: set[str] = set()
        self._components: dict[str, _Component] = {}
        self._pending: list[tuple[str, ResolvedNode, bool]] = []

    def read(self, node: Any, base: str) -> dict[str, Any]:
        """A schema in the file `base`, with all components that it needs, directly or indirectly, under `$defs`."""
        needs: set[str] = set()
        schema = _SchemaWalk(self, base, "", node, needs).schema(node)
        if isinstance(schema, bool):
            schema = {} if schema else {"not": {}}
        components: dict[str, Any] = {}
        pending = sorted(needs, reverse=True)
        while pending:
            name = pending.pop()
            if name not in components:
                component = self._component(name)
                components[name] = component.schema
                pending += sorted(component.needs - components.keys(), reverse=True)
        return {**schema, "$defs": components} if components else schema

    def _component(self, name: str) -> _Component:
        while self._pending:
            key, target, is_open = self._pending.pop()
            component = self._components[key]
            walk = _SchemaWalk(self, target.uri, key, target.value, component.needs)
            component.schema = walk.read_open(target.value) if is_open else walk.schema(target.value)
        return self._components[name]

    def name_of(self, target: ResolvedNode, *, is_open: bool = False) -> str:
        """The name of the target of a reference, which is read later, so that cycles end.

        `is_open`: it is read as a part of `allOf`.
        """
        key = (target.uri, target.pointer, is_open)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = self._free_name(target)
            self._components[name] = _Component()
            self._pending.append((name, target, is_open))
        return name

    def _free_name(self, target: ResolvedNode) -> str:
        last_step = target.pointer.rpartition("/")[2] or target.uri.rpartition("/")[2].partition(".")[0]
        base = _INVALID_CHARS.sub("_", last_step.replace("~1", "_").replace("~0", "_"))[:60] or "schema"
        name, number = base, 2
        while name in self._used_names:
            name, number = f"{base}_{number}", number + 1
        self._used_names.add(name)
        return name


class _SchemaWalk:
    """Converts one schema of one file; `component` is its name if it is a component, else empty."""

    def __init__(self, components: Components, base: str, component: str, root: Any, needs: set[str]) -> None:
        self._components, self._base, self._component = components, base, component
        self._root, self._needs = root, needs
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
            part_reader = self.read_open if is_open or _combines_several(node) else self.schema
            return normalise(node, self.schema, request=self._components._request, part_reader=part_reader)
        finally:
            self._depth -= 1

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

    def _is_closed(self, node: Any, base: str, levels: int = 8) -> bool:
        """Whether a schema refuses additional properties."""
        if not isinstance(node, Mapping) or not levels:
            return False
        if node.get("additionalProperties") is False:
            return True
        if isinstance(reference := node.get("$ref"), str):
            try:
                target = self._components._references.find(reference, base)
            except BrokenReferenceError:
                return False
            return self._is_closed(target.value, target.uri, levels - 1)
        parts = node.get("allOf")
        return isinstance(parts, list) and any(self._is_closed(part, base, levels - 1) for part in parts)

    def _read_reference(self, node: Mapping[str, Any], *, is_open: bool = False) -> Any:
        components = self._components
        try:
            target = self._find(node["$ref"])
        except BrokenReferenceError as error:
            components._report(f"{error} Any value is accepted there.")
            return normalise({key: node[key] for key in node if key in _SIBLING_KEYS}, self.schema, request=False)
        name = components.name_of(target, is_open=is_open and self._is_closed(target.value, target.uri))
        self._needs.add(name)
        counted = node.keys() if components._siblings_count else _SIBLING_KEYS
        schema = {"$ref": f"#/$defs/{name}", **self._siblings(node, counted - {"$ref", "nullable", "x-nullable"})}
        return make_nullable(schema) if node.get("nullable") is True or node.get("x-nullable") is True else schema

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
        return normalise(siblings, self.schema, request=self._components._request) if siblings else {}


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
