"""The processes of the engine contract: workers that are killed, stopped and told to end, and one that answers."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taoloop.core.events import ApprovalGiven, DoubtSettled, Event
from taoloop.core.trace import Trace
from taoloop.evals.trials.killed_process import process_context
from taoloop.runtime.fleet.engines import open_engine
from taoloop.runtime.fleet.worker import Worker
from taoloop.runtime.journal_access import open_journal
from taoloop.testing.fleet_world import FleetWorld

END_S = 30.0
"""How long a process may take to end: longer than any takes on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    """What a worker process is started with."""

    folder: Path
    """The folder of its world."""
    database: str
    """The address of the journal."""
    engine: str
    """The address of the engine."""
    lease_s: float
    """How long it keeps its runs without a word."""
    grace_s: float = 5.0
    """How long it waits for safe points."""
    sweep_s: float = 0.5
    """How often it looks for what the engine was not told."""


class FleetProcess:
    """A process of the contract."""

    def __init__(self, target: Any, *values: Any) -> None:
        self._process = process_context(__name__).Process(target=target, args=values, name="taoloop-fleet")
        self._process.start()

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return bool(self._process.is_alive())

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        """End it by SIGKILL, and wait for that."""
        self.send(signal.SIGKILL)
        self.join()

    def join(self) -> None:
        """Wait for its end.

        Raises:
            AssertionError: it does not end.
        """
        self._process.join(END_S)
        if self._process.is_alive():
            self._process.kill()
            raise AssertionError("A process of the contract did not end in time.")


def work(plan: WorkerPlan) -> None:
    """The main function of a worker process: it works until SIGTERM."""
    asyncio.run(_work(plan))


async def _work(plan: WorkerPlan) -> None:
    async with (
        open_journal(plan.database) as journal,
        open_engine(plan.engine, journal, lease_s=plan.lease_s) as engine,
    ):
        world = FleetWorld(plan.folder)
        worker = Worker(journal, [world.agent()], engine, grace_s=plan.grace_s, sweep_s=plan.sweep_s)

        def stop() -> None:
            worker.stop()
            world.reach("stopping")

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
        await worker.run()


def answer_and_die(plan: WorkerPlan, run_id: str, call_id: str) -> None:
    """The main function of a process that answers a question and is killed before anybody is told."""
    asyncio.run(_answer_and_die(plan, run_id, call_id))


async def _answer_and_die(plan: WorkerPlan, run_id: str, call_id: str) -> None:
    async with open_journal(plan.database) as journal:
        trace = Trace(run_id, await journal.load(run_id))
        call = trace.pending[call_id]
        fact: ApprovalGiven | DoubtSettled = ApprovalGiven(call_id=call_id, digest=call.requested.digest, by="ann")
        if call.doubt is not None:
            fact = DoubtSettled(call_id=call_id, happened=True, by="ann")
        lease = await journal.acquire(run_id, at=len(trace))
        await journal.append(lease, [Event(len(trace), time.time(), fact)])
        os.kill(os.getpid(), signal.SIGKILL)
