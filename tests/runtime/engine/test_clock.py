"""A time limit that costs nothing where there is nothing to wait for, and that holds against anybody."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from taoloop.runtime.engine import clock as module
from taoloop.runtime.engine.clock import random_hex, start_timer, within


def timers() -> int:
    """How many timers the running loop has."""
    return len(asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]  # where they are


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


class LateError(Exception):
    """What the tests want to be raised, with the limit in seconds."""


async def quick() -> int:
    return 7


def test_a_coroutine_that_does_not_wait_needs_no_timer() -> None:
    async def look() -> tuple[int, int]:
        return await within(3600.0, quick(), LateError), timers()

    assert asyncio.run(look()) == (7, 0)


def test_a_result_after_a_wait_comes_through() -> None:
    async def slow() -> int:
        await asyncio.sleep(0)
        return sum(await asyncio.gather(quick(), quick()))

    assert asyncio.run(within(3600.0, slow(), LateError)) == 14


def test_what_is_raised_after_a_wait_comes_through() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise KeyError("x")

    with pytest.raises(KeyError):
        asyncio.run(within(3600.0, fail(), LateError))


def test_an_awaited_failure_can_be_handled_inside() -> None:
    async def broken() -> None:
        await asyncio.sleep(0)
        raise KeyError("x")

    async def handle() -> str:
        try:
            await asyncio.ensure_future(broken())
        except KeyError:
            return "handled"
        return "not reached"

    assert asyncio.run(within(3600.0, handle(), LateError)) == "handled"


def test_a_late_coroutine_is_cancelled_and_never_early() -> None:
    async def look() -> tuple[float, int]:
        loop = asyncio.get_running_loop()
        start = loop.time()
        with pytest.raises(LateError, match=r"0\.01"):
            await within(0.01, forever(), LateError)
        task = asyncio.current_task()
        return loop.time() - start, task.cancelling() if task else -1

    elapsed_s, cancellations = asyncio.run(look())
    assert elapsed_s >= 0.01
    assert cancellations == 0


def test_limits_that_are_due_together_are_all_enforced() -> None:
    async def look() -> list[BaseException | None]:
        limited = (within(0.02, forever(), LateError) for _ in range(20))
        return await asyncio.gather(*limited, return_exceptions=True)

    assert [type(result) for result in asyncio.run(look())] == [LateError] * 20


def test_no_limit_needs_no_timer() -> None:
    async def wait() -> int:
        await asyncio.sleep(0)
        return timers()

    assert asyncio.run(within(None, wait(), LateError)) == 0


@pytest.mark.parametrize("limit_s", [float("inf"), 1e300, 1e9])
def test_a_limit_beyond_all_bounds_is_none(limit_s: float) -> None:
    async def wait() -> int:
        await asyncio.sleep(0)
        return 7

    assert asyncio.run(within(limit_s, wait(), LateError)) == 7


@pytest.mark.parametrize("limit_s", [5e-324, 1e-300, 0.0, -1.0])
def test_the_shortest_limits_are_over_at_once(limit_s: float) -> None:
    with pytest.raises(LateError):
        asyncio.run(within(limit_s, forever(), LateError))


def test_a_cancellation_from_outside_is_no_time_limit() -> None:
    async def look() -> bool:
        task = asyncio.create_task(within(3600.0, forever(), LateError))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert asyncio.run(look()) is True


def test_the_limit_and_a_cancellation_from_outside_at_once_are_a_cancellation() -> None:
    async def look() -> bool:
        task: asyncio.Task[None]

        async def wait() -> None:
            try:
                await forever()
            finally:
                task.cancel()  # the limit has cancelled it already

        task = asyncio.create_task(within(0.001, wait(), LateError))
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert asyncio.run(look()) is True


def test_a_coroutine_that_is_closed_closes_what_it_limits() -> None:
    closed: list[bool] = []

    async def wait() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            closed.append(True)

    async def look() -> None:
        limited = within(3600.0, wait(), LateError)
        limited.send(None)
        limited.close()

    asyncio.run(look())
    assert closed == [True]


def test_a_timeout_of_its_own_is_not_taken_for_the_limit() -> None:
    async def own() -> None:
        await asyncio.sleep(0)
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        asyncio.run(within(3600.0, own(), LateError))


def test_cleaning_up_may_wait() -> None:
    cleaned: list[bool] = []

    async def tidy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    with pytest.raises(LateError):
        asyncio.run(within(0.01, tidy(), LateError))
    assert cleaned == [True]


def test_a_coroutine_that_will_not_stop_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE_S", 0.01)

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    async def look() -> int:
        with pytest.raises(LateError):
            await within(0.01, stubborn(), LateError)
        task = asyncio.current_task()
        return task.cancelling() if task else -1

    assert asyncio.run(look()) == 0, "no cancellation is left over"


def test_a_cancellation_from_outside_goes_through_a_stubborn_coroutine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE_S", 0.01)
    started = asyncio.Event()

    async def stubborn() -> None:
        started.set()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    async def look() -> None:
        running = asyncio.create_task(within(3600.0, stubborn(), LateError))
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(look())


def test_time_limits_inside_the_coroutine_are_its_own_affair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE_S", 0.01)

    async def patient() -> int:
        for _ in range(30):  # together longer than the grace time
            try:
                async with asyncio.timeout(0.001):
                    await asyncio.Event().wait()
            except TimeoutError:
                continue
        return 7

    assert asyncio.run(within(3600.0, patient(), LateError)) == 7


def test_one_timer_serves_many_waits_and_moves_to_the_deadline_that_counts() -> None:
    async def main() -> list[str]:
        outcomes = []
        for limit_s, wait_s in ((0.02, 0.0), (5.0, 0.04), (0.02, 5.0), (5.0, 0.0)):
            try:
                outcomes.append(await within(limit_s, asyncio.sleep(wait_s, "in time"), lambda _: LateError()))
            except LateError:
                outcomes.append("late")
        return outcomes

    assert asyncio.run(main()) == ["in time", "in time", "late", "in time"]


def test_random_hex_never_repeats_whatever_the_sizes() -> None:
    sizes = (4, 6, 12, 4096, 5000, 1)
    drawn = [random_hex(size) for _ in range(300) for size in sizes[:3]]
    assert len({text for text in drawn if len(text) >= 12}) == 600
    assert [len(random_hex(size)) for size in sizes] == [2 * size for size in sizes]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_draws_other_bytes_than_its_parent() -> None:
    random_hex(4)  # the rest of this draw is in the memory of both
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writer, random_hex(16).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 100).decode() != random_hex(16)
    os.close(reader)
    os.close(writer)


def test_a_stopped_timer_serves_the_next_wait_of_its_loop_alone() -> None:
    timers = []

    async def wait(*delays_s: float) -> bool:
        for delay_s in delays_s:
            timer = start_timer(delay_s)
            timers.append(timer)
            try:
                await (forever() if delay_s < 1 else quick())
            except asyncio.CancelledError:
                return timer.stop()
            assert not timer.stop()
            assert not timer.stop()  # once is enough
        return False

    assert not asyncio.run(wait(3600.0, 7200.0))
    assert asyncio.run(wait(3600.0, 0.001))
    first, second, other_loop, last = timers
    assert first is second is not other_loop is last


def test_waits_at_the_same_time_have_a_timer_each() -> None:
    async def main() -> list[object]:
        waits = [within(limit_s, forever(), lambda _: LateError()) for limit_s in (0.02, 0.01, 0.03)]
        return await asyncio.gather(*waits, quick(), return_exceptions=True)

    *late, _ = asyncio.run(main())
    assert [type(error) for error in late] == [LateError] * 3


@pytest.mark.skipif(sys.platform == "win32", reason="uvloop is not for Windows")
def test_limits_of_any_length_end_waits_of_uvloop_too() -> None:
    """uvloop rounds times to milliseconds, and gives timers of less than half of one no time at all."""
    import uvloop  # noqa: PLC0415  # not on every system

    async def main() -> list[str]:
        outcomes = []
        for limit_s in (0.0001, 0.00037, 0.0104, 0.00049, 0.0107, 0.0203):
            try:
                await within(limit_s, forever(), lambda _: LateError())
            except LateError:
                outcomes.append("late")
        return outcomes

    async def bounded() -> list[str]:
        async with asyncio.timeout(20):
            return await main()

    assert uvloop.run(bounded()) == ["late"] * 6
