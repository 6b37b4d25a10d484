"""Taking a run to drive it: refused where somebody is at work on it, and held until the work ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from taoloop.errors import RunHeld
from taoloop.journals.base import Journal, Lease
from taoloop.journals.holds import holds_of


async def take(journal: Journal, run_id: str, *, at: int | None, take_over: bool) -> Lease:
    """Take an existing run (`Journal.acquire`), from a process that is at work on it only with `take_over`.

    Raises:
        RunHeld: somebody is at work on it, and keeps it.
        FenceLost: the run has other than `at` events: somebody took it at this moment.
    """
    if not take_over:
        await require_free(journal, run_id)
    return await journal.acquire(run_id, at=at)


async def require_free(journal: Journal, run_id: str) -> None:
    """Refuse a run that somebody is at work on, where the journal can tell.

    Raises:
        RunHeld: names the process.
    """
    holds = holds_of(journal)
    if holds is not None and (holder := await holds.holder(run_id)) is not None:
        raise RunHeld(
            f"Run {run_id} is under way: {holder} is at work on it.",
            hint="Wait for it, stop it there, or take the run over: --take-over, in code take_over=True.",
        )


@contextmanager
def holding(journal: Journal, lease: Lease) -> Iterator[None]:
    """Hold a lease that was just taken, as long as the block runs and the process lives."""
    holds = holds_of(journal)
    if holds is None:
        yield
        return
    holds.hold(lease)
    try:
        yield
    finally:
        holds.let_go(lease)
