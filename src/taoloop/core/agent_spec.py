"""The frozen description of an agent, as the trace stores it, and the limits of its runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict, get_args

from taoloop.core.cards.tool_card import TIERS, Tier, ToolCard
from taoloop.core.policy import EvidenceMode, Policy
from taoloop.core.prompts import PromptSet
from taoloop.core.text import field_error, is_number
from taoloop.errors import ConfigError


class DefaultSteps(int):
    """A limit of steps that nobody set: the number, until the tools of an agent are known (`with_default_steps`)."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], Any]) -> Any:
        """As any number, for the JSON Schema of agent files."""
        return handler(int)


DEFAULT_MAX_STEPS = DefaultSteps(6)
DEFAULT_MAX_STEPS_OF_MANY_TOOLS = 20
"""Tasks over many tools chain many calls: six steps ended 50 of 115 realistic ones. Loops still end at the limits on
repeated actions and on errors."""

FEW_TOOLS = 5
"""The most tools of an agent that has `DEFAULT_MAX_STEPS`."""

DEFAULT_MAX_CONSECUTIVE_ERRORS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one run may use up. None means no limit."""

    max_steps: int | None = DEFAULT_MAX_STEPS
    """Decisions of the model; a repair turn belongs to its step. By default 6, or 20 for an agent with more than five
    tools; the description of the agent and the trace have the number."""
    max_tool_calls: int | None = None
    """A run that made them all may still answer; it ends when it wants one more."""
    max_tokens: int | None = None
    """Input and output of all replies together."""
    max_cost_usd: float | None = None
    """US dollars for all replies; the run ends at the first reply whose price is unknown."""
    max_wall_s: float | None = None
    """The time that processes held the run, waiting included."""
    max_working_s: float | None = None
    """The time spent in model calls and tools only."""
    max_consecutive_errors: int | None = DEFAULT_MAX_CONSECUTIVE_ERRORS
    """Unreadable replies and failed calls in a row, 3 by default. The failed calls of one decision count once, because
    the model sees them together; every call that succeeds starts the count again."""
    max_total_errors: int | None = None
    """Unreadable replies and failed calls of the whole run."""
    repeat_tell: int | None = 3
    """The same action with the same result is reported to the model at this count, 3 by default; a result that differs
    starts the count again."""
    repeat_stop: int | None = 5
    """The same action with the same result ends the run as `repeated_action` at this count, 5 by default."""

    def __post_init__(self) -> None:
        """Reject limits under which no run could start."""
        for name in (f.name for f in fields(self)):
            value = getattr(self, name)
            if value is None:
                continue
            whole = name not in ("max_cost_usd", "max_wall_s", "max_working_s")
            kinds = (int,) if whole else (int, float)
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < math.inf:
                kind = "a whole number" if whole else "a number"
                raise field_error(ConfigError, "limit", f"{kind} above 0, or None for no limit", name=name, value=value)


def with_default_steps(limits: Limits, tools: int) -> Limits:
    """The limits for an agent with so many tools of its own; a limit of steps that somebody set stays."""
    if not isinstance(getattr(limits, "max_steps", None), DefaultSteps):  # the spec refuses what are no limits
        return limits
    return replace(limits, max_steps=int(DEFAULT_MAX_STEPS if tools <= FEW_TOOLS else DEFAULT_MAX_STEPS_OF_MANY_TOOLS))


class ModelSettings(TypedDict, total=False):
    """Settings of the model calls of an agent that not every provider has. One that a provider lacks is an error."""

    reasoning_effort: str
    """How much a reasoning model thinks, in the words of its provider, such as `low`, `medium` or `high`."""
    seed: int
    """Makes replies repeatable as far as the provider can."""
    tool_choice: str
    """In steps that offer tools: `auto`, `required` (the reply must call one), or the name of the tool to be called."""
    stop: Sequence[str]
    """Texts at which the provider ends a reply, beside those of the dialect."""
    extra_body: Mapping[str, Any]
    """Further fields of the request, as the provider's API has them; none that taoloop fills in itself."""


OWN_FIELDS = frozenset({"model", "messages", "system", "tools", "stream", "stream_options", "n"})
"""The fields of a request that no `extra_body` may have."""

_SETTING_FORMS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "reasoning_effort": (str, "a text"),
    "seed": (int, "a whole number"),
    "tool_choice": (str, "`auto`, `required` or the name of a tool"),
    "stop": ((list, tuple), "a list of texts"),
    "extra_body": (Mapping, "a mapping without " + ", ".join(sorted(OWN_FIELDS))),
}


def _misfit_setting(settings: Mapping[str, Any]) -> str:
    """What is wrong with settings of model calls; empty where nothing is."""
    for name, value in settings.items():
        if name not in _SETTING_FORMS:
            return f"a mapping with some of {', '.join(_SETTING_FORMS)}"
        kind, expected = _SETTING_FORMS[name]
        fits = isinstance(value, kind) and not isinstance(value, bool)
        if name == "stop":
            fits = fits and all(isinstance(text, str) and text for text in value)
        if name == "extra_body":
            fits = fits and not OWN_FIELDS & value.keys()
        if not fits:
            return f"{name}: {expected}"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """Everything about an agent that decides what a run does, as plain data: what a trace stores of it."""

    name: str = "agent"
    """What the agent is called in overviews and as a tool of another agent."""
    model: str = "offline"
    """The spec of the model: `offline`, `openai:NAME` …"""
    dialect: str = "native"
    """How decisions are written in replies: `native`, `text`, `json`, `json_final` or `fenced`."""
    strategy: str = "react"
    """Which effect comes next: `react`, or another strategy, with all its settings."""
    language: str = "en"
    """The language of the prompts and of texts for people, `en` or `zh`."""
    instructions: str = ""
    """Extra text for the system prompt."""
    tools: tuple[ToolCard, ...] = ()
    """The cards of the tools that the run may use."""
    limits: Limits = Limits()
    """What the run may use up."""
    prompts: PromptSet = PromptSet(language="en")
    """The prompt texts."""
    policy: Policy = Policy()
    """What the agent may do."""
    approved_tiers: tuple[Tier, ...] = ()
    """The tiers that the operator approved in advance."""
    closing_turn: bool = True
    """When a limit is reached, the model gets one last turn without tools to answer from what there is."""
    repair_turns: int = 1
    """How often in a row an unreadable reply is sent back for repair before it counts as a step of its own."""
    temperature: float | None = None
    """Passed to the provider; None: its default."""
    top_p: float | None = None
    """Passed to the provider; None: its default."""
    max_output_tokens: int | None = None
    """The longest reply, in tokens; None: the provider's limit."""
    context_tokens: int | None = None
    """The window of the model that a prompt and its reply must fit into, in tokens. None: unknown; the prompt is
    shortened only once the provider rejects it as too long."""
    model_timeout_s: float | None = 120.0
    """How long one reply may take; None: no limit."""
    early_reads: bool = False
    """A call that only reads may begin while the reply that asks for it is still being written."""
    keep_thinking: bool = False
    """A reasoning model's thinking is kept in the trace (never in a prompt)."""
    takes_cut_answers: bool = False
    """What there is of an answer that its provider cut (at the limit of tokens, for example) is the answer; otherwise
    it is asked for again, shorter."""
    source: str | None = None
    """The file that the agent came from, for resuming."""
    workspace: str | None = None
    """The folder of its file tools, for resuming."""
    memory: str | None = None
    """The file of its memory tools, for resuming."""
    tools_from: tuple[str, ...] = ()
    """The tool files and tools of modules that its command named, for resuming."""
    policy_from: tuple[str, ...] = ()
    """The options of its command that set the policy (`--policy`, FILE, `--profile`, NAME), for resuming."""
    evidence: EvidenceMode = "off"
    """What becomes of an answer whose citations of observations do not hold."""
    output_schema: Mapping[str, Any] | None = None
    """The JSON Schema that the final answer must fit as JSON; None: the answer is a text."""
    model_settings: Mapping[str, Any] | None = None
    """Settings of the model calls that not every provider has (`ModelSettings`); None: none."""
    graph: Mapping[str, Any] | None = None
    """The nodes, edges and state of a graph workflow (`taoloop.strategies.graph`); None for any other strategy."""

    def __post_init__(self) -> None:
        """Reject a description that no run could follow, or that a trace could not give back.

        Raises:
            ConfigError: names the field and what it must be.
        """
        for name in ("name", "model", "dialect", "strategy", "language", "instructions"):
            self._require(name, isinstance(getattr(self, name), str), "a text")
        for name in ("source", "workspace", "memory"):
            value = getattr(self, name)
            self._require(name, value is None or isinstance(value, str), "a text or None")
        for name in ("tools_from", "policy_from"):
            texts: object = getattr(self, name)
            all_texts = isinstance(texts, tuple) and all(isinstance(text, str) for text in texts)
            self._require(name, all_texts, "a tuple of texts")
        schema: object = self.output_schema
        self._require("output_schema", schema is None or isinstance(schema, Mapping), "a JSON Schema or None")
        graph: object = self.graph
        self._require("graph", graph is None or isinstance(graph, Mapping), "the description of a graph, or None")
        settings: object = self.model_settings
        expected = "a mapping, or None" if settings is not None and not isinstance(settings, Mapping) else ""
        expected = expected or (_misfit_setting(settings) if isinstance(settings, Mapping) else "")
        self._require("model_settings", not expected, expected)
        modes = get_args(EvidenceMode)
        self._require("evidence", self.evidence in modes, f"one of {', '.join(map(repr, modes))}")
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
            self._require(name, value is None or (is_number(value) and value >= 0), "0 or more, or None")
        timeout_s = self.model_timeout_s
        self._require(
            "model_timeout_s", timeout_s is None or (is_number(timeout_s) and timeout_s > 0), "above 0, or None"
        )

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise field_error(ConfigError, "agent", expected, name=name, value=getattr(self, name))


DEFAULT_QUEUE = "default"
DEFAULT_PRIORITY = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Where, when and for whom workers are to drive a run that was submitted and not driven by whoever began it."""

    queue: str = DEFAULT_QUEUE
    """The queue of the workers that drive it."""
    priority: int = DEFAULT_PRIORITY
    """From 1 (first) to 5 (last): the order of runs that are due in one queue."""
    tenant: str = ""
    """For whom it is, where engines share out their workers by that; empty: for nobody in particular."""
    not_before: float | None = None
    """When it may start at the earliest, in seconds since the epoch; None: at once."""

    def __post_init__(self) -> None:
        """Reject what no engine could keep to.

        Raises:
            ConfigError: names the field and what it must be.
        """
        queue: object = self.queue
        self._require("queue", isinstance(queue, str) and bool(queue.strip()), "a text")
        self._require("priority", _is_int(self.priority) and 1 <= self.priority <= 5, "1 (first) to 5 (last)")
        tenant: object = self.tenant
        self._require("tenant", isinstance(tenant, str), "a text")
        self._require("not_before", self.not_before is None or is_number(self.not_before), "a time, or None")

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise field_error(ConfigError, "submission", expected, name=name, value=getattr(self, name))


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
