"""The tests that every engine must pass. Derive from `EngineContract` in a test file, and say where the engine is:

    class TestMyEngine(EngineContract):
        engine = "local"

        def database(self, folder: Path) -> str:
            return str(folder / "runs.db")

Every `test_` method of the class is then an ordinary synchronous test, run by pytest or called by hand. Workers are
real processes, which are killed and stopped in the middle of model calls and tools; a file counts the effects. Whatever
happens, every run ends or waits for a stated reason, no event is lost or doubled, and no effect happens twice where its
target can tell; where it cannot, the call is in doubt and a person is asked.
"""
# ruff: noqa: S101 - assertions are what a contract is made of

from __future__ import annotations

import asyncio
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from inspect import getmembers, iscoroutinefunction
from pathlib import Path
from typing import Any

from taoloop.core.events import ActionStarted, Finished, InDoubt, ModelReplied, Resumed
from taoloop.core.trace import Trace
from taoloop.journals.base import Journal
from taoloop.runtime.after.recovery import MAX_DEATHS, stuck_runs
from taoloop.runtime.approvals.inbox import answer_approval, settle_doubt
from taoloop.runtime.approvals.request import ApprovalAnswer, Settling
from taoloop.runtime.fleet.engine import Advanced, Engine
from taoloop.runtime.fleet.engines import open_engine
from taoloop.runtime.fleet.submission import cancel_run, release_run
from taoloop.runtime.journal_access import open_journal
from taoloop.testing.fleet_processes import FleetProcess, WorkerPlan, answer_and_die, work
from taoloop.testing.fleet_world import TOOLS, FleetWorld

__all__ = ["EngineContract"]

_DEADLINE_S = 60.0
"""How long anything may take: longer than it does on a busy machine."""


class Fleet:
    """What a test has: a journal, an engine, a world, and worker processes."""

    def __init__(self, plan: WorkerPlan, journal: Journal, engine: Engine) -> None:
        self.plan, self.journal, self.engine = plan, journal, engine
        self.world = FleetWorld(plan.folder)
        self._processes: list[FleetProcess] = []

    def start(self, target: Any = work, *values: Any, lease_s: float | None = None) -> FleetProcess:
        """Start a worker, or another process."""
        plan = self.plan if lease_s is None else replace(self.plan, lease_s=lease_s)
        process = FleetProcess(target, plan, *values)
        self._processes.append(process)
        return process

    def end(self) -> None:
        """End all processes."""
        for process in self._processes:
            process.kill()

    async def submit(self, task: str, **options: Any) -> str:
        """Submit a run; gives its id."""
        return await self.world.agent(journal=self.journal).submit(task, engine=self.engine, **options)

    async def trace(self, run_id: str) -> Trace:
        """A run as it is stored; it is checked that it is one story."""
        trace = Trace(run_id, await self.journal.load(run_id))
        assert [event.seq for event in trace.events] == list(range(len(trace)))
        assert sum(isinstance(event.fact, Finished) for event in trace.events) <= 1 + _reopened(trace)
        return trace

    async def status(self, run_id: str, *expected: str) -> Trace:
        """The run, once it has one of these statuses."""

        async def is_there() -> bool:
            return (await self.trace(run_id)).status in expected

        await until(is_there, lambda: f"run {run_id} to be {' or '.join(expected)}")
        return await self.trace(run_id)

    async def at(self, checkpoint: str) -> None:
        """Wait until somebody has come to a checkpoint."""

        async def is_there() -> bool:
            return self.world.is_at(checkpoint)

        await until(is_there, lambda: f"somebody at {checkpoint}")


def _reopened(trace: Trace) -> int:
    return sum(isinstance(event.fact, Resumed) for event in trace.events)


def _count(trace: Trace, kind: type) -> int:
    return sum(isinstance(event.fact, kind) for event in trace.events)


async def until(holds: Callable[[], Awaitable[bool]], what: Callable[[], str]) -> None:
    """Wait for what other processes do.

    Raises:
        AssertionError: it has not come in time.
    """
    ends = time.monotonic() + _DEADLINE_S
    while not await holds():
        if time.monotonic() > ends:
            raise AssertionError(f"Waited {_DEADLINE_S:g} s for {what()}.")
        await asyncio.sleep(0.02)


def _make_synchronous(body: Callable[[Any, Fleet], Awaitable[None]]) -> Callable[[Any], None]:
    """A test of a coroutine: it gets a new fleet, whose processes are ended with it."""

    def test(self: EngineContract) -> None:
        async def run(folder: Path) -> None:
            plan = WorkerPlan(folder=folder, database=self.database(folder), engine=self.engine, lease_s=self.lease_s)
            async with open_journal(plan.database) as journal, open_engine(plan.engine, journal) as engine:
                fleet = Fleet(plan, journal, engine)
                try:
                    await body(self, fleet)
                finally:
                    fleet.end()

        with tempfile.TemporaryDirectory(prefix="taoloop-engine-") as folder:
            asyncio.run(run(Path(folder)))

    test.__name__, test.__doc__ = body.__name__, body.__doc__  # not `wraps`: pytest would see the parameters
    return test


class EngineContract:
    """The tests that every engine has to pass: derive a test class, and override what differs."""

    engine: str = "local"
    """The address of the engine (`open_engine`)."""

    lease_s: float = 10.0
    """The lease of the workers: longer than a busy machine lets them stand still. Some engines need it to end before
    they take over from a worker that was killed."""

    short_lease_s: float = 1.0
    """The lease of a worker that is stopped, which every test of that waits for."""

    def __init_subclass__(cls) -> None:
        """Make a test for pytest of each coroutine `test_…`."""
        super().__init_subclass__()
        for name, body in getmembers(cls, iscoroutinefunction):
            if name.startswith("test_"):
                setattr(cls, name, _make_synchronous(body))

    def database(self, folder: Path) -> str:
        """The address of a new journal."""
        return str(folder / "runs.db")

    # What an engine promises, with an `advance` that only counts

    async def test_a_run_is_advanced_once_until_it_is_woken(self, fleet: Fleet) -> None:
        advanced = _Counting({"waiting": 1})
        run_id = await fleet.submit("pay_keyed")
        async with _serving(fleet.engine, advanced):
            await advanced.reaches(1)
            await fleet.engine.submit(run_id, None, "default", 3, "")  # again: it is known
            await fleet.engine.wake(run_id)
            await fleet.engine.wake(run_id)
            await advanced.reaches(2)
            await fleet.engine.wake("nothing-of-this-name")
        assert set(advanced.run_ids) == {run_id}

    async def test_a_wake_while_a_turn_ends_is_not_lost(self, fleet: Fleet) -> None:
        advanced = _Counting({"waiting": 1}, during=fleet.engine.wake)
        await fleet.submit("pay_keyed")
        async with _serving(fleet.engine, advanced):
            await advanced.reaches(2)

    async def test_a_waiting_run_is_advanced_at_its_time(self, fleet: Fleet) -> None:
        at = time.time() + 0.5
        advanced = _Counting({"waiting": 1}, wake_at=at)
        await fleet.submit("pay_keyed")
        async with _serving(fleet.engine, advanced):
            await advanced.reaches(2)
        assert advanced.times[1] >= at - 0.01

    async def test_a_delayed_run_starts_at_its_time_and_other_queues_are_left_alone(self, fleet: Fleet) -> None:
        at = time.time() + 0.5
        advanced = _Counting({})
        later = await fleet.submit("pay_keyed", not_before=at)
        elsewhere = await fleet.submit("pay_keyed", queue="elsewhere")
        async with _serving(fleet.engine, advanced):
            await advanced.reaches(1)
        assert advanced.run_ids == [later]
        assert elsewhere not in advanced.run_ids
        assert advanced.times[0] >= at - 0.01

    async def test_what_is_urgent_comes_first(self, fleet: Fleet) -> None:
        run_ids = {priority: await fleet.submit("pay_keyed", priority=priority) for priority in (3, 5, 1)}
        advanced = _Counting({})
        async with (
            open_engine(fleet.plan.engine, fleet.journal, concurrency=1) as engine,
            _serving(engine, advanced),
        ):
            await advanced.reaches(3)
        assert advanced.run_ids == [run_ids[1], run_ids[3], run_ids[5]]

    async def test_a_run_that_was_left_is_advanced_again(self, fleet: Fleet) -> None:
        run_id = await fleet.submit("pay_keyed")
        first = _Counting({"running": 1})
        async with _serving(fleet.engine, first):
            await first.reaches(1)
        advanced = _Counting({})
        async with open_engine(fleet.plan.engine, fleet.journal) as other, _serving(other, advanced):
            await advanced.reaches(1)
        assert advanced.run_ids == [run_id]

    # What the fleet promises, with processes

    async def test_a_worker_killed_in_the_model_call_loses_nothing(self, fleet: Fleet) -> None:
        fleet.world.hold()
        run_id = await fleet.submit("pay_keyed model")
        worker = fleet.start()
        await fleet.at("model")
        fleet.start()
        worker.kill()
        fleet.world.release()
        trace = await fleet.status(run_id, "completed")
        assert _count(trace, ModelReplied) == 2
        assert fleet.world.effects(run_id) == 1

    async def test_a_worker_killed_in_a_tool_repeats_only_what_can_be_told_apart(self, fleet: Fleet) -> None:
        fleet.world.hold()
        run_ids = {f"{name} {checkpoint}": "" for name in TOOLS for checkpoint in ("before", "after")}
        for task in run_ids:
            run_ids[task] = await fleet.submit(task)
        worker = fleet.start()

        async def all_started() -> bool:
            traces = [await fleet.trace(run_id) for run_id in run_ids.values()]
            return all(_count(trace, ActionStarted) for trace in traces)

        await until(all_started, lambda: "all tools to be started")

        async def three_paid() -> bool:
            return sum(fleet.world.effects(run_id) for run_id in run_ids.values()) == len(TOOLS)

        await until(three_paid, lambda: "the effects of those that stop after it")
        worker.kill()
        fleet.world.release()
        fleet.start()
        for task, run_id in run_ids.items():
            if not task.startswith("pay_plain"):
                await fleet.status(run_id, "completed")
                assert fleet.world.effects(run_id) == 1, task
                continue
            trace = await fleet.status(run_id, "waiting")  # a person is asked
            assert _count(trace, InDoubt) == 1
            happened = task.endswith("after")
            assert fleet.world.effects(run_id) == happened
            how: Settling = "happened" if happened else "repeat"
            await settle_doubt(fleet.journal, run_id, "call_1", how, by="ann")
            await fleet.status(run_id, "completed")
            assert fleet.world.effects(run_id) == 1, task

    async def test_a_stopped_worker_that_wakes_up_after_the_take_over_writes_nothing(self, fleet: Fleet) -> None:
        fleet.world.hold()
        run_id = await fleet.submit("pay_keyed before")
        zombie = fleet.start(lease_s=self.short_lease_s)
        await fleet.at("before")
        zombie.send(signal.SIGSTOP)
        fleet.world.release()
        fleet.start()
        trace = await fleet.status(run_id, "completed")
        zombie.send(signal.SIGCONT)
        zombie.send(signal.SIGTERM)  # it ends once it has seen that the run is not its own
        zombie.join()
        assert (await fleet.trace(run_id)).events == trace.events
        assert fleet.world.effects(run_id) == 1

    async def test_two_workers_share_runs_and_drive_each_once(self, fleet: Fleet) -> None:
        for _ in range(2):
            fleet.start()
        run_ids = [await fleet.submit("pay_plain") for _ in range(12)]
        for run_id in run_ids:
            trace = await fleet.status(run_id, "completed")
            assert _count(trace, Resumed) == 1
            assert fleet.world.effects(run_id) == 1

    async def test_an_answer_whose_giver_is_killed_is_found(self, fleet: Fleet) -> None:
        run_id = await fleet.submit("pay_asked")
        fleet.start()
        await fleet.status(run_id, "waiting")
        fleet.start(answer_and_die, run_id, "call_1").join()
        await fleet.status(run_id, "completed")
        assert fleet.world.effects(run_id) == 1

    async def test_two_answers_at_once_count_once(self, fleet: Fleet) -> None:
        run_id = await fleet.submit("pay_asked")
        fleet.start()
        await fleet.status(run_id, "waiting")
        answers = [ApprovalAnswer(approved=True, by=name) for name in ("ann", "bob")]
        given = [answer_approval(fleet.journal, run_id, "call_1", answer) for answer in answers]
        outcomes = await asyncio.gather(*given, return_exceptions=True)
        assert sum(isinstance(outcome, Exception) for outcome in outcomes) == 1
        await fleet.status(run_id, "completed")
        assert fleet.world.effects(run_id) == 1

    async def test_a_run_that_kills_its_workers_is_parked_until_somebody_releases_it(self, fleet: Fleet) -> None:
        run_id = await fleet.submit("poison")
        for _ in range(MAX_DEATHS):
            fleet.start().join()
        worker = fleet.start()
        sound = await fleet.submit("pay_keyed")
        await fleet.status(sound, "completed")

        async def is_parked() -> bool:  # once the lease of the last one is over
            return [stuck.run_id for stuck in await stuck_runs(fleet.journal)] == [run_id]

        await until(is_parked, lambda: f"run {run_id} to be parked")
        assert worker.is_alive
        assert _count(await fleet.trace(run_id), Resumed) == MAX_DEATHS
        await release_run(fleet.journal, run_id, by="ann", engine=fleet.engine)
        worker.join()  # it is tried again
        assert _count(await fleet.trace(run_id), Resumed) == MAX_DEATHS + 2

    async def test_a_worker_that_is_told_to_end_hands_its_runs_over(self, fleet: Fleet) -> None:
        fleet.world.hold()
        run_id = await fleet.submit("pay_plain after")
        worker = fleet.start()
        await fleet.at("after")
        worker.send(signal.SIGTERM)
        await fleet.at("stopping")
        fleet.world.release()  # within the grace: the outcome is kept
        worker.join()
        assert (await fleet.trace(run_id)).events[-1].fact.kind == "observed"
        fleet.start()
        trace = await fleet.status(run_id, "completed")
        assert _count(trace, InDoubt) == 0
        assert fleet.world.effects(run_id) == 1

    async def test_a_cancel_stops_a_run_wherever_it_is_driven(self, fleet: Fleet) -> None:
        fleet.world.hold()
        run_id = await fleet.submit("pay_plain model")
        fleet.start()
        await fleet.at("model")
        trace = (await cancel_run(fleet.journal, run_id, by="ann", engine=fleet.engine)).trace
        fleet.world.release()
        sound = await fleet.submit("pay_keyed")
        await fleet.status(sound, "completed")
        assert (await fleet.trace(run_id)).events == trace.events
        assert trace.status == "stopped"
        assert fleet.world.effects(run_id) == 0


class _Counting:
    """An `advance` that counts. `first` says how often which status is returned, before runs complete."""

    def __init__(
        self,
        first: dict[str, int],
        *,
        wake_at: float | None = None,
        during: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._statuses = [status for status, times in first.items() for _ in range(times)]
        self._wake_at, self._during = wake_at, during
        self.run_ids: list[str] = []
        self.times: list[float] = []

    async def __call__(self, run_id: str) -> Advanced:
        self.run_ids.append(run_id)
        self.times.append(time.time())
        if not self._statuses:
            return Advanced("completed")
        if self._during is not None:
            await self._during(run_id)
        return Advanced(self._statuses.pop(0), self._wake_at)

    async def reaches(self, count: int) -> None:
        """Wait until it was called so often."""

        async def is_there() -> bool:
            return len(self.run_ids) >= count

        await until(is_there, lambda: f"{count} advances, of which {len(self.run_ids)} came")


class _serving:  # noqa: N801  # used as a function
    """Has an engine serve as long as the block runs."""

    def __init__(self, engine: Engine, advance: _Counting) -> None:
        self._engine, self._advance = engine, advance

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._engine.serve(self._advance))

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
