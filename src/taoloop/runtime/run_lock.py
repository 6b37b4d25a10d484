"""Acquiring a run to drive it: refused while another process is at work on it, and locked until the work ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from taoloop.core.cards.tool_card import Tier
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, RunHeld, RunNotResumable
from taoloop.journals.base import Journal, Lease, locks_of
from taoloop.tools.toolbox import Toolbox

_RANK: dict[Tier | None, int] = {"read": 0, "draft": 1, "write": 2, None: 3, "destructive": 3}


def require_resumable(trace: Trace, toolbox: Toolbox) -> None:
    """Refuse a run that this agent cannot resume, before it is acquired.

    Raises:
        RunNotResumable: it never began, or is completed.
        ConfigError: a tool of the run has a stricter tier now, needs approval now, or can no longer be repeated.
        UnknownName: a tool of the run is missing.
    """
    if trace.started is None:
        raise RunNotResumable(f"Run {trace.run_id} never began.", hint="Start a new run.")
    if trace.status == "completed":
        raise RunNotResumable(f"Run {trace.run_id} is completed.", hint="Start a new run.")
    for card in trace.agent.tools:
        known = toolbox.get(card.name).card
        if _RANK[known.tier] > _RANK[card.tier]:
            raise ConfigError(
                f"The tool {card.name!r} had the tier {card.tier!r} when the run began and has {known.tier!r} now.",
                hint="What was judged for the milder tier must not run under the stricter one: start a new run.",
            )
        if known.requires_approval and not card.requires_approval:
            raise ConfigError(
                f"The tool {card.name!r} needs a person's yes for each call now, and did not when the run began.",
                hint="What was judged without it must not run: start a new run.",
            )
        if (card.idempotent and not known.idempotent) or (card.transactional and not known.transactional):
            raise ConfigError(
                f"The tool {card.name!r} could be repeated when the run began, and cannot be any more.",
                hint="What was cut off would be repeated by its old card: start a new run.",
            )


async def acquire_run(journal: Journal, run_id: str, *, at: int | None, take_over: bool) -> Lease:
    """Acquire an existing run (`Journal.acquire`), with `take_over` even from a process that is at work on it.

    Raises:
        RunHeld: another process is at work on it.
        FenceLost: the run has other than `at` events: another worker acquired it at this moment.
    """
    if not take_over:
        await require_unlocked(journal, run_id)
    return await journal.acquire(run_id, at=at)


async def require_unlocked(journal: Journal, run_id: str) -> None:
    """Refuse a run that a process is at work on, where the journal can tell.

    Raises:
        RunHeld: names the process.
    """
    run_locks = locks_of(journal)
    if run_locks is not None and (holder := await run_locks.holder(run_id)) is not None:
        raise RunHeld(
            f"Run {run_id} is under way: {holder} is at work on it.",
            hint="Wait for it, stop it there, or take the run over: --take-over, in code take_over=True.",
        )


@contextmanager
def run_lock(journal: Journal, lease: Lease) -> Iterator[None]:
    """Lock a lease that was just acquired, as long as the block runs and the process lives."""
    run_locks = locks_of(journal)
    if run_locks is None:
        yield
        return
    run_locks.lock(lease)
    try:
        yield
    finally:
        run_locks.release(lease)
