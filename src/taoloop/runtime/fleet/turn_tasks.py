"""What the local and the PostgreSQL engine share: the tasks that advance runs, and the runs left to other workers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from taoloop.runtime.fleet.engine import RUNNING, Advance, Advanced

_PAUSE_S, _LONGEST_PAUSE_S = 2.0, 60.0
"""How long a worker leaves a run to others that it could not drive; doubled each time, up to the second."""

_LOG = logging.getLogger("taoloop.fleet")


class DeferredRuns:
    """The runs that a worker leaves to others for a while, because it could not drive them."""

    def __init__(self) -> None:
        self._pauses: dict[str, tuple[float, float]] = {}  # by run: until when (monotonic), and for how long

    def defer(self, run_id: str) -> None:
        """Leave a run to others, twice as long as the last time."""
        _, pause_s = self._pauses.get(run_id, (0.0, _PAUSE_S / 2))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        self._pauses[run_id] = time.monotonic() + pause_s, pause_s

    def resume(self, run_id: str) -> None:
        """Take a run again when it is due."""
        self._pauses.pop(run_id, None)

    def run_ids(self) -> list[str]:
        """Those that are left to others now. One that has not come back long after its pause is forgotten."""
        now = time.monotonic()
        self._pauses = {
            run_id: (until, pause_s)
            for run_id, (until, pause_s) in self._pauses.items()
            if until + _LONGEST_PAUSE_S >= now
        }
        return [run_id for run_id, (until, _) in self._pauses.items() if until > now]


async def advance_run(advance: Advance, run_id: str, deferred: DeferredRuns) -> Advanced:
    """Advance a run. If that fails or is cancelled, the run is left to others: the other runs go on."""
    try:
        advanced = await advance(run_id)
    except asyncio.CancelledError:
        advanced = Advanced(RUNNING)
    except Exception:  # noqa: BLE001  # whatever it is
        _LOG.exception("run %s: the turn failed", run_id)
        advanced = Advanced(RUNNING)
    if advanced.status == RUNNING:
        deferred.defer(run_id)
    else:
        deferred.resume(run_id)
    return advanced


async def wait_for_turns(current_tasks: Callable[[], Sequence[asyncio.Task[None]]]) -> None:
    """Wait until no turn is under way; a cancellation meanwhile cancels them, and is raised once they have ended."""
    cancelled: asyncio.CancelledError | None = None
    while tasks := current_tasks():
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            cancelled = error
            for task in tasks:
                task.cancel()
    if cancelled is not None:
        raise cancelled
