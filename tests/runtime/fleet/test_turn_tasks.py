"""Turns whose failure is no end of the others, and runs that are left to other workers for a while."""

from __future__ import annotations

import asyncio

import pytest

from taoloop.runtime.fleet.engine import RUNNING, WAITING, Advanced
from taoloop.runtime.fleet.turn_tasks import DeferredRuns, advance_run, wait_for_turns


def test_a_turn_that_fails_or_is_cancelled_leaves_its_run_to_others() -> None:
    deferred = DeferredRuns()

    async def fail(run_id: str) -> Advanced:
        raise RuntimeError(run_id)

    async def hang(_: str) -> Advanced:
        await asyncio.Event().wait()
        raise AssertionError

    async def run() -> None:
        assert (await advance_run(fail, "fails", deferred)).status == RUNNING
        turn = asyncio.create_task(advance_run(hang, "hangs", deferred))
        await asyncio.sleep(0)
        turn.cancel()
        assert (await turn).status == RUNNING

    asyncio.run(run())
    assert deferred.run_ids() == ["fails", "hangs"]


def test_a_run_that_was_driven_or_woken_is_taken_again() -> None:
    deferred = DeferredRuns()

    async def wait(_: str) -> Advanced:
        return Advanced(WAITING)

    for run_id in ("driven", "woken"):
        deferred.defer(run_id)
    asyncio.run(advance_run(wait, "driven", deferred))
    deferred.resume("woken")
    assert deferred.run_ids() == []


def test_an_end_waits_for_the_turns_and_a_second_one_cancels_them() -> None:
    ended: list[str] = []

    async def drive(name: str, gate: asyncio.Event) -> None:
        try:
            await gate.wait()
        finally:
            ended.append(name)

    async def run() -> None:
        gate = asyncio.Event()
        tasks = [asyncio.create_task(drive(name, gate)) for name in ("a", "b")]
        ending = asyncio.create_task(wait_for_turns(lambda: [task for task in tasks if not task.done()]))
        await asyncio.sleep(0)
        assert not ending.done()
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        assert sorted(ended) == ["a", "b"]

    asyncio.run(run())
