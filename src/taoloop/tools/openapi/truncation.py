"""Truncation of large schemas: the schema in the prompt, from the schema that checks the arguments.

A truncated part accepts any value of its type, so whatever the checking schema accepts also fits the truncated one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from taoloop.tools.openapi.document import shorten
from taoloop.tools.openapi.schemas import INNER, LISTS, MAPS, convert_nested

_MAX_DEPTH = 12
_MAX_CHAIN = 30  # components within each other, without a level of arguments between them
_MAX_OPTIONS = 40  # of an enum, if the size is limited
_TRUNCATION_NOTE = "(more fields; only part is shown)"
_REFUSING_KEYS = ("not", "if", "then", "else", "unevaluatedProperties", "unevaluatedItems", "maxContains")
"""Keywords that could refuse more once a part of the schema is truncated."""

_DROPPED_KEYS = frozenset((*_REFUSING_KEYS, "examples", "pattern"))
_TOP_KEYS = frozenset({"type", "properties", "required", "additionalProperties"})
_DESCRIPTION_CHARS = (400, 160, 60, 0)  # the maximum length of descriptions, in attempts that become smaller


def truncate_schema(schema: Mapping[str, Any], max_bytes: int) -> Mapping[str, Any]:
    """The schema itself if it has at most `max_bytes` as JSON, else with as many levels as fit.

    All names of the arguments remain, even if they do not fit.
    """
    if _size(schema) <= max_bytes:
        return schema
    best: Mapping[str, Any] | None = None
    for depth in range(1, _MAX_DEPTH + 1):
        truncated = _truncate_to_depth(schema, depth, max_bytes, _DESCRIPTION_CHARS[0])
        if truncated is None or truncated == best:
            break
        best = truncated
    for depth, limit, max_text in (*((1, max_bytes, chars) for chars in _DESCRIPTION_CHARS[1:]), (0, None, 0)):
        best = _truncate_to_depth(schema, depth, limit, max_text) if best is None else best
    assert best is not None  # noqa: S101  # without a limit there always is one
    return best


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace"))


_NESTED = MAPS | LISTS | INNER


class _TooLargeError(Exception):
    """The size limit is exceeded."""


def _truncate_to_depth(
    schema: Mapping[str, Any], depth: int, max_bytes: int | None, max_text: int
) -> dict[str, Any] | None:
    truncator = _Truncator(schema.get("$defs", {}), max_bytes, max_text)
    rules = schema.get("properties", {})
    try:
        properties = {name: truncator.part(rule, depth, frozenset()) for name, rule in rules.items()}
    except _TooLargeError:
        return None
    truncated = {key: schema[key] for key in schema if key in _TOP_KEYS} | {"properties": properties}
    return truncated if max_bytes is None or _size(truncated) <= max_bytes else None


class _Truncator:
    """Copies schemas with their references inlined, down to a certain depth."""

    def __init__(self, components: Mapping[str, Any], max_bytes: int | None, max_text: int) -> None:
        self._components, self._remaining, self._max_text = components, max_bytes, max_text

    def part(self, rule: Any, depth: int, enclosing: frozenset[str]) -> Any:
        """One schema with `depth` nested levels; `enclosing` are the components that contain it."""
        if isinstance(rule, bool):
            return rule
        if not isinstance(rule, Mapping):
            return {}
        rule, enclosing, is_recursive = self._inline(rule, enclosing)
        rule = {key: value for key, value in rule.items() if key not in _DROPPED_KEYS}
        shallow = {key: value for key, value in rule.items() if key not in _NESTED}
        inner = {key: value for key, value in rule.items() if key in _NESTED}
        if "required" in shallow and (depth <= 0 or is_recursive):
            del shallow["required"]
        self._shorten(shallow)
        if (depth <= 0 or is_recursive) and inner:
            rest = {key: value for key, value in shallow.items() if key in ("type", "deprecated", "default")}
            note = f"{shallow.get('description', '')} {_TRUNCATION_NOTE}".strip()
            return self._charge({**rest, "description": note})
        self._charge(shallow)
        for key, value in inner.items():
            inner_depth = depth if key in LISTS and len(value) == 1 else depth - 1
            truncated = convert_nested(key, value, partial(self.part, depth=inner_depth, enclosing=enclosing))
            if key == "oneOf" and "anyOf" in inner:
                shallow["allOf"] = [*shallow.get("allOf", ()), {"anyOf": truncated}]
            elif key == "allOf":
                shallow["allOf"] = [*truncated, *shallow.get("allOf", ())]
            else:
                # a value may satisfy two alternatives once they are truncated
                shallow["anyOf" if key == "oneOf" else key] = truncated
        return shallow

    def _inline(
        self, rule: Mapping[str, Any], enclosing: frozenset[str]
    ) -> tuple[Mapping[str, Any], frozenset[str], bool]:
        """The schema with its reference inlined, the components that contain it, and whether it is recursive."""
        inlined: dict[str, Any] = dict(rule)
        while isinstance(inlined.get("$ref"), str):
            name = inlined.pop("$ref").removeprefix("#/$defs/")
            target = self._components.get(name)
            if name in enclosing or len(enclosing) >= _MAX_CHAIN:
                return {**inlined, "properties": {}}, enclosing, True
            enclosing |= {name}
            if not isinstance(target, Mapping):
                return ({**inlined, "not": {}} if target is False else inlined), enclosing, False
            conflicts = inlined.keys() & target.keys() - {"description", "default", "examples", "deprecated"}
            inlined = {**inlined, "allOf": [*inlined.get("allOf", ()), target]} if conflicts else {**target, **inlined}
        return inlined, enclosing, False

    def _shorten(self, shallow: dict[str, Any]) -> None:
        if "description" in shallow:
            shallow["description"] = shorten(shallow["description"], self._max_text) if self._max_text else ""
            if not shallow["description"]:
                del shallow["description"]
        options = shallow.get("enum")
        if isinstance(options, list) and len(options) > _MAX_OPTIONS and self._remaining is not None:
            del shallow["enum"]
            some = ", ".join(map(str, options[:8]))
            shallow["description"] = f"{shallow.get('description', '')} One of {len(options)}: {some} …".strip()
        for name in () if self._max_text else ("default", "deprecated"):
            shallow.pop(name, None)

    def _charge(self, part: dict[str, Any]) -> dict[str, Any]:
        if self._remaining is not None:
            self._remaining -= _size(part)
            if self._remaining < 0:
                raise _TooLargeError
        return part
