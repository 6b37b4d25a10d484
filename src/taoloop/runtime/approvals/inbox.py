"""Answers from outside: what a person says to a run that waits, in whatever process that person sits.

The run's process may be gone, for days. An answer is written into the trace under a lease of its own; the run goes on
with it once it is resumed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from taoloop.core.cards.coercion import coerce_args
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import call_digest
from taoloop.core.events import ApprovalGiven, Event, Fact, Finished, Noted, Resumed
from taoloop.core.redaction.redactor import Redactor
from taoloop.core.text import replace_surrogates
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.errors import (
    ApprovalStale,
    ConfigError,
    FenceLost,
    InvalidArguments,
    NotWaiting,
    RunNotFound,
    RunNotResumable,
    TaoError,
)
from taoloop.journals.base import Journal
from taoloop.runtime.approvals.questions import answered_calls, denying_rule, question, seconds_left, unanswered_calls
from taoloop.runtime.approvals.request import RESERVED_NAMES, ApprovalAnswer, ApprovalRequest, answer_fact
from taoloop.runtime.engine.clock import Clock, SystemClock
from taoloop.runtime.engine.redaction import redactor_for
from taoloop.tools.json_schema import compile_schema, findings, listed, plain
from taoloop.tools.tool import expected_form

_ATTEMPTS = 20
_ALL = 10_000_000
_NOT_KEPT = "The edited arguments hold a secret, which is not kept, so the run could not make the call."


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecorded:
    """A run with what was just added to it."""

    trace: Trace
    events: tuple[Event, ...]

    @property
    def is_complete(self) -> bool:
        """Whether no call of the run waits for a person any more."""
        return not unanswered_calls(self.trace)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    """A call that waits for a person. `outer` is the run to resume, the outermost around it; `task` its own run's."""

    request: ApprovalRequest
    task: str
    outer: str


async def answer_approval(
    journal: Journal,
    run_id: str,
    call_id: str,
    given: ApprovalAnswer,
    *,
    digest: str | None = None,
    clock: Clock | None = None,
    redactor: Redactor | None = None,
) -> AnswerRecorded:
    """Answer the question about one call of a run that waits; `Agent.resume` then goes on with the run.

    `digest` is the call that the person looked at (or the beginning of it, 8 characters at least): an approval of
    anything else is refused. Of two answers the first counts. Secrets are not kept: `redactor` says what is one, by
    default that of this process's environment.

    Raises:
        RunNotFound: the journal has no such run.
        NotWaiting: the call waits for no answer, or a process is at work on its run.
        ApprovalStale: the call or the policy has changed, or the time for an answer is over.
        InvalidArguments: the edited arguments do not fit the tool's schema, hold a secret, or a rule of the operator
            denies them.
        ConfigError: an answer that is not on offer.
    """
    who = _name(given.by)
    given = replace(given, by=who, note=replace_surrogates(given.note))
    clock, clean = clock or SystemClock(), redactor if redactor is not None else redactor_for(None, ())

    def decide(trace: Trace) -> list[Fact]:
        call = _waiting_call(trace, call_id)
        if given.approved is True:
            _require_same(trace, call, digest)
            _require_time(trace, call, clock.now())
        answered = _judged(trace, call, given)
        if answered.args is not None and clean.value(answered.args) is not answered.args:
            raise InvalidArguments(_NOT_KEPT, hint="Answer where the run goes on, in one process, or refuse the call.")
        others = [other for other in unanswered_calls(trace) if _is_alike(trace, call, other, clock.now())]
        return [answer_fact(one, said) for one, said in answered_calls(answered, call, others)]

    return await _add(journal, run_id, decide, clock, clean)


async def add_note(
    journal: Journal,
    run_id: str,
    text: str,
    *,
    by: str = "user",
    clock: Clock | None = None,
    redactor: Redactor | None = None,
) -> AnswerRecorded:
    """Say something to a run that waits or was stopped; the model reads it in its next turn, without secrets.

    What a person says counts as part of the task: values may be quoted from it. A run that had ended without being
    completed is `stopped` after it, and goes on when it is resumed.

    Raises:
        RunNotFound: the journal has no such run.
        RunNotResumable: the run is completed, so no model will read it.
        NotWaiting: a process is at work on the run.
        ConfigError: there is nothing in the text.
    """
    if not text.strip():
        raise ConfigError("The note is empty.", hint="Say in a text what the model should know.")
    said = Noted(by=_name(by), text=replace_surrogates(text.strip()))

    def decide(trace: Trace) -> list[Fact]:
        ended = trace.finished
        if ended is not None and ended.status == "completed":
            raise RunNotResumable(f"Run {run_id} is completed.", hint="Start a new run, or fork this one.")
        if ended is not None:
            stopped = Finished(status="stopped", answer=None, reason=ended.reason, limit=ended.limit)
            return [Resumed(limits=trace.limits, reason="note"), said, stopped]
        if trace.paused is None:
            _raise_at_work(trace)
        return [said]

    clean = redactor if redactor is not None else redactor_for(None, ())
    return await _add(journal, run_id, decide, clock or SystemClock(), clean)


async def pending_approvals(
    journal: Journal, *, run_id: str | None = None, on_error: Callable[[str, TaoError], None] | None = None
) -> list[PendingApproval]:
    """Every call of this journal that waits for a person, the oldest run first; those of `run_id` and inside it alone.

    Runs inside others are among them. `on_error` hears of a run that cannot be read; without it that is raised.
    """
    found = []
    for row in reversed(await journal.runs(limit=_ALL, status="waiting")):
        if run_id is not None and row.run_id != run_id and not row.run_id.startswith(f"{run_id}."):
            continue
        try:
            trace = Trace(row.run_id, await journal.load(row.run_id))
            outer = await outermost_run_id(journal, trace)
        except TaoError as error:
            if on_error is None:
                raise
            on_error(row.run_id, error)
            continue
        if trace.paused is not None:
            found += [
                PendingApproval(request=question(trace, call), task=trace.task, outer=outer)
                for call in unanswered_calls(trace)
            ]
    return found


async def outermost_run_id(journal: Journal, trace: Trace) -> str:
    """The run that goes on when an inner run has its answers: the outermost around it, or the run itself."""
    run_id, parent = trace.run_id, trace.started.parent if trace.started is not None else None
    while parent is not None and run_id.startswith(f"{parent}."):
        try:
            outer = Trace(parent, (await journal.load(parent))[:1])
        except RunNotFound:
            break
        run_id, parent = parent, outer.started.parent if outer.started is not None else None
    return run_id


def validate_edited_args(card: ToolCard, args: Any) -> Mapping[str, Any]:
    """Edited arguments as the tool takes them, by the schema of its card; lossless corrections are made.

    Raises:
        InvalidArguments: they do not fit; says what was expected.
    """
    form = f"Expected: {expected_form(card)}"
    if not isinstance(args, Mapping):
        raise InvalidArguments(f"The edited arguments of {card.name!r} must be a JSON object.", hint=form)
    try:
        size = len(json.dumps(edited := plain(args), ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError) as error:
        raise InvalidArguments(f"The edited arguments of {card.name!r} are no JSON: {error}.", hint=form) from error
    if size > card.max_input_bytes:
        raise InvalidArguments(f"The edited arguments of {card.name!r} are {size:,} bytes; it takes fewer.", hint=form)
    validator = compile_schema(card.input_schema, f"The input schema of {card.name!r}")
    if not (found := findings(validator, edited)):
        return dict(edited)
    corrected = coerce_args(edited, card.input_schema)
    if findings(validator, corrected):
        raise InvalidArguments(f"The edited arguments of {card.name!r} do not fit: {listed(found)}.", hint=form)
    return dict(corrected)


async def _add(
    journal: Journal, run_id: str, decide: Callable[[Trace], Sequence[Fact]], clock: Clock, clean: Redactor
) -> AnswerRecorded:
    """Add what `decide` says to a run that nobody is at work on. It is asked before the run is taken, and after."""
    lost: FenceLost | None = None
    for _ in range(_ATTEMPTS):
        seen = _begun(Trace(run_id, await journal.load(run_id)))
        decide(seen)  # whoever is at work on it must not lose it
        try:
            lease = await journal.acquire(run_id, at=len(seen))
        except FenceLost as error:
            lost = error
            continue
        trace = _begun(Trace(run_id, await journal.load(run_id)))
        events = []
        for fact in decide(trace):
            events.append(Event(len(trace), clock.now(), clean.fact(fact)))
            trace.append(events[-1])
        try:
            await journal.append(lease, events)
        except FenceLost as error:  # somebody else answers at the same time: look again
            lost = error
            continue
        return AnswerRecorded(trace=trace, events=tuple(events))
    raise lost or FenceLost(f"Run {run_id!r} was taken by another worker.")


def _begun(trace: Trace) -> Trace:
    if trace.started is None:
        raise NotWaiting(f"Run {trace.run_id} never began.")
    return trace


def _waiting_call(trace: Trace, call_id: str) -> CallView:
    run_id, call = trace.run_id, trace.calls.get(call_id)
    waiting = ", ".join(call.requested.call_id for call in unanswered_calls(trace))
    hint = f"These wait: {waiting}." if waiting else "No call of this run waits for an answer."
    if call is None:
        raise NotWaiting(f"Run {run_id} has no call {call_id!r}.", hint=hint)
    if (said := call.approval) is not None:
        what = "allowed" if isinstance(said, ApprovalGiven) else "refused"
        raise NotWaiting(f"The call {call_id} of run {run_id} has its answer: {what} by {said.by}.", hint=hint)
    if call.requested.verdict != "ask":
        raise NotWaiting(f"Nobody was asked about the call {call_id} of run {run_id}.", hint=hint)
    if trace.finished is not None:
        raise NotWaiting(
            f"Run {run_id} does not wait: it ended as {trace.finished.status}.",
            hint="Resume it; the call is then asked about again.",
        )
    if trace.paused is None:
        _raise_at_work(trace)
    return call


def _raise_at_work(trace: Trace) -> NoReturn:
    raise NotWaiting(
        f"Run {trace.run_id} does not wait: a process is at work on it, or has died.",
        hint="Answer there, or, if no process has it any more, resume the run first.",
    )


def _require_same(trace: Trace, call: CallView, digest: str | None) -> None:
    requested = call.requested
    if digest is not None and (len(digest) < 8 or not requested.digest.startswith(digest.lower())):
        raise ApprovalStale(
            f"The call {requested.call_id} of run {trace.run_id} is not the one that was approved.",
            hint=f"It is {requested.tool} with the digest {requested.digest[:16]}; look at it again.",
        )
    if requested.policy and requested.policy != trace.agent.policy.version:
        raise ApprovalStale(
            f"The policy of run {trace.run_id} is not the one that asked about {requested.call_id}.",
            hint="Refuse the call; the model may ask for it again.",
        )


def _require_time(trace: Trace, call: CallView, now: float) -> None:
    left = seconds_left(trace, call.requested.call_id, now)
    if left is not None and left <= 0:
        raise ApprovalStale(
            f"The time to answer {call.requested.call_id} of run {trace.run_id} is over: it counts as refused.",
            hint="Resume the run; the model may ask for the call again.",
        )


def _judged(trace: Trace, call: CallView, given: ApprovalAnswer) -> ApprovalAnswer:
    """The answer as it can be kept: on offer, and with arguments that can run."""
    request = question(trace, call)
    if given.approved is not True:
        return replace(given, approved=False, args=None, scope="call")
    if request.grave and given.scope == "rule":
        raise ConfigError(
            f"{request.tool} ({request.call_id}) is hard to undo and nobody named its target: it has no 'always'.",
            hint="Allow this call alone.",
        )
    if not request.has_always and given.scope == "rule":
        raise ConfigError(
            f"{request.tool} ({request.call_id}) needs a person's yes for each call: it has no 'always'.",
            hint="Allow this call alone.",
        )
    if given.args is None:
        return given
    card = request.card
    if card is None:
        raise InvalidArguments(f"Run {trace.run_id} has no tool {request.tool!r} that could take arguments.")
    args = validate_edited_args(card, given.args)
    same = call_digest(request.tool, args) == call_digest(request.tool, call.requested.args) and not given.digits
    edited = replace(given, args=None if same else args)
    if (barred := denying_rule(trace, call, edited)) is not None:
        raise InvalidArguments(f"{request.tool} ({request.call_id}): {barred}.")
    return edited


def _is_alike(trace: Trace, call: CallView, other: CallView, now: float) -> bool:
    """Whether a call belongs to the same question: the same tool and rule, in time, and neither of them grave."""
    one, two = question(trace, call), question(trace, other)
    left = seconds_left(trace, two.call_id, now)
    return (
        one.call_id != two.call_id
        and (one.tool, one.rule) == (two.tool, two.rule)
        and not (one.grave or two.grave)
        and (left is None or left > 0)
    )


def _name(by: str) -> str:
    name = replace_surrogates(" ".join(by.split()))
    if not name or name in RESERVED_NAMES:
        raise ConfigError(f"An answer cannot be by {by!r}.", hint="Name the person who answers.")
    return name
