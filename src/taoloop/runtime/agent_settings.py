"""What an agent is, as its user states it: one frozen field per setting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    _SpecialForm as SpecialForm,  # what type checkers take `Literal[…]` for as a value
    get_args,
)

from typing_extensions import TypeVar

from taoloop.core.agent_spec import Limits, ModelSettings
from taoloop.core.cards.tool_card import Tier
from taoloop.core.policy import EvidenceMode, Policy, Profile
from taoloop.errors import ConfigError, UnknownName
from taoloop.lazy_exports import LazyGeneric, lazy_types
from taoloop.models.settings import ModelEndpoint, Rate, Retry
from taoloop.runtime.engine.clock import Clock, SystemClock

if TYPE_CHECKING:
    from taoloop.journals.base import Journal
    from taoloop.journals.postgres.address import PostgresAddress
    from taoloop.models.base import Model
    from taoloop.models.function import ModelFunction
    from taoloop.models.prices import Price
    from taoloop.models.scripted import Reply
    from taoloop.policy import CodeRule
    from taoloop.runtime.approvals.request import Approver
    from taoloop.runtime.engine.hooks import Hooks, OutputCheck
    from taoloop.runtime.engine.run_artifacts import Describer
    from taoloop.runtime.observation.telemetry import Telemetry
    from taoloop.strategies import Strategy
    from taoloop.tools.tool import RunContext, Tool
    from taoloop.tools.toolbox import ToolFolder
else:
    _TYPES = {"journals": "Journal PostgresAddress", "models": "Model ModelFunction Price Reply", "policy": "CodeRule"}
    RunContext, Hooks = LazyGeneric("tools.tool", "RunContext"), LazyGeneric("runtime.engine.hooks", "Hooks")
    globals().update(
        lazy_types(
            {
                **_TYPES,
                "runtime": "Approver Describer",
                "runtime.engine.hooks": "OutputCheck",
                "runtime.observation.telemetry": "Telemetry",
                "strategies": "Strategy",
                "tools": "Tool",
                "tools.toolbox": "ToolFolder",
            }
        )
    )

Deps = TypeVar("Deps", default=Any)
"""What the program gives a run (`deps`), the type of which is `deps_type`."""

Output = TypeVar("Output", default=Any)
"""The value that an answer is (`Result.output`), the type of which is `output_type`."""

AUTO = "auto"
"""The value of `language` that follows the task."""


HandoffHistory = Literal["task", "answers", "full"]
"""What an agent that takes over sees: the user's task alone; with the user's earlier messages and the answers to them;
or also what the agent before it thought, did and observed, framed as untrusted."""


@dataclass(frozen=True, kw_only=True)
class Handoff:
    """An agent that may take the conversation over, and what it then sees."""

    agent: AgentSettings | str
    """The agent, or the name of one that is linked with this one (`link_handoffs`, agents of a file)."""

    history: HandoffHistory = "task"
    """What it sees of the conversation; by default only the user's task."""

    max_times: int | None = None
    """How often it may take over from this agent for one task. None: no limit of its own, which a hand-off that can
    come back to this agent needs."""

    use_when: str = ""
    """When to hand over to it, beside its own `description`."""

    team: Mapping[str, AgentSettings] = field(default_factory=dict, repr=False, compare=False)
    """The linked agents by their names."""

    def __post_init__(self) -> None:
        """Refuse what is no hand-off.

        Raises:
            ConfigError: the history or the limit is none.
        """
        if self.history not in get_args(HandoffHistory):
            known = ", ".join(get_args(HandoffHistory))
            raise ConfigError(f"The history of a hand-off is {self.history!r}.", hint=f"Choose one of {known}.")
        most: object = self.max_times  # whatever a caller without types passes
        if most is not None and (type(most) is not int or most < 1):
            raise ConfigError(f"max_times is {self.max_times!r}.", hint="Write a whole number from 1 on.")

    @property
    def name(self) -> str:
        """The name of the agent."""
        return self.agent if isinstance(self.agent, str) else self.agent.name

    @property
    def target(self) -> AgentSettings:
        """The agent.

        Raises:
            UnknownName: no linked agent has this name.
        """
        if not isinstance(self.agent, str):
            return self.agent
        if self.agent not in self.team:
            hint = (
                ""
                if self.team
                else "Name one of the same file; in Python give the agent, or link them (link_handoffs)."
            )
            raise UnknownName("agent", self.agent, tuple(self.team), hint=hint)
        return self.team[self.agent]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """The run for which dependencies are made (`make_deps`)."""

    run_id: str
    """Its id."""

    user: str
    """The person for whom it is; empty: whoever uses this machine."""

    task: str
    """What it is asked to do."""

    agent: str
    """The name of its agent."""


@dataclass(frozen=True, kw_only=True)
class AgentSettings(Generic[Deps, Output]):
    """The settings of an agent. Names and types are checked when it is made, the rest when it is first used.

    Raises:
        UnknownName: there is no such setting, model, dialect or strategy.
        ConfigError: a setting cannot be used.
    """

    model: str | Model | ModelFunction | Sequence[Reply] | None = None
    """A spec (`offline`, `openai:NAME`, `scripted:FILE` …), a `Model`, a function of (task, trace) that gives the next
    reply, or a list of scripted replies. None lets the environment decide; without a configured provider the built-in
    offline model answers."""

    tools: Sequence[Tool | Callable[..., Any] | ToolFolder | str] = ()
    """`@tool` functions, plain typed functions, or names of built-in tools."""

    name: str = "agent"
    """What the agent is called in traces, in lists of runs, and as a tool of another agent."""

    instructions: str | Callable[[RunContext[Deps]], str | Awaitable[str]] = ""
    """What the system prompt says about the agent's job, beside the rules of its dialect. A function, which may be
    async, is called once when a run begins; what it gives is in the run's description, so that a resume and a replay
    see the same. A plain function runs in the event loop and should return at once."""

    deps_type: type[Deps] | UnionType | None = None
    """The type of what a run is given for its tools (`deps`): a run without it, or with something else, does not begin.
    None: anything, or nothing."""

    make_deps: Callable[[RunInfo], Deps | Awaitable[Deps]] | None = None
    """Makes the dependencies of a run that is given none, from whom it is for: `tao resume`, `recover`, the gateway.
    May be async."""

    record_deps: Callable[[Deps], Mapping[str, Any]] | None = None
    """What of the dependencies the trace records when a run begins, as a JSON object. None: nothing; without secrets
    (`redact`) in any case."""

    description: str = ""
    """What the agent is for, in a sentence or two: agents that may hand over to it go by it."""

    handoffs: Sequence[Handoff | AgentSettings | str] = ()
    """The agents that may take the conversation over and then give the final answer: agents, names of linked agents, or
    a `Handoff` of either. Unlike an agent that is a tool, such an agent has the user's task, and does not come back."""

    dialect: str | None = None
    """How the model writes its decisions: `native`, `text`, `json`, `json_final` or `fenced`. None takes the one
    that suits the model."""

    strategy: str | Strategy = "react"
    """What decides the next step: a name or a `Strategy`."""

    language: str = AUTO
    """The language of prompts and of texts for people, `en` or `zh`; `auto` follows the task."""

    limits: Limits = Limits()
    """What one run may use: steps, errors, tokens, money and time."""

    max_steps: int | None = None
    """Short for `limits=Limits(max_steps=…)`. Without either a run has 6 steps, or 20 with more than five tools."""

    policy: Policy | Profile = "supervised"
    """What the agent may do: the name of a profile (`supervised`, `strict`, `headless`, `autonomous`, `read-only`,
    `locked`) or a `Policy`."""

    rules: Sequence[CodeRule] = ()
    """Rules in Python, which are asked before those of the policy."""

    approve: Approver | None = None
    """Answers the policy's questions. Without it a run that has a question waits."""

    approved_tiers: tuple[Tier, ...] = ()
    """The tiers whose calls the operator approves in advance."""

    closing_turn: bool = True
    """Whether a run that reaches a limit gets a last turn without tools, to answer from what it has."""

    evidence: EvidenceMode = "off"
    """What becomes of an answer whose citations of observations (`[obs:call_1]`) do not hold: `off` asks for none and
    checks none, `warn` names what does not hold in the result, `require` sends the answer back once, and the run ends
    as `unsupported` if the next one does not hold either."""

    hooks: Sequence[Hooks[Deps]] = ()
    """The program's own code before and after model calls and tool calls, in this order. It may change or refuse them,
    which is recorded. Reads do not start early (`early_reads`) in an agent with hooks."""

    output_validators: Sequence[OutputCheck] = ()
    """Functions of (context, answer) that let an answer pass, return another one, or raise `AnswerRefused`: the answer
    then goes back to the model with the reason, as an unreadable one does (`repair_turns`). May be async."""

    repair_turns: int = 1
    """How often in a row an unreadable reply, or an answer that does not fit `output_type`, is sent back for repair.
    After that the next one is a step of its own; only a limit, such as `max_consecutive_errors`, ends the run."""

    temperature: float | None = None
    """The sampling temperature. None leaves it to the provider, or is 0.2 with the dialect `json` unless `top_p` is
    set."""

    top_p: float | None = None
    """The share of probability to sample from. None leaves it to the provider, or is 0.9 with the dialect `json`
    unless `temperature` is set."""

    vision: bool | None = None
    """Whether `model` sees images. None goes by what its name is known for. A model that does not is told the labels of
    images, and that it cannot see them."""

    describe_image: Describer | None = None
    """A function that says in words what an image shows, for a model that does not see. It gets an `Image` and may be
    async; what it says of a tool's image is as untrusted as the image. None: nothing describes them."""

    max_output_tokens: int | None = None
    """The most tokens that one reply may have. None leaves it to the provider."""

    context_tokens: int | None = None
    """The size of the model's window. A prompt that comes near it is shortened: old observations first, then by a
    summary. None shortens only when the provider refuses a prompt as too long."""

    model_timeout_s: float | None = 120.0
    """The seconds that one model call may take, with all retries and fallbacks. None sets no limit."""

    model_settings: ModelSettings | None = None
    """Settings of the model calls that not every provider has: `reasoning_effort`, `seed`, `tool_choice`, `stop`,
    `extra_body`. One that the provider lacks ends the run with its name; scripts take no notice of them."""

    early_reads: bool = False
    """Whether calls that only read start while the reply is still being written."""

    keep_thinking: bool = False
    """Whether the trace keeps the thinking of a reasoning model."""

    fallback: str | Model | Sequence[str | Model] = ()
    """The models that answer where `model` fails, in this order."""

    retry: Retry = Retry()
    """How a failed model call is tried again. It holds for models of providers and for a `Model` of yours, not for
    scripts."""

    rate: Rate | None = None
    """How many model calls and tokens a minute may have, over all runs of this agent; scripts are not limited."""

    endpoints: Sequence[ModelEndpoint] = ()
    """Several addresses or keys of `model`, a provider's: calls are shared by weight, and an endpoint that fails is
    left out for a while. Empty takes the one that the environment names."""

    prices: Mapping[str, Price] = field(default_factory=dict)
    """Own prices by the spec of the model, such as `{"openai:my-model": Price(input=0.5, output=1.5)}`. They go before
    the installed price list, and count in `max_cost_usd`."""

    response_cache: str | Path | None = None
    """A file that keeps the replies of the model for development: an equal request (prompt, tools, settings, model) is
    answered from it, with no tokens and at no cost. Not for scripts. None: every request is sent."""

    workspace: str | Path | None = None
    """The folder that the file tools see, and nothing else."""

    memory: str | Path | None = None
    """The file of the memory tools (`remember`, `recall`)."""

    output_type: type[Output] | UnionType | SpecialForm | Mapping[str, Any] | None = None
    """Makes the answer data: a pydantic model, any type that pydantic can validate (a dataclass, `list[int]`,
    `Literal["yes", "no"]` …), or a JSON Schema as a dict. An answer that does not fit is sent back (`repair_turns`)."""

    prompts: str | Path | Mapping[str, str] | None = None
    """A folder of prompt files, or texts by name, that replace those that come with the package."""

    journal: Journal | str | Path | PostgresAddress | None = None
    """What keeps the traces: a `Journal`, the path of an SQLite file, or the address of a PostgreSQL database
    (`postgresql://…`). None keeps the last 256 runs in memory, lost with the process."""

    owns: Sequence[object] = ()
    """What `close()` closes with the agent, the last one first: journals, models, clients, whatever has `close()` or
    `aclose()`. All else that a program hands over stays the program's; what a name stands for is the agent's."""

    recover_on_start: bool = False
    """Whether the agent resumes the runs that dead processes left, before its first run (`recover`)."""

    source: str | None = None
    """How to load the agent again: its file, or `module:attribute`. `recover` resumes the runs of the same `name` and
    `source`."""

    policy_from: tuple[str, ...] = ()
    """The options of `tao` that set the policy, such as `("--policy", "policy.yaml")`: a resume from the command line
    compares with what they say then."""

    clock: Clock = field(default_factory=SystemClock)
    """The time of events and durations; tests pass their own."""

    env: Mapping[str, str] | None = field(default=None, repr=False)
    """The environment variables for model, keys and secrets. None takes those of the process."""

    load_env: bool = False
    """Whether also variables of a `.env` file count, below those of the process: the file in the current folder, else
    the one beside the main script. Off, because a library should read no file that nobody named; `tao` reads it. Not
    with `env`. Nothing is put into the process's own environment."""

    secrets: Mapping[str, str] | Sequence[str] = field(default=(), repr=False)
    """Values that never reach trace, prompt, log or listener; a mapping names them. Those of the environment
    (`*_API_KEY`, `*_TOKEN`, `*PASSWORD` …) and what looks like a vendor's key are known anyway."""

    telemetry: Telemetry | bool | None = None
    """What exports its runs to OpenTelemetry: a `Telemetry`, or True for the providers of the process. None goes by
    `taoloop.instrument`, and for a run inside another one by that run; False exports nothing."""

    redact: bool = True
    """Whether secrets are replaced. False keeps everything as it is."""

    def __post_init__(self) -> None:
        """Refuse names that nothing has, and what is no tool; the rest is checked by the first run.

        Raises:
            ConfigError: a setting cannot be used.
        """
        from taoloop.journals.postgres.address import PostgresAddress, is_postgres  # noqa: PLC0415  # the same
        from taoloop.runtime.engine.setting_checks import check_settings  # noqa: PLC0415  # an import needs none

        if isinstance(self.journal, str) and is_postgres(self.journal):  # its password is in no representation
            object.__setattr__(self, "journal", PostgresAddress(self.journal))
        check_settings(
            model=self.model, tools=self.tools, dialect=self.dialect, strategy=self.strategy, policy=self.policy
        )

    if not TYPE_CHECKING:  # type checkers have the signature of the settings

        def __new__(cls, *_: Any, **settings: Any) -> Any:
            """Refuse what is no setting, with the one that may be meant."""
            known = cls.__dataclass_fields__
            if not settings.keys() <= known.keys():
                name = next(name for name in settings if name not in known)
                raise _unknown_setting(name, tuple(known))
            return super().__new__(cls)

    def handoff_tools(self) -> list[Tool]:
        """The tools by which the agent hands over; an `Agent` has them, settings alone have none."""
        return []


def _unknown_setting(name: str, known: tuple[str, ...]) -> UnknownName:
    from taoloop.core.search import suggest_names  # noqa: PLC0415  # few names are misspelt

    near = suggest_names(name, known, at_most=1)
    hint = f"Did you mean {near[0]!r}?" if near else ""
    return UnknownName("setting of an agent", name, () if near else known, hint=hint)


def as_tuple(tiers: Any) -> Any:
    """A list of tiers as a tuple; a single text stays one, for the spec to refuse."""
    return tuple(tiers) if isinstance(tiers, list | set) else tiers


def changed_limits(own: Limits, limits: Limits | None, max_steps: int | None) -> Limits:
    """The limits of one run: `limits` in place of its own, with another limit of steps."""
    limits = own if limits is None else limits
    return limits if max_steps is None else replace(limits, max_steps=max_steps)
