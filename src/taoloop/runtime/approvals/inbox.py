"""Answers to a run from any process: approvals, refusals, notes, and what became of a call in doubt.

The run's process may have ended days ago. An answer is written into the trace under a lease of its own, and takes
effect once the run is resumed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NoReturn

from taoloop.core.cards.questions import is_question
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import call_digest
from taoloop.core.events import (
    ApprovalGiven,
    ApprovalRefused,
    DoubtSettled,
    Event,
    Fact,
    Finished,
    InDoubt,
    Noted,
    Resumed,
)
from taoloop.core.redaction.redactor import Redactor
from taoloop.core.text import RUN_LANGUAGE, replace_surrogates
from taoloop.core.trace import Trace
from taoloop.core.views.plans import plan_progress, shown_task
from taoloop.core.views.steps import NO_OUTCOME, NOTE, PROBE, CallView
from taoloop.errors import (
    AlreadyAnswered,
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
from taoloop.journals.queries import is_within, read_start, rows_with_status
from taoloop.policy import authority_of
from taoloop.runtime.after.recovery import stuck_excerpts
from taoloop.runtime.approvals.in_doubt import doubt_requests, settled_by, stuck_requests
from taoloop.runtime.approvals.request import (
    RESERVED_NAMES,
    SETTLINGS,
    ApprovalAnswer,
    ApprovalRequest,
    Settling,
    answer_fact,
    apply_answer,
    approval_request,
    denying_rule,
    seconds_left,
    unanswered_calls,
)
from taoloop.runtime.approvals.run_excerpt import read_excerpt
from taoloop.runtime.approvals.user_questions import checked_answer
from taoloop.runtime.engine.clock import Clock, SystemClock
from taoloop.runtime.engine.redaction import redactor_for
from taoloop.runtime.fleet.wakes import wake_run
from taoloop.runtime.journal_access import require_open, require_unlocked
from taoloop.runtime.texts import TEXTS
from taoloop.strategies.plan_execute import normalised_plan, require_plan
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.json_schema import plain

_SETTLED = {
    True: ("happened", "it happened"),
    False: ("repeat", "it did not happen, so it runs again"),
    None: ("leave", "left open"),
}
_MAX_ATTEMPTS = 20
_ALL = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecorded:
    """A run with what was just added to it."""

    trace: Trace
    """The run, as it is now."""

    events: tuple[Event, ...]
    """The events that were added."""

    @property
    def is_complete(self) -> bool:
        """Whether no call of the run waits for a person any more."""
        return not unanswered_calls(self.trace)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    """A call that waits for a person."""

    request: ApprovalRequest
    """The question about it."""

    task: str
    """The task of the run that asks."""

    outer: str
    """The id of the run to resume: the outermost one around the run that asks, or that run itself."""

    user: str = ""
    """The person for whom the run is (`user=` of `Agent.run`); empty: whoever uses this machine."""


async def answer_approval(
    journal: Journal,
    run_id: str,
    call_id: str,
    answer: ApprovalAnswer,
    *,
    digest: str | None = None,
    clock: Clock | None = None,
    redactor: Redactor | None = None,
) -> AnswerRecorded:
    """Answer the question about one call of a waiting run; `Agent.resume` then continues the run.

    `digest` is that of the call which the person looked at (or its first 8 characters or more): an answer to anything
    else is refused. Of two answers the first counts. Secrets are not stored: `redactor` knows them, by default those of
    this process's environment.

    Raises:
        RunNotFound: the journal has no such run.
        AlreadyAnswered: somebody was faster; the error says who, when and how.
        NotWaiting: the call waits for no answer, or a process is at work on its run.
        ApprovalStale: the call or the policy has changed, or the time for an answer is over.
        InvalidArguments: the edited arguments do not fit the tool's schema, hold a secret, or a rule of the operator
            denies them.
        ConfigError: the question does not offer this answer.
    """
    answer = replace(answer, by=person_name(answer.by), note=replace_surrogates(answer.note))
    clock, redactor = clock or SystemClock(), redactor if redactor is not None else redactor_for(None, ())

    def decide(trace: Trace) -> list[Fact]:
        _require_started(trace)
        call = require_waiting(trace, call_id)
        _require_shown(trace, call, digest)
        if answer.approved is True:
            _require_same_policy(trace, call)
            _require_time(trace, call, clock.now())
        checked = _check_answer(trace, call, answer)
        is_edited = checked.args is not None and not is_question(trace.card(call.requested.tool))
        if is_edited and redactor.value(checked.args) is not checked.args:
            language = trace.agent.language
            raise InvalidArguments(TEXTS.text(language, "edit_secret"), hint=TEXTS.text(language, "edit_secret_hint"))
        batch = [
            other
            for other in unanswered_calls(trace)
            if _is_alike(trace, call, other, clock.now(), approved=checked.approved)
        ]
        return [answer_fact(*pair) for pair in apply_answer(checked, call, batch)]

    return await add_facts(journal, run_id, decide, clock, redactor)


async def add_note(
    journal: Journal,
    run_id: str,
    text: str,
    *,
    by: str = "user",
    authenticated: str = "",
    clock: Clock | None = None,
    redactor: Redactor | None = None,
) -> AnswerRecorded:
    """Add a person's note to a waiting or stopped run; the model reads it in its next turn, without secrets.

    A note counts as part of the task: values may be quoted from it. A run that had ended without being completed is
    `stopped` after it, or still `blocked`, and continues when it is resumed. `authenticated` as in `ApprovalAnswer`.

    Raises:
        RunNotFound: the journal has no such run.
        RunNotResumable: the run is completed, or makes the calls that a step of a plan lists, so no model will read it.
        NotWaiting: a process is at work on the run.
        ConfigError: the text is empty.
    """
    if not text.strip():
        raise ConfigError("The note is empty.", hint="Say in a text what the model should know.")
    note = Noted(by=person_name(by), text=replace_surrogates(text.strip()), authenticated=authenticated)

    def decide(trace: Trace) -> list[Fact]:
        _require_started(trace)
        ended = trace.finished
        if ended is not None and ended.status == "completed":
            raise RunNotResumable(f"Run {run_id} is completed.", hint="Start a new run, or fork this one.")
        require_open(trace)
        _require_reader(trace)
        if ended is not None:
            stopped = Finished(status="stopped", answer=None, reason=ended.reason, limit=ended.limit)
            end = ended if ended.status == "blocked" else stopped  # its denied calls wait for a person as before
            return [Resumed(limits=trace.limits, reason=NOTE), note, end]
        if trace.paused is None:
            _raise_at_work(trace)
        return [note]

    return await add_facts(journal, run_id, decide, clock, redactor)


def _require_reader(trace: Trace) -> None:
    """Refuse a note to the step of a plan that makes its calls without a model: it would be read by nobody.

    Raises:
        RunNotResumable: says where the note is read.
    """
    started, language = trace.started, trace.agent.language
    step = None if started is None else started.plan_step
    if started is not None and step is not None and step.calls and not trace.model_calls:
        message = TEXTS.text(language, "note_unread", run_id=trace.run_id, step=step.number)
        raise RunNotResumable(message, hint=TEXTS.text(language, "note_unread_hint", outer=started.parent))


async def settle_doubt(
    journal: Journal,
    run_id: str,
    call_id: str,
    how: Settling,
    *,
    by: str = "user",
    note: str = "",
    authenticated: str = "",
    digest: str | None = None,
    clock: Clock | None = None,
    redactor: Redactor | None = None,
) -> Trace:
    """Record what a person says about a call in doubt; the run continues from there when it is resumed.

    The run is acquired, so no process may be at work on it. Returns its trace as it is then. `digest` as in
    `answer_approval`, `authenticated` as in `ApprovalAnswer`; `clock` is by default the machine's, `redactor` that of
    this process's environment.

    Raises:
        RunNotFound: the journal has no such run.
        AlreadyAnswered: somebody has settled it already.
        ApprovalStale: it is another call than the one of `digest`.
        ConfigError: no call of this id is in doubt, a call to be repeated may be under way, or `how` is unknown.
        RunHeld: a process is at work on the run.
        FenceLost: a process resumed the run at this moment.
    """
    if how not in SETTLINGS:
        raise ConfigError(f"{how!r} does not settle a call in doubt.", hint=f"Give one of: {', '.join(SETTLINGS)}.")
    clock, resumes = clock or SystemClock(), list[int]()

    def decide(trace: Trace) -> list[Fact]:
        resumes.append(sum(isinstance(event.fact, Resumed) for event in trace.events))
        if resumes[-1] != resumes[0]:
            raise FenceLost(f"Run {run_id} was resumed at this moment.", hint="See what it made of the call.")
        call = _call_in_doubt(trace, call_id)
        _require_shown(trace, call, digest)
        _require_ended(trace, call, how, clock.now())
        settled = settled_by(call_id, how, by, note, authenticated)
        # its process died, and nobody has recorded that yet
        return [settled] if call.doubt is not None else [InDoubt(call_id=call_id, reason=NO_OUTCOME), settled]

    return (await add_facts(journal, run_id, decide, clock, redactor)).trace


async def pending_approvals(
    journal: Journal,
    *,
    run_id: str | None = None,
    on_error: Callable[[str, TaoError], None] | None = None,
    in_doubt: bool = False,
) -> list[PendingApproval]:
    """The calls that wait for a person, the oldest run first; with `run_id` only those of this run and inside it.

    `on_error` is called with the id and error of a run that cannot be loaded; without it the error is raised.
    `in_doubt` adds the calls of which a person must say whether they happened, also those of runs that died and that no
    recovery resumes (`stuck_runs`).
    """
    approvals: list[PendingApproval] = []
    for stuck in await stuck_excerpts(journal) if in_doubt else ():
        if is_within(stuck.run_id, run_id):
            requests = stuck_requests(stuck)
            approvals += [_pending(request, stuck, stuck.run_id) for request in requests]
    for row in await rows_with_status(journal, ("waiting",), run_id=run_id):
        try:
            trace = await read_excerpt(journal, row.run_id)
            outer = await outermost_run_id(journal, trace)
        except TaoError as error:
            if on_error is None:
                raise
            on_error(row.run_id, error)
            continue
        if trace.paused is not None:
            requests = [approval_request(trace, call) for call in unanswered_calls(trace)]
            requests += doubt_requests(trace) if in_doubt else []
            approvals += [_pending(request, trace, outer) for request in requests]
    return approvals


def _pending(request: ApprovalRequest, trace: Trace, outer: str) -> PendingApproval:
    return PendingApproval(request=request, task=shown_task(trace), outer=outer, user=trace.user)


class WaitingQuestions:
    """Counts the questions that wait, by who may answer them; a run is read again only once it has grown."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, Counter[str]]] = {}  # by run: its events when it was read, and its questions

    async def count(self, journal: Journal) -> Counter[str]:
        """The number of open questions: `user` for those that whoever set the task may answer, `operator` for all else.

        Calls in doubt are the operator's, and so is a run that cannot be read.
        """
        known: dict[str, tuple[int, Counter[str]]] = {}
        for row in await journal.runs(limit=_ALL, status="waiting"):
            earlier = self._known.get(row.run_id)
            is_same = earlier is not None and earlier[0] == row.events
            known[row.run_id] = earlier if earlier and is_same else (row.events, await _count(journal, row.run_id))
        self._known = known
        return sum((counts for _, counts in known.values()), Counter({"operator": 0, "user": 0}))


async def _count(journal: Journal, run_id: str) -> Counter[str]:
    try:
        trace = await read_excerpt(journal, run_id)
    except TaoError:
        return Counter({"operator": 1})
    if trace.paused is None:
        return Counter()
    principal = "user" if authority_of(trace) == "full" else "operator"
    return Counter({principal: len(unanswered_calls(trace))}) + Counter({"operator": len(doubt_requests(trace))})


async def outermost_run_id(journal: Journal, trace: Trace) -> str:
    """The run that continues when an inner run has its answers: the outermost around it, or the run itself."""
    run_id, parent = trace.run_id, trace.started.parent if trace.started is not None else None
    while parent is not None and run_id.startswith(f"{parent}."):
        try:
            outer = Trace(parent, await read_start(journal, parent))
        except RunNotFound:
            break
        run_id, parent = parent, outer.started.parent if outer.started is not None else None
    return run_id


def validate_edited_args(
    card: ToolCard, args: Any, language: str | None = None, *, tools: Mapping[str, ToolCard] | None = None
) -> Mapping[str, Any]:
    """Edited arguments as the tool takes them, by the schema of its card; lossless corrections are made.

    `language` is that of the run, by default of the run that the current code works for. `tools`: the arguments are a
    plan whose steps may call these (`ApprovalRequest.tools`).

    Raises:
        InvalidArguments: they do not fit; the hint shows the expected form.
    """
    tool = tool_from_card(replace(card, probes=False, transactional=False), lambda **values: values)
    token = RUN_LANGUAGE.set(language or RUN_LANGUAGE.get())
    try:
        edited: Mapping[str, Any] = tool.prepare(json.loads(json.dumps(plain(args), allow_nan=False))).args
    except (TypeError, ValueError) as error:
        raise TEXTS.run_error(InvalidArguments, "edit_no_json", {"tool": card.name, "why": error}) from error
    finally:
        RUN_LANGUAGE.reset(token)
    if tools:
        edited = normalised_plan(edited, tools.get)
        require_plan(edited, tools.get, None, language or RUN_LANGUAGE.get())
    return edited


async def add_facts(
    journal: Journal,
    run_id: str,
    decide: Callable[[Trace], Sequence[Fact]],
    clock: Clock | None,
    redactor: Redactor | None,
    attempts: int = _MAX_ATTEMPTS,
) -> AnswerRecorded:
    """Add the facts of `decide` to a run that nobody is at work on. It is called before and after the acquisition.

    Workers go on with a run that was submitted to them: the configured engine is told.
    """
    clock, redactor = clock or SystemClock(), redactor if redactor is not None else redactor_for(None, ())
    while True:
        attempts -= 1
        before = Trace(run_id, await journal.load(run_id))
        decide(before)  # raises where the run is not waiting: then it must not be acquired
        if before.status == "running":
            await require_unlocked(journal, run_id)
        try:
            lease = await journal.acquire(run_id, at=len(before))
            trace = Trace(run_id, await journal.load(run_id))
            events = [trace.add(redactor.fact(fact), clock.now()) for fact in decide(trace)]
            await journal.append(lease, events)
        except FenceLost:  # somebody else answers at the same time: try again
            if not attempts:
                raise
        else:
            await wake_run(journal, await outermost_run_id(journal, trace))
            return AnswerRecorded(trace=trace, events=tuple(events))


def _require_started(trace: Trace) -> None:
    if trace.started is None:
        raise NotWaiting(f"Run {trace.run_id} never began.")


def _call_in_doubt(trace: Trace, call_id: str) -> CallView:
    call = trace.pending.get(call_id)
    if trace.finished is None and call is not None and call.attempts:
        settled = call.settled
        if settled is None or (settled.by == PROBE and settled.happened is None):
            return call
    known = trace.calls.get(call_id)
    if known is not None and known.settled is not None and known.settled.by != PROBE:
        raise_answered(trace, call_id, known.settled, "The first answer counts.")
    if trace.is_over:
        hint = "The run is over for good; its calls stay as they are."
    elif trace.finished is not None:
        hint = "The run is over; a run that was stopped asks when it is resumed."
    else:
        open_calls = [open_id for open_id, view in trace.pending.items() if view.attempts]
        hint = f"Calls in doubt: {', '.join(open_calls) or 'none'}."
    raise ConfigError(f"Run {trace.run_id}: {call_id} is not in doubt.", hint=hint)


def _require_ended(trace: Trace, call: CallView, how: Settling, now: float) -> None:
    """Refuse to repeat a call that a live process may still be running: nobody recorded that it is in doubt."""
    card = trace.card(call.requested.tool)
    left_s = (call.started_at or 0.0) + (card.timeout_s if card is not None else 0.0) - now
    if how == "repeat" and call.doubt is None and trace.paused is None and left_s > 0:
        raise ConfigError(
            f"Run {trace.run_id}: {call.requested.call_id} may still be under way, for another {left_s:.0f} s.",
            hint="Wait, or, if no process has the run any more, resume it first: it then asks about the call.",
        )


def require_waiting(trace: Trace, call_id: str) -> CallView:
    """The call of this id, if it waits for an answer.

    Raises:
        AlreadyAnswered: somebody was faster.
        NotWaiting: it waits for no answer, or a process is at work on its run.
    """
    run_id, call = trace.run_id, trace.calls.get(call_id)
    waiting = ", ".join(call.requested.call_id for call in unanswered_calls(trace))
    hint = f"These wait: {waiting}." if waiting else "No call of this run waits for an answer."
    if call is None:
        raise NotWaiting(f"Run {run_id} has no call {call_id!r}.", hint=hint)
    if (approval := call.approval) is not None:
        raise_answered(trace, call_id, approval, hint)
    if call.requested.verdict != "ask":
        raise NotWaiting(f"Nobody was asked about the call {call_id} of run {run_id}.", hint=hint)
    require_open(trace)
    if trace.finished is not None:
        raise NotWaiting(
            f"Run {run_id} does not wait: it ended as {trace.finished.status}.",
            hint="Resume it; the call is then asked about again.",
        )
    if trace.paused is None:
        _raise_at_work(trace)
    return call


def raise_answered(
    trace: Trace, call_id: str, answer: ApprovalGiven | ApprovalRefused | DoubtSettled, hint: str
) -> NoReturn:
    """Of two answers the first counts; the second person is told whose it was."""
    at = next((event.at for event in reversed(trace.events) if event.fact is answer), 0.0)
    match answer:
        case ApprovalGiven():
            how = "allowed" if answer.args is None else "edited"
            what = "allowed" if answer.args is None else "allowed with other arguments"
            if is_question(trace.card(trace.calls[call_id].requested.tool)):
                how = what = "answered"
        case ApprovalRefused():
            how = what = "refused"
        case _:
            how, what = _SETTLED[answer.happened]
    time_text = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"
    raise AlreadyAnswered(
        f"The call {call_id} of run {trace.run_id} has its answer: {what} by {answer.by}, {time_text} UTC.",
        by=answer.by,
        at=at,
        how=how,
        hint=hint,
    )


def _raise_at_work(trace: Trace) -> NoReturn:
    raise NotWaiting(
        f"Run {trace.run_id} does not wait: a process is at work on it, or has died.",
        hint="Answer there, or, if no process has it any more, resume the run first.",
    )


def _require_shown(trace: Trace, call: CallView, digest: str | None) -> None:
    requested = call.requested
    if digest is not None and (len(digest) < 8 or not requested.digest.startswith(digest.lower())):
        raise ApprovalStale(
            f"The call {requested.call_id} of run {trace.run_id} is not the one that was shown.",
            hint=f"It is {requested.tool} with the digest {requested.digest[:16]}; look at it again.",
        )


def _require_same_policy(trace: Trace, call: CallView) -> None:
    requested = call.requested
    if requested.policy and requested.policy != trace.agent.policy.version:
        raise ApprovalStale(
            f"The policy of run {trace.run_id} is not the one that asked about {requested.call_id}.",
            hint="Refuse the call; the model may ask for it again.",
        )


def _require_time(trace: Trace, call: CallView, now: float) -> None:
    left_s = seconds_left(trace, call.requested.call_id, now)
    if left_s is not None and left_s <= 0:
        raise ApprovalStale(
            f"The time to answer {call.requested.call_id} of run {trace.run_id} is over: it counts as refused.",
            hint="Resume the run; the model may ask for the call again.",
        )


def _check_answer(trace: Trace, call: CallView, answer: ApprovalAnswer) -> ApprovalAnswer:
    """The answer as it can be stored: one that the question offers, and with arguments that can run."""
    request = approval_request(trace, call)
    if request.question is not None:
        return checked_answer(request, answer)
    if answer.approved is not True:
        return replace(answer, approved=False, args=None, scope="call")
    if answer.scope == "values" and request.plan is not None:
        raise ConfigError(
            TEXTS.text(request.language, "plan_values"), hint=TEXTS.text(request.language, "plan_values_hint")
        )
    if answer.scope == "rule" and not request.has_always:
        why = (
            "is hard to undo and nobody named its target"
            if request.grave
            else "needs a person's approval for each call"
        )
        raise ConfigError(
            f"{request.tool} ({request.call_id}) {why}: it has no 'always'.", hint="Allow only this call."
        )
    if answer.args is None:
        return answer
    language = trace.agent.language
    if request.card is None:
        raise InvalidArguments(TEXTS.text(language, "edit_no_tool", run_id=trace.run_id, tool=request.tool))
    args = validate_edited_args(request.card, answer.args, language, tools=request.tools)
    if request.plan is not None:
        require_plan(args, trace.card, plan_progress(trace), language)
    same = call_digest(request.tool, args) == call_digest(request.tool, call.requested.args) and not answer.digits
    edited = replace(answer, args=None if same else args)
    if (denial := denying_rule(trace, call, edited)) is not None:
        raise InvalidArguments(f"{request.tool} ({request.call_id}): {denial}.")
    return edited


def _is_alike(trace: Trace, call: CallView, other: CallView, now: float, *, approved: bool) -> bool:
    """Whether a call belongs to the same question, and still has time."""
    first, second = approval_request(trace, call), approval_request(trace, other)
    left_s = seconds_left(trace, second.call_id, now)
    is_other = first.call_id != second.call_id
    return is_other and is_one_question(first, second, approved=approved) and (left_s is None or left_s > 0)


def is_one_question(first: ApprovalRequest, second: ApprovalRequest, *, approved: bool = True) -> bool:
    """Whether one answer may be for both calls: the same tool and rule, and neither of them high-risk.

    An approval also needs targets of the same provenance; a refusal may be for calls with any.
    """
    if first.question is not None or second.question is not None:
        return False
    if (first.tool, first.rule) != (second.tool, second.rule):
        return False
    return first.is_alike(second) if approved else not (first.grave or second.grave)


def person_name(by: str) -> str:
    name = replace_surrogates(" ".join(by.split()))
    if not name or name in RESERVED_NAMES:
        raise ConfigError(f"An answer cannot be by {by!r}.", hint="Name the person who answers.")
    return name
