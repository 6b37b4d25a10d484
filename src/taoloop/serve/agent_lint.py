"""The linter of agents: effects that nobody guards, and runs that nothing bounds, before one of them happens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any

from taoloop.core.cards.card_lint import Finding
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.policy import Policy, Rule
from taoloop.errors import TaoError
from taoloop.runtime.agent import Agent
from taoloop.runtime.subagent import inner_agents
from taoloop.serve.gateway.config.model import GatewayConfig, ServedAgent

_TEXTS = {
    "unguarded_effect": "Nobody is asked before {tool!r} acts ({effect}): a wrong decision, or a text that the agent"
    " reads, is enough for it.",
    "unguarded_effect_advice": "Set `approval: required` on its card, write a rule that asks (`verdict: ask`), or use"
    " the profile `supervised`.",
    "no_repeat_guard": "If the process dies in a call of {tool!r}, nobody can tell whether it happened: the run waits"
    " for a person, or ends without its result.",
    "no_repeat_guard_advice": "Give the tool a probe, or have it act once per `idempotency_key` and declare"
    " `idempotent: true`.",
    "no_step_limit": "Nothing bounds how long a run goes on: no limit of steps, tokens, cost or time is set.",
    "no_step_limit_advice": "Write `max_steps: 20` under `limits`, or another number.",
    "no_cost_limit": "Nothing bounds what a run may cost: its model {model} is paid for by the token.",
    "no_cost_limit_advice": "Write `max_cost_usd: 1` or `max_tokens` under `limits`.",
    "unknown_price": "The price of {model} is not known: `max_cost_usd` ends every run at the first reply of it.",
    "unknown_price_advice": "Write its price under `prices` (US dollars per million tokens), or limit `max_tokens`.",
    "no_keys": "The gateway has no keys: whoever reaches {host} can run its agents and answer what waits.",
    "no_keys_advice": "Write `keys`, with one for each client.",
}
"""What could happen, and what to write, by the code of the finding."""


def lint_agent(agent: Agent[Any, Any]) -> list[Finding]:
    """What nobody guards about an agent and those inside it: each finding says what could happen and what to write.

    Its tools are loaded; no model is called. What is wrong about the cards themselves is for
    `taoloop.core.cards.card_lint`.

    Raises:
        ConfigError: the agent cannot be used.
    """
    findings = [*_effects(agent), *_bounds(agent)]
    for inner in inner_agents(agent):
        findings += [finding for finding in _effects(inner) if finding not in findings]
    return findings


def lint_gateway(config: GatewayConfig) -> list[Finding]:
    """What nobody guards about who may use a gateway's agents."""
    if config.needs_key:
        return []
    return [_finding("no_keys", "keys", host=config.host)]


def _effects(agent: Any) -> Iterator[Finding]:
    policy = agent.policy if isinstance(agent.policy, Policy) else Policy(profile=agent.policy)
    for card in agent.toolbox.cards:
        if card.hands_over_to or card.performed_by != "agent":
            continue
        if (effect := _effect(card)) and _runs_unasked(card, policy, agent):
            yield _finding("unguarded_effect", "policy", tool=card.name, effect=effect)
        has_guard = card.probes or card.idempotent or card.transactional or card.repeatable
        if card.tier in ("write", "destructive") and not has_guard:
            yield _finding("no_repeat_guard", "tools", tool=card.name)


def _effect(card: ToolCard) -> str:
    """What a call may do to the world; empty: nothing that needs a guard."""
    if card.tier is None:
        return "no tier"
    if card.tier in ("write", "destructive"):
        return card.tier
    return "egress" if card.egress else ""


def _runs_unasked(card: ToolCard, policy: Policy, agent: Any) -> bool:
    """Whether calls run without a person, and no rule looks at any of them."""
    is_approved = policy.profile == "autonomous" or (card.tier or "destructive") in agent.approved_tiers
    if not is_approved or card.requires_approval or agent.rules:
        return False
    return not any(_guards(rule, card) for rule in policy.rules)


def _guards(rule: Rule, card: ToolCard) -> bool:
    is_about = fnmatchcase(card.name, rule.tool) and rule.tier in (None, card.tier)
    return is_about and rule.verdict != "allow"


def _bounds(agent: Agent[Any, Any]) -> Iterator[Finding]:
    limits = agent.limits
    served = ServedAgent(name=agent.name, agent=agent)
    bounds = (limits.max_steps, limits.max_tool_calls, limits.max_tokens, limits.max_cost_usd, limits.max_wall_s)
    if not any(bounds) and limits.max_working_s is None:
        yield _finding("no_step_limit", "limits")
    paid: Sequence[str] = ()
    unpriced: Sequence[str] = ()
    with suppress(TaoError):  # a model without its key: `tao doctor` and the first run say so
        paid = [spec for spec, target in served.model_endpoints() if target is not None and not target.kind.free]
        unpriced = served.unpriced_models()
    if limits.max_cost_usd is not None and unpriced:
        yield _finding("unknown_price", "limits", model=unpriced[0])
    elif limits.max_cost_usd is None and limits.max_tokens is None and paid:
        yield _finding("no_cost_limit", "limits", model=paid[0])


def _finding(code: str, field: str, **values: str) -> Finding:
    message, advice = (_TEXTS[key].format(**values) for key in (code, f"{code}_advice"))
    return Finding(code=code, field=field, message=message, advice=advice)
