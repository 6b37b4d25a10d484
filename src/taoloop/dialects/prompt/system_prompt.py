"""The fixed parts of a prompt: the system message, the task, the output form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.dialects.parsing.strict_json import dumps
from taoloop.dialects.prompt.tool_listing import tool_block

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from taoloop.core.cards.tool_card import ToolCard
    from taoloop.core.prompts import PromptSet
    from taoloop.dialects.base import Dialect


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

    The layout is the same whatever the parts hold. `tools` False: the model may only answer. `output` is a rule for
    the answer that stands below the form. `more_rules` stand below the strategy's.
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
