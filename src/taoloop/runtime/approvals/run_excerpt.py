"""The part of a run that its open questions need, read without the rest of it.

That is how it began, what resumes have changed, and everything since the model last decided: calls wait for a person
only before the next decision. A run of thousands of steps costs as much as one of ten. Where an answer depends on what
was read long before, the few calls that matter are looked for (`call_search`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from taoloop.core.cards.questions import is_question
from taoloop.core.events import (
    ActionRequested,
    ActionStarted,
    ApprovalGiven,
    ApprovalRefused,
    DoubtSettled,
    Event,
    Finished,
    InDoubt,
    JudgedAgain,
    ModelReplied,
    Observed,
    Paused,
    Resumed,
)
from taoloop.core.message import SIDE_PURPOSES
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.journals.base import Journal
from taoloop.journals.queries import JournalQueries, has_queries, queries_of
from taoloop.runtime.approvals.call_search import Findings, find_origins, find_reads

SHORT: Final = 200
"""The most events of a run that is read whole all the same."""

_REPLIES = 20  # at a time, from the end back to the last decision
_ALL = 10_000_000
_ABOUT_OPEN_CALLS = (
    ActionStarted,
    ApprovalGiven,
    ApprovalRefused,
    DoubtSettled,
    InDoubt,
    JudgedAgain,
    Observed,
)


async def read_excerpt(journal: Journal, run_id: str, *, call_ids: Collection[str] = ()) -> Trace:
    """A run with all that its open questions, its end and these calls need; `is_whole` tells whether that is all of it.

    The calls that a blocked run was denied are part of it, and of what was read before a question of the model the
    newest. What counts over the run, such as its steps and what it used, is not that of the run where it is not whole.

    Raises:
        RunNotFound: there is no such run.
        JournalCorrupt: an event cannot be read.
        IllegalEvent: the events contradict each other.
    """
    if not has_queries(journal):
        return Trace(run_id, await journal.load(run_id))
    queries = queries_of(journal)
    tail = await queries.read(run_id, limit=SHORT, last=True)
    if not tail or tail[0].seq == 0:
        return Trace(run_id, tail)
    parts = await _read_parts(queries, run_id, tail, call_ids)
    trace = Trace.excerpt(run_id, parts)
    if not (questions := _questions_of(trace)):
        return trace
    first = min(event.seq for event in parts if _requests_one_of(event, questions))
    findings = await find_reads(queries, trace, first)
    quoted = {source.call_id for call in questions for source in call.requested.sources if source.call_id}
    return await _with_findings(queries, trace, findings, quoted)


async def read_evidence(journal: Journal, run_id: str, call_id: str) -> Trace | None:
    """A run with all that tells where the arguments of one of its calls came from; None: it has no such call.

    The earlier part of the run is searched, and only what was found is kept.

    Raises:
        RunNotFound: there is no such run.
        JournalCorrupt: an event cannot be read.
        IllegalEvent: the events contradict each other.
    """
    trace = await read_excerpt(journal, run_id, call_ids=(call_id,))
    if call_id not in trace.calls:
        return None
    if is_whole(trace):
        return trace
    queries = queries_of(journal)
    return await _with_findings(queries, trace, await find_origins(queries, trace, call_id))


def is_whole(trace: Trace) -> bool:
    """Whether a trace has all events of its run up to its last one, and not only an excerpt of them."""
    return not trace.events or trace.events[-1].seq == len(trace) - 1


async def _read_parts(
    queries: JournalQueries, run_id: str, tail: list[Event], call_ids: Collection[str]
) -> list[Event]:
    """The excerpt of a run whose last events are `tail`."""
    first = max(1, await _last_decision(queries, run_id))
    if first >= tail[0].seq:
        rest = [event for event in tail if event.seq >= first]
    else:
        rest = await queries.read(run_id, after=first - 1, limit=_ALL)
    parts = [*await queries.read(run_id, limit=1), *await _read_changes(queries, run_id, first)]
    if missing_ids := {*call_ids, *_calls_in(rest)} - _requested_in(rest):
        parts += await queries.read(run_id, before=first, call_ids=missing_ids, limit=_ALL)
    return [*sorted(parts, key=lambda event: event.seq), *rest]


async def _last_decision(queries: JournalQueries, run_id: str) -> int:
    """The seq of the newest reply that was no side question; 0 where there is none."""
    before: int | None = None
    while replies := await queries.read(run_id, before=before, kinds=(ModelReplied.kind,), limit=_REPLIES, last=True):
        decisions = [event.seq for event in replies if _is_decision(event)]
        if decisions:
            return decisions[-1]
        before = replies[0].seq
    return 0


async def _read_changes(queries: JournalQueries, run_id: str, before: int) -> list[Event]:
    """The resumes before an event that changed what still counts: tools, the policy, and the last of the limits.

    A run may have been resumed as often as it has steps, so they are read a part at a time.
    """
    changes: dict[int, Event] = {}
    last: dict[str, Event] = {}
    after = -1
    while resumes := await queries.read(run_id, after=after, before=before, kinds=(Resumed.kind,), limit=SHORT):
        after = resumes[-1].seq
        for event in resumes:
            fact = event.fact
            if isinstance(fact, Resumed):
                last["any"] = event
                if fact.limits is not None:
                    last["limits"] = event
                if fact.cards or fact.texts or fact.new_policy is not None or fact.approved_tiers is not None:
                    changes[event.seq] = event
    return list({**changes, **{event.seq: event for event in last.values()}}.values())


async def _with_findings(
    queries: JournalQueries, trace: Trace, findings: Findings, call_ids: Iterable[str] = ()
) -> Trace:
    """An excerpt together with what was found in the part of the run before it."""
    known = {event.seq for event in trace.events}
    missing_ids = {*findings.call_ids, *call_ids} - trace.calls.keys()
    events = [*trace.events, *findings.notes]
    if missing_ids:
        events += await queries.read(trace.run_id, call_ids=missing_ids, limit=_ALL)
    added = {event.seq: event for event in events if event.seq not in known}
    return Trace.excerpt(trace.run_id, sorted([*trace.events, *added.values()], key=lambda event: event.seq))


def _questions_of(trace: Trace) -> list[CallView]:
    """The questions of the model to its user that are open, or were denied to a blocked run."""
    denied = () if trace.finished is None else trace.finished.denied
    calls = [*trace.pending.values(), *(trace.calls[call_id] for call_id in denied if call_id in trace.calls)]
    return [call for call in calls if is_question(trace.card(call.requested.tool))]


def _requests_one_of(event: Event, calls: Sequence[CallView]) -> bool:
    fact = event.fact
    return isinstance(fact, ActionRequested) and any(fact.call_id == call.requested.call_id for call in calls)


def _calls_in(events: Iterable[Event]) -> set[str]:
    """The calls that must be known for these events."""
    call_ids: set[str] = set()
    for event in events:
        match event.fact:
            case Paused(waiting_for=waiting):
                call_ids.update(waiting)
            case Finished(denied=denied):
                call_ids.update(denied)
            case fact if isinstance(fact, _ABOUT_OPEN_CALLS):
                call_ids.add(fact.call_id)
            case _:
                pass
    return call_ids


def _requested_in(events: Iterable[Event]) -> set[str]:
    return {event.fact.call_id for event in events if isinstance(event.fact, ActionRequested)}


def _is_decision(event: Event) -> bool:
    return isinstance(event.fact, ModelReplied) and event.fact.purpose not in SIDE_PURPOSES
