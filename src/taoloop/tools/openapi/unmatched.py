"""What an operator's settings name that a document does not have: a word mistyped there must not go unseen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from taoloop.core.find import near_names
from taoloop.tools.openapi.choose import is_named
from taoloop.tools.openapi.source import OpenapiSource

_MOST_LISTED = 8
_NAMING = ("operations", "approval", "idempotency", "tiers")


@dataclass(slots=True)
class Named:
    """Everything in a document that settings can name, chosen or not, as it is read."""

    operations: list[tuple[str, str]] = field(default_factory=list)
    """The name and the id of each operation."""
    tags: dict[str, None] = field(default_factory=dict)
    methods: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    """The parameters and the fields of bodies, by their names on the wire."""


def unmatched(source: OpenapiSource, named: Named, schemes: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """For each entry of the settings that nothing of the document answers to: the setting, what is wrong, the hint."""
    names = tuple(dict.fromkeys(one for pair in named.operations for one in pair if one))
    for setting in _NAMING:
        for entry in getattr(source, setting):
            if not any(is_named(name, operation_id, (entry,)) for name, operation_id in named.operations):
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
    near = near_names(entry, known, at_most=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    more = " …" if len(known) > _MOST_LISTED else ""
    return f"There is: {', '.join(known[:_MOST_LISTED])}{more}." if known else "There is none at all."
