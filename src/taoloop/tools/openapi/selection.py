"""Selecting operations: which ones the settings of a source mean, and which settings match nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from taoloop.core.search import suggest_names
from taoloop.tools.openapi.operation import Operation
from taoloop.tools.openapi.settings import OpenapiSource

_MAX_LISTED = 8
_NO_METHOD, _NO_VALUE = "No operation has the method", "No operation has a parameter or field"
_OPERATION_SETTINGS = ("operations", "approval", "idempotency", "tiers")


@dataclass(slots=True)
class SeenNames:
    """Everything in a document that settings can name, collected while all operations are read, selected or not."""

    operations: list[tuple[str, str]] = field(default_factory=list)
    """The name and the id of each operation."""
    tags: dict[str, None] = field(default_factory=dict)
    """The tags of operations, in their order."""
    methods: set[str] = field(default_factory=set)
    """The HTTP methods in upper case."""
    values: set[str] = field(default_factory=set)
    """The parameters and body fields by their names on the wire."""


def unused_settings(
    source: OpenapiSource, document_names: SeenNames, schemes: Iterable[str]
) -> Iterator[tuple[str, str, str]]:
    """Each entry of the settings that matches nothing in the document: the setting, the problem, and a hint."""
    names = tuple(dict.fromkeys(name for pair in document_names.operations for name in pair if name))
    for setting in _OPERATION_SETTINGS:
        for entry in getattr(source, setting):
            if not any(matches_name(name, operation_id, (entry,)) for name, operation_id in document_names.operations):
                yield setting, f"No operation matches {entry[:80]!r}.", _suggestion(entry, names)
    tags, schemes = {tag.casefold() for tag in document_names.tags}, tuple(schemes)
    methods, values = sorted(document_names.methods), sorted(document_names.values)
    other_tags = [entry for entry in source.tags if entry.casefold() not in tags]
    checks: tuple[tuple[str, list[str], str, Sequence[str]], ...] = (
        ("tags", other_tags, "No operation has the tag", tuple(document_names.tags)),
        ("methods", [name for name in source.methods if name.upper() not in methods], _NO_METHOD, methods),
        ("auth", [name for name in source.auth if name not in schemes], "There is no security scheme", schemes),
        ("secrets", [name for name in source.secrets if name not in values], _NO_VALUE, values),
    )
    for setting, entries, problem, known in checks:
        for entry in entries:
            yield setting, f"{problem} {entry[:80]!r}.", _suggestion(entry, known)


def _suggestion(entry: str, known: Sequence[str]) -> str:
    near = suggest_names(entry, known, at_most=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    more = " …" if len(known) > _MAX_LISTED else ""
    return f"Known: {', '.join(known[:_MAX_LISTED])}{more}." if known else "The document has none."


def matches(operation: Operation, names: Iterable[str]) -> bool:
    """Whether one of these names, operation ids or patterns (`list_*`) matches the operation."""
    return matches_name(operation.name, operation.operation_id, names)


def matches_name(name: str, operation_id: str, names: Iterable[str]) -> bool:
    """`matches` for the name and the id (which may be empty) of an operation."""
    return any(
        fnmatchcase(name, pattern) or (operation_id != "" and fnmatchcase(operation_id, pattern)) for pattern in names
    )


def is_selected(operation: Operation, source: OpenapiSource) -> bool:
    """Whether the settings select the operation: it must match every filter that is set.

    A deprecated operation must be selected explicitly, by `include_deprecated` or by its name.
    """
    if source.tags and not _has_tag(operation.tags, source.tags):
        return False
    if source.methods and operation.method not in {method.upper() for method in source.methods}:
        return False
    if source.operations and not matches(operation, source.operations):
        return False
    if source.pattern:
        searched_text = f"{operation.name} {operation.operation_id} {operation.method} {operation.path}"
        if not re.search(source.pattern, searched_text):
            return False
    return not operation.deprecated or source.include_deprecated or _is_named(operation, source.operations)


def best_match(operation: Operation, table: Collection[str]) -> str | None:
    """The most specific entry of a table that matches the operation: its name or id, else the longest pattern."""
    for name in (operation.name, operation.operation_id):
        if name and name in table:
            return name
    fitting = [entry for entry in table if matches(operation, (entry,))]
    return max(fitting, key=len) if fitting else None


def _has_tag(tags: Iterable[str], selected: Iterable[str]) -> bool:
    return not {tag.casefold() for tag in tags}.isdisjoint(tag.casefold() for tag in selected)


def _is_named(operation: Operation, names: Iterable[str]) -> bool:
    return operation.name in names or operation.operation_id in names
