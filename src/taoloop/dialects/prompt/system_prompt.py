"""The fixed parts of a prompt: the system message with its tools, the task, the output form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard, ToolCard
from taoloop.core.prompts import PromptSet
from taoloop.dialects.base import Dialect
from taoloop.dialects.parsing.strict_json import dumps
from taoloop.dialects.texts import TEXTS


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
        "card", tool=card.name, purpose=card.purpose, schema=compact(card.input_schema), details="\n".join(details)
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


def output_format_prompt(prompts: PromptSet, dialect_name: str, *, tools: bool, reasons: bool) -> str:
    """The output form of a dialect: without `tools` only an answer, without `reasons` no thought."""
    thought = prompts.fill(f"thought_{dialect_name}") + "\n" if reasons else ""
    return prompts.fill(f"form_{dialect_name}{'' if tools else '_answer'}", thought=thought)


def output_schema_prompt(prompts: PromptSet, schema: Mapping[str, Any] | None) -> str:
    """What the final answer of a run with an output schema must be; empty where answers are texts."""
    return "" if schema is None else prompts.fill("output", schema=dumps(schema))


def system_prompt(
    prompts: PromptSet,
    dialect: Dialect,
    cards: Sequence[ToolCard],
    strategy_name: str,
    instructions: str,
    *,
    tools: bool,
    reasons: bool,
    output: str = "",
    more_rules: str = "",
) -> str:
    """The system message: role, rules, tools (where the prompt has to describe them) and output form.

    The layout is the same whatever the parts are. `tools` False: the model may only answer. `output` is a rule for
    the answer, below the form. `more_rules` are below the strategy's.
    """
    parts = {
        "role": prompts.fill("role"),
        "rules": prompts.fill(f"rules_{strategy_name}") + (f"\n{more_rules}" if more_rules else ""),
        "form": output_format_prompt(prompts, dialect.name, tools=tools, reasons=reasons)
        + (f"\n\n{output}" if output else ""),
        "instructions": prompts.fill("instructions", text=instructions.strip()) if instructions.strip() else "",
    }
    if tools and not dialect.native:
        names = ", ".join(f'"{card.name}"' for card in cards)
        return prompts.fill("system", tools=tool_block(cards, prompts), names=names, **parts).rstrip()
    return prompts.fill("system_plain", **parts).rstrip()


def task_prompt(prompts: PromptSet, dialect_name: str, task: str) -> str:
    """The first user message: the task, and the output rule once more where the dialect has one."""
    reminder = prompts.texts.get(f"reminder_{dialect_name}", "")
    filled = prompts.fill("task", task=task)
    return f"{filled}\n\n{prompts.fill(f'reminder_{dialect_name}')}" if reminder else filled
