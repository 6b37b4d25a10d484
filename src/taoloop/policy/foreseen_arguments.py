"""Which arguments a card foresees: what is declared, and what a model added beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from taoloop.core.cards.tool_card import ToolCard


def declared_arguments(card: ToolCard, args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call that the schema of the card names; all of them if it names none and takes any."""
    schema = card.input_schema
    if not card.parameters and ("properties" not in schema or schema.get("additionalProperties")):
        return dict(args)
    has_parts = not {"allOf", "anyOf", "oneOf", "$ref"}.isdisjoint(schema)
    names = foreseen_names(card) if has_parts else card.parameters
    return {name: value for name, value in args.items() if name in names}


def unforeseen_names(card: ToolCard, value: Any) -> Iterator[str]:
    """The keys within a value that the schema of the card names nowhere: such a key may say anything."""
    if not card.parameters:
        return
    known: set[str] | None = None
    for key in (str(name) for _, part in parts_of_value(value) if isinstance(part, Mapping) for name in part):
        if key in card.parameters:
            continue
        if known is None:
            known = foreseen_names(card)
        if key not in known:
            yield key


def foreseen_names(card: ToolCard) -> set[str]:
    """All names in the schema of a card, however deep."""
    parts = parts_of_value(card.input_schema)
    return {name for key, part in parts if key == "properties" and isinstance(part, Mapping) for name in part}


def parts_of_value(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """A value and all that is within it, each with the key that it, or the list around it, has."""
    yield key, value
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from parts_of_value(part, str(name))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from parts_of_value(part, key)
