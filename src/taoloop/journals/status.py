"""What an event says of the status of its run, the same for every journal."""

from __future__ import annotations

from typing import Final

from taoloop.core.events import Fact, Finished, Paused, Resumed, RunStarted

RUNNING: Final = "running"
WAITING: Final = "waiting"

TELLING = frozenset({RunStarted, Resumed, Paused, Finished})
"""The facts that say something of it; nearly all others leave it as it was."""


def status_after(fact: Fact) -> str | None:
    """The status of a run once `fact` is kept, or None when the fact leaves it as it was."""
    if type(fact) not in TELLING:  # nearly all
        return None
    match fact:
        case Finished():
            return fact.status
        case Paused():
            return WAITING
        case _:
            return RUNNING
