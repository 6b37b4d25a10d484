"""The description of an agent, which its runs keep, made of its settings and the parts that they name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.policy import Policy, with_pin
from taoloop.dialects import get_dialect
from taoloop.models.base import Model, is_language_model
from taoloop.policy import needs_intent
from taoloop.prompts import prompts_for
from taoloop.runtime.agent_settings import AgentSettings, as_tuple, changed_limits
from taoloop.runtime.agent_toolbox import default_limits
from taoloop.runtime.tool_source import sources_in
from taoloop.strategies import Strategy, rules_of

SAMPLING = {"json": (0.2, 0.9), "json_final": (0.2, 0.9)}
"""Temperature and top_p of a dialect if the agent sets neither. Any other dialect has the provider's defaults."""


def describe_agent(
    settings: AgentSettings,
    language: str,
    *,
    model: Model,
    strategy: Strategy,
    policy: Policy,
    tools: tuple[ToolCard, ...],
    output_schema: dict[str, Any] | None,
) -> AgentSpec:
    """The agent as plain data. `policy` is that of its runs (`policy_of_runs`), `tools` are cards in the language.

    Instructions that are a function are empty here: each run has a description with its own.

    Raises:
        ConfigError: a name is unknown, or a prompt file is unusable.
    """
    dialect = get_dialect(settings.dialect or model.dialect)
    temperature, top_p = _sampling(settings, dialect.name)
    return AgentSpec(
        name=settings.name,
        model=model.spec,
        dialect=dialect.name,
        strategy=strategy.name,
        language=language,
        instructions="" if callable(settings.instructions) else settings.instructions,
        tools=tools,
        limits=default_limits(changed_limits(settings.limits, None, settings.max_steps), tools),
        prompts=prompts_for(
            language,
            Path(settings.prompts) if isinstance(settings.prompts, str) else settings.prompts,
            dialect.name,
            *rules_of(strategy),
            output=output_schema is not None,
            pin=policy.pin == "model",
            handles=policy.observations == "handles",
            evidence=settings.evidence != "off",
        ),
        policy=policy,
        approved_tiers=as_tuple(settings.approved_tiers),
        closing_turn=settings.closing_turn,
        repair_turns=settings.repair_turns,
        temperature=temperature,
        top_p=top_p,
        max_output_tokens=settings.max_output_tokens,
        context_tokens=settings.context_tokens,
        model_timeout_s=settings.model_timeout_s,
        early_reads=settings.early_reads,
        model_settings=_plain(settings.model_settings),
        keep_thinking=settings.keep_thinking,
        source=settings.source,
        workspace=str(settings.workspace) if settings.workspace is not None else None,
        memory=str(settings.memory) if settings.memory is not None else None,
        tools_from=tuple(dict.fromkeys(source.given_as for source in sources_in(settings.tools) if source.given_as)),
        policy_from=settings.policy_from,
        evidence=settings.evidence,
        output_schema=output_schema,
        graph=getattr(strategy, "description", None),  # which only that of a graph has
    )


def _sampling(settings: AgentSettings, dialect: str) -> tuple[float | None, float | None]:
    """Temperature and top_p: those of the agent, or where it sets neither, those of the dialect."""
    own = settings.temperature, settings.top_p
    return SAMPLING.get(dialect, (None, None)) if own == (None, None) else own


def _plain(settings: Any) -> Any:
    """Settings of model calls as a dict of their own; what is none is left for the spec to refuse."""
    return dict(settings) if isinstance(settings, Mapping) and settings else settings or None


def policy_of_runs(policy: Policy, model: Model, tools: tuple[ToolCard, ...]) -> Policy:
    """The policy with which a run starts. How the intent of the task is determined is decided here."""
    if policy.pin != "auto":
        return policy
    asks = is_language_model(model) and any(needs_intent(policy, card) for card in tools)
    return with_pin(policy, "model" if asks else "keywords")
