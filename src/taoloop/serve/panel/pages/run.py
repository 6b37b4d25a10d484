"""One run: the transcript in parts that load when they are looked at, its timeline, and its state at each step.

Nothing here loads a whole run to show a part of it, but the timeline and the totals, which are asked for apart and read
the run piece by piece.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from taoloop.core.events import Event, Finished, ModelReplied, Observed, Paused, RunStarted
from taoloop.core.views.event_entries import EntryText, EventEntry, event_entries
from taoloop.core.views.handoff import read_outcome
from taoloop.core.views.marks import RunMarks
from taoloop.core.views.run_totals import RunTotals
from taoloop.core.views.timeline import TimelineBuilder
from taoloop.core.views.todos import TodoList, todo_list
from taoloop.errors import ConfigError, JournalLocked, RunNotFound, TaoError
from taoloop.journals.base import LockHolder, RunRow, locks_of
from taoloop.runtime.after.regression_file import case_name
from taoloop.runtime.approvals.run_excerpt import read_excerpt
from taoloop.runtime.journal_access import is_driven_here
from taoloop.runtime.lessons import Lesson, lesson_in
from taoloop.serve.panel.context import PanelContext, Route
from taoloop.serve.panel.event_stream import send_events
from taoloop.serve.panel.run_reading import (
    UnreadableEvent,
    find_row,
    find_step,
    forks_of,
    inner_runs,
    last_seq,
    read_all,
    read_events,
    step_count,
)
from taoloop.serve.panel.transcript_parts import CHAPTER, SECTION, TranscriptPart, cut_chapter, cut_transcript
from taoloop.strategies.past_state import limit_use, next_request
from taoloop.translation import mark, translate_error

MOST_EVENTS: Final = 60_000
"""How many events of the transcript one page has places for: enough for 20,000 steps; more are on further pages."""

MESSAGES_SHOWN: Final = 12
"""How many of the newest messages of a prompt are shown at once."""

TODO_STATE_NAMES: Final = mark({"open": "open", "in_progress": "in progress", "done": "done", "dropped": "dropped"})
"""How far an item of a todo list is."""

ROLE_NAMES: Final = mark({"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"})
"""Who speaks in a message of a prompt."""

_EARLIER = 60  # events before a part, in which its calls were requested


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPosition:
    """Where in a run its page is."""

    last: int
    """The last event that the page knows; -1: there is none."""
    steps: int
    """How many steps the run has so far."""
    step: int | None
    """The step that was asked for."""
    seq: int | None
    """The event that was asked for, or with which the step begins."""

    @property
    def places(self) -> range:
        """The events that have a place in the page: all, or those around the event; whole chapters, but for the end."""
        most, middle = MOST_EVENTS // CHAPTER, (self.seq or 0) // CHAPTER
        first = max(0, min(middle - most // 2, self.last // CHAPTER + 1 - most))
        return range(first * CHAPTER, min(self.last + 1, (first + most) * CHAPTER))


async def run_page(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}`: the page, with the part of the transcript that was asked for."""
    run_id, queries = context.param("run_id"), context.queries
    row = await find_row(queries, run_id)
    position = await _position(context, row)
    started = await _started(context)
    parts = _parts(position, row)
    return context.page(
        "run.html",
        run_id=run_id,
        row=row,
        position=position,
        started=started,
        parts=parts,
        entries_of=await _entries_of(context, parts),
        colour=_colour(context),
        window={name: context.query(name) or None for name in ("from", "to")},
        case_file=f"test_{case_name(run_id)}.zip",
        lesson=await _lesson(context, started),
        **await _head(context, row),
    )


async def section_part(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/events?from=SEQ&to=SEQ`: a part of the transcript."""
    first = max(0, _number(context, "from", 0))
    to = min(_number(context, "to", first + SECTION - 1), first + SECTION - 1)
    entries = await _entries(context, first, to)
    return context.fragment("run_entries.html", run_id=context.param("run_id"), entries=entries)


async def sections_part(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/sections?from=SEQ&to=SEQ&seq=SEQ`: a chapter as sections, with what is around an event."""
    first, seq = max(0, _number(context, "from", 0)), _number(context, "seq", -1)
    to = min(_number(context, "to", first + CHAPTER - 1), first + CHAPTER - 1)
    parts = cut_chapter(first, to, {seq})
    entries_of = await _entries_of(context, parts)
    run_id = context.param("run_id")
    return context.fragment("run_transcript.html", run_id=run_id, parts=parts, entries_of=entries_of)


async def tail_part(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/tail?after=SEQ`: what is new at the end; 204 if nothing is."""
    after = _number(context, "after", -1)
    entries = await _entries(context, after + 1)
    if not entries:
        return web.Response(status=204)
    last = entries[-1].seq
    return context.fragment("run_tail.html", run_id=context.param("run_id"), entries=entries, last=last)


async def head_part(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/head`: status, what was used, the answer or what is waited for."""
    row = await find_row(context.queries, context.param("run_id"))
    return context.fragment("run_head.html", row=row, run_id=context.param("run_id"), **await _head(context, row))


async def totals_part(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/totals`: steps, calls, tokens and cost of the whole run, and the model's todo list."""
    totals = await context.panel.views.of(context.param("run_id"), RunTotals)
    todos = (await context.panel.views.of(context.param("run_id"), TodoList)).todos
    values: dict[str, Any] = {"totals": totals, "todos": todos, "todo_states": TODO_STATE_NAMES}
    return context.fragment("run_totals.html", run_id=context.param("run_id"), **values)


async def relations_part(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/relations`: the runs inside it and those forked from it."""
    row = await find_row(context.queries, context.param("run_id"))
    forks = [] if row is None else await forks_of(context.queries, row)
    inner = await inner_runs(context.queries, context.param("run_id"))
    return context.fragment("run_relations.html", run_id=context.param("run_id"), inner=inner, forks=forks)


async def timeline_part(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/timeline?from=SEQ&to=SEQ&colour=cost`: a drawing of the run, or of a part of it."""
    run_id, first = context.param("run_id"), _number(context, "from", 0)
    to = _number(context, "to", -1)
    is_whole = first <= 0 and to < 0
    if is_whole:
        builder = await context.panel.views.of(run_id, TimelineBuilder)
    else:
        builder = TimelineBuilder()
        async for event in read_all(context.queries, run_id, after=first - 1):
            if 0 <= to < event.seq:
                break
            builder.fold(event)
    row = await find_row(context.queries, run_id)
    is_open = row is not None and row.status in ("running", "waiting") and to < 0
    timeline = builder.build(context.panel.clock.now() if is_open else None)
    return context.fragment(
        "run_timeline.html",
        run_id=run_id,
        timeline=timeline,
        colour=_colour(context),
        is_whole=is_whole,
        first=first,
        to=to,
        is_open=is_open,
    )


async def state_part(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/state?step=N`: the run as it was when the model was asked in this step."""
    run_id, step = context.param("run_id"), _number(context, "step", 1)
    row = await find_row(context.queries, run_id)
    last = await last_seq(context.queries, run_id, row)
    seq = await find_step(context.queries, run_id, step, last)
    if seq is None:
        raise ConfigError(context.say("This run has no step {n}.", n=step), hint=context.say("Choose an earlier one."))
    if context.query("all") or context.panel.states.is_near(run_id, seq):
        return context.fragment("run_state.html", run_id=run_id, step=step, **await state_values(context, seq))
    return context.fragment("run_state_begin.html", run_id=run_id, step=step, seq=seq)


async def state_values(context: PanelContext, seq: int) -> dict[str, Any]:
    """The run before an event, for `run_state.html` and `run_prompt.html`; a problem where it cannot be built again."""
    run_id = context.param("run_id")
    values: dict[str, Any] = {
        "seq": seq,
        "trace": None,
        "limits": (),
        "reply": None,
        "request": None,
        "problem": "",
        "most_messages": MESSAGES_SHOWN,
        "role_names": ROLE_NAMES,
        "todos": (),
        "todo_states": TODO_STATE_NAMES,
    }
    try:
        events = await context.queries.read(run_id, after=seq - 1, before=seq + 1, limit=1)
        is_reply = bool(events) and isinstance(events[0].fact, ModelReplied)
        values["reply"] = events[0].fact if is_reply else None
        trace = values["trace"] = await context.panel.states.before(run_id, seq if is_reply else seq + 1)
        values["limits"] = limit_use(trace)
        values["todos"] = todo_list(trace).todos
        values["request"] = next_request(trace)
    except (RunNotFound, JournalLocked):
        raise
    except TaoError as error:  # of another version, or with a strategy that is not known here
        values["problem"] = context.without_path(translate_error(error.message))
    return values


async def live(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/live`: server-sent events about this run."""
    return await send_events(context, context.param("run_id"))


ROUTES: Final = (
    Route("GET", "/runs/{run_id}", run_page),
    Route("GET", "/runs/{run_id}/events", section_part),
    Route("GET", "/runs/{run_id}/sections", sections_part),
    Route("GET", "/runs/{run_id}/tail", tail_part),
    Route("GET", "/runs/{run_id}/head", head_part),
    Route("GET", "/runs/{run_id}/totals", totals_part),
    Route("GET", "/runs/{run_id}/relations", relations_part),
    Route("GET", "/runs/{run_id}/timeline", timeline_part),
    Route("GET", "/runs/{run_id}/state", state_part),
    Route("GET", "/runs/{run_id}/live", live),
)


def _number(context: PanelContext, name: str, default: int) -> int:
    """A number of the address.

    Raises:
        ConfigError: it is none.
    """
    text = context.query(name)
    if not text:
        return default
    if not (text.isascii() and text.removeprefix("-").isdecimal() and len(text) < 12):  # far enough
        message = context.say("{text} is not a number.", text=f"{name}={text[:40]!r}")
        raise ConfigError(message, hint=context.say("Write a whole number."))
    return int(text)


def _colour(context: PanelContext) -> str:
    return "cost" if context.query("colour") == "cost" else "kind"


async def _position(context: PanelContext, row: RunRow | None) -> RunPosition:
    run_id, queries = context.param("run_id"), context.queries
    last = await last_seq(queries, run_id, row)
    count = await step_count(queries, run_id, last)
    step = _number(context, "step", 0) or None
    seq: int | None = None
    if step is not None:
        seq = await find_step(queries, run_id, step, last, count)
    elif context.query("seq"):
        seq = min(max(0, _number(context, "seq", 0)), max(last, 0))
    return RunPosition(last=last, steps=count, step=step, seq=seq)


async def _started(context: PanelContext) -> RunStarted | None:
    events = await read_events(context.queries, context.param("run_id"), 0, 1)
    fact = events[0].fact if events and isinstance(events[0], Event) else None
    return fact if isinstance(fact, RunStarted) else None


async def _lesson(context: PanelContext, started: RunStarted | None) -> Lesson | None:
    """The lesson that the run left for later ones; None if there is none."""
    if started is None or "lessons=" not in started.agent.strategy:
        return None
    return lesson_in(await read_excerpt(context.journal, context.param("run_id")))


def _parts(position: RunPosition, row: RunRow | None) -> list[TranscriptPart]:
    """The parts of the page; at once it has the event that was asked for, and the end of a run that goes on."""
    places = position.places
    if not places:
        return []
    shown = {position.seq or 0}
    if row is not None and row.status in ("running", "waiting") and position.seq is None:
        shown.add(position.last)
    return cut_transcript(places[0], places[-1], shown)


async def _entries_of(context: PanelContext, parts: list[TranscriptPart]) -> dict[int, list[EventEntry]]:
    """The entries of the parts that are shown at once, by the first event of each."""
    return {part.first: await _entries(context, part.first, part.last) for part in parts if part.is_shown}


async def _entries(context: PanelContext, first: int, to: int | None = None) -> list[EventEntry]:
    """The entries of the part from an event on, at most up to `to`, in the language of the person."""
    end = first + SECTION if to is None else min(first + SECTION, to + 1)
    start = max(0, first - _EARLIER)
    events = await read_events(context.queries, context.param("run_id"), start, end - start)
    head = await read_events(context.queries, context.param("run_id"), 0, 1) if start else []  # the cards
    readable = [event for event in (*head, *events) if isinstance(event, Event)]
    earlier = [event for event in readable if event.seq < first]
    entries = {entry.seq: entry for entry in event_entries(readable[len(earlier) :], context.language, earlier=earlier)}
    for event in events:
        if isinstance(event, UnreadableEvent) and event.seq >= first:
            entries[event.seq] = _unreadable_entry(context, event)
    return [entries[seq] for seq in sorted(entries)]


def _unreadable_entry(context: PanelContext, event: UnreadableEvent) -> EventEntry:
    title = context.say("This event cannot be read")
    text = EntryText("", context.without_path(translate_error(event.reason)))
    return EventEntry(seq=event.seq, at=0.0, kind="unreadable", tone="bad", title=title, texts=(text,))


async def _head(context: PanelContext, row: RunRow | None) -> dict[str, Any]:
    """What `run_head.html` needs: the end of the run or what it waits for, and who is at work on it."""
    run_id = context.param("run_id")
    holder: LockHolder | None = None
    locks = locks_of(context.journal)
    is_running = row is not None and row.status == "running"
    if locks is not None and is_running:
        holder = await locks.holder(run_id)
    end, speaker, marks = None, "", RunMarks()
    if row is not None and not is_running:
        events = await read_events(context.queries, run_id, max(0, row.events - _EARLIER), _EARLIER)
        for event in events:
            if isinstance(event, Event):
                marks.fold(event)
        for event in reversed(events):
            if end is None and isinstance(event, Event) and isinstance(event.fact, Finished | Paused):
                end = event
            elif end is not None:  # the event before it may be that another agent took over
                speaker = _speaker(event)
                break
    return {
        "holder": holder,
        "is_lost": is_running and locks is not None and holder is None,
        "is_driven_here": is_driven_here(context.journal, run_id),
        "end": end,
        "speaker": speaker,
        "marks": tuple(marks.by_person.values()),
        "own_mark": marks.by_person.get(context.identity.name),
    }


def _speaker(event: Event | UnreadableEvent) -> str:
    """The agent that gave the answer, where it is another than the run's; from the event before the end."""
    fact = event.fact if isinstance(event, Event) else None
    is_handoff = isinstance(fact, Observed) and fact.ok and fact.child is not None
    outcome = read_outcome(fact.output) if is_handoff and isinstance(fact, Observed) else None
    return "" if outcome is None else outcome.agent
