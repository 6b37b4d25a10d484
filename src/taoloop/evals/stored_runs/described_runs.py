"""A stored run under another description: the recorded events after a beginning with an agent of now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError
from taoloop.models.replay import ReplayModel
from taoloop.runtime.agent import Agent

_OWN_FIELDS = (
    *("limits", "approved_tiers", "language", "context_tokens"),
    *("source", "workspace", "memory", "tools_from", "policy_from"),
)
"""What a run was given for itself; all else comes from the agent as it is now."""

_MODEL_FIELDS = ("model", "dialect")
"""What belongs to the model that answers."""


def with_spec(trace: Trace, spec: AgentSpec) -> Trace:
    """The recorded events after a beginning with this description.

    Raises:
        ConfigError: the run never began.
    """
    if trace.started is None:
        raise ConfigError(f"The run {trace.run_id} never began.")
    fact = replace(trace.started, agent=spec)
    return Trace(trace.run_id, [trace.events[0]._replace(fact=fact), *trace.events[1:]])


def spec_of_now(recorded: AgentSpec, agent: Agent, task: str, *, keeps_model: bool) -> AgentSpec:
    """The description that a recorded run would have by an agent of now.

    What the run was given for itself stays, such as its limits, and it has no more tools than before. `keeps_model`
    keeps model and dialect, too, for replies of the record: then no model is made, and no key is needed. The language
    of `agent` should be that of the run.

    Raises:
        ConfigError: the agent cannot be described.
    """
    if keeps_model:
        agent = replace(agent, model=ReplayModel(()), fallback=(), dialect=recorded.dialect, language=recorded.language)
    spec = agent.spec_for(task)
    names = (*_OWN_FIELDS, *(_MODEL_FIELDS if keeps_model else ()))
    own: dict[str, Any] = {name: getattr(recorded, name) for name in names}
    allowed = {card.name for card in recorded.tools}  # a run may have had only some of the tools
    return replace(spec, tools=tuple(card for card in spec.tools if card.name in allowed), **own)
