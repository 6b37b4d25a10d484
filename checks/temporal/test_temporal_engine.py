"""What the engine of Temporal does beyond the contract: histories, restarts, signals that nobody hears."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from checks.temporal.counting import CountingAdvance, ended, serving, submit
from checks.temporal.temporal_server import TemporalServer
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from taoloop.errors import ConfigError, JournalError
from taoloop.runtime.fleet.engine import RUNNING, WAITING, Advanced
from taoloop.runtime.fleet.temporal.connection import connect
from taoloop.runtime.fleet.temporal.engine import TemporalEngine
from taoloop.runtime.fleet.temporal.workflow import RunWorkflow

MOST_BYTES = 2048


def test_the_history_of_a_run_that_waited_and_was_left_is_small_and_says_nothing_of_it(address: str) -> None:
    async def scene() -> None:
        advance = CountingAdvance(Advanced(RUNNING), Advanced(WAITING))
        async with serving(address, advance) as engine:
            await submit(engine, ["run-1"])
            await advance.reaches(2)
            await engine.wake("run-1")
            client = await connect(address)
            description = await ended(client, "run-1")
        size = description.raw_description.workflow_execution_info.history_size_bytes
        history = await client.get_workflow_handle("run-1").fetch_history()
        assert 0 < size <= MOST_BYTES
        assert "/" not in "".join(
            event.activity_task_started_event_attributes.last_failure.stack_trace for event in history.events
        )
        # the workflow decides the same when it is replayed: what another version of it did is checked the same way
        await Replayer(workflows=[RunWorkflow], workflow_runner=UnsandboxedWorkflowRunner()).replay_workflow(history)

    asyncio.run(scene())


def test_a_long_history_is_begun_anew_and_no_wake_is_lost(address: str) -> None:
    waits = 40  # six events at least for each, and more than the 200 of one history in all

    async def scene() -> None:
        advance = CountingAdvance(*[Advanced(WAITING)] * waits)
        async with serving(address, advance) as engine:
            await submit(engine, ["run-1"])
            for count in range(1, waits + 1):
                await advance.reaches(count)
                await engine.wake("run-1")
            await advance.reaches(waits + 1)
            description = await ended(await connect(address), "run-1")
        assert description.history_length < 10 * waits
        assert description.raw_description.workflow_execution_info.first_run_id != description.run_id

    asyncio.run(scene())


def test_two_submits_of_a_run_are_one_and_one_that_ended_can_be_submitted_again(address: str) -> None:
    async def scene() -> None:
        advance = CountingAdvance(Advanced(WAITING))
        async with serving(address, advance) as engine:
            await submit(engine, ["run-1", "run-1"])
            await advance.reaches(1)
            await submit(engine, ["run-1"])
            await engine.wake("run-1")
            client = await connect(address)
            await ended(client, "run-1")
            assert advance.run_ids == ["run-1", "run-1"]
            await submit(engine, ["run-1"])
            await advance.reaches(3)
            await ended(client, "run-1")

    asyncio.run(scene())


def test_a_wake_while_no_worker_lives_is_heard_by_the_next(address: str) -> None:
    async def scene() -> None:
        first = CountingAdvance(Advanced(WAITING))
        async with serving(address, first) as engine:
            await submit(engine, ["run-1"])
            await first.reaches(1)
        await engine.wake("run-1")
        second = CountingAdvance()
        async with serving(address, second):
            await second.reaches(1)
        assert second.run_ids == ["run-1"]

    asyncio.run(scene())


def test_a_wake_at_the_end_of_a_run_has_it_looked_at_again(address: str) -> None:
    async def scene() -> None:
        async with serving(address, CountingAdvance()) as waker:
            advance = CountingAdvance(during=waker.wake)
            advance_once = CountingAdvance()

            async def wake_first(run_id: str) -> Advanced:
                return await (advance if not advance.run_ids else advance_once)(run_id)

        async with serving(address, wake_first) as engine:
            await submit(engine, ["run-1"])  # it ends, and somebody reopens it before the engine hears that
            await advance_once.reaches(1)

    asyncio.run(scene())


def test_a_cancel_has_the_turn_left_and_the_journal_looked_at(address: str) -> None:
    left: list[str] = []

    async def scene() -> None:
        begun = asyncio.Event()

        async def advance(run_id: str) -> Advanced:
            if left:
                return Advanced("stopped")
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                left.append(run_id)
            return Advanced("completed")

        async with serving(address, advance) as engine:
            await submit(engine, ["run-1"])
            await begun.wait()
            await engine.cancel("run-1")
            description = await ended(await connect(address), "run-1")
            assert description.status is not None
            assert description.status.name == "COMPLETED"
            await engine.cancel("run-1")  # nothing is left to cancel

    asyncio.run(scene())
    assert left == ["run-1"]


def test_a_worker_that_ends_reports_its_turns_and_a_second_cancellation_leaves_them(address: str) -> None:
    async def scene() -> None:
        begun, may_end = asyncio.Event(), asyncio.Event()
        is_left = False

        async def advance(run_id: str) -> Advanced:
            nonlocal is_left
            begun.set()
            try:
                await (may_end if run_id == "run-1" else asyncio.Event()).wait()
            except asyncio.CancelledError:
                is_left = True
                raise
            return Advanced("completed")

        engine = TemporalEngine(await connect(address))
        task = asyncio.create_task(engine.serve(advance))
        await submit(engine, ["run-1"])
        await begun.wait()
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        begun.clear()
        task = asyncio.create_task(engine.serve(advance))
        await submit(engine, ["run-2"])
        await begun.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert is_left
        after = CountingAdvance()
        async with serving(address, after):
            await after.reaches(1)
            await ended(await connect(address), "run-1")
        assert after.run_ids == ["run-2"]  # what run-1 came to was reported

    asyncio.run(scene())


@pytest.mark.nightly
def test_a_server_that_is_killed_and_started_again_loses_no_run(tmp_path: Path, server: TemporalServer) -> None:
    del server  # it says whether there is one at all
    with TemporalServer(["runs"], database=tmp_path / "temporal.db") as restarted:
        address = restarted.address("runs")

        async def scene() -> None:
            may_end = asyncio.Event()
            waited = CountingAdvance(Advanced(WAITING))
            begun = asyncio.Event()

            async def advance(run_id: str) -> Advanced:
                if run_id == "waits":
                    return await waited(run_id)
                begun.set()
                await may_end.wait()
                return Advanced("completed")

            async with serving(address, advance) as engine:
                await submit(engine, ["waits", "works"])
                await waited.reaches(1)
                await begun.wait()
                restarted.kill()
                with pytest.raises(JournalError, match="does not do what it is asked"):
                    async with asyncio.timeout(30):
                        await engine.wake("waits")
                await asyncio.to_thread(restarted.start)
                may_end.set()
                await engine.wake("waits")
                client = await connect(address)
                await ended(client, "works")
                await ended(client, "waits")

        asyncio.run(scene())


def test_a_namespace_that_is_missing_is_named_and_nothing_is_stored(server: TemporalServer) -> None:
    with pytest.raises(ConfigError, match=r"no namespace .*nowhere"):
        asyncio.run(connect(server.address("nowhere")))
