"""What a strategy asks the runtime to do: a closed union, with the question to a model that one of them contains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act
from taoloop.core.events import Fact, Finished
from taoloop.core.fast_stdlib import fast_constructor
from taoloop.core.message import Delta, Message, Purpose
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView


@dataclass(slots=True, kw_only=True)
class ModelRequest:
    """One question to a model."""

    task: str
    """What the user asked."""
    trace: Trace
    """The run so far; with `task` and `dialect` it lets a model that does not read prose (scripted, replay, offline)
    work from the facts."""
    messages: tuple[Message, ...]
    """The prompt."""
    dialect: str
    """How the decision is to be written."""
    tools: tuple[ToolCard, ...] = ()
    """The cards on offer."""
    earlier_tools: tuple[ToolCard, ...] = ()
    """The cards that earlier requests of the run offered, where this one offers none: some servers refuse messages with
    calls in a request without tools. Empty: all of the agent."""
    native: bool = False
    """The provider gets the tools as tools of its API; otherwise the prompt already contains them."""
    purpose: Purpose = "decide"
    """What the model is asked for."""
    turn: int = 0
    """How many replies the run has had so far."""
    temperature: float | None = None
    """None: the provider's default."""
    top_p: float | None = None
    """None: the provider's default."""
    max_output_tokens: int | None = None
    """The longest reply, in tokens; None: the provider's limit."""
    stop: tuple[str, ...] = ()
    """Texts at which the provider ends the reply."""
    timeout_s: float | None = None
    """How long the reply may take; None: no limit."""
    settings: Mapping[str, Any] | None = None
    """Settings that not every provider has (`ModelSettings`); None: none."""
    reply_schema: Mapping[str, Any] | None = None
    """A JSON Schema that the text of the reply must fit. A provider with structured output is asked to keep to it,
    others have it in the prompt."""
    on_delta: Callable[[Delta], None] | None = None
    """Called with each piece of the reply by models that can stream; the reply itself is returned whole all the same.
    """
    image_data: Mapping[str, str] | None = None
    """The bytes of images and files of the messages, as base64, by `ImageInfo.ref` and `FileInfo.ref`. What is not in
    it is not to be shown."""


new_model_request = fast_constructor(ModelRequest)


@dataclass(slots=True)
class CallModel:
    """Ask the model."""

    request: ModelRequest
    """The question."""
    step: int
    """The step that the reply belongs to."""


@dataclass(slots=True)
class RequestCalls:
    """Judge the calls of a decision: arguments, then policy. No tool is run yet."""

    act: Act
    """The decision."""
    step: int
    """Its step."""
    offered: bool = True
    """False: the strategy has no tools, so every call is one of an unknown tool."""


@dataclass(slots=True)
class JudgeAgain:
    """Judge open calls again by the cards that their tools have now. No tool is run."""

    calls: tuple[CallView, ...]
    """The calls, none of which was started."""


@dataclass(slots=True)
class RunTools:
    """Run calls, at the same time. Those above `read` are journalled as started first."""

    calls: tuple[CallView, ...]
    """The calls."""


@dataclass(slots=True, kw_only=True)
class ProbeCalls:
    """Ask the probes of the tools, at the same time, whether calls in doubt have happened."""

    calls: tuple[CallView, ...]
    """The calls in doubt."""


@dataclass(slots=True, kw_only=True)
class AskPerson:
    """A person's answer is needed before the run can continue."""

    calls: tuple[CallView, ...]
    """The calls that may or may not run."""
    doubts: tuple[CallView, ...] = ()
    """The calls that may or may not have happened."""


@dataclass(slots=True, kw_only=True)
class Record:
    """Write down facts that follow from the trace alone, and ask for the next effect."""

    facts: tuple[Fact, ...]
    """The facts, in order."""


@dataclass(slots=True, kw_only=True)
class Finish:
    """The run is over."""

    fact: Finished
    """How it ended."""


Effect = CallModel | RequestCalls | JudgeAgain | RunTools | ProbeCalls | AskPerson | Record | Finish


class Strategy(Protocol):
    """A pure function from the trace to the next effect. The same trace always gives the same effect.

    Its prompts have the rules `rules_NAME` of the prompt set; one that uses others names them in an attribute `rules`.
    """

    @property
    def name(self) -> str:
        """The name that agents choose it by."""
        ...

    def next(self, agent: AgentSpec, trace: Trace) -> Effect:
        """The next effect. `trace` is not finished."""
        ...
