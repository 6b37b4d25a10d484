"""The JSON Schema of a whole reply, where its whole text must be JSON: for providers with structured output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taoloop.dialects.json_dialect import JsonDialect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taoloop.core.cards.tool_card import ToolCard
    from taoloop.dialects.base import Dialect


def reply_schema(
    dialect: Dialect, cards: Sequence[ToolCard], output_schema: Mapping[str, Any] | None, *, reasons: bool
) -> Mapping[str, Any] | None:
    """What the text of the next reply must fit, or None where it may be anything else.

    In the json dialect that is one decision; its arguments and its answer are left open here, for the cards and the
    output schema judge them. In a native dialect without `cards` the text is the answer. Text dialects have none.
    """
    if dialect.native:
        return None if cards else output_schema
    if isinstance(dialect, JsonDialect):
        return {
            "type": "object",
            "properties": {
                "thought": {"type": "string"},
                "action": {"type": "string", "enum": [*(card.name for card in cards), "final"]},
                "action_input": {},
            },
            "required": [*(("thought",) if reasons else ()), "action", "action_input"],
            "additionalProperties": False,
        }
    return None
