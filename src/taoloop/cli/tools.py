"""`tao tools`: the cards of tools, and what the linter says of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

from taoloop.cli import exits, options
from taoloop.cli.agents import named_tools
from taoloop.cli.environment import environment
from taoloop.cli.rendering import console_for
from taoloop.cli.streams import owning_stdout
from taoloop.cli.text import clean
from taoloop.core.cards import ToolCard
from taoloop.core.lint import Finding, lint
from taoloop.runtime.agent import Agent
from taoloop.runtime.agent_file import load_agent
from taoloop.tools.base import expected_form
from taoloop.tools.builtin import builtin_tools

_HELP = """Show the cards of tools: what a model is told, and what the executor holds a call to.

Without NAMES and --agent: the built-in tools. A name is that of a built-in tool, or module:attribute.

\b
  tao tools
  tao tools calculator lookup --json
  tao tools mytools:book_table --lint
  tao tools --agent agent.yaml --lint
"""


@click.command("tools", help=_HELP)
@click.argument("names", nargs=-1)
@options.agent_option
@options.json_option("One JSON object per card and line.")
@click.option("--lint", "linting", is_flag=True, help="What to improve; exit code 1 if there is anything.")
def command(names: tuple[str, ...], agent: str | None, as_json: bool, linting: bool) -> int:
    """Print or lint the cards."""
    env = environment()
    with owning_stdout() as stream:
        cards = _cards(names, agent, env)
        findings = {card.name: lint(card) for card in cards} if linting else {}
        if as_json:
            for card in cards:
                extra = {"findings": [asdict(f) for f in findings[card.name]]} if linting else {}
                stream.write(json.dumps(asdict(card) | extra, ensure_ascii=False, default=str) + "\n")
        else:
            console = console_for(stream)
            for card in cards:
                text = _findings_text(card, findings[card.name]) if linting else _card_text(card)
                console.print(clean(text), soft_wrap=not console.is_terminal)
    return exits.FOUND if any(findings.values()) else exits.OK


def _cards(names: Sequence[str], agent: str | None, env: Mapping[str, str]) -> tuple[ToolCard, ...]:
    if agent is not None:
        box = load_agent(agent, env=env).toolbox
        return tuple(box.get(name).card for name in names) if names else box.cards
    if not names:
        return tuple(tool.card for tool in builtin_tools(None).values())
    return tuple(card for name in names for card in Agent(tools=named_tools([name])).toolbox.cards[:1])


def _card_text(card: ToolCard) -> str:
    lines = [f"{card.name}  [{card.tier or 'no tier: counts as destructive'}]", f"  {card.purpose}"]
    if card.use_when:
        lines.append(f"  use when:   {card.use_when}")
    if card.avoid_when:
        lines.append(f"  avoid when: {card.avoid_when}")
    lines.append(f"  arguments:  {expected_form(card)}")
    lines += [f"    {name}: {rule['description']}" for name, rule in _described(card)]
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


def _described(card: ToolCard) -> list[tuple[str, Mapping[str, Any]]]:
    rules = card.parameters.items()
    return [(name, rule) for name, rule in rules if isinstance(rule, Mapping) and rule.get("description")]


def _findings_text(card: ToolCard, findings: Sequence[Finding]) -> str:
    if not findings:
        return f"{card.name}: nothing to improve"
    return "\n".join(f"{card.name}: {f.field}: {f.message} {f.advice} [{f.code}]" for f in findings)
