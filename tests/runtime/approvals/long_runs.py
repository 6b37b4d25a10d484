"""Runs of thousands of steps that wait for a person or are blocked, and a journal that counts what is read of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.runtime.approvals.waiting_runs import leave_approval, leave_blocked
from tests.serve.panel.run_samples import put, steps

from taoloop import MemoryJournal
from taoloop.core.events import Event, Fact, ModelReplied, Resumed, RunStarted
from taoloop.journals.base import Journal

STEPS = 2_000
FIRST = 9_000
"""The number of the first of the steps that `lengthen` inserts."""


class CountingJournal(MemoryJournal):
    """Counts the events that are read, in all and at once."""

    events_read = 0
    most_at_once = 0

    async def load(self, run_id: str) -> list[Event]:
        """All events of a run."""
        return self._counted(await super().load(run_id))

    async def read(self, run_id: str, **part: Any) -> list[Event]:
        """A part of a run."""
        return self._counted(await super().read(run_id, **part))

    def forget(self) -> None:
        """Begin to count anew."""
        self.events_read = self.most_at_once = 0

    def _counted(self, events: list[Event]) -> list[Event]:
        self.events_read += len(events)
        self.most_at_once = max(self.most_at_once, len(events))
        return events


async def lengthen(journal: Journal, short: Journal, run_id: str, *, at: int = -1, resumes: int = 0) -> None:
    """Store a run of another journal with 2,000 more steps before its last decision, or before decision `at`.

    With `resumes` it was paused and resumed so often after these steps.
    """
    facts = [event.fact for event in await short.load(run_id)]
    decisions = [number for number, fact in enumerate(facts) if isinstance(fact, ModelReplied)]
    place = decisions[at]
    between: Sequence[Fact] = [*steps(STEPS, first=FIRST), *(Resumed(reason="again") for _ in range(resumes))]
    await put(journal, run_id, [*facts[:place], *between, *facts[place:]])


async def put_long_approval(journal: Journal, run_id: str = "asks") -> str:
    """A run that waits for an approval of two payments after 2,000 steps; returns the id of the first call."""
    short = MemoryJournal()
    await leave_approval(short, 5, 6)
    facts = [event.fact for event in await short.load("asks")]
    first = next(number for number, fact in enumerate(facts) if isinstance(fact, ModelReplied))
    await put(journal, run_id, [*facts[:first], *steps(STEPS), *(_later(fact) for fact in facts[first:])])
    return "late_call_1"


async def put_long_blocked(journal: Journal, run_id: str = "blocked") -> str:
    """A run that was denied a call before its last 2,000 steps, and is blocked."""
    short = MemoryJournal()
    await leave_blocked(short)
    facts = [_later(event.fact) for event in await short.load("blocked")]
    last = max(number for number, fact in enumerate(facts) if isinstance(fact, ModelReplied))
    await put(journal, run_id, [*facts[:last], *steps(STEPS, first=3), *facts[last:]])
    return run_id


def _later(fact: Fact) -> Fact:
    """The same fact with other ids of calls, and in a later step."""
    changes: dict[str, Any] = {}
    if isinstance(fact, RunStarted):
        return fact
    if hasattr(fact, "call_id"):
        changes["call_id"] = f"late_{fact.call_id}"
    for name in ("waiting_for", "denied"):
        if hasattr(fact, name):
            changes[name] = tuple(f"late_{call_id}" for call_id in getattr(fact, name))
    if hasattr(fact, "step"):
        changes["step"] = fact.step + STEPS
    return replace(fact, **changes)
