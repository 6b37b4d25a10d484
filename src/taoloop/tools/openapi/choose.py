"""Which operations of a document an operator means."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from taoloop.tools.openapi.plan import Operation
from taoloop.tools.openapi.source import OpenapiSource


def is_meant(operation: Operation, names: Iterable[str]) -> bool:
    """Whether one of these names, operation ids or patterns of them (`list_*`) means the operation."""
    return is_named(operation.name, operation.operation_id, names)


def is_named(name: str, operation_id: str, names: Iterable[str]) -> bool:
    """`is_meant` for the name and the id of an operation (which may be empty)."""
    return any(fnmatchcase(name, one) or (operation_id != "" and fnmatchcase(operation_id, one)) for one in names)


def is_chosen(operation: Operation, source: OpenapiSource) -> bool:
    """Whether the operator's choice takes the operation: every narrowing that is given must hold.

    A deprecated one must be asked for, by `include_deprecated` or by its name.
    """
    if source.tags and not _has(operation.tags, source.tags):
        return False
    if source.methods and operation.method not in {method.upper() for method in source.methods}:
        return False
    if source.operations and not is_meant(operation, source.operations):
        return False
    if source.pattern:
        place = f"{operation.name} {operation.operation_id} {operation.method} {operation.path}"
        if not re.search(source.pattern, place):
            return False
    return not operation.deprecated or source.include_deprecated or _named(operation, source.operations)


def meaning(operation: Operation, table: Collection[str]) -> str | None:
    """The most special entry of a table that means the operation: its name or id itself before a pattern."""
    for name in (operation.name, operation.operation_id):
        if name and name in table:
            return name
    fitting = [entry for entry in table if is_meant(operation, (entry,))]
    return max(fitting, key=len) if fitting else None


def _has(tags: Iterable[str], wanted: Iterable[str]) -> bool:
    return not {tag.casefold() for tag in tags}.isdisjoint(tag.casefold() for tag in wanted)


def _named(operation: Operation, names: Iterable[str]) -> bool:
    return operation.name in names or operation.operation_id in names
