"""Bounds of JSON Schemas from outside, judged by counting: nothing is expanded, compiled or matched.

A schema of two kilobytes can ask for millions of steps: each of 24 definitions refers twice to the next, so one value
is judged 16 million times. `SchemaBounds` counts the rules that apply to one value through references and alternatives,
each target once, and refuses a schema with too many. A recursive schema passes; how often it is applied depends on the
value, and `steps` counts that before a value is judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

MAX_NODES = 100_000
"""Objects, lists and values of one schema."""
MAX_DEPTH = 200
"""Levels of objects and lists within each other."""
MAX_CHARS = 4_000_000
"""Characters of all names and texts."""
MAX_PATTERNS = 500
"""Different regular expressions."""
MAX_PATTERN_CHARS = 10_000
"""Characters of one regular expression."""
MAX_RULES = 5_000
"""Rules that apply to one and the same value, through references, alternatives and conditions."""
MAX_CHAIN = 100
"""References and alternatives within each other that apply to one value."""
MAX_STEPS = 1_000_000
"""Rules that are applied to all parts of one value; 8 for each part come on top, for large values of plain schemas."""

_NOT_ACTIVE = 1_000_000_000  # a level below all others
_MAX_COUNTED = 300_000  # rules, or pairs of a rule and a value, that are visited to count
_STEPS_PER_PART = 8
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_SAME_VALUE_KEYS = frozenset((*_LISTS, *_SINGLE, *_REFERENCES, "dependentSchemas"))
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
_REPEATS = 3  # how often the rules beside an `unevaluated…` are applied: once to judge, then to find what they cover
_MEMBER_KEYS = ("properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames")
_ITEM_KEYS = ("items", "prefixItems", "contains", "unevaluatedItems")
_Path = tuple[Any, ...]


class SchemaExcessError(ValueError):
    """A schema, or a value beside it, asks for more than the bounds; the text names the limit and the position."""


class SchemaBounds:
    """What a schema asks of its judge.

    Attributes:
        patterns: how many different regular expressions it has.
        is_plain: whether one rule applies to each part of a value, as without references and alternatives: then no
            value takes many steps, and none needs to be counted.

    Raises:
        SchemaExcessError: the schema exceeds a limit. So much is known after at most `MAX_NODES` steps.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema
        self._nodes: dict[int, tuple[Any, _Path]] = {}  # the node keeps its id from being used again
        self._anchors: dict[str, Any] = {}
        self.patterns = self._measure()
        counter = _Counter(self)
        for node, _ in self._nodes.values():
            if not node.keys().isdisjoint(_SAME_VALUE_KEYS):
                counter.count(node)
        self._most_rules = counter.most_rules
        self._most_descents = counter.most_descents
        self.is_plain = self._most_rules == self._most_descents == 1

    def steps(self, value: Any) -> tuple[int, int]:
        """How many rules are applied to all parts of a JSON value at most, and the number of its parts.

        The validator remembers what a recursive rule said of a part, so those repetitions do not count against the
        limit; they do in the result, because the problems that are found are all written down.

        Raises:
            SchemaExcessError: it is more than `MAX_STEPS`, and more than 8 for each part.
        """
        parts, depth = _size(value)
        allowed = MAX_STEPS + _STEPS_PER_PART * parts
        bound = parts * self._most_rules * self._most_descents ** min(depth, 64)  # cheap, and enough for most schemas
        if bound <= allowed:
            return bound, parts
        try:
            counter = _Counter(self, _MAX_COUNTED + _STEPS_PER_PART * parts)
            steps, remembered_steps = counter.count_parts(self._root, value)
        except RecursionError:
            remembered_steps = allowed + 1
        if remembered_steps > allowed:
            raise SchemaExcessError(f"the schema applies more than {allowed:,} rules to the value")
        return steps, parts

    def position(self, node: Any) -> str:
        """Where a part of the schema is, such as `$defs.item.anyOf[0]`."""
        return _path_text(self._nodes.get(id(node), (None, ()))[1])

    def target(self, reference: str) -> Any:
        """The part of the schema that a reference names; None for none.

        One to another place counts as one to this schema, which may have that address; no other place is read.
        """
        fragment = _unquote(reference.partition("#")[2])
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(fragment)
        value: Any = self._root
        for step in fragment.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(value, Mapping):
                value = value.get(name)
            else:
                is_index = isinstance(value, list | tuple) and name.isascii() and name.isdigit() and len(name) < 8
                value = value[int(name)] if is_index and int(name) < len(value) else None
        return value

    def _measure(self) -> int:
        """Visit each part once without recursion; returns the number of patterns."""
        waiting: list[tuple[Any, _Path, int]] = [(self._root, (), 1)]
        visited = chars = 0
        patterns: set[str] = set()
        while waiting:
            node, path, depth = waiting.pop()
            visited += 1
            if visited > MAX_NODES:
                raise _excess(f"it has more than {MAX_NODES:,} parts", path)
            if depth > MAX_DEPTH:
                raise _excess(f"it is more than {MAX_DEPTH} levels deep", path)
            if isinstance(node, str):
                chars += len(node)
            elif isinstance(node, Mapping):
                self._register(node, path)
                chars += sum(map(len, map(str, node)))
                if "pattern" in node or "patternProperties" in node:
                    patterns.update(own := _patterns_of(node))
                    if max(map(len, own), default=0) > MAX_PATTERN_CHARS:
                        raise _excess(f"a pattern has more than {MAX_PATTERN_CHARS:,} characters", path)
                    if len(patterns) > MAX_PATTERNS:
                        raise _excess(f"it has more than {MAX_PATTERNS} patterns", path)
                waiting += ((inner, (path, key), depth + 1) for key, inner in node.items())
            elif isinstance(node, list | tuple):
                waiting += ((inner, (path, index), depth + 1) for index, inner in enumerate(node))
            if chars > MAX_CHARS:
                raise _excess(f"its names and texts have more than {MAX_CHARS:,} characters", path)
        return len(patterns)

    def _register(self, node: Mapping[str, Any], path: _Path) -> None:
        """Note where a part is, and the name by which references reach it."""
        if path and isinstance(node.get("$id"), str):
            raise _excess("only the top of a schema may have an `$id`, and there is one", path)
        for key in ("$anchor", "$dynamicAnchor"):
            if key in node and isinstance(name := node[key], str):
                self._anchors.setdefault(name, node)
        self._nodes.setdefault(id(node), (node, path))


class _Count(NamedTuple):
    """What applies to one value."""

    rules: int
    """All rules."""
    members: int
    """Those that judge the members of an object."""
    items: int
    """Those that judge the items of a list."""
    remembered: int
    """All rules, but recursive ones only where they apply to a part for the first time."""
    outermost: int
    """The level of the outermost rule that was reached again, and that this count depends on."""


class _Rule(NamedTuple):
    """One rule of a schema, as it is counted."""

    inner: tuple[Any, ...]
    """The rules that it applies to the same value."""
    members: int
    """1 if it judges the members of an object."""
    items: int
    """1 if it judges the items of a list."""
    repeats: int
    """How often it applies the inner rules."""


class _Counter:
    """Counts the rules that apply to a value, or without one those that apply to any one value.

    A pair of a rule and a value is counted once, so the work is bounded where the count is not. A rule that leads back
    to itself for the same value is not followed again; what was counted on the way there holds only there.
    """

    def __init__(self, bounds: SchemaBounds, most_visited: int = _MAX_COUNTED) -> None:
        self._bounds, self._most_visited = bounds, most_visited
        self._rules: dict[int, _Rule] = {}
        self._counts: dict[tuple[int, int], _Count] = {}
        self._active: dict[tuple[int, int], int] = {}
        self._active_rules: set[int] = set()
        self._recursive: set[int] = set()
        self._visited = 0
        self._has_value = False
        self.most_rules = self.most_descents = 1

    def count(self, rule: Any) -> None:
        """Count what applies to any one value.

        Raises:
            SchemaExcessError: it is more than `MAX_RULES`.
        """
        count = self._count(rule, None, 0)
        self.most_rules = max(self.most_rules, count.rules)
        self.most_descents = max(self.most_descents, count.members, count.items)

    def count_parts(self, rule: Any, value: Any) -> tuple[int, int]:
        """How many rules apply to the parts of a value; and how many if recursive rules apply once to each part.

        Raises:
            SchemaExcessError: it is more than can be counted.
        """
        self._has_value = True
        count = self._count(rule, value, 0)
        return count.rules, count.remembered

    def _count(self, rule: Any, value: Any, chain: int) -> _Count:
        if not isinstance(rule, Mapping):
            return _Count(1, 0, 0, 1, _NOT_ACTIVE)
        has_parts = self._has_value and isinstance(value, Mapping | list)
        key = (id(rule), id(value) if has_parts else 0)
        if (known := self._counts.get(key)) is not None:
            return known._replace(remembered=1) if id(rule) in self._recursive else known
        if (level := self._active.get(key)) is not None:
            return _Count(1, 0, 0, 1, level)
        self._visited += 1
        if self._visited > self._most_visited or chain > MAX_CHAIN:
            limit = f"{MAX_CHAIN} references and alternatives" if chain > MAX_CHAIN else f"{MAX_RULES:,} rules"
            raise self._excess(limit, rule)
        own_level = self._active[key] = len(self._active)
        is_outermost = id(rule) not in self._active_rules
        (self._active_rules if is_outermost else self._recursive).add(id(rule))
        parsed = self._rules.get(id(rule))
        if parsed is None:
            parsed = self._rules[id(rule)] = _parse_rule(rule, self._bounds)
        rules, members, items, outermost, repeats = 1, parsed.members, parsed.items, _NOT_ACTIVE, parsed.repeats
        remembered = 1
        for inner in parsed.inner:
            count = self._count(inner, value, chain + 1)
            rules, outermost = rules + repeats * count.rules, min(outermost, count.outermost)
            remembered += repeats * count.remembered
            members, items = members + repeats * count.members, items + repeats * count.items
            if rules > MAX_RULES and not self._has_value:
                raise self._excess(f"{MAX_RULES:,} rules", rule)
        for inner, part in _part_rules(rule, value) if has_parts else ():
            count = self._count(inner, part, 0)
            rules, outermost = rules + count.rules, min(outermost, count.outermost)
            remembered += count.remembered
        del self._active[key]
        if is_outermost:
            self._active_rules.remove(id(rule))
        if outermost < own_level:
            return _Count(rules, members, items, remembered, outermost)
        self._counts[key] = count = _Count(rules, members, items, remembered, _NOT_ACTIVE)
        return count

    def _excess(self, limit: str, rule: Any) -> SchemaExcessError:
        where = self._bounds.position(rule)
        return SchemaExcessError(f"more than {limit} apply to one value at `{where}`")


def _parse_rule(rule: Mapping[str, Any], bounds: SchemaBounds) -> _Rule:
    return _Rule(
        inner=tuple(_same_value_rules(rule, bounds)),
        members=int(not rule.keys().isdisjoint(_MEMBER_KEYS)),
        items=int(not rule.keys().isdisjoint(_ITEM_KEYS)),
        repeats=1 if rule.keys().isdisjoint(_UNEVALUATED) else _REPEATS,
    )


def _same_value_rules(rule: Mapping[str, Any], bounds: SchemaBounds) -> Iterator[Any]:
    """The rules that a rule applies to the value that it judges itself."""
    for key in _LISTS:
        if isinstance(branches := rule.get(key), list | tuple):
            yield from branches
    yield from (rule[key] for key in _SINGLE if key in rule)
    if isinstance(dependent := rule.get("dependentSchemas"), Mapping):
        yield from dependent.values()
    for key in _REFERENCES:
        if isinstance(reference := rule.get(key), str):
            yield bounds.target(reference)


def _part_rules(rule: Mapping[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
    """The rules for the members or items of a value, each with the part that it judges; in doubt too many."""
    if isinstance(value, Mapping):
        properties = _as_mapping(rule.get("properties"))
        yield from ((properties[name], part) for name, part in value.items() if name in properties)
        for inner in _as_mapping(rule.get("patternProperties")).values():
            yield from ((inner, part) for part in value.values())
        for key in ("additionalProperties", "unevaluatedProperties"):
            if key in rule:
                yield from ((rule[key], part) for name, part in value.items() if name not in properties)
        if "propertyNames" in rule:
            yield from ((rule["propertyNames"], name) for name in value)
    elif isinstance(value, list):
        first = rule.get("prefixItems")
        first = first if isinstance(first, list | tuple) else ()
        yield from zip(first, value, strict=False)
        yield from ((rule["items"], part) for part in value[len(first) :] if "items" in rule)
        yield from ((rule[key], part) for key in ("contains", "unevaluatedItems") if key in rule for part in value)


def _unquote(text: str) -> str:
    """A fragment of an address without its escapes (`%24defs`)."""
    if "%" not in text:
        return text
    data = re.sub(
        rb"%([0-9a-fA-F]{2})", lambda match: bytes.fromhex(match[1].decode()), text.encode("utf-8", "replace")
    )
    return data.decode("utf-8", "replace")


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _patterns_of(node: Mapping[str, Any]) -> list[str]:
    """The regular expressions of a schema itself."""
    pattern = node.get("pattern")
    return [*((pattern,) if isinstance(pattern, str) else ()), *map(str, _as_mapping(node.get("patternProperties")))]


def _size(value: Any) -> tuple[int, int]:
    """The number of parts of a value, and how many levels it has."""
    parts = depth = 0
    level = [value]
    while level:
        parts, depth = parts + len(level), depth + 1
        nested = [node for node in level if isinstance(node, dict | list)]  # a JSON value has no other parts
        level = [inner for node in nested for inner in (node.values() if isinstance(node, dict) else node)]
    return parts, depth


def _excess(problem: str, path: _Path) -> SchemaExcessError:
    return SchemaExcessError(f"{problem} at `{_path_text(path)}`")


def _path_text(path: _Path) -> str:
    steps: list[Any] = []
    while path:
        path, step = path
        steps.append(step)
    if len(steps) > 12:
        steps[4:-8] = ["…"]
    parts = (f"[{step}]" if isinstance(step, int) else f".{str(step)[:40]}" for step in reversed(steps))
    return "".join(parts).removeprefix(".") or "$"
