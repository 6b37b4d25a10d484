"""The frozen description of an agent, as it stands in the trace."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taoloop.core.cards.tool_card import TIERS, Tier, ToolCard
from taoloop.core.limits import Limits
from taoloop.core.policy import Policy
from taoloop.core.prompts import PromptSet
from taoloop.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """Everything about an agent that decides what a run does, as plain data.

    `model` is the spec of the model (`offline`, `openai:NAME` …), `language` the language of the prompts,
    `instructions` extra text for the system prompt. `closing_turn`: when a limit is reached the model gets one
    last turn without tools to answer from what there is. `repair_turns`: how often in a row an unreadable reply
    is sent back for repair before it counts as a step of its own. `policy` says what it may do, `approved_tiers`
    which tiers the operator allowed ahead of time. `source` and `workspace` say where the agent came from and which
    folder its file tools see, `memory` which file its memory tools write, `tools_from` which tool files and tools of
    modules its command named, so that a run can be resumed without naming them again.
    `context_tokens` is the window of the model that a prompt and its reply must fit into; None: unknown, and the
    prompt is shortened only once the provider refuses it as too long. `early_reads`: a call that only reads may begin
    while the reply that asks for it is still being written. `keep_thinking`: a reasoning model's thinking is kept in
    the trace (never in a prompt).
    `takes_cut_answers`: what there is of an answer that its provider cut (at the limit of tokens, say) is the answer;
    else it is asked for again, shorter.
    `output_schema` is the JSON Schema that the final answer must fit as JSON; None: the answer is a text.
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
    policy: Policy = Policy()
    approved_tiers: tuple[Tier, ...] = ()
    closing_turn: bool = True
    repair_turns: int = 1
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    context_tokens: int | None = None
    model_timeout_s: float | None = 120.0
    early_reads: bool = False
    keep_thinking: bool = False
    takes_cut_answers: bool = False
    source: str | None = None
    workspace: str | None = None
    memory: str | None = None
    tools_from: tuple[str, ...] = ()
    output_schema: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse a description that no run could be held to, or that no trace could give back.

        Raises:
            ConfigError: names the field and what it must be.
        """
        for name in ("name", "model", "dialect", "strategy", "language", "instructions"):
            self._require(name, isinstance(getattr(self, name), str), "a text")
        for name in ("source", "workspace", "memory"):
            value = getattr(self, name)
            self._require(name, value is None or isinstance(value, str), "a text or None")
        files: object = self.tools_from
        all_texts = isinstance(files, tuple) and all(isinstance(file, str) for file in files)
        self._require("tools_from", all_texts, "a tuple of texts")
        schema: object = self.output_schema
        self._require("output_schema", schema is None or isinstance(schema, Mapping), "a JSON Schema or None")
        self._require("limits", isinstance(self.limits, Limits), "Limits(…)")
        self._require("policy", isinstance(self.policy, Policy), "Policy(…)")
        tiers: object = self.approved_tiers
        self._require("approved_tiers", isinstance(tiers, tuple) and set(tiers) <= set(TIERS), f"some of {TIERS}")
        for name in ("closing_turn", "early_reads", "keep_thinking", "takes_cut_answers"):
            self._require(name, isinstance(getattr(self, name), bool), "True or False")
        self._require("repair_turns", _is_int(self.repair_turns) and self.repair_turns >= 0, "0 or more")
        tokens = self.max_output_tokens
        self._require("max_output_tokens", tokens is None or (_is_int(tokens) and tokens > 0), "above 0, or None")
        window = self.context_tokens
        self._require(
            "context_tokens",
            window is None or (_is_int(window) and window > (tokens or 0)),
            "a whole number above 0 (and above max_output_tokens), or None",
        )
        for name in ("temperature", "top_p"):
            value = getattr(self, name)
            self._require(name, value is None or (_is_number(value) and value >= 0), "0 or more, or None")
        timeout_s = self.model_timeout_s
        self._require(
            "model_timeout_s", timeout_s is None or (_is_number(timeout_s) and timeout_s > 0), "above 0, or None"
        )

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise ConfigError(f"An agent's {name} is {getattr(self, name)!r}.", hint=f"It must be {expected}.")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
