"""What is another on a tool's card than before, field by field: calls are judged again after that.

A change of texts alone (`is_text`) is none of what a call does: its model is told, and calls and answers stay valid.
"""

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
_TEXTS = frozenset({"purpose", "use_when", "avoid_when", "examples"})
_ANNOTATIONS = frozenset({"title", "description", "examples", "$comment"})
_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions"})


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of a card that has another value now."""

    path: str
    """The field, such as `tier`; for an argument `input_schema.NAME`."""
    before: str
    """Its value as JSON; `–` if there was none."""
    now: str
    """Its value now; `–` if there is none."""
    is_text: bool = False
    """Whether only what the model reads of the tool differs: descriptions, examples, advice."""

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
        changes += [
            FieldChange(
                path, _json(old), _json(new), is_text=name in _TEXTS or _without_texts(old) == _without_texts(new)
            )
            for path, old, new in pairs
        ]
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


def _without_texts(value: Any) -> Any:
    """A schema, or the errors of a card, without what is only read."""
    if isinstance(value, list):
        return [_without_texts(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    names = value.keys() - _ANNOTATIONS - ({"advice"} if "code" in value else set())
    return {
        name: {key: _without_texts(schema) for key, schema in value[name].items()}
        if name in _NAMED_SCHEMAS and isinstance(value[name], Mapping)
        else value[name]
        if name in ("enum", "const", "default")
        else _without_texts(value[name])
        for name in names
    }


def _plain(card: ToolCard) -> dict[str, Any]:
    """A card as plain data, the same before and after it was in a journal."""
    values = {field.name: getattr(card, field.name) for field in fields(ToolCard)}
    values = {name: value for name, value in values.items() if name not in _NOT_COMPARED}
    plain: dict[str, Any] = pydantic_core.from_json(pydantic_core.to_json(values, inf_nan_mode="strings"))
    return plain


def _json(value: Any) -> str:
    return ABSENT if value is ABSENT else json.dumps(value, ensure_ascii=False)
