"""Truncation of large schemas: the schema in the prompt, from the schema that checks the arguments.

Only what a call can do without is left out: optional fields, further alternatives, options of a long enum. The notes
name it. A field that is left out does not fit the truncated schema: its value would be judged by a rule that nobody was
shown. So whatever fits the truncated schema also fits the whole one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from taoloop.tools.openapi.document import shorten
from taoloop.tools.openapi.schemas import INNER, LISTS, MAPS, convert_nested

_MAX_DEPTH = 12
_MAX_CHAIN = 30  # components within each other, without a level of arguments between them
_MAX_OPTIONS = 40  # of an enum
_MAX_NOTED_CHARS = 120  # names of fields that are left out
_EXCESS = 2  # the required fields alone may take this many times the limit
_MORE_NOTE = "only part is shown"
_WIDER_NOTE = f"(more fields; {_MORE_NOTE})"
_EXACT_KEYS = frozenset(
    (
        *("not", "if", "then", "else", "contains", "propertyNames", "patternProperties", "dependentSchemas"),
        *("unevaluatedProperties", "unevaluatedItems"),
    )
)
"""Keywords that would accept other values if a part of their schemas were left out."""

_COMBINATIONS = frozenset({"allOf", "anyOf", "oneOf"})
_TOP_KEYS = frozenset({"type", "properties", "required", "additionalProperties"})
_NESTED = MAPS | LISTS | INNER
_DESCRIPTION_CHARS = (400, 160, 60, 0)  # the maximum length of descriptions, in attempts that become smaller


class Truncation(NamedTuple):
    """A truncated schema."""

    schema: Mapping[str, Any]
    """The schema to show."""
    widened: frozenset[str] = frozenset()
    """The arguments of which not even the required fields fit: they are shown as any value of their type."""


def truncate_schema(schema: Mapping[str, Any], max_bytes: int) -> Truncation:
    """The schema itself if it has at most `max_bytes` as JSON, else with as many levels as fit.

    All names of the arguments and all required fields remain, even if they do not fit: up to twice `max_bytes`.
    """
    if _size(schema) <= max_bytes:
        return Truncation(schema)
    best: Truncation | None = None
    for depth in range(1, _MAX_DEPTH + 1):
        truncated = _truncate_to_depth(schema, depth, max_bytes, _DESCRIPTION_CHARS[0])
        if truncated is None or truncated == best:
            break
        best = truncated
    limits = ((1, max_bytes), (0, max_bytes), (0, _EXCESS * max_bytes))
    for depth, limit in limits:
        for max_text in _DESCRIPTION_CHARS[1:]:
            best = _truncate_to_depth(schema, depth, limit, max_text) if best is None else best
    return best if best is not None else _widen(schema, max_bytes)


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace"))


class _TooLargeError(Exception):
    """The size limit is exceeded."""


class _OmittedError(Exception):
    """A part cannot be shown so that all values of it fit."""


def _truncate_to_depth(schema: Mapping[str, Any], depth: int, max_bytes: int, max_text: int) -> Truncation | None:
    truncator = _Truncator(schema.get("$defs", {}), max_bytes, max_text)
    properties, widened = dict[str, Any](), set[str]()
    try:
        for name, rule in schema.get("properties", {}).items():
            try:
                properties[name] = truncator.part(rule, depth, frozenset())
            except _OmittedError:  # it contains itself, and no finite value fits
                properties[name] = truncator.charge(truncator.widened(rule))
                widened.add(name)
    except _TooLargeError:
        return None
    truncated = {key: schema[key] for key in schema if key in _TOP_KEYS} | {"properties": properties}
    return Truncation(truncated, frozenset(widened)) if _size(truncated) <= max_bytes else None


def _widen(schema: Mapping[str, Any], max_bytes: int) -> Truncation:
    """The schema with an equal share for each argument; those that need more accept any value of their type."""
    rules = schema.get("properties", {})
    properties, widened = dict[str, Any](), set[str]()
    for name, rule in rules.items():
        truncator = _Truncator(schema.get("$defs", {}), max_bytes // max(len(rules), 1), 0)
        try:
            properties[name] = truncator.part(rule, 0, frozenset())
        except (_OmittedError, _TooLargeError):
            properties[name] = truncator.widened(rule)
            widened.add(name)
    selected = {key: schema[key] for key in schema if key in _TOP_KEYS}
    return Truncation(selected | {"properties": properties}, frozenset(widened))


class _Truncator:
    """Copies schemas with their references inlined, down to a certain depth, and from there what is required."""

    def __init__(self, components: Mapping[str, Any], max_bytes: int, max_text: int) -> None:
        self._components, self._remaining, self._max_text = components, max_bytes, max_text

    def part(
        self,
        rule: Any,
        depth: int,
        enclosing: frozenset[str],
        needed: frozenset[str] = frozenset(),
        *,
        is_sole: bool = True,
    ) -> Any:
        """One schema with `depth` nested levels; `enclosing` are the components that contain it.

        `needed` are the properties that schemas for the same value require. `is_sole`: no other schema judges that
        value.

        Raises:
            _OmittedError: it contains itself.
            _TooLargeError: it does not fit.
        """
        if isinstance(rule, bool):
            return rule
        if not isinstance(rule, Mapping):
            return {}
        rule, enclosing = self._inline(rule, enclosing)
        needed |= frozenset(self._required_names(rule, enclosing))
        visible = {key: value for key, value in rule.items() if key not in _NESTED and key != "examples"}
        self._shorten(visible)
        self.charge(visible)
        nested = _NESTED & rule.keys()
        has_sole_parts = is_sole and len(nested) == 1  # each of them alone judges the value, or a member of it
        is_sole &= not nested & (_COMBINATIONS | _EXACT_KEYS)
        omitted: list[str] = []
        for key, value in rule.items():
            if key == "properties":
                omitted = self._add_properties(visible, rule, depth, enclosing, needed, is_sole=is_sole)
            elif key in ("anyOf", "oneOf"):
                visible[key] = self._alternatives(value, depth, enclosing, needed, is_sole=has_sole_parts)
            elif key == "allOf":
                has_sole_part = has_sole_parts and len(value) == 1
                visible[key] = [self.part(inner, depth, enclosing, needed, is_sole=has_sole_part) for inner in value]
            elif key in _EXACT_KEYS:
                visible[key] = convert_nested(key, value, partial(self._whole, enclosing=enclosing))
            elif key == "prefixItems":
                visible[key] = [self.part(inner, depth - 1, enclosing, is_sole=is_sole) for inner in value]
            elif key in ("items", "additionalProperties"):
                visible |= self._members(key, value, rule, depth, enclosing, is_sole=is_sole)
        if omitted:
            self._close(visible, omitted, needed, is_sole=is_sole)
        return visible

    def widened(self, rule: Any) -> dict[str, Any]:
        """A schema of any value of the type of another one."""
        for _ in range(2 * len(self._components) + 1):
            if not isinstance(rule, Mapping) or "type" in rule:
                break
            parts = rule.get("allOf", ()) or [self._components.get(str(rule.get("$ref")).removeprefix("#/$defs/"))]
            rule = parts[0]
        selected = {key: rule[key] for key in ("type", "deprecated") if isinstance(rule, Mapping) and key in rule}
        return {**selected, "description": _WIDER_NOTE}

    def charge(self, part: dict[str, Any]) -> dict[str, Any]:
        """The part itself, if there is room for it."""
        self._remaining -= _size(part)
        if self._remaining < 0:
            raise _TooLargeError
        return part

    def _add_properties(
        self,
        visible: dict[str, Any],
        rule: Mapping[str, Any],
        depth: int,
        enclosing: frozenset[str],
        needed: frozenset[str],
        *,
        is_sole: bool,
    ) -> list[str]:
        """Show the properties of a schema; gives the names of those that are left out."""
        properties, omitted = dict[str, Any](), list[str]()
        least = rule.get("minProperties", 0)
        for name, inner in rule["properties"].items():
            if depth <= 0 and name not in needed and len(properties) >= least:
                omitted.append(name)
                continue
            try:
                properties[name] = self.part(inner, depth - 1, enclosing, is_sole=is_sole)
            except _OmittedError:
                if name in needed:
                    raise
                omitted.append(name)
            self._remaining -= len(name.encode("utf-8", "replace")) + 4
        visible["properties"] = properties
        if omitted:
            _note(visible, f"(more fields: {shorten(', '.join(omitted), _MAX_NOTED_CHARS)}; {_MORE_NOTE})")
        return omitted

    def _close(self, visible: dict[str, Any], omitted: list[str], needed: frozenset[str], *, is_sole: bool) -> None:
        """Let no value with one of the omitted properties fit; the shortest way depends on what else judges it."""
        additional = visible.get("additionalProperties")
        if additional is False and "patternProperties" not in visible:
            return
        if additional is None and is_sole and needed <= visible["properties"].keys():
            visible["additionalProperties"] = False
            self._remaining -= len('"additionalProperties":false,')
            return
        names: dict[str, Any] = {"not": {"enum": omitted}}
        schema = {"allOf": [visible["propertyNames"], names]} if "propertyNames" in visible else names
        visible["propertyNames"] = schema
        self.charge(names)

    def _alternatives(
        self, rules: list[Any], depth: int, enclosing: frozenset[str], needed: frozenset[str], *, is_sole: bool
    ) -> list[Any]:
        """The alternatives, from a certain depth on only those without levels of their own, and one other."""
        options, has_nested = list[Any](), False
        for rule in rules:
            try:
                inlined = self._inline(rule, enclosing)[0] if isinstance(rule, Mapping) else {}
                is_nested = bool(inlined.keys() & _NESTED)
                if is_nested and has_nested and depth <= 0:
                    continue
                inner_depth = depth if len(rules) == 1 else depth - 1
                options.append(self.part(rule, inner_depth, enclosing, needed, is_sole=is_sole))
                has_nested |= is_nested
            except _OmittedError:
                continue
        if not options:
            raise _OmittedError
        return options

    def _members(
        self,
        key: str,
        value: Any,
        rule: Mapping[str, Any],
        depth: int,
        enclosing: frozenset[str],
        *,
        is_sole: bool,
    ) -> dict[str, Any]:
        """The schema of the items of a list or of the other properties of an object; empty ones remain if it recurs."""
        try:
            return {key: self.part(value, depth - 1, enclosing, is_sole=is_sole)}
        except _OmittedError:
            if key == "additionalProperties":
                return {key: False}
            if rule.get("minItems", 0) > len(rule.get("prefixItems", ())):
                raise
            return {key: False} if "prefixItems" in rule else {"maxItems": 0}

    def _whole(self, rule: Any, enclosing: frozenset[str]) -> Any:
        """A schema with its references inlined, and nothing left out.

        Raises:
            _OmittedError: it contains itself.
        """
        if not isinstance(rule, Mapping):
            return rule
        rule, enclosing = self._inline(rule, enclosing)
        self.charge({key: value for key, value in rule.items() if key not in _NESTED})
        return {
            key: convert_nested(key, value, partial(self._whole, enclosing=enclosing)) for key, value in rule.items()
        }

    def _required_names(self, rule: Any, enclosing: frozenset[str]) -> Iterator[str]:
        """The properties that a schema, or one for the same value in it, requires or may require."""
        pending = [(rule, enclosing)]
        while pending:
            node, inside = pending.pop()
            if not isinstance(node, Mapping):
                continue
            try:
                node, inside = self._inline(node, inside)
            except _OmittedError:
                continue
            yield from node.get("required", ())
            for names in node.get("dependentRequired", {}).values():
                yield from names
            for key in ("allOf", "anyOf", "oneOf"):
                self._remaining -= len(node.get(key, ()))  # each costs a little, so that references cannot multiply
                pending += ((inner, inside) for inner in node.get(key, ()))
            pending += ((node[key], inside) for key in ("if", "then", "else") if key in node)
            if self._remaining < 0:
                raise _TooLargeError

    def _inline(self, rule: Mapping[str, Any], enclosing: frozenset[str]) -> tuple[Mapping[str, Any], frozenset[str]]:
        """The schema with its reference inlined, and the components that contain it.

        Raises:
            _OmittedError: the reference leads to a component that contains it.
        """
        inlined: dict[str, Any] = dict(rule)
        while isinstance(inlined.get("$ref"), str):
            name = inlined.pop("$ref").removeprefix("#/$defs/")
            target = self._components.get(name)
            if name in enclosing or len(enclosing) >= _MAX_CHAIN:
                raise _OmittedError
            enclosing |= {name}
            if not isinstance(target, Mapping):
                return ({**inlined, "not": {}} if target is False else inlined), enclosing
            conflicts = inlined.keys() & target.keys() - {"description", "default", "examples", "deprecated"}
            inlined = {**inlined, "allOf": [*inlined.get("allOf", ()), target]} if conflicts else {**target, **inlined}
        return inlined, enclosing

    def _shorten(self, visible: dict[str, Any]) -> None:
        if "description" in visible:
            visible["description"] = shorten(visible["description"], self._max_text) if self._max_text else ""
            if not visible["description"]:
                del visible["description"]
        options = visible.get("enum")
        if isinstance(options, list) and len(options) > _MAX_OPTIONS and _size(options) > self._remaining // 4:
            visible["enum"] = options[:_MAX_OPTIONS]
            _note(visible, f"({len(options) - _MAX_OPTIONS} more options; {_MORE_NOTE})")
        for name in () if self._max_text else ("default", "deprecated"):
            visible.pop(name, None)


def _note(visible: dict[str, Any], note: str) -> None:
    visible["description"] = f"{visible.get('description', '')} {note}".strip()
