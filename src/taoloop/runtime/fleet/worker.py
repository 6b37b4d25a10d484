"""A worker: a process that drives the runs which an engine gives it, and lets go of them when it is to end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import NamedTuple

from taoloop.core.events import Resumed
from taoloop.core.trace import Trace
from taoloop.errors import FenceLost, RunHeld, RunNotFound, TaoError
from taoloop.journals.base import Journal
from taoloop.runtime.after.recovery import MAX_DEATHS, AgentFor
from taoloop.runtime.agent_settings import AgentSettings
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.child_run import deaths_in_a_row
from taoloop.runtime.engine.clock import Clock, SystemClock
from taoloop.runtime.fleet.engine import RUNNING, WAITING, Advanced, Engine
from taoloop.runtime.fleet.sweeper import SWEEP_S, Sweeper
from taoloop.runtime.fleet.turn import Turn, TurnJournal
from taoloop.runtime.fleet.waiting import read_waiting
from taoloop.runtime.fleet.wakes import submission_of
from taoloop.runtime.fleet.worker_agents import WorkerAgents

GRACE_S = 10.0
"""How long a worker that is to end waits for its runs to come to a safe point."""

GONE = "gone"
"""The status of a run that the journal does not have, or that never began."""

_LOG = logging.getLogger("taoloop.fleet")


class WorkerHealth(NamedTuple):
    """How a worker is."""

    under_way: int
    """The runs that it drives now."""

    turns: int
    """How often it has driven a run."""

    ended: int
    """How many of its runs have ended."""

    left: int
    """How many it has left to others."""

    is_stopping: bool
    """Whether it is about to end."""

    def __str__(self) -> str:
        """As one line."""
        state = "stopping" if self.is_stopping else "ready"
        return f"{state}: {self.under_way} under way, {self.turns} turns, {self.ended} ended, {self.left} left"


class Worker:
    """Drives runs of a journal as an engine gives them out, until it is stopped.

    Args:
        journal: The journal of the runs, open.
        agents: The agents that it has, or a function that gives the agent of a run (`WorkerAgents`).
        engine: The engine, open for the queues that it serves.
        grace_s: How long it waits for safe points when it is stopped; then it abandons model calls, and what a tool may
            have done is in doubt.
        sweep_s: How often it looks for runs that the engine was not told of (`Sweeper`).
        clock: The clock that times are compared with.
    """

    def __init__(
        self,
        journal: Journal,
        agents: Sequence[AgentSettings] | AgentFor,
        engine: Engine,
        *,
        grace_s: float = GRACE_S,
        sweep_s: float = SWEEP_S,
        clock: Clock | None = None,
    ) -> None:
        self._journal, self._engine, self._grace_s = journal, engine, grace_s
        self._sweep_s = sweep_s
        self._agents, self._clock = WorkerAgents(agents), clock or SystemClock()
        self._turns: set[Turn] = set()
        self._stop = asyncio.Event()
        self._parked: set[str] = set()
        self._counts = {"turns": 0, "ended": 0, "left": 0}

    @property
    def health(self) -> WorkerHealth:
        """How it is now."""
        return WorkerHealth(len(self._turns), **self._counts, is_stopping=self._stop.is_set())

    async def run(self) -> None:
        """Work until `stop` is called, and end within the grace.

        Raises:
            JournalError: the engine has given up.
        """
        serving = asyncio.create_task(self._engine.serve(self.advance), name="taoloop-engine")
        sweeping = asyncio.create_task(self._sweep(), name="taoloop-sweeper")
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.stop()
            for task in (sweeping, stopping):
                task.cancel()
            serving.cancel()
            await asyncio.gather(serving, sweeping, stopping, return_exceptions=True)
        if not serving.cancelled() and (error := serving.exception()) is not None:
            raise error

    def stop(self) -> None:
        """Have it end: it takes no further run, and leaves each that it has at a safe point or after the grace.

        For the thread of its event loop.
        """
        self._stop.set()
        for turn in self._turns:
            turn.leave(self._grace_s)

    async def advance(self, run_id: str) -> Advanced:
        """Drive a run until it ends or waits, or until the worker is stopped (`taoloop.runtime.fleet.engine`).

        A run that this worker cannot drive is left untouched, with a warning. One that killed `MAX_DEATHS` workers in a
        row without progress is parked: it stays in the inbox until a person releases or stops it.

        Raises:
            JournalError: the run cannot be read or written now; another attempt may work.
        """
        if self._stop.is_set():
            return Advanced(RUNNING)
        try:
            trace = Trace(run_id, await self._journal.load(run_id))
        except RunNotFound as error:
            _LOG.warning("run %s is in the engine and not in the journal: %s", run_id, error)
            return Advanced(GONE)
        settled = await self._settled(trace)
        if settled is not None:
            return settled
        agent = self._agents.find(trace)
        if agent is None:
            return Advanced(RUNNING)
        return await self._drive(agent, trace)

    async def _settled(self, trace: Trace) -> Advanced | None:
        """What is to be said of a run without driving it; None: it is to be driven."""
        now = self._clock.now()
        if trace.started is None or trace.started.parent is not None:
            return Advanced(GONE)
        if trace.finished is not None:
            return Advanced(trace.status)
        submission = submission_of(trace)
        not_before = None if submission is None else submission.not_before
        if not_before is not None and now < not_before and not _has_begun(trace):
            return Advanced(WAITING, not_before)
        if trace.paused is not None:
            waiting = await read_waiting(self._journal, trace)
            return None if waiting.can_go_on(now) else Advanced(WAITING, waiting.wake_at)
        deaths = await deaths_in_a_row(self._journal, trace)
        if deaths < MAX_DEATHS:
            self._parked.discard(trace.run_id)
            return None
        if trace.run_id not in self._parked:
            self._parked.add(trace.run_id)
            text = (
                "run %s killed its worker %d times in a row and is parked: tao approvals --all; tao submit --resume %s"
            )
            _LOG.error(text, trace.run_id, deaths, trace.run_id)
        return Advanced(WAITING)

    async def _drive(self, agent: AgentSettings, trace: Trace) -> Advanced:
        run_id, bound, gate = trace.run_id, bind(agent), TurnJournal(self._journal)
        try:
            bound.require_resumable(trace)
        except TaoError as error:
            self._agents.report(trace, error)
            return Advanced(RUNNING)
        driving = bound.continue_run(gate, trace, limits=trace.limits, at=len(trace), take_over=True)
        turn = Turn(run_id, gate, driving)
        self._turns.add(turn)
        self._counts["turns"] += 1
        _LOG.info("run %s: a turn begins at event %d", run_id, len(trace))
        try:
            result = await turn.result()
        except (FenceLost, RunHeld) as error:
            _LOG.info("run %s is another worker's: %s", run_id, error.message)
            result = None
        except TaoError as error:
            _LOG.warning("run %s could not be driven: %s", run_id, error)
            result = None
        finally:
            self._turns.discard(turn)
        if result is None:
            self._counts["left"] += 1
            _LOG.info("run %s was left to others", run_id)
            return Advanced(RUNNING)
        _LOG.info("run %s: %s", run_id, result.status)
        if result.status != WAITING:
            self._counts["ended"] += 1
            return Advanced(result.status)
        return Advanced(WAITING, (await read_waiting(self._journal, result.trace)).wake_at)

    async def _sweep(self) -> None:
        sweeper = Sweeper(self._journal, self._engine, patience_s=self._sweep_s)
        while True:
            await asyncio.sleep(self._sweep_s)
            began = time.monotonic()
            try:
                woken = await sweeper.sweep()
            except TaoError as error:
                _LOG.warning("the runs could not be swept: %s", error)
                continue
            for run_id in woken:
                _LOG.info("run %s was found by the sweeper", run_id)
            if (took_s := time.monotonic() - began) > 1:
                _LOG.info("a sweep took %.1f s", took_s)


def _has_begun(trace: Trace) -> bool:
    """Whether a worker has driven a run before."""
    return any(isinstance(event.fact, Resumed) for event in trace.events)
