"""Everything that waits for a person, in one list: for `tao approvals`, the panel, and whoever counts.

There are six kinds, for a run can get no further in six ways: the policy asks about a call; the model asks something;
nobody knows whether a call happened; an undo stopped; an answer rests on calls that were denied because nobody could be
asked; a process died again and again at one place. What waits is found by the status of runs, so a journal with many
completed runs is not read, and `Inbox` reads a run again only once it has grown.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from taoloop.core.events import Finished, Paused, Resumed, Status
from taoloop.core.trace import Trace
from taoloop.core.views.plans import shown_task
from taoloop.core.views.steps import NOTE, PROBE, CallView
from taoloop.core.views.transcript import observation_text
from taoloop.errors import RunNotFound, TaoError
from taoloop.journals.base import Journal, RunRow, locks_of
from taoloop.journals.queries import RunQuery, has_queries, is_within, queries_of, read_start, rows_with_status
from taoloop.runtime.after.recovery import is_stuck, lost_rows, lost_trace
from taoloop.runtime.after.undo_plan import undo_id
from taoloop.runtime.approvals.in_doubt import doubt_requests, stuck_requests
from taoloop.runtime.approvals.inbox import is_one_question, outermost_run_id
from taoloop.runtime.approvals.request import ApprovalRequest, approval_request, unanswered_calls
from taoloop.runtime.approvals.run_excerpt import read_excerpt
from taoloop.runtime.child_run import deaths_in_a_row
from taoloop.strategies.planned_calls import PLAN, call_of, number_of, plan_of

InboxKind = Literal["approval", "question", "doubt", "undo", "blocked", "dead"]
"""Why something waits: the policy asks about a call; the model asks a person something; a call may or may not have
happened; an undo stopped; the answer of a run rests on denied calls; a run was given up by recovery because its process
died again and again."""

INBOX_KINDS: Final[tuple[InboxKind, ...]] = get_args(InboxKind)

ProbeReport = Literal["", "happened", "not_happened", "unclear", "no_probe"]
"""What the tool's own probe said about a started call: it happened, it did not, nobody can tell, or there is no probe.
Empty: it was not asked yet."""

WHOLE_RUN: Final = "run"
"""In place of the id of a call, for what concerns a run as a whole. No call has this id."""

BLOCKED_AT_ONCE: Final = 500
"""The most blocked runs that are listed, the newest ones: unattended runs may leave many."""

_UNDO_ID = re.compile(r"(?P<run_id>.+)\.undo-(?P<number>\d+)")
_ENDED_EARLY: Final[tuple[Status, ...]] = ("too_many_errors", "stopped", "budget_exceeded", "max_steps_exceeded")
_WAITING, _BLOCKED = "waiting", "blocked"
_ALL = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxCall:
    """A call that something in the inbox is about."""

    request: ApprovalRequest
    """The call with its card, where its arguments came from, and the rule that decided about it."""

    attempts: int = 0
    """How often it was started."""

    started_at: float | None = None
    """When the last attempt began, in seconds since the epoch; None if it was never started."""

    probe: ProbeReport = ""
    """What the tool's probe said about a started call."""

    note: str = ""
    """What the probe remarked, or the error of a call that failed, in the run's language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoneEffect:
    """The effect that a failed undo was to take back."""

    run_id: str
    """The run that made the call."""

    call_id: str
    """Its id there."""

    tool: str
    """Its tool; empty where the run is gone."""

    to_step: int
    """The last step of the run that was to stay."""

    remaining: int
    """How many calls of the plan come after it, and were not undone either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxItem:
    """One thing that waits for a person. `run_id` and `call_id` together name it for good, also in a link."""

    kind: InboxKind
    """Why it waits."""

    run_id: str
    """The run that waits; for `undo` the run that undoes."""

    call_id: str
    """The call in it, or `WHOLE_RUN`."""

    agent: str
    """The name of the run's agent."""

    task: str
    """The task of the run; of a step of a plan, the user's task and the step."""

    language: str
    """The language of the run, in which its reasons are."""

    status: str
    """The status of the run."""

    since: float | None
    """When it began to wait, in seconds since the epoch."""

    outer: str
    """The run to resume: the outermost one around this run, or the run itself."""

    command: str
    """The command that goes on once the item is answered, without `--db`."""

    expires_at: float | None = None
    """When the question counts as refused, in seconds since the epoch; None for never."""

    calls: tuple[InboxCall, ...] = ()
    """The calls that it is about: one for `approval`, `question`, `doubt` and `undo`; the denied ones of a blocked run;
    those that were under way in a run that was given up."""

    alike: tuple[str, ...] = ()
    """The ids of the other calls of the run that one answer may be for too (`ApprovalRequest.is_alike`)."""

    reason: str = ""
    """Why the run ended, or the undo stopped, in the run's language."""

    answer: str = ""
    """The answer of a blocked run, which may rest on the denied calls."""

    deaths: int = 0
    """How often in a row the process of a run that was given up was replaced without any progress."""

    undoes: UndoneEffect | None = None
    """For `undo`, the effect that was to be taken back."""

    @property
    def key(self) -> tuple[str, str]:
        """What names it."""
        return self.run_id, self.call_id

    @property
    def call(self) -> InboxCall | None:
        """The call that it is about, if that is a single one."""
        return self.calls[0] if self.calls and self.call_id != WHOLE_RUN else None

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools of its calls, each once."""
        return tuple(dict.fromkeys(call.request.tool for call in self.calls))

    def seconds_left(self, now: float) -> float | None:
        """The seconds until it counts as refused; None for ever, 0 where its time is over."""
        return None if self.expires_at is None else max(0.0, self.expires_at - now)


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxListing:
    """What waits at one moment."""

    items: tuple[InboxItem, ...] = ()
    """Everything that waits, by kind in the order of `INBOX_KINDS`, within a kind the oldest first."""

    unreadable: tuple[tuple[str, TaoError], ...] = ()
    """The runs that wait and cannot be read, each with the error."""

    is_cut: bool = False
    """Whether there are more blocked runs than are listed."""

    def of(self, *kinds: InboxKind) -> tuple[InboxItem, ...]:
        """The items of these kinds."""
        return tuple(item for item in self.items if item.kind in kinds)

    def find(self, run_id: str, call_id: str) -> InboxItem | None:
        """The item of this name, or None: it was answered, or never waited."""
        return next((item for item in self.items if item.key == (run_id, call_id)), None)


_Known = dict[str, tuple[tuple[str, object], tuple[InboxItem, ...]]]
"""By run: its status and state when it was read, and its items."""


class Inbox:
    """What waits in one journal. It keeps what it has read, so asking again costs little while nothing happens."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: _Known = {}

    async def load(
        self, *, kinds: Collection[InboxKind] = INBOX_KINDS, run_id: str | None = None, now: float | None = None
    ) -> InboxListing:
        """What waits now, in all runs, or in `run_id` and the runs inside it.

        `now` is seconds since the epoch, by default the machine's time.

        Raises:
            JournalError: the journal cannot be read.
        """
        now = time.time() if now is None else now
        reader = _Reader(self._journal, self._known, run_id)
        items: list[InboxItem] = []
        if {"approval", "question", "doubt"} & set(kinds):
            items += await reader.waiting()
        if {"doubt", "dead", "undo"} & set(kinds):
            items += await reader.lost(now)
        if "undo" in kinds:
            items += await reader.failed_undos()
        is_cut = False
        if "blocked" in kinds:
            blocked, is_cut = await reader.blocked()
            items += blocked
        is_all = run_id is None and set(kinds) == set(INBOX_KINDS)
        self._known = reader.seen if is_all else self._known | reader.seen
        order = {kind: number for number, kind in enumerate(INBOX_KINDS)}
        items = sorted((item for item in items if item.kind in kinds), key=lambda item: order[item.kind])
        return InboxListing(items=tuple(items), unreadable=tuple(reader.unreadable), is_cut=is_cut)

    async def count(self, *, now: float | None = None) -> Counter[InboxKind]:
        """How much is listed, by kind. Blocked runs are only counted, not read.

        A run that cannot be read counts as one approval, so that somebody looks.

        Raises:
            JournalError: the journal cannot be read.
        """
        now = time.time() if now is None else now
        reader = _Reader(self._journal, self._known, None)
        items = [*await reader.waiting(), *await reader.lost(now), *await reader.failed_undos()]
        counts: Counter[InboxKind] = Counter(item.kind for item in items)
        counts["approval"] += len(reader.unreadable)
        counts["blocked"] += await reader.blocked_count()
        blocked = {run_id: known for run_id, known in self._known.items() if known[0][0] == _BLOCKED}
        self._known = blocked | reader.seen
        return counts


async def find_item(journal: Journal, run_id: str, call_id: str) -> InboxItem | None:
    """The item of this name, read from this run alone; None: it was answered, or never waited."""
    return (await Inbox(journal).load(run_id=run_id)).find(run_id, call_id)


class _Reader:
    """Reads what waits, once; runs that have not grown since `known` are not read again."""

    def __init__(self, journal: Journal, known: _Known, run_id: str | None) -> None:
        self._journal, self._known, self._run_id = journal, known, run_id
        self.seen: _Known = {}
        self.unreadable: list[tuple[str, TaoError]] = []

    async def waiting(self) -> list[InboxItem]:
        """The open questions of the runs that wait."""
        items: list[InboxItem] = []
        for row in await rows_with_status(self._journal, (_WAITING,), run_id=self._run_id):
            items += await self._items_of(row, row.events, self._questions)
        return items

    async def blocked(self) -> tuple[list[InboxItem], bool]:
        """The blocked runs, and whether there are more than these; those inside another one are part of that."""
        rows = await self._blocked_rows()
        items: list[InboxItem] = []
        for row in rows[-BLOCKED_AT_ONCE:]:
            items += await self._items_of(row, row.events, self._blocked_items)
        return items, len(rows) > BLOCKED_AT_ONCE

    async def blocked_count(self) -> int:
        """How many blocked runs are listed."""
        return min(len(await self._blocked_rows()), BLOCKED_AT_ONCE)

    async def _blocked_rows(self) -> list[RunRow]:
        if self._run_id is None and has_queries(self._journal):
            query = RunQuery(statuses=(_BLOCKED,), only_outermost=True)
            return list((await queries_of(self._journal).find(query, limit=BLOCKED_AT_ONCE + 1)).rows)[::-1]
        return await rows_with_status(self._journal, (_BLOCKED,), run_id=self._run_id, only_outermost=True)

    async def lost(self, now: float) -> list[InboxItem]:
        """The runs without a process that no recovery resumes, with their calls in doubt, and undos without one."""
        items: list[InboxItem] = []
        for row in await lost_rows(self._journal, now=now):
            if not is_within(row.run_id, self._run_id):
                continue

            async def items_of(row: RunRow) -> Sequence[InboxItem]:
                trace = await lost_trace(self._journal, row, now=now)
                return () if trace is None else await self._lost_items(trace)

            items += await self._items_of(row, await self._family_state(row), items_of)
        return items

    async def _family_state(self, row: RunRow) -> object:
        """Changes whenever a run around or inside this one grows, on which it depends whether it is stuck.

        None where it depends on the time as well: the journal does not know who is at work on a run.
        """
        if locks_of(self._journal) is None or not has_queries(self._journal):
            return None
        query = RunQuery(prefix=row.run_id.partition(".")[0])
        rows = (await queries_of(self._journal).find(query, limit=_ALL)).rows
        return tuple((other.run_id, other.events) for other in rows)

    async def failed_undos(self) -> list[InboxItem]:
        """The undos that ended before everything was undone, unless a later one of the same run went on."""
        items: list[InboxItem] = []
        for row in await rows_with_status(self._journal, _ENDED_EARLY, run_id=self._run_id, model=PLAN):
            if _UNDO_ID.fullmatch(row.run_id) and not await self._has_later_undo(row.run_id):
                items += await self._items_of(row, row.events, self._undo_items)
        return items

    async def _items_of(
        self, row: RunRow, state: object, read: Callable[[RunRow], Awaitable[Sequence[InboxItem]]]
    ) -> Sequence[InboxItem]:
        known = self._known.get(row.run_id)
        if known is not None and state is not None and known[0] == (row.status, state):
            self.seen[row.run_id] = known
            return known[1]
        try:
            items = tuple(await read(row))
        except TaoError as error:
            self.unreadable.append((row.run_id, error))
            return ()
        self.seen[row.run_id] = (row.status, state), items
        return items

    async def _questions(self, row: RunRow) -> Sequence[InboxItem]:
        trace = await read_excerpt(self._journal, row.run_id)
        outer = Trace(row.run_id) if trace.paused is None else await self._outer(trace)
        return _question_items(trace, outer)

    async def _outer(self, trace: Trace) -> Trace:
        outer_id = await outermost_run_id(self._journal, trace)
        return trace if outer_id == trace.run_id else Trace(outer_id, await read_start(self._journal, outer_id))

    async def _lost_items(self, trace: Trace) -> Sequence[InboxItem]:
        if plan_of(trace):
            return await self._undo_items_of(trace)
        if not await is_stuck(self._journal, trace):
            return ()
        doubts = [_call_item("doubt", trace, request, trace) for request in stuck_requests(trace)]
        if trace.started is None or trace.started.parent is not None:
            return doubts  # the run around it is what to decide about
        calls = tuple(_started_call(trace, approval_request(trace, call)) for call in trace.pending.values())
        deaths = await deaths_in_a_row(self._journal, trace)
        return [*doubts, _item("dead", trace, WHOLE_RUN, trace, since=trace.events[-1].at, calls=calls, deaths=deaths)]

    async def _blocked_items(self, row: RunRow) -> Sequence[InboxItem]:
        trace = await read_excerpt(self._journal, row.run_id)
        ended = trace.finished
        if ended is None or ended.status != _BLOCKED:
            return ()
        denied = [trace.calls[call_id] for call_id in ended.denied if call_id in trace.calls]
        calls = tuple(InboxCall(request=approval_request(trace, call), note=_error_of(call)) for call in denied)
        values = {"calls": calls, "reason": ended.reason, "answer": ended.answer or ""}
        return [_item("blocked", trace, WHOLE_RUN, trace, since=_blocked_since(trace), **values)]

    async def _undo_items(self, row: RunRow) -> Sequence[InboxItem]:
        return await self._undo_items_of(await read_excerpt(self._journal, row.run_id))

    async def _undo_items_of(self, trace: Trace) -> Sequence[InboxItem]:
        """The call at which an undo stopped; none if it is over for good, or has nothing left to do."""
        plan = plan_of(trace)
        calls = list(trace.calls.values())  # of a long run the last one, at which it stopped: they are made one by one
        stopped = next((call for call in calls if call.observed is None or not call.observed.ok), None)
        following = number_of(calls[-1].requested.call_id) + 1 if calls else 0
        number = following if stopped is None else number_of(stopped.requested.call_id)
        if trace.is_over or trace.started is None or trace.started.undoes is None or number >= len(plan):
            return ()
        entry = plan[number]
        undoes = UndoneEffect(
            run_id=entry.run_id,
            call_id=entry.call_id,
            tool=await self._tool_of(entry.run_id, entry.call_id),
            to_step=trace.started.undoes.to_step,
            remaining=len(plan) - number - 1,
        )
        shown: tuple[InboxCall, ...] = ()
        if stopped is not None:
            shown = (_started_call(trace, approval_request(trace, stopped)),)
        reason = "" if trace.finished is None else trace.finished.reason
        values = {"calls": shown, "reason": reason, "undoes": undoes}
        return [_item("undo", trace, call_of(number), trace, since=trace.events[-1].at, **values)]

    async def _tool_of(self, run_id: str, call_id: str) -> str:
        try:
            call = (await read_excerpt(self._journal, run_id, call_ids=(call_id,))).calls.get(call_id)
        except RunNotFound:
            return ""
        return "" if call is None else call.requested.tool

    async def _has_later_undo(self, run_id: str) -> bool:
        """Whether the run that this one undoes was undone once more since."""
        match = _UNDO_ID.fullmatch(run_id)
        if match is None:
            return False
        try:
            await read_start(self._journal, undo_id(match["run_id"], int(match["number"]) + 1))
        except RunNotFound:
            return False
        return True


def _question_items(trace: Trace, outer: Trace) -> list[InboxItem]:
    """The open questions of a run that waits: about calls that may run, and about calls that may have happened."""
    if trace.paused is None:
        return []
    requests = [approval_request(trace, call) for call in unanswered_calls(trace)]
    items = []
    for request in requests:
        alike = tuple(other.call_id for other in requests if other is not request and is_one_question(request, other))
        items.append(_call_item("approval" if request.question is None else "question", trace, request, outer, alike))
    return items + [_call_item("doubt", trace, request, outer) for request in doubt_requests(trace)]


def _call_item(
    kind: InboxKind, trace: Trace, request: ApprovalRequest, outer: Trace, alike: tuple[str, ...] = ()
) -> InboxItem:
    paused = (event.at for event in reversed(trace.events) if isinstance(event.fact, Paused))
    since = request.since if kind != "doubt" else next(paused, trace.events[-1].at)
    calls = (_started_call(trace, request),)
    return _item(
        kind, trace, request.call_id, outer, since=since, expires_at=request.expires_at, calls=calls, alike=alike
    )


def _item(kind: InboxKind, trace: Trace, call_id: str, outer: Trace, **values: Any) -> InboxItem:
    return InboxItem(
        kind=kind,
        run_id=trace.run_id,
        call_id=call_id,
        agent=trace.agent.name,
        task=shown_task(trace),
        language=trace.agent.language,
        status=trace.status,
        outer=outer.run_id,
        command=resume_command(outer),
        **values,
    )


def _blocked_since(trace: Trace) -> float:
    """When a run became blocked; the notes that it took since have changed nothing of that."""
    since = trace.events[-1].at
    for event in reversed(trace.events):
        match event.fact:
            case Finished(status="blocked"):
                since = event.at
            case Resumed(reason=reason) if reason != NOTE:
                break
            case _:
                pass
    return since


def resume_command(trace: Trace) -> str:
    """The command that resumes a run that is not over, without `--db`.

    An undo goes on by another `tao undo`. A run that ended as `blocked` where nobody could be asked needs a profile in
    which a person can be. A run of workers is handed to them again.
    """
    if trace.started is not None and (undoes := trace.started.undoes) is not None:
        return f"tao undo {undoes.run_id}" + (f" --to {undoes.to_step}" if undoes.to_step else "")
    is_blocked = trace.finished is not None and trace.finished.status == _BLOCKED
    is_unattended = is_blocked and trace.agent.policy.profile == "headless"
    if trace.started is not None and trace.started.submission is not None and not is_unattended:
        return f"tao submit --resume {trace.run_id}"
    return f"tao resume {trace.run_id}" + (" --profile supervised" if is_unattended else "")


def _started_call(trace: Trace, request: ApprovalRequest) -> InboxCall:
    """A call with what is known of its attempts."""
    call = trace.calls[request.call_id]
    settled = call.settled if call.settled is not None and call.settled.by == PROBE else None
    probe: ProbeReport = ""
    if settled is not None:
        probe = "unclear" if settled.happened is None else "happened" if settled.happened else "not_happened"
    elif call.attempts and request.card is not None and not request.card.probes:
        probe = "no_probe"
    note = settled.note if settled is not None else _error_of(call)
    return InboxCall(request=request, attempts=call.attempts, started_at=call.started_at, probe=probe, note=note)


def _error_of(call: CallView) -> str:
    return "" if call.observed is None or call.observed.ok else observation_text(call.observed)
