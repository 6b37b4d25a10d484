"""The runs inside a run as the journal has them: whether they moved on although their process died again and again.

A call of an agent is a run of its own, so all the progress of a run may be inside: its own trace then shows nothing but
one start of the same call after another.
"""

from __future__ import annotations

from typing import NamedTuple

from taoloop.core.events import ActionStarted, DoubtSettled, InDoubt, Resumed
from taoloop.core.trace import Trace
from taoloop.errors import RunNotFound
from taoloop.journals.base import Journal

NO_PROGRESS = (ActionStarted, InDoubt, DoubtSettled, Resumed)
"""What a process writes before it does anything that its predecessor had not done."""


class Progress(NamedTuple):
    """How far runs have come."""

    events: int = 0
    """How many events they have that are progress; it never becomes less."""

    at: float = float("-inf")
    """When the last of these was written, in seconds since the epoch."""


def inner_run_id(run_id: str, call_id: str) -> str:
    """The id of the run that a call of an agent becomes."""
    return f"{run_id}.{call_id.removeprefix('call_')}"


async def load_trace(journal: Journal, run_id: str) -> Trace | None:
    """The trace of a run; None where there is none."""
    try:
        events = await journal.load(run_id)
    except RunNotFound:
        return None
    return Trace(run_id, events) if events else None


async def inner_progress(journal: Journal, trace: Trace, call_id: str) -> Progress:
    """The progress of the run that an open call became, with those inside it; none if it became no run."""
    inner = await load_trace(journal, inner_run_id(trace.run_id, call_id))
    if inner is None or inner.started is None or inner.started.parent != trace.run_id:
        return Progress()
    moved = [event for event in inner.events if not isinstance(event.fact, NO_PROGRESS)]
    progress = [Progress(len(moved), moved[-1].at)]
    progress += [await inner_progress(journal, inner, call_id) for call_id in inner.pending]
    return Progress(sum(one.events for one in progress), max(one.at for one in progress))


async def deaths_in_a_row(journal: Journal, trace: Trace) -> int:
    """How often a run was resumed since it, or a run inside it, made progress."""
    inner = [await inner_progress(journal, trace, call_id) for call_id in trace.pending]
    last_at, deaths = max((one.at for one in inner), default=Progress().at), 0
    for event in reversed(trace.events):
        if event.at < last_at or not isinstance(event.fact, NO_PROGRESS):
            break
        deaths += isinstance(event.fact, Resumed)
    return deaths
