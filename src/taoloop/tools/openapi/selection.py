"""Which operations of a document an operator means."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from taoloop.core.search import suggest_names
from taoloop.tools.openapi.document.operation import Operation
from taoloop.tools.openapi.settings import OpenapiSource

_MOST_LISTED = 8
_NAMING = ("operations", "approval", "idempotency", "tiers")


@dataclass(slots=True)
class SeenNames:
    """Everything in a document that settings can name, chosen or not, as it is read."""

    operations: list[tuple[str, str]] = field(default_factory=list)
    """The name and the id of each operation."""
    tags: dict[str, None] = field(default_factory=dict)
    methods: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    """The parameters and the fields of bodies, by their names on the wire."""


def unused_settings(source: OpenapiSource, named: SeenNames, schemes: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """For each entry of the settings that nothing of the document answers to: the setting, what is wrong, the hint."""
    names = tuple(dict.fromkeys(one for pair in named.operations for one in pair if one))
    for setting in _NAMING:
        for entry in getattr(source, setting):
            if not any(matches_name(name, operation_id, (entry,)) for name, operation_id in named.operations):
                yield setting, f"No operation is called {entry[:80]!r}.", _instead(entry, names)
    tags = {tag.casefold() for tag in named.tags}
    for entry in source.tags:
        if entry.casefold() not in tags:
            yield "tags", f"No operation has the tag {entry[:80]!r}.", _instead(entry, tuple(named.tags))
    for entry in source.methods:
        if entry.upper() not in named.methods:
            yield "methods", f"No operation has the method {entry[:20]!r}.", _instead(entry, sorted(named.methods))
    known = tuple(schemes)
    for entry in source.auth:
        if entry not in known:
            yield "auth", f"There is no security scheme {entry[:80]!r}.", _instead(entry, known)
    for entry in source.secrets:
        if entry not in named.values:
            yield "secrets", f"No operation takes {entry[:80]!r}.", _instead(entry, sorted(named.values))


def _instead(entry: str, known: Sequence[str]) -> str:
    near = suggest_names(entry, known, at_most=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    more = " …" if len(known) > _MOST_LISTED else ""
    return f"There is: {', '.join(known[:_MOST_LISTED])}{more}." if known else "There is none at all."


def matches(operation: Operation, names: Iterable[str]) -> bool:
    """Whether one of these names, operation ids or patterns of them (`list_*`) means the operation."""
    return matches_name(operation.name, operation.operation_id, names)


def matches_name(name: str, operation_id: str, names: Iterable[str]) -> bool:
    """`is_meant` for the name and the id of an operation (which may be empty)."""
    return any(fnmatchcase(name, one) or (operation_id != "" and fnmatchcase(operation_id, one)) for one in names)


def is_selected(operation: Operation, source: OpenapiSource) -> bool:
    """Whether the operator's choice takes the operation: every narrowing that is given must hold.

    A deprecated one must be asked for, by `include_deprecated` or by its name.
    """
    if source.tags and not _has(operation.tags, source.tags):
        return False
    if source.methods and operation.method not in {method.upper() for method in source.methods}:
        return False
    if source.operations and not matches(operation, source.operations):
        return False
    if source.pattern:
        place = f"{operation.name} {operation.operation_id} {operation.method} {operation.path}"
        if not re.search(source.pattern, place):
            return False
    return not operation.deprecated or source.include_deprecated or _named(operation, source.operations)


def best_match(operation: Operation, table: Collection[str]) -> str | None:
    """The most special entry of a table that means the operation: its name or id itself before a pattern."""
    for name in (operation.name, operation.operation_id):
        if name and name in table:
            return name
    fitting = [entry for entry in table if matches(operation, (entry,))]
    return max(fitting, key=len) if fitting else None


def _has(tags: Iterable[str], wanted: Iterable[str]) -> bool:
    return not {tag.casefold() for tag in tags}.isdisjoint(tag.casefold() for tag in wanted)


def _named(operation: Operation, names: Iterable[str]) -> bool:
    return operation.name in names or operation.operation_id in names
