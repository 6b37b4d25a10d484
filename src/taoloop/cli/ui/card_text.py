"""The cards of tools as text for people, and as data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from taoloop.core.cards.card_lint import Finding
from taoloop.core.cards.tool_card import ToolCard
from taoloop.tools.tool import expected_form

_MOST_VALUES = 20


def card_record(card: ToolCard) -> dict[str, Any]:
    """The card as data: name, `description` (its purpose, by the name that others use), tier, schema, and the rest."""
    record = asdict(card)
    first = {"name": card.name, "description": card.purpose, "tier": card.tier, "input_schema": record["input_schema"]}
    return first | record


def card_text(card: ToolCard) -> str:
    """The card in lines."""
    lines = [f"{card.name}  [{card.tier or 'no tier: counts as destructive'}]", f"  {_below(card.purpose, 2)}"]
    if card.use_when:
        lines.append(f"  use when:   {card.use_when}")
    if card.avoid_when:
        lines.append(f"  avoid when: {card.avoid_when}")
    lines.append(f"  arguments:  {expected_form(card)}")
    lines += [f"    {name}: {text}" for name, rule in card.parameters.items() if (text := _rule_text(rule))]
    if card.roles:
        lines.append(f"  roles:      {', '.join(f'{name} {role}' for name, role in card.roles.items())}")
    if card.ids:
        lines.append(f"  ids:        {', '.join(f'{name} of a {kind}' for name, kind in card.ids.items())}")
    lines += [f"  {title:<11} {text}" for title, text in _effect(card)]
    for error in card.errors:
        retry = " (retryable)" if error.retryable else ""
        lines.append(f"  error {error.code}{retry}: {error.advice}")
    lines.append(f"  limits:     {card.timeout_s:g} s, {card.max_input_bytes:,} bytes of arguments")
    return "\n".join(lines) + "\n"


def _effect(card: ToolCard) -> Iterator[tuple[str, str]]:
    """What a call can do to the world, beyond the tier."""
    egress = card.egress
    if isinstance(egress, tuple):
        yield "egress:", f"where {' or '.join(egress)} is given"
    elif egress is not None:
        yield "egress:", "yes" if egress else "no"
    elif card.tier in ("write", "destructive", None):
        yield "egress:", "not declared: counts as yes"
    if card.requires_approval:
        yield "approval:", "a person's yes before each call"
    if card.tier == "read":
        return
    if card.compensation is not None:
        yield "undone by:", card.compensation
    elif card.reversible is not None:
        yield "undone by:", "hand" if card.reversible else "nothing"
    elif card.tier != "draft":
        yield "undone by:", "not declared"
    lost = [text for holds, text in ((card.probes, "probes"), (card.transactional, "transactional")) if holds]
    if lost or card.idempotent:
        yield "a repeat:", ", ".join([*lost, *(["no second effect under the same key"] if card.idempotent else [])])


def _below(text: Any, by: int) -> str:
    """A text whose further lines are indented, too."""
    return str(text).strip().replace("\n", "\n" + " " * by)


def _rule_text(rule: Any) -> str:
    """What the schema of a parameter says beyond its type; empty: nothing."""
    if not isinstance(rule, Mapping):
        return ""
    parts = [_below(rule["description"], 6)] if rule.get("description") else []
    values = rule.get("enum")
    if isinstance(values, list | tuple) and values:
        value_texts = [json.dumps(value, ensure_ascii=False, default=str) for value in values[:_MOST_VALUES]]
        parts.append(f"(one of {', '.join(value_texts)}{', …' if len(values) > _MOST_VALUES else ''})")
    if rule.get("default") not in (None, "", [], {}):
        parts.append(f"(default {json.dumps(rule['default'], ensure_ascii=False, default=str)})")
    return " ".join(parts)


def findings_text(card: ToolCard, findings: Sequence[Finding]) -> str:
    """What the linter says, one finding a line."""
    if not findings:
        return f"{card.name}: nothing to improve"
    return "\n".join(f"{card.name}: {f.field}: {f.message} {f.advice} [{f.code}]" for f in findings)
