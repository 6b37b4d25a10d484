"""Replay: a recorded run decides again, from its trace alone, without model, tools, clock or network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from taoloop.core.action_requests import Check, Judge, judge_calls
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Answer, AnswerCheck, Call, Problem
from taoloop.core.effects import (
    AskPerson,
    CallModel,
    Effect,
    Finish,
    JudgeAgain,
    ProbeCalls,
    Record,
    RequestCalls,
    RunTools,
)
from taoloop.core.events import (
    ActionRequested,
    ActionStarted,
    ApprovalGiven,
    ApprovalRefused,
    Compensated,
    DoubtSettled,
    Event,
    Fact,
    Fault,
    Finished,
    InDoubt,
    ModelReplied,
    Noted,
    Observed,
    Paused,
    Pinned,
    ReadDropped,
    ReplyRejected,
    Resumed,
    RunStarted,
    Verdict,
)
from taoloop.core.handles import contains_handle
from taoloop.core.human_input import HookActed, InputAnswered, Marked
from taoloop.core.message import ModelReply
from taoloop.core.trace import TOOL_CALL_LIMIT, Trace
from taoloop.core.views.steps import LESSON, NEW_POLICY, NOTE, PROBE, UNDONE
from taoloop.dialects.reply_events import reply_to_events
from taoloop.errors import ReplayDiverged
from taoloop.runtime.engine.hook_calls import hooked_calls, hooked_reply
from taoloop.runtime.output_type import BAD_ANSWER, OutputValidator, validator_for
from taoloop.strategies import get_strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedEvent:
    """One event of the recorded run, and what the replay decided there."""

    recorded: Event
    """The event."""

    decided: Fact
    """The fact that the replay decides in its place."""

    same: bool
    """Whether the two are the same decision; wording does not count."""


def replay(trace: Trace) -> Iterator[ReplayedEvent]:
    """Drive the strategy through a recorded run; yields one `ReplayedEvent` for each recorded event, in order.

    The model's replies, the observations, the approvals and what people did come from the record; every decision,
    rejection, request, limit and finish is made again. No model, tool, clock or network is used.

    Raises:
        ReplayDiverged: the strategy asks for something that the recorded run did not do.
    """
    replayed = Trace(trace.run_id)
    derived: list[Fact] = []
    running_calls: set[str] = set()
    is_asking = False  # several validator may follow one question
    schema = trace.agent.output_schema if trace.started is not None else None
    is_fork = trace.started is not None and trace.started.forked_from is not None
    validator = None if schema is None else validator_for(schema)
    abandoned_at = _abandoned_at(trace)
    for event in trace.events:
        fact = event.fact
        if isinstance(fact, Resumed | Finished):
            running_calls.clear()
        if isinstance(fact, _ToolFact) and fact.call_id in running_calls:
            if _ends_attempt(fact):
                running_calls.discard(fact.call_id)
            decided: Fact = fact  # what a tool or its probe did comes from the record
        elif isinstance(fact, ApprovalGiven | ApprovalRefused | Paused) and is_asking and not derived:
            decided = fact  # and so does what a person said
        else:
            is_outside = _from_outside(fact) or _ends_note(replayed, fact) or event.seq >= abandoned_at
            if not derived and not is_outside:
                derived = _derive(replayed, event, trace, running_calls, validator)
            decided = derived.pop(0) if derived else fact
            if is_fork and isinstance(decided, Pinned) and isinstance(fact, Pinned) and not fact.calls:
                decided = replace(decided, calls=())  # what was fixed in advance stays with the original
        is_asking = isinstance(fact, ApprovalGiven | ApprovalRefused)
        if decided.kind != fact.kind:
            raise ReplayDiverged(
                f"Run {trace.run_id}, event {event.seq}: recorded {fact.kind}, but the replay decides {decided.kind}."
            )
        is_same = _without_wording(decided) == _without_wording(fact)
        yield ReplayedEvent(recorded=event, decided=decided, same=is_same)
        replayed.append(Event(event.seq, event.at, fact))


def _without_wording(fact: Fact) -> Fact:
    """What decides whether two facts are the same: all but texts for people and models that have a code."""
    match fact:
        case ReplyRejected():
            return replace(fact, message="")
        case ActionRequested():
            return replace(fact, reasons=(), reason_codes=())
        case Observed(error=Fault() as fault):
            return replace(fact, error=replace(fault, message="", hint=""))
        case ApprovalGiven(by="operator"):
            return replace(fact, note="")
        case Finished(unasked=unasked) if unasked:  # an earlier version did not record them
            return _without_wording(replace(fact, unasked=()))
        case Finished(answer=None) | Finished(status="blocked" | "unsupported"):
            return replace(fact, reason="")
        case _:
            return fact


def _from_outside(fact: Fact) -> bool:
    """Whether no trace implies a fact: the start, a resume, a note, a stop, an early read in vain, an undo, a mark."""
    if isinstance(fact, Noted):
        return fact.by != "guard" or fact.about in (UNDONE, NEW_POLICY) or fact.about.startswith(LESSON)
    if isinstance(fact, Observed) and fact.error is not None and fact.error.code == UNDONE:
        return True  # a call that an undo dropped
    if isinstance(fact, ModelReplied):
        return fact.purpose == "read"  # a part of a tool's call
    if isinstance(fact, DoubtSettled):
        return fact.by != PROBE
    if fact.kind == "finished":
        return getattr(fact, "status", None) in ("stopped", "model_failed")
    return isinstance(fact, RunStarted | Resumed | ReadDropped | Compensated | Marked | HookActed)


def _ends_note(replayed: Trace, fact: Fact) -> bool:
    """Whether a run that was reopened to take a note ends with this, as it had ended before."""
    match [event.fact for event in replayed.events[-2:]]:
        case [Resumed(reason=reason), Noted()]:
            return reason == NOTE and isinstance(fact, Finished)
        case _:
            return False


def _abandoned_at(trace: Trace) -> int:
    """The first of the events with which a person ended a run for good; the number of events of any other run."""
    seq = len(trace)
    if trace.finished is None or not trace.finished.abandoned_by:
        return seq
    while isinstance(trace.events[seq - 1].fact, Finished | InDoubt):
        seq -= 1
    return seq


def _derive(
    replayed: Trace, event: Event, recorded: Trace, running_calls: set[str], validator: OutputValidator | None
) -> list[Fact]:
    """The facts that the core derives at this event; none where they come from outside.

    Calls that the core lets run are added to `running_calls`: their start and outcome are in the record.
    """
    effect = get_strategy(replayed.agent.strategy).next(replayed.agent, replayed)
    _require_expected(effect, event, recorded)
    match effect:
        case CallModel() if isinstance(event.fact, ModelReplied):
            fact = event.fact
            reply = ModelReply(
                text=fact.text,
                tool_calls=fact.tool_calls,
                finish_reason=fact.finish_reason,
                model=fact.model,
                usage=fact.usage,
                cost_usd=fact.cost_usd,
                thinking=fact.thinking,
            )
            hides = recorded.agent.policy.observations == "handles"
            check = _recorded_answer(validator, event, recorded) if hides or validator is not None else None
            facts = reply_to_events(effect, reply, fact.latency_s, check)
            acted = _hooks_before(event, recorded)
            return hooked_reply(facts, acted) if acted else facts
        case RequestCalls():
            requested: list[Fact] = []
            if acted := _hooks_before(event, recorded):
                effect = hooked_calls(replayed, effect, acted)
            judge_calls(replayed, effect, _recorded_check(recorded), _recorded_judge(recorded), requested.append)
            return requested
        case Record(facts=facts):
            return list(facts)
        case Finish(fact=finished):
            return [_with_values(_as_before(finished, event.fact), event.fact, recorded)]
        case RunTools(calls=calls) | ProbeCalls(calls=calls):
            running_calls.update(call.requested.call_id for call in calls)
            if isinstance(event.fact, _ToolFact) and _ends_attempt(event.fact):
                running_calls.discard(event.fact.call_id)
            return []
        case _:
            return []


def _hooks_before(event: Event, recorded: Trace) -> list[HookActed]:
    """What hooks did with a reply or a decision, which stands before it in the record."""
    earlier = (before.fact for before in reversed(recorded.events[: event.seq]))
    acted = list(takewhile(lambda fact: isinstance(fact, HookActed), earlier))
    return [fact for fact in reversed(acted) if isinstance(fact, HookActed)]


def _as_before(finished: Finished, fact: Fact) -> Finished:
    """The end as it was before there was `blocked`, for a run that an earlier version recorded as completed."""
    if finished.status == "blocked" and isinstance(fact, Finished) and fact.status == "completed":
        return replace(finished, status="completed", reason=fact.reason, denied=())
    return finished


def _with_values(finished: Finished, fact: Fact, recorded: Trace) -> Finished:
    """The end with the recorded answer, where values were filled into it: these may be in the journal alone."""
    hides = recorded.agent.policy.observations == "handles"
    if hides and isinstance(fact, Finished) and fact.answer is not None and contains_handle(finished.answer):
        return replace(finished, answer=fact.answer)
    return finished


def _recorded_answer(validator: OutputValidator | None, replied: Event, recorded: Trace) -> AnswerCheck:
    """Checks an answer by the run's schema; what a type refused beyond that comes from the record.

    So does what was refused for its handles, whose values may be in the journal alone.
    """
    hides = recorded.agent.policy.observations == "handles"

    def check(answer: Answer) -> Answer | Problem:
        by_record = validator is None or (hides and contains_handle(answer.text))
        judged = answer if by_record or validator is None else validator.check(answer)
        after = recorded.events[replied.seq + 1 : replied.seq + 2]
        fact = after[0].fact if after else None
        if isinstance(judged, Problem) or not isinstance(fact, ReplyRejected) or fact.code != BAD_ANSWER:
            return judged
        return Problem(code=fact.code, message=fact.message, excerpt=fact.excerpt)

    return check


def _requests(recorded: Trace) -> dict[str, ActionRequested]:
    """The calls as they were requested, whatever they were judged again as."""
    return {event.fact.call_id: event.fact for event in recorded if isinstance(event.fact, ActionRequested)}


def _recorded_check(recorded: Trace) -> Check:
    """Checks arguments as the recorded run did: its tools are not needed."""
    requests = _requests(recorded)

    def check(call_id: str, _tool: str, args: Any) -> Any:
        requested, call = requests.get(call_id), recorded.calls.get(call_id)
        if requested is None or call is None:
            return args
        error = call.observed.error if call.observed is not None and requested.verdict == "deny" else None
        fits = error is None or error.code in (TOOL_CALL_LIMIT, "denied")
        return requested.args if fits else error

    return check


def _recorded_judge(recorded: Trace) -> Judge:
    """Gives the verdicts of the recorded run: its policy may have had rules in code, or be an older one."""
    requests = _requests(recorded)

    def judge(call_id: str, _call: Call, card: ToolCard) -> Verdict:
        requested, call = requests.get(call_id), recorded.calls.get(call_id)
        if requested is None or call is None:
            return Verdict(kind="deny", reasons=(f"the recorded run made no call {call_id} of {card.name}",))
        observed = call.observed
        if observed is not None and observed.error is not None and observed.error.code == TOOL_CALL_LIMIT:
            return Verdict(kind="allow")  # the limit denied it, not the policy
        return Verdict(
            kind=requested.verdict,
            reasons=requested.reasons,
            rule=requested.rule,
            sources=requested.sources,
            reason_codes=requested.reason_codes,
            replaces=requested.replaces,
        )

    return judge


_ToolFact = ActionStarted | InputAnswered | InDoubt | DoubtSettled | Observed


def _ends_attempt(fact: _ToolFact) -> bool:
    """Whether the record has nothing more of this attempt or probe; an output may follow a probe that found it."""
    return not (fact.happened if isinstance(fact, DoubtSettled) else isinstance(fact, ActionStarted | InputAnswered))


_EXPECTED: dict[type[Any], tuple[str, ...]] = {
    CallModel: ("model_replied", "model_erred", "limit_reached", "finished"),
    RequestCalls: ("action_requested",),
    JudgeAgain: ("judged_again", "observed"),
    RunTools: ("action_started", "input_answered", "observed", "paused"),  # paused: with a run inside it, which waits
    ProbeCalls: ("doubt_settled",),
    AskPerson: ("approval_given", "approval_refused", "paused"),
    Record: (
        "in_doubt",
        "limit_reached",
        "noted",
        "observed",
        "approval_given",
        "compacted",
        "model_replied",
        "voted",
        "action_requested",  # of a plan
        "reply_rejected",
    ),
    Finish: ("finished",),
}


def _require_expected(effect: Effect, event: Event, recorded: Trace) -> None:
    if event.kind not in _EXPECTED[type(effect)]:
        raise ReplayDiverged(
            f"Run {recorded.run_id}, event {event.seq}: recorded {event.kind}, "
            f"but the strategy asks for {type(effect).__name__}."
        )
