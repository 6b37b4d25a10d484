"""A turn: one worker drives one run, and can let go of it without a word in its trace.

The problem: a worker must be able to leave a run at any moment, because it is to end, or because the run is another
worker's by now. The runner, cancelled, would record that the run was stopped; nobody has stopped it. And it should not
be left in the middle of an effect if there is time: what was started and has no outcome is in doubt for whoever comes.

The idea: the journal is the gate. A turn drives its run, and the runs inside it, over a `TurnJournal`. While the turn
is to be left, an append still stores outcomes, but no new intent: what comes after the last outcome is dropped, and the
append does not return, so the run stands still there. Once nothing that may have an effect is under way, or the grace
is over, the gate is closed: whatever is still running is cancelled, and whatever it wants to store is refused.

The invariant: what a turn stores is always a prefix of what it would have stored, and nothing is stored after the gate
was closed. So leaving is, for the run, like the death of its process between two events, which recovery handles.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn

from taoloop.core.events import ActionStarted, Event, Finished, InDoubt, Observed, Paused
from taoloop.core.stored_events import ChainReport
from taoloop.core.views.transcript import Result
from taoloop.errors import FenceLost, TaoError
from taoloop.journals.base import Artifact, Journal, Lease, LockHolder, RunLocks, RunRow, locks_of
from taoloop.journals.retention import PruneReport, Retention
from taoloop.runtime.child_run import inner_run_id

_END_S = 0.5
"""How long what was cancelled may take to end; then it is left to the end of the process."""

_LOG = logging.getLogger("taoloop.fleet")


class TurnJournal:
    """A journal as one turn may use it; everything that only reads is passed on."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._is_closed = False
        self._is_leaving = False
        self._under_way: set[tuple[str, str]] = set()  # calls that were started and have no outcome, by run
        self._runs: set[str] = set()  # the runs that were written to
        self.rests = asyncio.Event()  # set where the run stands still and no effect is under way

    def __getattr__(self, name: str) -> Any:
        """What this journal can do beyond the Protocol, such as queries."""
        return getattr(self._journal, name)

    @property
    def run_locks(self) -> RunLocks | None:
        """The locks of the journal, where no process counts as one that should be ended first."""
        run_locks = locks_of(self._journal)
        return None if run_locks is None else _ClaimedLocks(run_locks)

    def leave(self) -> None:
        """Store no new intent from here on."""
        self._is_leaving = True

    def close_gate(self) -> None:
        """Store nothing from here on."""
        self._is_closed = True

    @property
    def is_left(self) -> bool:
        """Whether nothing is stored any more (`journal_access.is_left`)."""
        return self._is_closed

    async def create(self, run_id: str) -> Lease:
        """As `Journal.create`."""
        await self._enter(run_id)
        return await self._journal.create(run_id)

    async def begin(self, run_id: str) -> Lease:
        """As `create`; with the first append, where the journal can."""
        await self._enter(run_id)
        lease: Lease = await getattr(self._journal, "begin", self._journal.create)(run_id)
        return lease

    async def acquire(self, run_id: str, *, at: int | None = None) -> Lease:
        """As `Journal.acquire`."""
        await self._enter(run_id)
        return await self._journal.acquire(run_id, at=at)

    async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        """As `Journal.append`; while the turn is to be left, only up to the first intent, and it does not return.

        Raises:
            FenceLost: the turn is over, or another worker has the run; nothing was written.
        """
        if self._is_closed:
            raise _over(lease.run_id)
        is_leaving = self._is_leaving
        stored = _before_intent(events) if is_leaving else events
        if stored or not events:
            await self._journal.append(lease, stored, artifacts)
        self._note(lease.run_id, stored)
        if is_leaving and not (stored and isinstance(stored[-1].fact, Finished | Paused)):
            await self._rest()

    async def transaction(self, lease: Lease) -> Any:
        """As that of the journal."""
        if self._is_closed:
            raise _over(lease.run_id)
        return await self._journal.transaction(lease)  # type: ignore[attr-defined]  # asked for where there is one

    async def load(self, run_id: str) -> list[Event]:
        """As `Journal.load`."""
        return await self._journal.load(run_id)

    async def artifact(self, run_id: str, ref: str) -> Artifact | None:
        """As `Journal.artifact`."""
        return await self._journal.artifact(run_id, ref)

    async def verify(self, run_id: str) -> ChainReport:
        """As `Journal.verify`."""
        return await self._journal.verify(run_id)

    async def runs(self, *, limit: int = 50, status: str | None = None) -> list[RunRow]:
        """As `Journal.runs`."""
        return await self._journal.runs(limit=limit, status=status)

    async def prune(self, keep: Retention, *, now: float, is_dry_run: bool = False) -> PruneReport:
        """As `Journal.prune`."""
        return await self._journal.prune(keep, now=now, is_dry_run=is_dry_run)

    async def close(self) -> None:
        """Nothing: the journal is the worker's."""

    async def _enter(self, run_id: str) -> None:
        """Let the run, or one inside it, be taken unless the turn is to be left."""
        if self._is_closed:
            raise _over(run_id)
        if self._is_leaving:
            self._runs.add(run_id)  # the call that it is has done nothing
            await self._rest()

    def _note(self, run_id: str, events: Sequence[Event]) -> None:
        self._runs.add(run_id)
        for event in events:
            match event.fact:
                case ActionStarted(call_id=call_id):
                    self._under_way.add((run_id, call_id))
                case Observed(call_id=call_id) | InDoubt(call_id=call_id):
                    self._under_way.discard((run_id, call_id))

    async def _rest(self) -> NoReturn:
        """Stand still until the turn is cancelled."""
        effects = {pair for pair in self._under_way if inner_run_id(*pair) not in self._runs}
        if not effects:
            self.rests.set()
        while True:
            await asyncio.Event().wait()


class _ClaimedLocks:
    """Run locks as a worker sees them to which an engine has given a run: who has it has lost it.

    Such a process is not ended for that: other runs of it may be sound. It counts as alive, so what its calls did is
    believed only where their tools can say for certain.
    """

    def __init__(self, run_locks: RunLocks) -> None:
        self._run_locks = run_locks

    async def holder(self, run_id: str) -> LockHolder | None:
        """As `RunLocks.holder`, without what is needed to end it."""
        holder = await self._run_locks.holder(run_id)
        return None if holder is None else replace(holder, identity=None)

    async def orphans(self) -> list[str]:
        """As `RunLocks.orphans`."""
        return await self._run_locks.orphans()

    async def is_new_fork(self, run_id: str) -> bool:
        """As `RunLocks.is_new_fork`."""
        return await self._run_locks.is_new_fork(run_id)

    async def was_elsewhere(self, run_id: str, /) -> bool:
        """As `RunLocks.was_elsewhere`."""
        return await self._run_locks.was_elsewhere(run_id)

    def lock(self, lease: Lease) -> None:
        """As `RunLocks.lock`."""
        self._run_locks.lock(lease)

    def release(self, lease: Lease) -> None:
        """As `RunLocks.release`."""
        self._run_locks.release(lease)


class Turn:
    """Drives one run over `gate` in a task of its own, until it ends, waits, or is left."""

    def __init__(self, run_id: str, gate: TurnJournal, driving: Coroutine[Any, Any, Result]) -> None:
        self.run_id = run_id
        self._gate = gate
        self._task = asyncio.create_task(driving, name=f"taoloop-turn-{run_id}")
        self._is_over = asyncio.Event()
        self._task.add_done_callback(lambda _: self._is_over.set())
        self._leaving: asyncio.Task[None] | None = None
        self._was_abandoned = False

    async def result(self) -> Result | None:
        """The result of the run; None where the turn has left it. Cancelling this leaves the run at once.

        Raises:
            TaoError: the run could not be driven, or is another worker's.
        """
        try:
            await self._is_over.wait()
        except asyncio.CancelledError:
            await self._abandon()
            raise
        return None if self._was_abandoned else self._task.result()

    def leave(self, grace_s: float) -> None:
        """Leave the run at its next safe point, or after `grace_s` seconds wherever it is."""
        if self._leaving is None:
            self._gate.leave()
            self._leaving = asyncio.create_task(self._leave(grace_s))

    async def _leave(self, grace_s: float) -> None:
        resting = asyncio.create_task(self._gate.rests.wait())
        await asyncio.wait([resting, self._task], timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
        resting.cancel()
        if not self._task.done():
            await self._abandon()

    async def _abandon(self) -> None:
        """Close the gate, and cancel what is still running."""
        self._gate.close_gate()
        if self._task.done():
            return
        self._was_abandoned = True
        self._task.add_done_callback(_look_at)
        self._task.cancel()
        await asyncio.wait([self._task], timeout=_END_S)
        if not self._task.done():
            _LOG.warning("run %s was left while a tool did not let go of it", self.run_id)
        self._is_over.set()


def _look_at(task: asyncio.Task[Result]) -> None:
    """Take the outcome of a task that nobody waits for, so that it is not reported as forgotten."""
    with suppress(asyncio.CancelledError, TaoError):
        task.result()


def _before_intent(events: Sequence[Event]) -> Sequence[Event]:
    """The events before the first one that says that a call is about to be made."""
    number = next((number for number, event in enumerate(events) if isinstance(event.fact, ActionStarted)), len(events))
    return events[:number]


def _over(run_id: str) -> FenceLost:
    return FenceLost(
        f"The turn of run {run_id} is over: its worker has left it.", hint="Another worker continues the run."
    )
