"""Tools as a model is told of them: the tool part of a prompt, and one text for the provider's API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from taoloop.dialects.texts import TEXTS

if TYPE_CHECKING:
    from taoloop.core.cards.tool_card import ErrorCard, ExampleCard, ToolCard
    from taoloop.core.prompts import PromptSet


def tool_block(cards: Sequence[ToolCard], prompts: PromptSet) -> str:
    """The tool part of a system prompt: every card with its contract, in the order given."""
    if not cards:
        return prompts.fill("no_tools")
    return "\n\n".join(_card(card, prompts) for card in cards)


def describe(card: ToolCard, language: str = "en") -> str:
    """The contract of a card beside its schema as one text, for a provider's tool description."""
    parts = [card.purpose]
    for name, text in _details(card, language):
        parts.append(TEXTS.text(language, f"card_{name}", text=text))
    return "\n".join(parts)


def compact(value: Any) -> str:
    """`value` as JSON without blanks, not ASCII-escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _card(card: ToolCard, prompts: PromptSet) -> str:
    details = [prompts.fill(f"card_{name}", text=text) for name, text in _details(card, prompts.language)]
    filled = prompts.fill(
        "card",
        tool=card.name,
        purpose=card.purpose,
        schema=compact(card.input_schema),
        details="\n".join(details),
    )
    return filled.rstrip()


def _details(card: ToolCard, language: str) -> Iterator[tuple[str, str]]:
    """The parts of a card that only some have: when to use it, its errors, examples."""
    separator = TEXTS.text(language, "card_separator")
    errors = separator.join(_error(error, language) for error in card.errors)
    examples = separator.join(_example(example, language) for example in card.examples)
    parts = {"use_when": card.use_when, "avoid_when": card.avoid_when, "errors": errors, "examples": examples}
    return ((name, text) for name, text in parts.items() if text)


def _error(error: ErrorCard, language: str) -> str:
    retryable = TEXTS.text(language, "card_retryable") if error.retryable else ""
    advice = TEXTS.text(language, "card_advice", text=error.advice) if error.advice else ""
    return f"{error.code}{retryable}{advice}"


def _example(example: ExampleCard, language: str) -> str:
    output = f" → {compact(example.output)}" if example.output is not None else ""
    note = TEXTS.text(language, "card_note", text=example.note) if example.note else ""
    return f"{compact(example.args)}{output}{note}"


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)
