"""The part of a run that its open questions need, read without the rest of it.

That is how it began, what resumes have changed, and everything since the model last decided: calls wait for a person
only before the next decision. A run of thousands of steps costs as much as one of ten.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from taoloop.core.cards.questions import is_question
from taoloop.core.events import Event, ModelReplied, Resumed
from taoloop.core.message import SIDE_PURPOSES
from taoloop.core.trace import Trace
from taoloop.errors import IllegalEvent
from taoloop.journals.base import Journal
from taoloop.journals.queries import JournalQueries, has_queries, queries_of

SHORT: Final = 200
"""The most events of a run that is read whole all the same."""

_MOST_REPLIES = 20  # to side questions, after the last decision
_ALL = 10_000_000


async def read_excerpt(journal: Journal, run_id: str, *, call_ids: Collection[str] = ()) -> Trace:
    """A run with all that its open questions, its end and these calls need; `is_whole` tells whether that is all of it.

    The calls that a blocked run was denied are part of it. What counts over the run, such as its steps and what it
    used, is not that of the run where it is not whole. A run whose open calls do not fit the above, or that asks its
    user something (then all that was read before matters), is read whole.

    Raises:
        RunNotFound: there is no such run.
        JournalCorrupt: an event cannot be read.
    """
    if not has_queries(journal):
        return Trace(run_id, await journal.load(run_id))
    queries = queries_of(journal)
    tail = await queries.read(run_id, limit=SHORT, last=True)
    if not tail or tail[0].seq == 0:
        return Trace(run_id, tail)
    try:
        trace = await _read_parts(queries, run_id, tail, call_ids)
        denied = () if trace.finished is None else trace.finished.denied
        if missing := [call_id for call_id in denied if call_id not in trace.calls]:
            trace = await _read_parts(queries, run_id, tail, {*call_ids, *missing})
    except IllegalEvent:  # a call that was requested before the last decision has its outcome only now
        return Trace(run_id, await journal.load(run_id))
    waiting = () if trace.paused is None else trace.paused.waiting_for
    asked = [*trace.pending.values(), *(trace.calls[call_id] for call_id in denied if call_id in trace.calls)]
    is_asking = any(is_question(trace.card(call.requested.tool)) for call in asked)
    if is_asking or not set(waiting) <= trace.pending.keys():
        return Trace(run_id, await journal.load(run_id))
    return trace


def is_whole(trace: Trace) -> bool:
    """Whether a trace has all events of its run up to its last one, and not only an excerpt of them."""
    return not trace.events or trace.events[-1].seq == len(trace) - 1


async def _read_parts(queries: JournalQueries, run_id: str, tail: list[Event], call_ids: Collection[str]) -> Trace:
    """The excerpt of a run whose last events are `tail`.

    Raises:
        IllegalEvent: its parts do not fit together.
    """
    replies = await queries.read(run_id, kinds=(ModelReplied.kind,), limit=_MOST_REPLIES, last=True)
    decisions = [event.seq for event in replies if _is_decision(event)]
    if not decisions:  # calls may be open from long before
        return Trace(run_id, await queries.read(run_id, limit=_ALL))
    first = decisions[-1]
    if first >= tail[0].seq:
        rest = [event for event in tail if event.seq >= first]
    else:
        rest = await queries.read(run_id, after=first - 1, limit=_ALL)
    parts = [
        *await queries.read(run_id, limit=1),
        *await queries.read(run_id, before=first, kinds=(Resumed.kind,), limit=_ALL),
    ]
    if call_ids:
        parts += await queries.read(run_id, before=first, call_ids=call_ids, limit=_ALL)
    return Trace.excerpt(run_id, [*sorted(parts, key=lambda event: event.seq), *rest])


def _is_decision(event: Event) -> bool:
    return isinstance(event.fact, ModelReplied) and event.fact.purpose not in SIDE_PURPOSES
