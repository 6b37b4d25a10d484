"""Searches for earlier calls of a run, from its end back, a part of its events in memory at a time.

Which text a model had read before it asked something, and which output holds the value of an argument, is written
nowhere: it has to be looked for. The first search ends after a few reads. The second one goes back to the beginning,
but keeps only the ids of the calls that matter, of which there are few however long the run is; whoever asks then reads
the events of these alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

from taoloop.core.cards.questions import is_by_starter, is_question
from taoloop.core.events import ActionRequested, ApprovalGiven, Event, Noted, Observed
from taoloop.core.trace import Trace
from taoloop.core.views.steps import LESSON
from taoloop.journals.queries import JournalQueries
from taoloop.policy.provenance import GUARD, is_untrusted_output
from taoloop.policy.targets import leaves
from taoloop.policy.untrusted_index import ValueSearch

MOST_READS: Final = 10
"""How many of the untrusted outputs are looked for that the model had read before it asked something."""

_KINDS = (ActionRequested.kind, ApprovalGiven.kind, Observed.kind, Noted.kind)
_CHUNK = 200
_MOST_OF_VALUE = 6  # calls whose outputs have one value, the newest; the first of all is kept too
_MOST_VALUES = 32  # that are searched for: those of the call, and of the look-ups that they came from


class EndedCall(NamedTuple):
    """A call that has its outcome."""

    requested: ActionRequested
    """What was asked for."""
    approval: ApprovalGiven | None
    """A person's yes."""
    observed: Observed
    """What came of it."""


class Findings:
    """What of the earlier part of a run matters to a question: ids of calls, and what people wrote."""

    def __init__(self) -> None:
        self.call_ids: dict[str, None] = {}
        """The calls, each once."""
        self.notes: list[Event] = []
        """What people noted, and the lessons of earlier runs."""


async def find_reads(queries: JournalQueries, trace: Trace, before: int) -> Findings:
    """The newest untrusted outputs before an event, at most `MOST_READS` of them, and all that people wrote since.

    `trace` is an excerpt of the run with its beginning. Most runs read something untrusted often, so few events are
    read; of one that never does all are.
    """
    findings = Findings()
    reads = 0
    async for item in _items_before(queries, trace.run_id, before):
        if isinstance(item, Event):
            findings.notes.append(item)
        elif _is_answered(trace, item):
            findings.call_ids[item.requested.call_id] = None
        elif _is_untrusted(trace, item):
            findings.call_ids[item.requested.call_id] = None
            reads += 1
            if reads == MOST_READS:
                break
    return findings


async def find_origins(queries: JournalQueries, trace: Trace, call_id: str) -> Findings:
    """The calls whose outputs may have the values of a call's arguments, or of those of the look-ups for them.

    `trace` is an excerpt of the run with its beginning and this call. Also what people wrote or vouched for, and the
    first untrusted output, after which no output is trusted for what it says.
    """
    requested = trace.calls[call_id].requested
    seq = next(event.seq for event in trace.events if event.fact is requested or _requests(event, call_id))
    findings, search = Findings(), _OriginSearch()
    search.add_values(requested.args)
    first_read = ""
    async for item in _items_before(queries, trace.run_id, seq):
        if isinstance(item, Event):
            findings.notes.append(item)
            continue
        if _is_untrusted(trace, item):
            first_read = item.requested.call_id
        if _is_answered(trace, item) or _is_vouched_for(item):
            findings.call_ids[item.requested.call_id] = None
        search.look_into(item)
    findings.call_ids |= dict.fromkeys((*search.call_ids, *filter(None, (first_read,))))
    for source in requested.sources:
        if source.call_id:
            findings.call_ids[source.call_id] = None
    return findings


class _OriginSearch:
    """Values, and the calls whose outputs have them; of each value the newest few and the first.

    A value may have been looked up by another one, which an earlier output has: the arguments of a call that has one of
    the values are searched for in what came before it.
    """

    def __init__(self) -> None:
        self._search = ValueSearch()
        self._newest: dict[str, list[str]] = {}
        self._first: dict[str, str] = {}

    @property
    def call_ids(self) -> list[str]:
        """The calls that were found."""
        return [*(call_id for call_ids in self._newest.values() for call_id in call_ids), *self._first.values()]

    def add_values(self, args: Any) -> None:
        """Search for the plain values of these arguments, too."""
        for _, value in leaves(args):
            if len(self._newest) == _MOST_VALUES:
                return
            if (name := self._search.add(value)) is not None:
                self._newest.setdefault(name, [])

    def look_into(self, call: EndedCall) -> None:
        """Look for the values in the output of a call, which is before all those that were looked into."""
        call_id, args = call.requested.call_id, call.requested.args
        for name in self._search.values_in(call.observed):
            self._first[name] = call_id
            if len(newest := self._newest[name]) < _MOST_OF_VALUE:
                newest.append(call_id)
                self.add_values(args if call.approval is None or call.approval.args is None else call.approval.args)


async def _items_before(queries: JournalQueries, run_id: str, before: int) -> AsyncIterator[EndedCall | Event]:
    """The calls with an outcome and the notes that count as words before an event, the newest first."""
    outcomes: dict[str, Observed] = {}
    approvals: dict[str, ApprovalGiven] = {}
    while events := await queries.read(run_id, before=before, kinds=_KINDS, limit=_CHUNK, last=True):
        before = events[0].seq
        for event in reversed(events):
            match event.fact:
                case Observed() as fact:
                    outcomes[fact.call_id] = fact
                case ApprovalGiven() as fact if fact.call_id in outcomes:
                    approvals[fact.call_id] = fact
                case ActionRequested() as fact:
                    observed, approval = outcomes.pop(fact.call_id, None), approvals.pop(fact.call_id, None)
                    if observed is not None and fact.verdict != "deny":
                        yield EndedCall(fact, approval, observed)
                case Noted() as fact if fact.by != GUARD or fact.about.startswith(LESSON):
                    yield event
                case _:
                    pass


def _requests(event: Event, call_id: str) -> bool:
    return isinstance(event.fact, ActionRequested) and event.fact.call_id == call_id


def _is_untrusted(trace: Trace, call: EndedCall) -> bool:
    card = trace.card(call.requested.tool)
    return is_untrusted_output(call.requested, call.observed, card, trace.agent.policy)


def _is_answered(trace: Trace, call: EndedCall) -> bool:
    """Whether a call is a question that the user answered: what they said are words of theirs, and no output."""
    labels = {} if trace.started is None else trace.started.labels
    answer = call.approval
    is_answer = answer is not None and answer.args is not None and is_question(trace.card(call.requested.tool))
    return is_answer and answer is not None and is_by_starter(labels, answer.by, answer.authenticated)


def _is_vouched_for(call: EndedCall) -> bool:
    """Whether a person made values of the call their own: they edited it, or trust its values."""
    return call.approval is not None and (call.approval.args is not None or call.approval.scope == "values")
