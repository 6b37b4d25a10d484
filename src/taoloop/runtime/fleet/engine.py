"""The Protocol of an engine: what decides where and when the runs of a fleet are driven.

The problem: runs outnumber processes, processes die, are stopped and wake up again, and a run may wait for days. What
keeps track of that (a table, a distributed system) must never disagree with the journal about what happened.

The idea: an engine holds the id of a run and nothing else of it. Everything that is true about a run is in the journal,
and `advance` finds it there: it loads the run, drives it, and says why it stopped. So an engine may lose what it knows,
deliver twice, or deliver to two workers at once: `advance` looks into the journal first, takes the run by raising its
fence, and leaves if it was not the first.

The invariant: of all advances of one run only the one with the newest fence writes, and nothing is written for an
engine's sake: a cancel, an answer, a release are events before the engine hears of them.

How an engine is written:

1. `submit`, `wake` and `cancel` may come twice, late or never (whoever calls them may die before): each is harmless
   when it is repeated, and `Sweeper` repeats those that got lost.
2. A wake that comes while the run is being advanced must not be lost: count wakes, and if the count has changed once
   `advance` returns `waiting`, advance again.
3. A claim ends by itself (a lease with a heartbeat). Right before `advance` is called the claim must still hold; once
   it is lost, the task that runs `advance` is cancelled, which writes nothing.
4. `advance` returns a pair. `running`: the worker leaves the run, which is due again from `wake_at` on (None: at once),
   for another worker if there is one. `waiting`: not due before `wake_at` or a wake (None: a wake alone). Any other
   status: the run has ended, and the engine forgets it.
5. When the task that runs `serve` is cancelled, it claims nothing more, waits for the advances under way (their worker
   makes them return within its grace), reports what they returned, and ends. A second cancellation cancels them too.

An engine passes `taoloop.testing.EngineContract`, and has an entry in `engines.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

RUNNING: Final = "running"
WAITING: Final = "waiting"


class Advanced(NamedTuple):
    """What an advance of a run came to."""

    status: str
    """`running`: the worker has left the run to others; `waiting`; or how the run has ended."""

    wake_at: float | None = None
    """When a run that is left or waits is due again, in seconds since the epoch; None: see `Engine`."""


Advance = Callable[[str], Awaitable[Advanced]]
"""Drives the run of this id until it ends, waits, or must be left. Cancelling it leaves the run without a word."""


class Engine(Protocol):
    """Decides where and when runs are advanced; it knows their ids and nothing else of them.

    Every method may be called from any task of the event loop that opened the engine.
    """

    async def submit(self, run_id: str, at: float | None, queue: str, priority: int, tenant: str) -> None:
        """Have a run advanced, at `at` (seconds since the epoch; None: at once) or later.

        A run that the engine knows already stays as it is. `priority` is 1 (first) to 5 (last) within `queue`, and
        `tenant` is for whom it is, where the engine shares out its workers by that.

        Raises:
            JournalError: the engine cannot be reached, or keeps nothing now; the journal has the run all the same.
        """
        ...

    async def wake(self, run_id: str) -> None:
        """Have a waiting run advanced now: something in the journal has changed.

        One that is being advanced is advanced once more. A run that the engine does not know is none of its business.

        Raises:
            JournalError: as `submit`.
        """
        ...

    async def cancel(self, run_id: str) -> None:
        """Have whoever advances a run leave it now. The journal says already that the run was stopped.

        Raises:
            JournalError: as `submit`.
        """
        ...

    async def serve(self, advance: Advance) -> None:
        """Advance the runs that are due, until the calling task is cancelled (see the module for how it ends then).

        Raises:
            JournalError: the engine cannot be reached, and has given up.
        """
        ...
