"""Tools as a model is told of them: the tool part of a prompt, and one text for the provider's API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taoloop.core.cards.tool_card import ErrorCard, ExampleCard, ToolCard
    from taoloop.core.prompts import PromptSet


def tool_block(cards: Sequence[ToolCard], prompts: PromptSet) -> str:
    """The tool part of a system prompt: every card with its contract, in the order given."""
    if not cards:
        return prompts.fill("no_tools")
    return "\n\n".join(_card(card, prompts) for card in cards)


def describe(card: ToolCard) -> str:
    """The contract of a card beside its schema as one English text, for a provider's tool description."""
    parts = [card.purpose]
    if card.use_when:
        parts.append(f"Use when: {card.use_when}")
    if card.avoid_when:
        parts.append(f"Do not use when: {card.avoid_when}")
    if card.errors:
        parts.append(f"Errors: {_errors(card.errors)}")
    if card.examples:
        parts.append(f"Examples: {_examples(card.examples)}")
    return "\n".join(parts)


def compact(value: Any) -> str:
    """`value` as JSON without blanks, not ASCII-escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _card(card: ToolCard, prompts: PromptSet) -> str:
    details = [
        prompts.fill(f"card_{name}", text=text)
        for name, text in (
            ("use_when", card.use_when),
            ("avoid_when", card.avoid_when),
            ("errors", _errors(card.errors)),
            ("examples", _examples(card.examples)),
        )
        if text
    ]
    filled = prompts.fill(
        "card",
        tool=card.name,
        purpose=card.purpose,
        schema=compact(card.input_schema),
        details="\n".join(details),
    )
    return filled.rstrip()


def _errors(errors: Sequence[ErrorCard]) -> str:
    return "; ".join(
        error.code + (" (retryable)" if error.retryable else "") + (f": {error.advice}" if error.advice else "")
        for error in errors
    )


def _examples(examples: Sequence[ExampleCard]) -> str:
    return "; ".join(
        compact(example.args)
        + (f" → {compact(example.output)}" if example.output is not None else "")
        + (f" ({example.note})" if example.note else "")
        for example in examples
    )


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)
