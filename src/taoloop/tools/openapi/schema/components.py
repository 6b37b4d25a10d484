"""Schemas of a document with everything that they refer to: each is one JSON Schema 2020-12 that stands alone.

A component is brought to that form once, however many operations use it. Cycles stay references.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from taoloop.core.search import PointerError, resolve_json_pointer
from taoloop.tools.openapi.document.document import Document
from taoloop.tools.openapi.document.refs import BrokenReferenceError, Found, References
from taoloop.tools.openapi.schema.normalisation import normalised, nullable

_REFUSED = re.compile(r"[^A-Za-z0-9_.-]+")
_DEEPEST = 80  # levels of one schema; recursion of ours
_RECURSIVE = ("$recursiveRef", "$dynamicRef")
_BESIDE = ("description", "default", "deprecated", "readOnly", "writeOnly")

Tell = Callable[[str], None]
"""Takes what is wrong with a schema, as a sentence."""


@dataclass(slots=True)
class _Component:
    schema: Any = True
    needs: set[str] = field(default_factory=set)


class Components:
    """The schemas of one document. `request`: as a client sends them, so without what only the server sets."""

    def __init__(self, references: References, tell: Tell, *, siblings_count: bool, request: bool = True) -> None:
        self._references, self._tell = references, tell
        self._siblings_count, self._request = siblings_count, request
        self._names: dict[tuple[str, str, bool], str] = {}
        self._taken: set[str] = set()
        self._made: dict[str, _Component] = {}
        self._waiting: list[tuple[str, Found, bool]] = []

    def read(self, node: Any, base: str) -> dict[str, Any]:
        """A schema at a place of the document, its components under `$defs`."""
        needs: set[str] = set()
        schema = _Walk(self, base, "", node, needs).schema(node)
        return self.with_components(schema if isinstance(schema, dict) else _of_bool(schema), needs)

    def part(self, node: Any, base: str, needs: set[str]) -> Any:
        """A schema whose components are to be added later: their names go into `needs`."""
        return _Walk(self, base, "", node, needs).schema(node)

    def with_components(self, schema: dict[str, Any], needs: set[str]) -> dict[str, Any]:
        """The schema with all that it needs, however far away."""
        found: dict[str, Any] = {}
        waiting = sorted(needs, reverse=True)
        while waiting:
            name = waiting.pop()
            if name not in found:
                component = self.component(name)
                found[name] = component.schema
                waiting += sorted(component.needs - found.keys(), reverse=True)
        return {**schema, "$defs": found} if found else schema

    def component(self, name: str) -> _Component:
        """The component that a walk has given this name."""
        while self._waiting:
            key, found, opened = self._waiting.pop()
            component = self._made[key]
            walk = _Walk(self, found.uri, key, found.value, component.needs)
            component.schema = walk.opened(found.value) if opened else walk.schema(found.value)
        return self._made[name]

    def name_of(self, found: Found, *, opened: bool = False) -> str:
        """The name of what a reference leads to; it is read later, so that cycles end.

        `opened`: as a part of `allOf`.
        """
        key = (found.uri, found.pointer, opened)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = self._free(found)
            self._made[name] = _Component()
            self._waiting.append((name, found, opened))
        return name

    def _free(self, found: Found) -> str:
        last = found.pointer.rpartition("/")[2] or found.uri.rpartition("/")[2].partition(".")[0]
        base = _REFUSED.sub("_", last.replace("~1", "_").replace("~0", "_"))[:60] or "schema"
        name, number = base, 2
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._taken.add(name)
        return name


class _Walk:
    """One pass over a schema in one file; `inside` is the component that it is, empty for one in place."""

    def __init__(self, components: Components, base: str, inside: str, root: Any, needs: set[str]) -> None:
        self._components, self._base, self._inside, self._root, self._needs = components, base, inside, root, needs
        self._depth = 0

    def schema(self, node: Any, *, opened: bool = False) -> Any:
        if isinstance(node, bool):
            return node
        if isinstance(node, list):  # some write alternatives so
            return {"anyOf": [self.schema(part) for part in node]} if node else {}
        if not isinstance(node, Mapping):
            return {}
        if self._depth >= _DEEPEST:
            self._components._tell("A schema is nested too deeply; its innermost levels take anything.")
            return {}
        self._depth += 1
        try:
            if isinstance(node.get("$ref"), str):
                return self._referring(node)
            if any(name in node for name in _RECURSIVE):
                return self._own(node)
            joined = self.opened if opened or _has_several(node) else self.schema
            return normalised(node, self.schema, request=self._components._request, joined=joined)
        finally:
            self._depth -= 1

    def opened(self, node: Any) -> Any:
        """A part of `allOf`, which does not refuse what only its other parts have.

        Taken at its word, `additionalProperties: false` there makes a schema that nothing fits.
        """
        if not isinstance(node, Mapping):
            return self.schema(node)
        if isinstance(node.get("$ref"), str):
            return self._referring(node, opened=True)
        rest = {key: value for key, value in node.items() if key != "additionalProperties" or value is not False}
        return self.schema(rest, opened=True)

    def _closes(self, node: Any, base: str, levels: int = 8) -> bool:
        """Whether a schema refuses properties that it does not name."""
        if not isinstance(node, Mapping) or not levels:
            return False
        if node.get("additionalProperties") is False:
            return True
        if isinstance(reference := node.get("$ref"), str):
            try:
                found = self._components._references.find(reference, base)
            except BrokenReferenceError:
                return False
            return self._closes(found.value, found.uri, levels - 1)
        parts = node.get("allOf")
        return isinstance(parts, list) and any(self._closes(part, base, levels - 1) for part in parts)

    def _referring(self, node: Mapping[str, Any], *, opened: bool = False) -> Any:
        components = self._components
        try:
            found = self._find(node["$ref"])
        except BrokenReferenceError as error:
            components._tell(f"{error} Anything is taken there.")
            return normalised({key: node[key] for key in _BESIDE if key in node}, self.schema, request=False)
        name = components.name_of(found, opened=opened and self._closes(found.value, found.uri))
        self._needs.add(name)
        kept = node if components._siblings_count else {key: node[key] for key in _BESIDE if key in node}
        others = {key: value for key, value in kept.items() if key not in ("$ref", "nullable", "x-nullable")}
        beside = normalised(others, self.schema, request=components._request) if others else {}
        schema = {"$ref": f"#/$defs/{name}", **beside}
        return nullable(schema) if node.get("nullable") is True or node.get("x-nullable") is True else schema

    def _find(self, reference: str) -> Found:
        references = self._components._references
        try:
            return references.find(reference, self._base)
        except BrokenReferenceError:
            if not reference.startswith(("#/$defs/", "#/definitions/")):
                raise
            try:  # some generators count from the schema, not from the document
                return Found(
                    resolve_json_pointer(self._root, reference[1:]), self._base, f"{self._inside}{reference[1:]}"
                )
            except PointerError:
                pass
            raise

    def _own(self, node: Mapping[str, Any]) -> Any:
        """A reference to the component itself, as 2019-09 and 2020-12 write it."""
        others = {key: value for key, value in node.items() if key not in _RECURSIVE}
        beside = normalised(others, self.schema, request=self._components._request) if others else {}
        if not self._inside:
            return beside
        self._needs.add(self._inside)
        return {"$ref": f"#/$defs/{self._inside}", **beside}


def _has_several(node: Mapping[str, Any]) -> bool:
    """Whether what a schema allows is told in several places that must hold together."""
    parts = node.get("allOf")
    return isinstance(parts, list) and (len(parts) > 1 or "properties" in node)


def _of_bool(schema: Any) -> dict[str, Any]:
    return {} if schema is not False else {"not": {}}


def standalone_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema that belongs to no document, with what its references within itself lead to."""
    root = dict(schema)
    document = Document(root=root, version="3.1", uri="file:///schema", said="the schema")
    components = Components(References(document), lambda _: None, siblings_count=True, request=False)
    return components.read(root, document.uri)
