"""When a run was at work: the time of the model, of tools side by side and of people, on an axis without idle time.

A run may wait for days between two seconds of work. So a gap in which neither the model nor a tool is at work, and
which is long for this run, becomes a break of fixed width with its length written on it. Many spans are drawn as few:
what begins within the same small part of the axis is one bar. Positions are fractions of the width of the drawing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

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
    ModelErred,
    ModelReplied,
    Observed,
    Paused,
    Resumed,
)
from taoloop.core.human_input import Marked
from taoloop.core.message import SIDE_PURPOSES

SpanKind = Literal["model", "tool", "person"]

MAX_BARS = 300
"""How many bars are drawn at most, about: more can neither be told apart nor reached with a pointer."""
MAX_LANES = 8
"""How many calls are drawn side by side; more share a lane."""
COST_LEVELS = 4
"""How many colours there are for costs, beside that for none."""

_MAX_BREAKS = 12
_BREAK_WIDTH = 0.03
_IDLE_PART = 0.1
_MIN_IDLE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineSpan:
    """A time in which something was at work, or a person was waited for. Times are seconds since the epoch."""

    kind: SpanKind
    """The model, a tool, or a person."""
    label: str
    """The model, the tool with its call, or the person."""
    start: float
    """When it began."""
    end: float
    """When it ended; for one that is open, the end of what is known."""
    seq: int
    """The event that tells about it."""
    cost_usd: float | None = None
    """What it cost; None: nothing, or not known."""
    ok: bool = True
    """Whether it succeeded."""
    is_open: bool = False
    """Whether it has no end yet."""


class Bar(NamedTuple):
    """What is drawn of one span, or of several that begin at nearly the same place."""

    x: float
    """Where it begins, as a fraction of the width."""
    width: float
    """How wide it is, as a fraction of the width."""
    spans: tuple[TimelineSpan, ...]
    """What it stands for, at least one."""
    cost_level: int
    """0 for no cost, or from 1 to `COST_LEVELS`, for that of the most expensive bar."""

    @property
    def seq(self) -> int:
        """The first event that tells about it."""
        return self.spans[0].seq

    @property
    def cost_usd(self) -> float | None:
        """What all of it cost; None: nothing, or not known."""
        costs = [span.cost_usd for span in self.spans if span.cost_usd is not None]
        return math.fsum(costs) if costs else None

    @property
    def busy_s(self) -> float:
        """The seconds of all of it together."""
        return math.fsum(span.end - span.start for span in self.spans)

    @property
    def ok(self) -> bool:
        """Whether all of it succeeded."""
        return all(span.ok for span in self.spans)


class Row(NamedTuple):
    """One line of the drawing."""

    kind: SpanKind
    """What its bars are."""
    lane: int
    """Which of the lines of this kind it is, from 0."""
    bars: tuple[Bar, ...]
    """From left to right; they do not overlap, but where calls share a lane."""


class Break(NamedTuple):
    """Idle time that is left out."""

    x: float
    """Where it begins, as a fraction of the width."""
    width: float
    """How wide it is drawn."""
    seconds: float
    """How long it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A part of a run as it is drawn, from left to right."""

    start: float
    """The time at the left end, in seconds since the epoch."""
    end: float
    """The time at the right end."""
    rows: tuple[Row, ...] = ()
    """The model, tools and people, each in as many lines as they need."""
    breaks: tuple[Break, ...] = ()
    """Where time is left out."""
    spans: int = 0
    """How many spans the bars stand for."""

    @property
    def bars(self) -> int:
        """How many bars there are."""
        return sum(len(row.bars) for row in self.rows)

    def busy_s(self, kind: SpanKind) -> float:
        """The seconds of all spans of a kind together; those side by side count each."""
        return math.fsum(bar.busy_s for row in self.rows if row.kind == kind for bar in row.bars)


class TimelineBuilder:
    """Collects the spans of a run, or of a slice of it, one event at a time."""

    def __init__(self) -> None:
        self.spans: list[TimelineSpan] = []
        self._tools: dict[str, str] = {}
        self._started: dict[str, tuple[float, int]] = {}
        self._waiting: dict[str, tuple[float, int]] = {}
        self._last_at = 0.0

    def fold(self, event: Event) -> None:
        """Process the next event."""
        at, fact = event.at, event.fact
        if isinstance(fact, Marked):
            return  # somebody looked at the run long after it
        self._last_at = max(at, self._last_at)
        match fact:
            case ModelReplied():
                cost_usd, start = fact.cost_usd, at - fact.latency_s
                ok = fact.decision is not None or fact.purpose in SIDE_PURPOSES  # which decide nothing
                self._add("model", fact.model, start, event, cost_usd=cost_usd, ok=ok)
            case ModelErred():
                self._add("model", fact.code, at, event, ok=False)
            case ActionStarted():
                self._started[fact.call_id] = at, event.seq
            case InDoubt() if fact.call_id in self._started:
                start, _ = self._started.pop(fact.call_id)
                self._add("tool", self._call(fact.call_id), start, event, ok=False)
            case Observed():
                self._observe(event, fact)
            case _:
                self._fold_person(event)

    def _fold_person(self, event: Event) -> None:
        match event.fact:
            case ActionRequested() | JudgedAgain() as fact:
                if isinstance(fact, ActionRequested):
                    self._tools[fact.call_id] = fact.tool
                if fact.verdict == "ask":
                    self._waiting[fact.call_id] = event.at, event.seq
            case ApprovalGiven() | ApprovalRefused() | DoubtSettled() as fact:
                self._answer(fact.call_id, fact.by, event)
            case Paused(waiting_for=call_ids):
                for call_id in call_ids:
                    self._waiting.setdefault(call_id, (event.at, event.seq))
            case Resumed() | Finished():
                for call_id in list(self._waiting):
                    self._answer(call_id, "", event)
            case _:
                pass

    def _observe(self, event: Event, fact: Observed) -> None:
        start, _ = self._started.pop(fact.call_id, (event.at - fact.latency_s, event.seq))
        if start < event.at:  # else it was not run at all
            label = self._call(fact.call_id)
            self._add("tool", label, start, event, cost_usd=fact.cost_usd, ok=fact.ok)

    def _answer(self, call_id: str, by: str, event: Event) -> None:
        if (waited := self._waiting.pop(call_id, None)) is not None and by != "operator":
            self._add("person", by or self._call(call_id), waited[0], event)

    def _call(self, call_id: str) -> str:
        tool = self._tools.get(call_id)
        return call_id if tool is None else f"{tool} · {call_id}"

    def _add(
        self, kind: SpanKind, label: str, start: float, event: Event, *, cost_usd: float | None = None, ok: bool = True
    ) -> None:
        start = min(start, event.at)  # a clock may have been set back
        span = TimelineSpan(kind=kind, label=label, start=start, end=event.at, seq=event.seq, cost_usd=cost_usd, ok=ok)
        self.spans.append(span)

    def build(self, now: float | None = None) -> Timeline:
        """The drawing of what was collected; what is open lasts until `now`, or until the last event."""
        until = self._last_at if now is None else max(now, self._last_at)
        spans = list(self.spans)
        opened: tuple[tuple[SpanKind, dict[str, tuple[float, int]]], ...]
        opened = (("tool", self._started), ("person", self._waiting))
        for kind, calls in opened:
            for call_id, (at, seq) in calls.items():
                label, end = self._call(call_id), max(at, until)
                spans.append(TimelineSpan(kind=kind, label=label, start=at, end=end, seq=seq, is_open=True))
        return _draw(sorted(spans, key=lambda span: (span.start, span.seq)))


def build_timeline(events: Iterable[Event], now: float | None = None) -> Timeline:
    """The drawing of a run, or of a slice of it."""
    builder = TimelineBuilder()
    for event in events:
        builder.fold(event)
    return builder.build(now)


class _Axis:
    """From times to positions."""

    def __init__(self, spans: Sequence[TimelineSpan]) -> None:
        self.start = min(span.start for span in spans)
        self.end = max(span.end for span in spans)
        gaps = self._gaps(spans)
        active_s = self.end - self.start - math.fsum(end - start for start, end in gaps)
        unit = (1 - _BREAK_WIDTH * len(gaps)) / active_s if active_s > 0 else 0.0
        self.breaks: list[Break] = []
        self._pieces: list[tuple[float, float, float]] = []  # where each piece begins, as time and position; its unit
        at, x = self.start, 0.0
        for start, end in gaps:
            self._pieces.append((at, x, unit))
            x += (start - at) * unit
            self._pieces.append((start, x, _BREAK_WIDTH / (end - start)))
            self.breaks.append(Break(x, _BREAK_WIDTH, end - start))
            at, x = end, x + _BREAK_WIDTH
        self._pieces.append((at, x, unit))

    def _gaps(self, spans: Sequence[TimelineSpan]) -> list[tuple[float, float]]:
        """The idle times that are left out, in order."""
        busy: list[tuple[float, float]] = [(self.start, self.start)]
        for span in spans:  # ordered by their starts
            if span.kind == "person":
                continue
            start, end = busy[-1]
            if span.start <= end:
                busy[-1] = start, max(end, span.end)
            else:
                busy.append((span.start, span.end))
        busy.append((self.end, self.end))
        busy_s = math.fsum(end - start for start, end in busy)
        idle = [(end, start) for (_, end), (start, _) in pairwise(busy)]
        least_s = max(_IDLE_PART * busy_s, _MIN_IDLE_S)
        long = [gap for gap in idle if gap[1] - gap[0] > least_s]
        return sorted(sorted(long, key=lambda gap: gap[0] - gap[1])[:_MAX_BREAKS])

    def x(self, at: float) -> float:
        """The position of a time, as a fraction of the width."""
        piece = max((piece for piece in self._pieces if piece[0] <= at), default=self._pieces[0])
        start, x, unit = piece
        return min(1.0, max(0.0, x + (at - start) * unit))


def _draw(spans: Sequence[TimelineSpan]) -> Timeline:
    if not spans:
        return Timeline(start=0.0, end=0.0)
    axis = _Axis(spans)
    lanes = _lanes(spans)
    parts = None if len(spans) <= MAX_BARS else max(20, MAX_BARS // len(lanes))
    groups = {key: _groups(lane, axis, parts) for key, lane in lanes.items()}
    most = max((_cost(group) for lane in groups.values() for group in lane), default=0.0)
    rows = [
        Row(kind, number, tuple(_bar(group, axis, most) for group in lane)) for (kind, number), lane in groups.items()
    ]
    return Timeline(start=axis.start, end=axis.end, rows=tuple(rows), breaks=tuple(axis.breaks), spans=len(spans))


def _lanes(spans: Sequence[TimelineSpan]) -> dict[tuple[SpanKind, int], list[TimelineSpan]]:
    """The spans of each kind in as few lines as possible in which none overlaps another one."""
    lanes: dict[tuple[SpanKind, int], list[TimelineSpan]] = {}
    for kind in ("model", "tool", "person"):
        ends: list[float] = []
        for span in spans:
            if span.kind != kind:
                continue
            free = next((number for number, end in enumerate(ends) if end <= span.start), len(ends))
            if free >= MAX_LANES:
                free = ends.index(min(ends))
            elif free == len(ends):
                ends.append(span.end)
            ends[free] = max(ends[free], span.end)
            lanes.setdefault((span.kind, free), []).append(span)
    return lanes


def _groups(spans: Sequence[TimelineSpan], axis: _Axis, parts: int | None) -> list[tuple[TimelineSpan, ...]]:
    """The spans of a lane that are one bar each: all that begin within the same of so many parts of the width."""
    if parts is None:
        return [(span,) for span in spans]
    groups: dict[int, list[TimelineSpan]] = {}
    for span in spans:
        groups.setdefault(int(axis.x(span.start) * parts), []).append(span)
    return [tuple(group) for group in groups.values()]


def _cost(group: Sequence[TimelineSpan]) -> float:
    return math.fsum(span.cost_usd or 0.0 for span in group)


def _bar(group: tuple[TimelineSpan, ...], axis: _Axis, most: float) -> Bar:
    x, end, cost_usd = axis.x(group[0].start), axis.x(max(span.end for span in group)), _cost(group)
    level = math.ceil(COST_LEVELS * cost_usd / most) if cost_usd > 0 else 0
    return Bar(x, end - x, group, level)
