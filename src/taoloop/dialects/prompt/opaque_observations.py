"""Observations as handles: what stands in the prompt of a model that must not read them, in every dialect."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from taoloop.core.events import Fault, Observed
from taoloop.core.handles.opaque_observation import render_opaque
from taoloop.core.prompts import PromptSet

if TYPE_CHECKING:
    from taoloop.core.agent_spec import AgentSpec
    from taoloop.core.events import ActionRequested, ApprovalRefused

IN_DOUBT = "in_doubt"


class OpaqueObservations:
    """Stands between the observations of a run and its prompt.

    `prompts` are those of the agent with the plain text for handles in place of the frame around untrusted data, so
    that a dialect shows them as it shows any observation.
    """

    def __init__(self, agent: AgentSpec) -> None:
        texts = agent.prompts.texts
        self.rules = agent.prompts.fill("handles")
        self.prompts = PromptSet(
            language=agent.prompts.language, texts={**texts, "observation": texts["handles_observation"]}
        )
        self._agent = agent
        self._cards = {card.name: card for card in agent.tools}
        self._refusals: dict[str, str] = {}

    @classmethod
    def for_agent(cls, agent: AgentSpec) -> OpaqueObservations | None:
        """The one for a run of this agent; None where observations are shown."""
        return cls(agent) if agent.policy.observations == "handles" else None

    def record_refusal(self, fact: ApprovalRefused) -> None:
        """Take in what a person said, who is trusted, of a call that has no observation yet."""
        self._refusals[fact.call_id] = fact.note

    def hide(self, requested: ActionRequested, observed: Observed) -> Observed:
        """The observation without anything that a tool, or who wrote its data, could have chosen."""
        agent, refusal = self._agent, self._refusals.get(requested.call_id)
        card = self._cards.get(requested.tool)
        text = render_opaque(requested, observed, card, agent.policy, agent.language, refusal)
        if observed.error is not None and observed.error.code == IN_DOUBT:  # which is never called a failure
            fault = Fault(code=IN_DOUBT, message=text.partition("\n")[2])
            return Observed(call_id=observed.call_id, ok=False, output="", error=fault)
        return Observed(call_id=observed.call_id, ok=observed.ok and observed.error is None, output=text)


def with_written_args(requested: ActionRequested) -> ActionRequested:
    """The call with the arguments that the model wrote, for its own eyes: handles stay handles."""
    return requested if requested.written is None else replace(requested, args=requested.written)
