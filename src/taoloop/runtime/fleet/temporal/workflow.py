"""The workflow of a run: its id is the run's id, and its history says only when somebody was to look at the run.

The problem: Temporal replays a workflow from its history, so whatever decides in it must be in that history or be the
same each time; and a workflow that knew something of the run would be a second truth beside the journal.

The idea: it knows nothing. Its only activity, `advance`, looks into the journal and says when to look again. It takes
no input (a run's id is its workflow's) and gives no result, so nothing of a run is stored in Temporal.

The invariant: each wake is followed by an advance that begins after it. Wakes are counted, and a count that has changed
since the advance began has it begin again, even when it says that the run has ended: somebody may have reopened it.

It runs outside the sandbox of the SDK: with no cache of workflows (`engine.py` says why) every task would import its
modules anew, which costs more than all else, and what the sandbox guards against (clocks, randomness, I/O) is visibly
not in these few lines. `checks/temporal` replays recorded histories against them.
"""

from __future__ import annotations

from asyncio import CancelledError
from datetime import timedelta
from typing import Any, Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError
from temporalio.workflow import ActivityCancellationType, ActivityHandle

from taoloop.runtime.fleet.engine import RUNNING, WAITING

ADVANCE: Final = "advance"
"""The name of the activity: it takes no arguments and gives the pair `Advanced`."""

WORKFLOW: Final = "taoloop.run"
"""The name of the workflow type."""

HEARTBEAT_S: Final = 5.0
"""How long a worker that says nothing keeps a run."""

_RETRY_S: Final = 0.1
"""How long after that another one gets it. It does not grow: what ends poison runs is the count in the journal."""

_LONGEST_TURN: Final = timedelta(days=365)
"""Temporal asks for some limit; whether a worker lives is what its heartbeats say."""

_LONGEST_HISTORY: Final = 200
"""How many events a history has before a new one is begun. It is replayed for each task, 10 are added by each wake."""


@workflow.defn(name=WORKFLOW)
class RunWorkflow:
    """Has a run advanced until it ends."""

    def __init__(self) -> None:
        self._wakes = 0
        self._turn: ActivityHandle[Any] | None = None

    @workflow.signal
    def wake(self) -> None:
        """Something in the journal has changed; what it was stands there."""
        self._wakes += 1

    @workflow.signal
    def cancel(self) -> None:
        """The run was stopped, which the journal says; whoever advances it is to leave it now."""
        self._wakes += 1
        if self._turn is not None:
            self._turn.cancel()

    @workflow.run
    async def run(self) -> None:
        """Advance, wait, and again; a new history is begun where this one is long. It carries nothing over."""
        while True:
            wakes = self._wakes
            status, wake_at = await self._advance()
            if status not in (RUNNING, WAITING) and self._wakes == wakes:
                return
            if status == WAITING:
                await self._wait(wakes, wake_at)
            if workflow.info().get_current_history_length() >= _LONGEST_HISTORY:
                workflow.continue_as_new()

    async def _advance(self) -> tuple[str, float | None]:
        """One turn. What another turn can be made of is `running`: the journal knows better."""
        self._turn = workflow.start_activity(
            ADVANCE,
            result_type=tuple[str, float | None],
            heartbeat_timeout=timedelta(seconds=HEARTBEAT_S),
            start_to_close_timeout=_LONGEST_TURN,
            retry_policy=RetryPolicy(initial_interval=timedelta(seconds=_RETRY_S), backoff_coefficient=1.0),
            cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        try:
            advanced: tuple[str, float | None] = await self._turn
        except (ActivityError, CancelledError):  # it was cancelled: all other failures are tried again by the server
            return RUNNING, None
        finally:
            self._turn = None
        return advanced

    async def _wait(self, wakes: int, wake_at: float | None) -> None:
        """Wait for a wake, or for a time. A cancel of the workflow itself, which no journal knows of, is a wake too."""
        timeout_s = None if wake_at is None else max(0.0, wake_at - workflow.now().timestamp())
        try:
            await workflow.wait_condition(lambda: self._wakes > wakes, timeout=timeout_s)
        except (TimeoutError, CancelledError):
            return
