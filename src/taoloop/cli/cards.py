"""The cards of tools as text for people, and as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from taoloop.core.cards import ToolCard
from taoloop.core.lint import Finding
from taoloop.tools.base import expected_form


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
    lines += [f"    {name}: {_below(rule['description'], 6)}" for name, rule in _described(card)]
    if card.roles:
        lines.append(f"  roles:      {', '.join(f'{name} {role}' for name, role in card.roles.items())}")
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


def _described(card: ToolCard) -> list[tuple[str, Mapping[str, Any]]]:
    rules = card.parameters.items()
    return [(name, rule) for name, rule in rules if isinstance(rule, Mapping) and rule.get("description")]


def findings_text(card: ToolCard, findings: Sequence[Finding]) -> str:
    """What the linter says, one finding a line."""
    if not findings:
        return f"{card.name}: nothing to improve"
    return "\n".join(f"{card.name}: {f.field}: {f.message} {f.advice} [{f.code}]" for f in findings)
