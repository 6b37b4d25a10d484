"""Bounds of JSON Schemas from outside, judged by counting: nothing is expanded, compiled or matched.

A schema of two kilobytes can ask for billions of steps: each of 24 definitions refers twice to the next, so one value is
judged 16 million times. `SchemaBounds` counts the rules that apply to one value through references and alternatives,
each target once, and refuses a schema with too many. A recursive schema passes; how often it is applied depends on the
value, and `steps` counts that before a value is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

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
"""Rules that are applied to all parts of one value; 8 for each part come on top, so large values of plain schemas pass."""

_MAX_COUNTED = 300_000  # rules, or pairs of a rule and a value, that are visited to count
_STEPS_PER_PART = 8
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
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

    Raises:
        SchemaExcessError: the schema exceeds a limit. So much is known after at most `MAX_NODES` steps.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema
        self._nodes: dict[int, tuple[Any, _Path]] = {}  # the node keeps its id from being used again
        self._targets: dict[str, Any] = {}
        self._bases: dict[int, str] = {}
        self.patterns = self._measure()
        counter = _Counter(self)
        for node, _ in list(self._nodes.values()):
            counter.count(node)
        self._most_rules = counter.most_rules
        self._most_descents = counter.most_descents

    def steps(self, value: Any) -> tuple[int, int]:
        """How many rules are applied to all parts of a JSON value at most, and the number of its parts.

        Raises:
            SchemaExcessError: it is more than `MAX_STEPS`, and more than 8 for each part.
        """
        parts, depth = _size(value)
        allowed = MAX_STEPS + _STEPS_PER_PART * parts
        bound = parts * self._most_rules * self._most_descents ** min(depth, 64)
        if bound <= allowed:
            return bound, parts
        try:
            exact = _Counter(self).count(self._root, value, has_value=True)
        except RecursionError:
            exact = allowed + 1
        if exact > allowed:
            raise SchemaExcessError(f"the schema applies more than {allowed:,} rules to the value")
        return exact, parts

    def position(self, node: Any) -> str:
        """Where a part of the schema is, such as `$defs.item.anyOf[0]`."""
        return _path_text(self._nodes.get(id(node), (None, ()))[1])

    def target(self, reference: str, node: Any) -> Any:
        """The part of the schema that a reference names; None for none, and for another place."""
        address, fragment = urldefrag(urljoin(self._bases.get(id(node), ""), reference))
        target = self._targets.get(f"{address}#{unquote(fragment)}")
        if target is not None or (fragment and not fragment.startswith("/")):
            return target
        value = self._targets.get(f"{address}#", None if address else self._root)
        for step in unquote(fragment).split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")  # noqa: PLW2901  # the step itself
            if isinstance(value, Mapping):
                value = value.get(step)
            else:
                is_index = isinstance(value, list | tuple) and step.isascii() and step.isdigit() and len(step) < 8
                value = value[int(step)] if is_index and int(step) < len(value) else None
        return value

    def _measure(self) -> int:
        """Visit each part once without recursion; returns the number of patterns."""
        waiting: list[tuple[Any, _Path, int, str]] = [(self._root, (), 1, "")]
        visited = chars = 0
        patterns: set[str] = set()
        while waiting:
            node, path, depth, base = waiting.pop()
            visited += 1
            if visited > MAX_NODES:
                raise _excess(f"it has more than {MAX_NODES:,} parts", path)
            if depth > MAX_DEPTH:
                raise _excess(f"it is more than {MAX_DEPTH} levels deep", path)
            if isinstance(node, Mapping):
                base = self._register(node, path, base)
                chars += sum(len(str(key)) for key in node)
                patterns.update(_patterns_of(node))
                waiting += ((inner, (path, key), depth + 1, base) for key, inner in node.items())
            elif isinstance(node, list | tuple):
                waiting += ((inner, (path, index), depth + 1, base) for index, inner in enumerate(node))
            elif isinstance(node, str):
                chars += len(node)
            if chars > MAX_CHARS:
                raise _excess(f"its names and texts have more than {MAX_CHARS:,} characters", path)
            if len(patterns) > MAX_PATTERNS:
                raise _excess(f"it has more than {MAX_PATTERNS} patterns", path)
            if patterns and max(map(len, _patterns_of(node)), default=0) > MAX_PATTERN_CHARS:
                raise _excess(f"a pattern has more than {MAX_PATTERN_CHARS:,} characters", path)
        return len(patterns)

    def _register(self, node: Mapping[str, Any], path: _Path, base: str) -> str:
        """Note the names by which references reach a part; returns the address that its references begin from."""
        if isinstance(identifier := node.get("$id"), str):
            base = urldefrag(urljoin(base, identifier)).url
            self._targets.setdefault(f"{base}#", node)
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(name := node.get(key), str):
                self._targets.setdefault(f"{base}#{name}", node)
        self._nodes.setdefault(id(node), (node, path))
        self._bases.setdefault(id(node), base)
        return base


class _Counter:
    """Counts the rules that apply to a value, or without one those that apply to any one value.

    A pair of a rule and a value is counted once, so the work is bounded where the count is not. A rule that leads back
    to itself for the same value is not followed again; what was counted on the way there holds only there.
    """

    def __init__(self, bounds: SchemaBounds) -> None:
        self._bounds = bounds
        self._counts: dict[tuple[int, int], tuple[int, int]] = {}
        self._active: dict[tuple[int, int], int] = {}
        self._visited = 0
        self._has_value = False
        self.most_rules = self.most_descents = 1

    def count(self, rule: Any, value: Any = None, *, has_value: bool = False) -> int:
        """How many rules apply.

        Raises:
            SchemaExcessError: without a value, more than `MAX_RULES`; with one, more than can be counted.
        """
        self._has_value = has_value
        rules, descents, _ = self._count(rule, value, 0)
        self.most_rules, self.most_descents = max(self.most_rules, rules), max(self.most_descents, descents)
        return rules

    def _count(self, rule: Any, value: Any, chain: int) -> tuple[int, int, int]:
        """Rules; those of them that judge parts of the value; and the outermost active rule that was reached again."""
        if not isinstance(rule, Mapping):
            return 1, 0, MAX_NODES
        key = (id(rule), id(value) if self._has_value else 0)
        if (known := self._counts.get(key)) is not None:
            return *known, MAX_NODES
        if (level := self._active.get(key)) is not None:
            return 1, 0, level
        self._visited += 1
        if self._visited > _MAX_COUNTED or chain > MAX_CHAIN:
            limit = f"{MAX_CHAIN} references and alternatives" if chain > MAX_CHAIN else f"{MAX_RULES:,} rules"
            raise self._excess(limit, rule)
        own_level = self._active[key] = len(self._active)
        rules, descents, outermost = 1, int(not rule.keys().isdisjoint((*_MEMBER_KEYS, *_ITEM_KEYS))), MAX_NODES
        repeats = _REPEATS if any(name in rule for name in _UNEVALUATED) else 1
        for inner in _same_value_rules(rule, self._bounds):
            more, deeper, reached = self._count(inner, value, chain + 1)
            rules, descents, outermost = rules + repeats * more, descents + repeats * deeper, min(outermost, reached)
            if rules > MAX_RULES and not self._has_value:
                raise self._excess(f"{MAX_RULES:,} rules", rule)
        for inner, part in _part_rules(rule, value) if self._has_value else ():
            more, _, reached = self._count(inner, part, 0)
            rules, outermost = rules + more, min(outermost, reached)
        del self._active[key]
        if outermost >= own_level:
            self._counts[key] = rules, descents
            outermost = MAX_NODES
        return rules, descents, outermost

    def _excess(self, limit: str, rule: Any) -> SchemaExcessError:
        where = self._bounds.position(rule)
        return SchemaExcessError(f"more than {limit} apply to one value at `{where}`")


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
            yield bounds.target(reference, rule)


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


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _patterns_of(node: Any) -> Iterable[str]:
    """The regular expressions of a schema itself."""
    if not isinstance(node, Mapping):
        return ()
    pattern = node.get("pattern")
    return [*((pattern,) if isinstance(pattern, str) else ()), *map(str, _as_mapping(node.get("patternProperties")))]


def _size(value: Any) -> tuple[int, int]:
    """The number of parts of a value, and how many levels it has."""
    parts = depth = 0
    level = [value]
    while level:
        parts, depth = parts + len(level), depth + 1
        level = [inner for node in level for inner in _inner_values(node)]
    return parts, depth


def _inner_values(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()


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
