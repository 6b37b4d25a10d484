"""Every error that taoloop raises on purpose, in one tree.

TaoError
├── ConfigError                 you: a file, a name or an option is wrong
│   ├── AgentFileError          an agent file cannot be used; names file, line and field
│   ├── UnknownName             no tool, model, dialect or strategy has that name
│   ├── ToolDefinitionError     a function or card cannot become a tool
│   ├── ToolSourceError         a source of tools cannot be read, or is not what it was declared to be
│   ├── PromptError             a prompt file is missing or has an unknown placeholder
│   ├── PolicyError             a policy or one of its rules is invalid
│   ├── GraphError              a graph workflow cannot run; names each node and the way out
│   ├── ImageError              what was given as an image is none that can be used
│   ├── FileError               what was given as a file is none that can be used
│   ├── EnvFileError            a .env file cannot be read
│   ├── MissingKey              no API key; names the variable to set
│   └── MissingExtra            an optional dependency is not installed; names the extra
├── ModelError                  the model's side: it failed, or its answer is unusable
│   ├── ModelTimeout            no reply in time
│   ├── ModelUnavailable        the provider is down or unreachable, or broke off in the middle of a reply
│   ├── ModelRateLimited        too many calls for now; not retryable where money or quota is used up
│   ├── ModelAuthError          the key is missing, wrong, expired, or lacks a permission; names its variable
│   ├── ModelNotFound           no such model, or no such address at the provider
│   ├── ModelRequestRefused     the provider rejects the request as it is
│   │   ├── ModelContextOverflow    the prompt is longer than the model's context
│   │   └── ModelContentRefused     the provider or the model will not answer this content
│   ├── ModelReplyUnreadable    what came back is not a reply: HTML, no JSON, no choice, not UTF-8, too large
│   ├── HookRefused             a hook of the program refused the model call, or failed
│   ├── RealCallsForbidden      the switch that forbids real calls is on; nothing was sent
│   ├── ScriptExhausted         a scripted model was asked for more replies than it has
│   ├── ScriptUnused            a completed run left scripted replies unused
│   └── ReplayDiverged          a replay asked for something that the recorded run did not do
├── ToolError                   a tool's side; tools raise it, the loop turns it into an observation
│   ├── InvalidArguments        arguments do not fit the tool's schema, or are too large
│   ├── InvalidOutput           a result does not fit the tool's schema, or cannot be serialised
│   ├── ToolTimeout             no result in time; its effect may still happen
│   │   └── McpLost                 the connection to an MCP server ended during a call
│   ├── HandedOver              the result comes later, from outside; the run waits for it
│   ├── McpFailed               an MCP server is unreachable, rejects a call, or gives no usable answer
│   ├── EgressRefused           the egress rules do not allow a request to this address
│   └── EgressFailed            a request was sent, or tried to be, and brought no usable answer
├── JournalError                the place where traces are stored
│   ├── RunNotFound             no run has that id
│   │   └── RunPruned               retention removed the run; the message has its record
│   ├── RunExists               a run with that id exists already
│   ├── FenceLost               another worker has taken over the run; this one must stop
│   ├── JournalTooNew           the database was written by a newer taoloop
│   ├── JournalLocked           another process has locked the database
│   ├── JournalUnreachable      the server of the database cannot be reached
│   ├── JournalFull             no space is left on the device
│   └── JournalCorrupt          the file is not a journal, or an event in it cannot be read
│       └── JournalTampered     a run is not as it was written
├── RunNotResumable             the run has nothing left to do
├── RunHeld                     another process is working on the run
├── RunNotAnswered              the run has no answer that a conversation could continue from
├── NotWaiting                  an answer of a person to a call that waits for none
│   └── AlreadyAnswered         somebody else was faster; says who, when and how
├── ApprovalStale               an answer of a person to another question than the one that is open
├── AnswerRefused               a validator of answers refuses one; it goes back to the model
├── Refused                     the gateway starts no run for this key now; says why, and how long to wait
└── IllegalEvent                a bug in a driver: the trace cannot take this event

Another one is where it is raised: `OutputError` of the command line (its output cannot be written). The gateway
answers requests with errors of its own (`ApiError`), which no caller of Python gets.

Match on `code`, never on the text. `retryable` is True when the same call, unchanged, may succeed later.
`hint` says what to do next. Every error survives pickling.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal


class TaoError(Exception):
    """Root of all errors raised on purpose.

    `message` says what was wrong and where, `hint` what to do next (may be empty).
    """

    code: ClassVar[str] = "tao_error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message, self.hint = _text(message), _text(hint or "")
        super().__init__(f"{self.message} {self.hint}" if self.hint else self.message)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), dict(self.__dict__), self.args)


def _text(value: object) -> str:
    """`value` as a text: a tool's author may have passed an exception or a number instead."""
    return value if isinstance(value, str) else str(value)


def _rebuild(cls: type[TaoError], fields: dict[str, Any], args: tuple[Any, ...]) -> TaoError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(fields)
    error.args = args
    return error


class ConfigError(TaoError):
    """A file, a name or an option that the caller gave is wrong; nothing was started."""

    code = "config_error"


class AgentFileError(ConfigError):
    """An agent file cannot be used. `path`, `line` (from 1, 0 when unknown) and `field` say where."""

    code = "agent_file"

    def __init__(self, message: str, *, path: str, line: int = 0, field: str = "", hint: str = "") -> None:
        self.path, self.line, self.field = path, line, field
        where = f"{path}:{line}" if line else path
        super().__init__(f"{where}: {message}", hint=hint)


class UnknownName(ConfigError):
    """No `what` (tool, model, dialect, strategy …) is called `name`; `known` lists those that exist."""

    code = "unknown_name"

    def __init__(self, what: str, name: str, known: tuple[str, ...] = (), *, hint: str = "") -> None:
        self.what, self.name, self.known = what, name, known
        listed = f"Known: {', '.join(known)}." if known else ""
        super().__init__(f"There is no {what} called {name!r}.", hint=f"{listed} {hint}".strip())


class ToolDefinitionError(ConfigError):
    """A function or a hand-written card cannot become a tool."""

    code = "tool_definition"


class ToolSourceError(ConfigError):
    """A source of tools (a document, a server, a database, a folder) is not what it was declared to be.

    `source` names it, `place` the position in it (may be empty).
    """

    code = "tool_source"

    def __init__(self, message: str, *, source: str, place: str = "", hint: str = "") -> None:
        self.source, self.place = source, place
        super().__init__(f"{source}: {place}: {message}" if place else f"{source}: {message}", hint=hint)


class PromptError(ConfigError):
    """A prompt file is missing, cannot be read or has an unknown placeholder."""

    code = "prompt"


class PolicyError(ConfigError):
    """A policy, or a rule of it, is invalid: an unknown word, or a rule that can never match."""

    code = "policy"


class GraphError(ConfigError):
    """A graph workflow cannot run: a node, an edge, a field or a tool of it is wrong. The message has every problem."""

    code = "graph"


class ImageError(ConfigError):
    """What was given as an image is none of a known format, is broken, too large, or contains a secret."""

    code = "image"


class FileError(ConfigError):
    """What was given as a file is empty, too large, not what its name says, or not for this model."""

    code = "file"


class EnvFileError(ConfigError):
    """A .env file exists but cannot be read."""

    code = "env_file"


class MissingKey(ConfigError):
    """No API key for a provider; the message names the variable to set."""

    code = "missing_key"


class MissingExtra(ConfigError):
    """An optional dependency is not installed; the message names the extra."""

    code = "missing_extra"


class ModelError(TaoError):
    """The model failed. The run ends as `model_failed` with this text as its reason.

    `retryable` may be narrower than the class's: what the provider said about this very call counts. `retry_after_s`
    is how long the provider asked to wait before the next call, in seconds; None if it did not say. `by_model`: the
    message is what the model itself says of the task, and so the whole reason.
    """

    code = "model_error"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        retryable: bool | None = None,
        retry_after_s: float | None = None,
        by_model: bool = False,
    ) -> None:
        if retryable is not None:
            self.retryable = retryable  # type: ignore[misc]  # an instance may narrow the class's answer
        self.retry_after_s, self.by_model = retry_after_s, by_model
        super().__init__(message, hint=hint)


class ModelTimeout(ModelError):
    """The model gave no reply in time."""

    code = "model_timeout"
    retryable = True


class ModelUnavailable(ModelError):
    """The provider is down (5xx) or unreachable, or the connection broke before the reply was complete."""

    code = "model_unavailable"
    retryable = True


class ModelRateLimited(ModelError):
    """The provider accepts no more calls for now. If money or quota is used up, `retryable` is False."""

    code = "model_rate_limited"
    retryable = True


class ModelAuthError(ModelError):
    """The provider rejects the key (401), or the key lacks a permission (403). Never shows the key."""

    code = "model_auth"


class ModelNotFound(ModelError):
    """The provider knows no such model, or nothing answers at this path of its address."""

    code = "model_not_found"


class ModelRequestRefused(ModelError):
    """The provider does not take this request (400, 422 …), or `offline` cannot do the task; trying again is no use."""

    code = "model_request_refused"


class ModelContextOverflow(ModelRequestRefused):
    """The prompt is longer than the model's context; a shorter one may pass."""

    code = "model_context_overflow"


class ModelContentRefused(ModelRequestRefused):
    """The provider's filter or the model itself will not answer this content."""

    code = "model_content_refused"


class ModelReplyUnreadable(ModelError):
    """What came back is not a reply: HTML, no JSON, no choice, not UTF-8, or too large."""

    code = "model_reply_unreadable"
    retryable = True


class HookRefused(ModelError):
    """A hook of the program refused a model call or its reply, or failed there. The run ends, and can be resumed."""

    code = "hook_refused"


class RealCallsForbidden(ModelError):
    """Real calls are forbidden, by a variable or by a test. Nothing was sent."""

    code = "real_calls_forbidden"


class ScriptExhausted(ModelError):
    """A scripted model was asked for one reply more than its script has."""

    code = "script_exhausted"


class ScriptUnused(ModelError):
    """A run completed and left scripted replies unused: the script expected more turns."""

    code = "script_unused"


class ReplayDiverged(ModelError):
    """A replay asked for something that the recorded run did not do."""

    code = "replay_diverged"


class ToolError(TaoError):
    """Raised by a tool to report a failure in its own words; becomes an observation with ok = false.

    `code` is the tool's own error code (as its card lists it), `retryable` whether the same call may succeed
    later, `hint` what the model should try instead. The run continues.
    """

    code = "tool_error"

    def __init__(self, message: str, *, code: str = "", retryable: bool | None = None, hint: str = "") -> None:
        if code not in ("", None):
            self.code = _text(code)  # type: ignore[misc]  # an instance may narrow the class's code
        if retryable is not None:
            self.retryable = bool(retryable)  # type: ignore[misc]  # as above
        super().__init__(message, hint=hint)


class InvalidArguments(ToolError):
    """The arguments do not fit the tool's input schema or are too large for the tool. It was not run.

    For a tool of an API, `code` says what is wrong: `missing_argument`, `unknown_argument` or `invalid_argument`.
    """

    code = "invalid_arguments"
    codes: ClassVar[frozenset[str]] = frozenset(
        {"invalid_arguments", "missing_argument", "unknown_argument", "invalid_argument"}
    )


class InvalidOutput(ToolError):
    """The tool ran, but its result does not fit its output schema or cannot be serialised."""

    code = "invalid_output"


class ToolTimeout(ToolError):
    """The tool gave no result in time. Its effect may or may not have happened."""

    code = "timeout"
    retryable = True


class HandedOver(ToolError):
    """Raised by a tool whose result comes from outside, later: the call stays open and the run waits.

    When the run is resumed the tool is called again; it gives the result then, or raises this once more. Only for
    tools that read, for nothing of the call counts as begun.
    """

    code = "handed_over"

    @property
    def waits_for(self) -> str:
        """What the run waits for."""
        return self.message


class McpLost(ToolTimeout):
    """The connection to an MCP server ended during a call. Its effect may or may not have happened."""

    code = "mcp_lost"
    retryable = False


class McpFailed(ToolError):
    """An MCP server gave no usable answer to a call, and the outcome of the call is not in doubt.

    `code` says why: `server_away` (it cannot be started or reached), `tool_failed` (the tool itself says so),
    `tool_changed` and `tool_gone` (it is no longer what was loaded; nothing was sent), `needs_input`, `server_refused`
    or `bad_answer`.
    """

    code = "mcp_failed"


class EgressRefused(ToolError):
    """The egress rules do not let a request go to this address; nothing was sent there.

    `code` is `bad_url` if the address is unusable, else `egress_refused`.
    """

    code = "egress_refused"


class EgressFailed(ToolError):
    """A request that the egress rules allow brought no usable answer.

    `code` says why: `name_not_found`, `connection_failed`, `tls_failed`, `http_timeout`, `http_broken`, `too_large`,
    `wrong_type` or `too_many_redirects`. `was_sent` is False if it is certain that nothing reached the server.
    """

    code = "http_failed"

    def __init__(
        self, message: str, *, code: str = "", retryable: bool | None = None, hint: str = "", was_sent: bool = True
    ) -> None:
        self.was_sent = was_sent
        super().__init__(message, code=code, retryable=retryable, hint=hint)


class JournalError(TaoError):
    """The journal cannot do what was asked. What was committed before stays readable."""

    code = "journal_error"


class RunNotFound(JournalError):
    """No run in this journal has that id."""

    code = "run_not_found"


class RunPruned(RunNotFound):
    """Retention removed that run; the message has what is kept of it. Its id is not given again."""

    code = "run_pruned"


class RunExists(JournalError):
    """A run with that id exists already."""

    code = "run_exists"


class FenceLost(JournalError):
    """Another worker has taken over this run. Nothing was written; this worker must stop working on it."""

    code = "fence_lost"


class JournalTooNew(JournalError):
    """The database was written by a newer version of taoloop; nothing in it was touched."""

    code = "journal_too_new"


class JournalLocked(JournalError):
    """Another process holds the database for writing."""

    code = "journal_locked"
    retryable = True


class JournalUnreachable(JournalError):
    """The server of the database cannot be reached. Everything committed before is intact."""

    code = "journal_unreachable"
    retryable = True


class JournalFull(JournalError):
    """The disk is full. Everything committed before is intact."""

    code = "journal_full"


class JournalCorrupt(JournalError):
    """The file is not a journal, or an event in it cannot be read."""

    code = "journal_corrupt"


class JournalTampered(JournalCorrupt):
    """A run is not as it was written: its hash chain is broken. It can be read but not resumed."""

    code = "journal_tampered"


class RunNotResumable(TaoError):
    """The run completed; there is nothing left to do in it."""

    code = "run_not_resumable"


class RunHeld(TaoError):
    """Another process, or another task of this one, is working on the run. It was left alone."""

    code = "run_held"
    retryable = True


class RunNotAnswered(TaoError):
    """The run has no answer, so no turn of a conversation can follow it."""

    code = "run_not_answered"


class NotWaiting(TaoError):
    """The call waits for no answer: there is no such call, it has its answer, or its run is not waiting."""

    code = "not_waiting"


class AlreadyAnswered(NotWaiting):
    """Somebody has answered already, and the first answer counts.

    Args:
        by: Who answered.
        at: When, in seconds since the epoch.
        how: `allowed`, `edited` (allowed with other arguments) or `refused`; of a call in doubt `happened`, `repeat` or
            `leave`; of a run `abandoned`.
    """

    code = "already_answered"

    def __init__(self, message: str, *, by: str, at: float, how: str, hint: str = "") -> None:
        self.by, self.at, self.how = by, at, how
        super().__init__(message, hint=hint)


class ApprovalStale(TaoError):
    """The answer belongs to another question: the call or the policy has changed, or the time is up."""

    code = "approval_stale"


RefusedFor = Literal["requests", "tokens", "runs", "budget"]
"""What is used up: the requests or tokens per minute, the places for runs, or the budget of the day."""


class AnswerRefused(TaoError):
    """Raised by a validator of answers (`output_validators`): the answer goes back to the model with this message."""

    code = "answer_refused"


class Refused(TaoError):
    """The gateway starts no run now: `why` says what is used up, `retry_after_s` when to ask again."""

    code = "refused"
    retryable = True

    def __init__(self, message: str, *, why: RefusedFor, retry_after_s: float, hint: str = "") -> None:
        self.why, self.retry_after_s = why, retry_after_s
        super().__init__(message, hint=hint)


class IllegalEvent(TaoError):
    """A driver sent an event that the trace cannot take: a bug in the driver. The trace is unchanged."""

    code = "illegal_event"


__all__ = [name for name, value in globals().items() if isinstance(value, type) and issubclass(value, TaoError)]
