"""The frozen description of an agent, as it stands in the trace."""

from __future__ import annotations

from dataclasses import dataclass

from taoloop.core.cards import Tier, ToolCard
from taoloop.core.limits import Limits
from taoloop.core.prompts import PromptSet


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """Everything about an agent that decides what a run does, as plain data.

    `model` is the spec of the model (`offline`, `openai:NAME` …), `language` the language of the prompts,
    `instructions` extra text for the system prompt. `closing_turn`: when a limit is reached the model gets one
    last turn without tools to answer from what there is. `repair_turns`: how often in a row an unreadable reply
    is sent back for repair before it counts as a step of its own. `approved_tiers`: tiers whose calls the
    operator allowed ahead of time. `source` and `workspace` say where the agent came from and which folder its
    file tools see, so that a run can be resumed without naming them again.
    """

    name: str = "agent"
    model: str = "offline"
    dialect: str = "native"
    strategy: str = "react"
    language: str = "en"
    instructions: str = ""
    tools: tuple[ToolCard, ...] = ()
    limits: Limits = Limits()
    prompts: PromptSet = PromptSet(language="en")
    approved_tiers: tuple[Tier, ...] = ()
    closing_turn: bool = True
    repair_turns: int = 1
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    model_timeout_s: float | None = 120.0
    source: str | None = None
    workspace: str | None = None
