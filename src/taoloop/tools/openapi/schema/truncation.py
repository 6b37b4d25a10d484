"""The schema that a model is shown, made from the one that judges: the same, or cut where it is huge.

What is cut takes anything of its type, so whatever the judging schema takes fits the shown one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from taoloop.tools.openapi.document.plain_data import brief
from taoloop.tools.openapi.schema.normalisation import INNER, LISTS, MAPS

_DEEPEST = 12
_LONGEST_CHAIN = 30  # components that stand in each other, without a level of arguments between them
_MOST_OPTIONS = 40  # of an enum, where room is short
_CUT_MARK = "(more fields; only part is shown)"
_DROPPED = frozenset(
    {
        *("not", "if", "then", "else", "unevaluatedProperties", "unevaluatedItems"),  # a part of them may refuse more
        *("maxContains", "examples", "pattern"),
    }
)
_TOP = frozenset({"type", "properties", "required", "additionalProperties"})
_ROUGH = (400, 160, 60, 0)  # characters of a description, ever fewer


def truncate_schema(schema: Mapping[str, Any], most_bytes: int) -> Mapping[str, Any]:
    """The schema itself where it has at most `most_bytes` as JSON, else the deepest cut of it that has.

    Where not even the names of the arguments fit, all of them are shown all the same.
    """
    if _size(schema) <= most_bytes:
        return schema
    best: Mapping[str, Any] | None = None
    for depth in range(1, _DEEPEST + 1):
        made = _cut(schema, depth, most_bytes, _ROUGH[0])
        if made is None or made == best:
            break
        best = made
    if best is not None:
        return best
    for most_text in _ROUGH[1:]:
        if (made := _cut(schema, 1, most_bytes, most_text)) is not None:
            return made
    smallest = _cut(schema, 0, None, 0)
    assert smallest is not None  # noqa: S101  # without a bound there is always one
    return smallest


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace"))


_NESTED = MAPS | LISTS | INNER


class _TooLargeError(Exception):
    """The room is used up."""


def _cut(schema: Mapping[str, Any], depth: int, most_bytes: int | None, most_text: int) -> dict[str, Any] | None:
    cutter = _Cutter(schema.get("$defs", {}), most_bytes, most_text)
    try:
        properties = {
            name: cutter.part(rule, depth, frozenset()) for name, rule in schema.get("properties", {}).items()
        }
    except _TooLargeError:
        return None
    made = {key: value for key, value in schema.items() if key in _TOP}
    made = {**made, "properties": properties}
    return made if most_bytes is None or _size(made) <= most_bytes else None


class _Cutter:
    """Writes schemas out in place, down to some depth."""

    def __init__(self, components: Mapping[str, Any], most_bytes: int | None, most_text: int) -> None:
        self._components, self._left, self._most_text = components, most_bytes, most_text

    def part(self, rule: Any, depth: int, seen: frozenset[str]) -> Any:
        """One schema with `depth` levels of inner ones; `seen` are the components that it stands in."""
        if isinstance(rule, bool):
            return rule
        if not isinstance(rule, Mapping):
            return {}
        rule, seen, circles = self._in_place(rule, seen)
        rule = {key: value for key, value in rule.items() if key not in _DROPPED}
        kept = {key: value for key, value in rule.items() if key not in _NESTED}
        inner = {key: value for key, value in rule.items() if key in _NESTED}
        if "required" in kept and (depth <= 0 or circles):
            del kept["required"]
        self._shorten(kept)
        if (depth <= 0 or circles) and inner:
            return self._counted({**_open(kept), "description": _marked(kept)})
        self._counted(kept)
        for key, value in inner.items():
            made = self._inner(key, value, depth, seen)
            if key == "oneOf" and "anyOf" in inner:
                kept.setdefault("allOf", [])
                kept["allOf"] = [*kept["allOf"], {"anyOf": made}]
            elif key == "allOf":
                kept["allOf"] = [*made, *kept.get("allOf", ())]
            else:
                kept["anyOf" if key == "oneOf" else key] = made  # two that were told apart may both fit, once cut
        return kept

    def _inner(self, key: str, value: Any, depth: int, seen: frozenset[str]) -> Any:
        if key in MAPS:
            return {name: self.part(one, depth - 1, seen) for name, one in value.items()}
        if key in LISTS:
            return [self.part(one, depth if len(value) == 1 else depth - 1, seen) for one in value]
        return self.part(value, depth - 1, seen)

    def _in_place(
        self, rule: Mapping[str, Any], seen: frozenset[str]
    ) -> tuple[Mapping[str, Any], frozenset[str], bool]:
        """The schema with what it refers to written out; whether that leads back into itself."""
        made: dict[str, Any] = dict(rule)
        while isinstance(made.get("$ref"), str):
            name = made.pop("$ref").removeprefix("#/$defs/")
            target = self._components.get(name)
            if name in seen or len(seen) >= _LONGEST_CHAIN:
                return {**made, "properties": {}}, seen, True
            seen |= {name}
            if not isinstance(target, Mapping):
                return ({**made, "not": {}} if target is False else made), seen, False
            both = made.keys() & target.keys() - {"description", "default", "examples", "deprecated"}
            made = {**made, "allOf": [*made.get("allOf", ()), target]} if both else {**target, **made}
        return made, seen, False

    def _shorten(self, kept: dict[str, Any]) -> None:
        if "description" in kept:
            told = brief(kept["description"], self._most_text) if self._most_text else ""
            if told:
                kept["description"] = told
            else:
                del kept["description"]
        options = kept.get("enum")
        if isinstance(options, list) and len(options) > _MOST_OPTIONS and self._left is not None:
            del kept["enum"]
            some = ", ".join(map(str, options[:8]))
            kept["description"] = f"{kept.get('description', '')} One of {len(options)}: {some} …".strip()
        if not self._most_text:
            kept.pop("default", None)
            kept.pop("deprecated", None)

    def _counted(self, made: dict[str, Any]) -> dict[str, Any]:
        if self._left is not None:
            self._left -= _size(made)
            if self._left < 0:
                raise _TooLargeError
        return made


def _open(kept: Mapping[str, Any]) -> dict[str, Any]:
    """What a cut schema still says: its type and notes."""
    return {key: value for key, value in kept.items() if key in ("type", "deprecated", "default")}


def _marked(kept: Mapping[str, Any]) -> str:
    return f"{kept.get('description', '')} {_CUT_MARK}".strip()
