"""What is another on a tool's card than before, field by field: calls are judged again after that."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import pydantic_core

from taoloop.core.cards.tool_card import ToolCard

ABSENT = "–"
"""How a value is written that a card does not have."""

_NOT_COMPARED = frozenset({"listed", "parallel", "timeout_s", "max_input_bytes", "max_preview_chars"})
"""Fields that say how calls are shown, scheduled and bounded, and not what they do."""

_SCHEMAS = ("input_schema", "output_schema")


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of a card that has another value now."""

    path: str
    """The field, such as `tier`; for an argument `input_schema.NAME`."""
    before: str
    """Its value as JSON; `–` if there was none."""
    now: str
    """Its value now; `–` if there is none."""

    def __str__(self) -> str:
        """The change in one line."""
        return f"{self.path}: {self.before} → {self.now}"


def card_changes(before: ToolCard, now: ToolCard) -> tuple[FieldChange, ...]:
    """The fields in which two cards of a tool differ, in the order of the card; empty if a call means the same."""
    if before == now:
        return ()
    first, second = _plain(before), _plain(now)
    changes: list[FieldChange] = []
    for field in fields(ToolCard):
        name = field.name
        if name in _NOT_COMPARED or first[name] == second[name]:
            continue
        pairs = [(name, first[name], second[name])]
        if name in _SCHEMAS and isinstance(first[name], Mapping) and isinstance(second[name], Mapping):
            pairs = list(_schema_pairs(name, first[name], second[name]))
        changes += [FieldChange(path, _json(old), _json(new)) for path, old, new in pairs]
    return tuple(changes)


def _schema_pairs(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The arguments that differ, and whatever else is another in the schema."""
    old, new = before.get("properties") or {}, now.get("properties") or {}
    for key in dict.fromkeys((*old, *new)):
        if old.get(key, ABSENT) != new.get(key, ABSENT):
            yield f"{name}.{key}", old.get(key, ABSENT), new.get(key, ABSENT)
    for key in dict.fromkeys((*before, *now)):
        if key != "properties" and before.get(key, ABSENT) != now.get(key, ABSENT):
            yield f"{name}.({key})", before.get(key, ABSENT), now.get(key, ABSENT)


def _plain(card: ToolCard) -> dict[str, Any]:
    """A card as plain data, the same before and after it was in a journal."""
    values = {field.name: getattr(card, field.name) for field in fields(ToolCard)}
    values = {name: value for name, value in values.items() if name not in _NOT_COMPARED}
    plain: dict[str, Any] = pydantic_core.from_json(pydantic_core.to_json(values, inf_nan_mode="strings"))
    return plain


def _json(value: Any) -> str:
    return ABSENT if value is ABSENT else json.dumps(value, ensure_ascii=False)
