"""The facts of a run, a closed union of frozen values, and their events; all else is a view (`taoloop.core.trace`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeAlias, get_args

from typing_extensions import TypeVar

from taoloop.core.agent_spec import AgentSpec, Limits, Submission
from taoloop.core.attachments.files import FileInfo
from taoloop.core.cards.tool_card import Tier, ToolCard
from taoloop.core.decision import Act, Answer, Call, EvidenceGap, PlanStep, Undo as Undo, Undoing as Undoing, Voted  # noqa: PLC0414  # parts
from taoloop.core.fast_stdlib import fast_constructor
from taoloop.core.human_input import HookActed, InputAnswered, Marked
from taoloop.core.images import ImageInfo
from taoloop.core.message import Message, Purpose, ToolCallText, Usage
from taoloop.core.policy import Badge as Badge, Policy, Source as Source, TaskAuthority, Verdict as Verdict, VerdictKind  # noqa: PLC0414  # parts

EVENT_VERSION = 2
"""Version of the stored form of events; raised when an older reader could misread a newer event."""
Status = Literal[
    "completed",
    "blocked",
    "max_steps_exceeded",
    "budget_exceeded",
    "unreadable",
    "too_many_errors",
    "repeated_action",
    "waiting",
    "stopped",
    "model_failed",
    "unsupported",
]
"""How a run ended, or that it waits. The answer of a `blocked` run may rest on denied calls."""
ApprovalScope = Literal["call", "rule", "values"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why an observation is not ok."""

    code: str
    """Stable, for programs to match on."""
    message: str
    """What went wrong, for the model and for people."""
    retryable: bool = False
    """Whether the same call, unchanged, may succeed later."""
    hint: str = ""
    """What to do instead; may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A run began."""

    kind: ClassVar[Literal["run_started"]] = "run_started"
    task: str
    """What the user asked."""
    agent: AgentSpec
    """The description of the agent, frozen for the run."""
    nonce: str
    """Frames untrusted text in the prompt, so that the text cannot close its frame."""
    history: tuple[Message, ...] = ()
    """The earlier turns of the conversation that the model sees."""
    parent: str | None = None
    """The run whose tool call this run is."""
    depth: int = 0
    """How many runs this one is nested in; 0 for a run of its own."""
    after: str | None = None
    """The run that this one continues as the next turn of a conversation; `history` comes from there."""
    tainted: bool = False
    """Untrusted text had a part in the task or the history."""
    trusted: tuple[str, ...] = ()
    """In a tainted run, the texts that a person did write and that values may be quoted from (else: the task)."""
    user_instructions: str = ""
    """The end of the agent's instructions, where the user wrote it (a client's system message): trusted as the task."""
    handed_over_by: tuple[str, ...] = ()
    """The agents that had the task before and handed it over, in their order; the last one in the run `parent`."""
    authority: TaskAuthority | None = None
    """What the user's words may authorise, where that may be less than the policy says."""
    forked_from: str | None = None
    """The run that this one was forked from."""
    forked_at: int | None = None
    """The step that was decided again in the fork."""
    undoes: Undoing | None = None
    """The plan that this run carries out, without a model."""
    plan_step: PlanStep | None = None
    """The step of the parent's plan that this run carries out, with what a person allowed it to call."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """For whom and in what way the run was started, such as `{"key": "billing"}`; rules read `user`."""
    images: tuple[ImageInfo, ...] = ()
    """The images of the task. What is to be read in them authorises nothing: policies know the words of the task."""
    files: tuple[FileInfo, ...] = ()
    """The files of the task, for which the same is true."""
    deps: Mapping[str, Any] = field(default_factory=dict)
    """What the agent declared of what the program gave the run (`record_deps`); empty: nothing."""
    submission: Submission | None = None
    """Where and when workers are to drive it; None: whoever began it drives it."""
    version: int = EVENT_VERSION
    """The version of the stored form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReplied:
    """The model answered."""

    kind: ClassVar[Literal["model_replied"]] = "model_replied"
    step: int
    """The step that the reply belongs to, from 1."""
    purpose: Purpose
    """What the model was asked for. A reply to `compact` has no decision: its text is a summary."""
    text: str
    """The text of the reply."""
    decision: Act | Answer | None
    """What the dialect read in it; None: it could not be read as a decision."""
    tool_calls: tuple[ToolCallText, ...] = ()
    """The calls that came through the provider's API, as delivered."""
    finish_reason: str | None = None
    """Why the reply ended: `stop`, `length`, `tool_calls` …"""
    model: str = ""
    """The model that answered."""
    usage: Usage = Usage()
    """The tokens of this reply."""
    cost_usd: float | None = None
    """What the reply cost; None: the price is unknown."""
    latency_s: float = 0.0
    """The time from the question to the whole reply."""
    thinking: str = ""
    """A reasoning model's separate thinking, kept only if the agent asks for it and never shown to a model again."""


new_model_replied = fast_constructor(ModelReplied)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelErred:
    """The model gave no reply (too long a prompt, a failed summary), and the run continues; other errors end it."""

    kind: ClassVar[Literal["model_erred"]] = "model_erred"
    step: int
    """The step in which the model was asked."""
    purpose: Purpose
    """What it was asked for."""
    code: str
    """The code of the error."""
    message: str
    """The text of the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDropped:
    """A read that began while the reply was being written, and whose result nobody saw. It counts as a tool call."""

    kind: ClassVar[Literal["read_dropped"]] = "read_dropped"
    step: int
    """The step of the reply."""
    tool: str
    """The tool that was called."""
    args: Any
    """The arguments of the call."""
    reason: Literal["not_asked", "rejected", "no_reply", "stopped"]
    """Why: the whole reply asks for something else, could not be read, or broke off; or the run was stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRejected:
    """The reply before this event was not accepted as a decision."""

    kind: ClassVar[Literal["reply_rejected"]] = "reply_rejected"
    step: int
    """The step of the reply."""
    code: str
    """Stable, as in `Problem`; `unsupported`: an answer without evidence."""
    message: str
    """What is wrong with it, for the model to correct."""
    excerpt: str = ""
    """The unusable part, shortened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRequested:
    """The model wants this call, and the policy has judged it."""

    kind: ClassVar[Literal["action_requested"]] = "action_requested"
    step: int
    """The step of the decision."""
    call_id: str
    """The id of the call in this run: `call_1`, `call_2` …"""
    tool: str
    """The name of the tool."""
    args: Any
    """The arguments, validated and with lossless corrections; as the model wrote them where they do not fit."""
    tier: Tier | None
    """The tier of the tool; None where its card declares none, or there is no such tool."""
    verdict: VerdictKind
    """What the policy says."""
    digest: str
    """Names the tool and the arguments exactly (SHA-256)."""
    reasons: tuple[str, ...] = ()
    """Why the verdict is what it is, in the run's language."""
    ref: str | None = None
    """The provider's own id of the call."""
    rule: str = ""
    """The rule of the policy that decided; empty for a call that was refused before the policy was asked."""
    policy: str = ""
    """The version of the policy, for a call that is asked about or denied."""
    sources: tuple[Source, ...] = ()
    """Where each value came from, for a call that was asked about or denied, or allowed by a rule that requires it."""
    written: Any = None
    """The arguments as the model wrote them, if they contained handles."""
    reason_codes: tuple[str, ...] = ()
    """A stable code for each of the reasons, as in `Verdict`."""
    replaces: str = ""
    """What existed and would be overwritten, as the tool said before the call was judged."""


new_action_requested = fast_constructor(ActionRequested)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAgain:
    """An open call was judged again, because its tool has changed; an earlier answer about it no longer holds."""

    kind: ClassVar[Literal["judged_again"]] = "judged_again"
    call_id: str
    """The call."""
    args: Any
    """The arguments, as the tool takes them now."""
    tier: Tier | None
    """The tier of the tool now."""
    verdict: VerdictKind
    """What the policy says."""
    digest: str
    """Names the tool and the arguments exactly (SHA-256)."""
    reasons: tuple[str, ...] = ()
    """Why the verdict is what it is, in the run's language."""
    rule: str = ""
    """The rule of the policy that decided."""
    policy: str = ""
    """The version of the policy, for a call that is asked about or denied."""
    sources: tuple[Source, ...] = ()
    """Where the value of each argument came from, for a call that is asked about or denied."""
    reason_codes: tuple[str, ...] = ()
    """A stable code for each of the reasons."""
    replaces: str = ""
    """As in `ActionRequested`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """What the task asks for, determined before the model saw anything untrusted."""

    kind: ClassVar[Literal["pinned"]] = "pinned"
    tools: tuple[str, ...]
    """The tools that may be called."""
    calls: tuple[Call, ...] = ()
    """Calls that may each run once without a further question."""
    by: str = "model"
    """`model` (a turn over trusted text only), or the name of the person who said so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalGiven:
    """A person allowed exactly this call."""

    kind: ClassVar[Literal["approval_given"]] = "approval_given"
    call_id: str
    """The call that is allowed."""
    digest: str
    """The digest of the call that was shown to the person."""
    by: str
    """Who allowed it; `operator` for a tier that was approved in advance."""
    args: Mapping[str, Any] | None = None
    """The arguments that the person put in place of the model's."""
    note: str = ""
    """What the person remarked."""
    scope: ApprovalScope = "call"
    """What else is allowed. `rule`: further such calls with the same values. `values`: these, as if in the task."""
    digits: Mapping[str, str] | None = None
    """Decimals in `args` as the person wrote them (`1.10`), by JSON pointer; None where they were not text."""
    authenticated: str = ""
    """How it is known: `os_user` (of the operating system), `gateway_key`, `panel_token` (login); empty: claimed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRefused:
    """A person refused this call."""

    kind: ClassVar[Literal["approval_refused"]] = "approval_refused"
    call_id: str
    """The call that is refused."""
    by: str
    """Who refused it; `timeout` if nobody answered in time."""
    note: str = ""
    """The reason, which the model sees."""
    authenticated: str = ""
    """As in `ApprovalGiven`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionStarted:
    """The intent: from here on the world may have been changed."""

    kind: ClassVar[Literal["action_started"]] = "action_started"
    call_id: str
    """The call that starts."""
    idempotency_key: str
    """The same for every attempt of this call, and different for every other call."""
    attempt: int = 1
    """How often the call has been started, from 1."""
    progress: int = 0
    """For a repeated call of an agent, how far the run inside has come; attempts that took it on do not count."""
    after: str = ""
    """The error of the attempt before, where the tool itself repeats its calls (`retries`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InDoubt:
    """A call was started and has no outcome: its effect may or may not have happened."""

    kind: ClassVar[Literal["in_doubt"]] = "in_doubt"
    call_id: str
    """The call in doubt."""
    reason: str
    """`no_outcome` (the process ended) or `timeout`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtSettled:
    """Whether the effect of a call in doubt happened."""

    kind: ClassVar[Literal["doubt_settled"]] = "doubt_settled"
    call_id: str
    """The call that was in doubt."""
    happened: bool | None
    """None: it could not be determined; then the call ends with an observation that says so."""
    by: str
    """`probe` (the tool's own check), or the person who said so."""
    note: str = ""
    """What the probe or the person remarked."""
    authenticated: str = ""
    """How it is known that it was this person, as for an approval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What came back for a call."""

    kind: ClassVar[Literal["observed"]] = "observed"
    call_id: str
    """The call that this is the outcome of."""
    ok: bool
    """Whether it succeeded."""
    output: str
    """JSON text or plain text, shortened to a preview if it was long. Untrusted: shown to the model, never obeyed."""
    form: Literal["json", "text"] = "text"
    """Whether `output` is JSON or plain text."""
    error: Fault | None = None
    """Why it did not succeed."""
    artifact: str | None = None
    """The name of the whole output, if it was shortened."""
    size_chars: int = 0
    """The length of the whole output."""
    output_digest: str = ""
    """The SHA-256 of the whole output."""
    latency_s: float = 0.0
    """The time that the call took."""
    printed: str = ""
    """What the tool wrote to its standard output, shortened."""
    child: str | None = None
    """The run that carried out the call, where the tool is an agent."""
    usage: Usage | None = None
    """The tokens that the child's models used; they count for this run too."""
    cost_usd: float | None = None
    """What the child cost; None: unknown. It counts for this run too."""
    images: tuple[ImageInfo, ...] = ()
    """The images that the tool returned, which are as untrusted as its text."""
    files: tuple[FileInfo, ...] = ()
    """The files that the tool returned."""


new_observed = fast_constructor(Observed)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReached:
    """A limit or a guard ended the deciding. At most one turn of the model without tools follows, and the finish."""

    kind: ClassVar[Literal["limit_reached"]] = "limit_reached"
    limit: str
    """The name of the limit."""
    status: Status
    """How the run will finish."""
    allowed: int | float
    """What the limit allows."""
    used: int | float
    """What was used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compensated:
    """The effect of a call was undone, or could not be."""

    kind: ClassVar[Literal["compensated"]] = "compensated"
    call_id: str
    """The call whose effect was undone."""
    by_call_id: str
    """The call that undid it."""
    ok: bool
    """Whether it was undone."""
    note: str = ""
    """Why it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """From here on the prompt shows a summary in place of old steps. The trace keeps everything."""

    kind: ClassVar[Literal["compacted"]] = "compacted"
    through_step: int
    """The last step that the summary covers."""
    summary: str
    """The text; if it is empty the steps stay and only their observations are shortened to previews."""
    tokens_before: int = 0
    """The size of the prompt before, estimated."""
    tokens_after: int = 0
    """The size of the prompt after, estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """The run waits and holds no process."""

    kind: ClassVar[Literal["paused"]] = "paused"
    reason: str
    """What it waits for, for people."""
    waiting_for: tuple[str, ...] = ()
    """The ids of the calls that it waits for."""
    status: Literal["waiting"] = "waiting"
    """The status of the run meanwhile."""
    tiers: tuple[Tier, ...] = ()
    """If such a call is a run inside this one that waits itself: the tiers of the calls that wait there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A process resumed the run. Reopens a finished run."""

    kind: ClassVar[Literal["resumed"]] = "resumed"
    limits: Limits | None = None
    """The new limits, if they were changed."""
    approved_tiers: tuple[Tier, ...] | None = None
    """The tiers approved in advance from here on, if they were changed."""
    reason: str = ""
    """Why it was resumed, if not by a person."""
    cards: tuple[ToolCard, ...] = ()
    """The cards of tools that have changed since; they replace the run's from here on."""
    texts: tuple[ToolCard, ...] = ()
    """The cards of tools of which only texts have changed: the model is told, and nothing is judged again."""
    model: str = ""
    """The model that answers from here on, if it is another one than before."""
    policy: str = ""
    """The version of the agent's policy, if it is another one than the run's, which the run keeps."""
    new_policy: Policy | None = None
    """The policy that the operator put in place of the run's: it judges from here on. None: the run keeps its own."""
    earlier_holder: Literal["", "alive", "elsewhere", "unknown"] = ""
    """Why the process before may still be making its calls: it was `alive`, is `elsewhere`, or that is `unknown`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A remark that the model sees in its next turn."""

    kind: ClassVar[Literal["noted"]] = "noted"
    by: str
    """The name of the person, or `guard` for the runtime."""
    text: str
    """The remark."""
    about: str = ""
    """What it is about, such as a tool's name."""
    authenticated: str = ""
    """How it is known that it was `by`, as for an approval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The end of the run."""

    kind: ClassVar[Literal["finished"]] = "finished"
    status: Status
    """How it ended."""
    answer: str | None
    """The answer; None if there is none."""
    reason: str
    """Exact, for people."""
    limit: str | None = None
    """The limit that ended it."""
    citations: tuple[str, ...] = ()
    """What the answer cites: passages, and observations where the agent asks for evidence."""
    error: str = ""
    """The code of the error if the model failed (`model_timeout` …), for programs."""
    abandoned_by: str = ""
    """Who ended the run for good, so that it cannot be resumed; empty for any other end."""
    denied: tuple[str, ...] = ()
    """For `blocked`, the calls that were denied because nobody could be asked, and that the answer may rest on."""
    unasked: tuple[str, ...] = ()
    """For `completed`, those that nothing in the task seems to ask for; if it does in other words, it is not done."""
    authenticated: str = ""
    """How it is known that it was `abandoned_by`, as for an approval."""
    evidence: tuple[EvidenceGap, ...] = ()
    """What the answer says and the observations do not bear out, where the agent asks for evidence."""


Fact = (
    RunStarted
    | ModelReplied
    | ModelErred
    | ReadDropped
    | ReplyRejected
    | Pinned
    | ActionRequested
    | JudgedAgain
    | ApprovalGiven
    | ApprovalRefused
    | ActionStarted
    | HookActed
    | InputAnswered
    | InDoubt
    | DoubtSettled
    | Observed
    | LimitReached
    | Compensated
    | Compacted
    | Paused
    | Resumed
    | Noted
    | Marked
    | Voted
    | Finished
)
"""Anything that can happen in a run: a closed union of the events' contents."""

FACTS: tuple[type[Fact], ...] = get_args(Fact)


F_co = TypeVar("F_co", bound=Fact, default=Fact, covariant=True)  # what an event is about
K_co = TypeVar("K_co", bound=str, default=str, covariant=True)  # the name of that


class Event(NamedTuple, Generic[F_co, K_co]):
    """A fact in its place within a run."""

    seq: int
    """Counts from 0 within the run."""
    at: float
    """Seconds since the epoch (UTC)."""
    fact: F_co
    """What happened."""

    @property
    def kind(self) -> K_co:
        """The name of the fact, as stored."""
        return self.fact.kind  # type: ignore[return-value]  # the kind of this fact


AnyEvent: TypeAlias = (
    Event[RunStarted, Literal["run_started"]]
    | Event[ModelReplied, Literal["model_replied"]]
    | Event[ModelErred, Literal["model_erred"]]
    | Event[ReadDropped, Literal["read_dropped"]]
    | Event[ReplyRejected, Literal["reply_rejected"]]
    | Event[Pinned, Literal["pinned"]]
    | Event[ActionRequested, Literal["action_requested"]]
    | Event[JudgedAgain, Literal["judged_again"]]
    | Event[ApprovalGiven, Literal["approval_given"]]
    | Event[ApprovalRefused, Literal["approval_refused"]]
    | Event[ActionStarted, Literal["action_started"]]
    | Event[HookActed, Literal["hook_acted"]]
    | Event[InputAnswered, Literal["input_answered"]]
    | Event[InDoubt, Literal["in_doubt"]]
    | Event[DoubtSettled, Literal["doubt_settled"]]
    | Event[Observed, Literal["observed"]]
    | Event[LimitReached, Literal["limit_reached"]]
    | Event[Compensated, Literal["compensated"]]
    | Event[Compacted, Literal["compacted"]]
    | Event[Paused, Literal["paused"]]
    | Event[Resumed, Literal["resumed"]]
    | Event[Noted, Literal["noted"]]
    | Event[Marked, Literal["marked"]]
    | Event[Voted, Literal["voted"]]
    | Event[Finished, Literal["finished"]]
)
"""An event of any kind: type checkers know the fact where the kind is known (`event.kind == "observed"`)."""

new_event = partial(tuple.__new__, Event)
"""An event of its three parts in one tuple, for half the cost of calling the class (`benchmarks/overhead.py`)."""
