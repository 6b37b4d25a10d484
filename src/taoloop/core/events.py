"""The facts of a run: a closed union of frozen values.

An `Event` is a fact with its place (`seq`, from 0) and time (`at`, seconds since the epoch, UTC). Facts say what
happened and carry no behaviour; everything else about a run is a view of them (`taoloop.core.trace`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.tool_card import Tier
from taoloop.core.decision import Act, Answer, Call
from taoloop.core.fast_dataclass import fast_constructor
from taoloop.core.limits import Limits
from taoloop.core.message import Message, Purpose, ToolCallText, Usage
from taoloop.core.policy import VerdictKind

EVENT_VERSION = 1
"""Version of the stored form of events; raised when an older reader could misread a newer event."""

Status = Literal[
    "completed",
    "max_steps_exceeded",
    "budget_exceeded",
    "unreadable",
    "too_many_errors",
    "repeated_action",
    "waiting",
    "stopped",
    "model_failed",
]
"""How a run ended, or that it waits for a person. `budget_exceeded` comes with the name of the limit."""

ApprovalScope = Literal["call", "rule", "values"]

Badge = Literal["YOURS", "LOOKED UP", "WRITTEN", "LINKS", "UNKNOWN", "FOREIGN"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the value of one argument came from, as far as the executor can tell.

    `YOURS`: quoted from the task; `LOOKED UP`: in the output of a tool that the operator trusts; `WRITTEN`: content by
    the model; `LINKS`: content with links that stand in no trusted text; `FOREIGN`: only in untrusted output, of
    `call_id`, around `snippet`; `UNKNOWN`: nowhere, so made up or decoded. `arg` is the argument, `role` what it is
    to the call.
    """

    arg: str
    role: str
    badge: Badge
    call_id: str | None = None
    snippet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the policy says of one action, with reasons that a person can read.

    `rule` names what decided; `sources` are those of the arguments, for a question or a denial. `reason_codes` has a
    stable code for each of the reasons, "" for one in the operator's own words; empty where all of them are.
    """

    kind: VerdictKind
    reasons: tuple[str, ...] = ()
    rule: str = ""
    sources: tuple[Source, ...] = ()
    reason_codes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why an observation is not ok: a stable code, a text, whether the same call may succeed later, what to do."""

    code: str
    message: str
    retryable: bool = False
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """One entry of the plan of an undo: `call` takes back what the call `call_id` of the run `run_id` did."""

    run_id: str
    call_id: str
    call: Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """The plan of a run that undoes another one: what it calls, in this order, to take back what `run_id` did.

    Everything after the step `to_step` is taken back, and what runs inside that one did.
    """

    run_id: str
    to_step: int
    plan: tuple[Undo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A run began. `nonce` frames untrusted text in the prompt; `history` are the earlier turns that the model sees.

    `parent` is the run whose tool call this run is, `depth` how many runs stand around it (0 for one of its own).
    `after` is the run that this one continues as the next turn of a conversation; `history` then comes from there.
    `tainted`: untrusted text had a part in the task or the history; then `trusted` are the texts that a person did
    write and that values may be quoted from (without it: the task). `forked_from` is the run that this one was
    branched off, `forked_at` the step that was decided anew. `undoes`: the run has no model, and carries out this plan.
    `labels` say for whom and by what way the run was started, such as `{"key": "billing"}`; no rule reads them.
    """

    kind: ClassVar[Literal["run_started"]] = "run_started"
    task: str
    agent: AgentSpec
    nonce: str
    history: tuple[Message, ...] = ()
    parent: str | None = None
    depth: int = 0
    after: str | None = None
    tainted: bool = False
    trusted: tuple[str, ...] = ()
    forked_from: str | None = None
    forked_at: int | None = None
    undoes: Undoing | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    version: int = EVENT_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReplied:
    """The model answered. `decision` is what the dialect read in it; None means that it was unreadable.

    A reply of the purpose `compact` has no decision: its text is a summary. `thinking` is a reasoning model's
    separate thinking, kept only where the agent asks for it and never shown to a model again.
    """

    kind: ClassVar[Literal["model_replied"]] = "model_replied"
    step: int
    purpose: Purpose
    text: str
    decision: Act | Answer | None
    tool_calls: tuple[ToolCallText, ...] = ()
    finish_reason: str | None = None
    model: str = ""
    usage: Usage = Usage()
    cost_usd: float | None = None
    latency_s: float = 0.0
    thinking: str = ""


new_model_replied = fast_constructor(ModelReplied)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelErred:
    """The model gave no reply, and the run goes on: the prompt was too long for it, or a summary failed.

    `purpose` is what it was asked for, `code` the error's. Any other error of a model is the end of the run.
    """

    kind: ClassVar[Literal["model_erred"]] = "model_erred"
    step: int
    purpose: Purpose
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDropped:
    """A read that began while the reply was still being written, and whose result nobody saw.

    `reason` says why: `not_asked` (the whole reply asks for something else), `rejected` (it could not be read),
    `no_reply` (there never was one), `stopped`. The call counts against the limit of tool calls.
    """

    kind: ClassVar[Literal["read_dropped"]] = "read_dropped"
    step: int
    tool: str
    args: Any
    reason: Literal["not_asked", "rejected", "no_reply", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRejected:
    """The reply before this was not believed: `code` and `message` say why, `excerpt` shows the unusable part."""

    kind: ClassVar[Literal["reply_rejected"]] = "reply_rejected"
    step: int
    code: str
    message: str
    excerpt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRequested:
    """The model wants this call. `digest` names tool and arguments exactly; `ref` is the provider's id.

    `rule` names the rule of the policy that decided, `policy` the version of the policy. `sources` says for each
    argument of a call that was asked about or denied where its value came from. `written` are the arguments as the
    model wrote them, where handles stood in them. `reason_codes` names each of the reasons, as in the verdict.
    """

    kind: ClassVar[Literal["action_requested"]] = "action_requested"
    step: int
    call_id: str
    tool: str
    args: Any
    tier: Tier | None
    verdict: VerdictKind
    digest: str
    reasons: tuple[str, ...] = ()
    ref: str | None = None
    rule: str = ""
    policy: str = ""
    sources: tuple[Source, ...] = ()
    written: Any = None
    reason_codes: tuple[str, ...] = ()


new_action_requested = fast_constructor(ActionRequested)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """What the task calls for, found out before the model saw anything untrusted.

    `tools` may be called, and each of `calls` may run once without a further question. `by` is `model` (a turn over
    trusted text only) or the name of the person who said so.
    """

    kind: ClassVar[Literal["pinned"]] = "pinned"
    tools: tuple[str, ...]
    calls: tuple[Call, ...] = ()
    by: str = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalGiven:
    """A person allowed exactly this call (`digest`). `args` are the arguments that the person put in their place.

    `scope` says what else was allowed: `rule`, further calls of this tool that the same rule asks about in this run;
    `values`, the values of this call as if they stood in the task. `digits` are decimals in `args` as the person wrote
    them, by JSON pointer, where a float has other digits (`1.10`); None where they were not written as text.
    """

    kind: ClassVar[Literal["approval_given"]] = "approval_given"
    call_id: str
    digest: str
    by: str
    args: Mapping[str, Any] | None = None
    note: str = ""
    scope: ApprovalScope = "call"
    digits: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRefused:
    """A person refused this call; `note` is the reason, which the model sees."""

    kind: ClassVar[Literal["approval_refused"]] = "approval_refused"
    call_id: str
    by: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionStarted:
    """The intent: from here on the world may have been touched. `attempt` counts from 1."""

    kind: ClassVar[Literal["action_started"]] = "action_started"
    call_id: str
    idempotency_key: str
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class InDoubt:
    """`call_id` was started and has no outcome: its effect may or may not have happened. `reason` says why."""

    kind: ClassVar[Literal["in_doubt"]] = "in_doubt"
    call_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtSettled:
    """Whether the effect of a call in doubt happened: found out by the tool's `probe`, or said by a person.

    `happened` None: it could not be found out; then the call ends with an observation that says so.
    """

    kind: ClassVar[Literal["doubt_settled"]] = "doubt_settled"
    call_id: str
    happened: bool | None
    by: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What came back for `call_id`. `output` is untrusted data: shown to the model, never obeyed.

    `output` is JSON text (`form` json) or plain text, cut to a preview where it was long; then `artifact` names
    the whole, `size_chars` its length and `output_digest` its SHA-256. `printed` is what the tool wrote to its
    standard output, cut. `child` is the run that did the call, where the tool is an agent; `usage` is what that run's
    models used and `cost_usd` what they cost (None: unknown), both of which count for this run too.
    """

    kind: ClassVar[Literal["observed"]] = "observed"
    call_id: str
    ok: bool
    output: str
    form: Literal["json", "text"] = "text"
    error: Fault | None = None
    artifact: str | None = None
    size_chars: int = 0
    output_digest: str = ""
    latency_s: float = 0.0
    printed: str = ""
    child: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None


new_observed = fast_constructor(Observed)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReached:
    """A limit or a guard ended the deciding: `limit` names it, `status` is how the run will finish.

    What follows is at most one last turn of the model without tools, and the finish.
    """

    kind: ClassVar[Literal["limit_reached"]] = "limit_reached"
    limit: str
    status: Status
    allowed: int | float
    used: int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Compensated:
    """The effect of `call_id` was undone by `by_call_id`, or could not be (`ok` false)."""

    kind: ClassVar[Literal["compensated"]] = "compensated"
    call_id: str
    by_call_id: str
    ok: bool
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """From here on the prompt shows `summary` in place of the steps up to and including `through_step`.

    With an empty `summary` these steps stay, and only their observations are cut to short previews. `tokens_before`
    and `tokens_after` are the size of the prompt, estimated. The trace keeps everything.
    """

    kind: ClassVar[Literal["compacted"]] = "compacted"
    through_step: int
    summary: str
    tokens_before: int = 0
    tokens_after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """The run waits and holds no process. `waiting_for` lists call ids that need a person.

    Where such a call is a run inside this one, which waits itself, `tiers` are those of the calls that wait there.
    """

    kind: ClassVar[Literal["paused"]] = "paused"
    reason: str
    waiting_for: tuple[str, ...] = ()
    status: Literal["waiting"] = "waiting"
    tiers: tuple[Tier, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A process took the run up again, with new limits where they were changed. Reopens a finished run."""

    kind: ClassVar[Literal["resumed"]] = "resumed"
    limits: Limits | None = None
    approved_tiers: tuple[Tier, ...] | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A remark that the model sees in its next turn: by a person, or by the runtime (`guard`)."""

    kind: ClassVar[Literal["noted"]] = "noted"
    by: str
    text: str
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The end of the run. `limit` names the limit that ended it; `reason` is exact and meant for people.

    `error` is the code of the error where the model failed (`model_timeout` …), meant for programs.
    """

    kind: ClassVar[Literal["finished"]] = "finished"
    status: Status
    answer: str | None
    reason: str
    limit: str | None = None
    citations: tuple[str, ...] = ()
    error: str = ""


Fact = (
    RunStarted
    | ModelReplied
    | ModelErred
    | ReadDropped
    | ReplyRejected
    | Pinned
    | ActionRequested
    | ApprovalGiven
    | ApprovalRefused
    | ActionStarted
    | InDoubt
    | DoubtSettled
    | Observed
    | LimitReached
    | Compensated
    | Compacted
    | Paused
    | Resumed
    | Noted
    | Finished
)

FACTS: tuple[type[Fact], ...] = (
    RunStarted,
    ModelReplied,
    ModelErred,
    ReadDropped,
    ReplyRejected,
    Pinned,
    ActionRequested,
    ApprovalGiven,
    ApprovalRefused,
    ActionStarted,
    InDoubt,
    DoubtSettled,
    Observed,
    LimitReached,
    Compensated,
    Compacted,
    Paused,
    Resumed,
    Noted,
    Finished,
)


class Event(NamedTuple):
    """A fact in its place: `seq` counts from 0 within the run, `at` is seconds since the epoch (UTC)."""

    seq: int
    at: float
    fact: Fact

    @property
    def kind(self) -> str:
        """The name of the fact, as stored."""
        return self.fact.kind


new_event = partial(tuple.__new__, Event)
"""An event of its three parts in one tuple, for half the cost of calling the class (`benchmarks/overhead.py`)."""
