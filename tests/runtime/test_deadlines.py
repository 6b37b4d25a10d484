"""Time limits that share a timer: each holds, none is early, and a cancellation stays whose it was."""

from __future__ import annotations

import asyncio

import pytest

from taoloop.runtime.deadlines import Deadline


def timers() -> int:
    """How many timers the running loop has."""
    return len(asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]  # where they stand


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def test_a_late_block_is_cancelled_and_says_so() -> None:
    async def look() -> tuple[bool, int]:
        deadline = Deadline(0.01)
        began = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError), deadline:
            await forever()
        assert asyncio.get_running_loop().time() - began >= 0.01  # never early
        task = asyncio.current_task()
        return deadline.expired, 0 if task is None else task.cancelling()

    assert asyncio.run(look()) == (True, 0)


def test_a_block_in_time_is_left_alone() -> None:
    async def look() -> bool:
        with Deadline(3600.0) as deadline:
            await asyncio.sleep(0)
        return deadline.expired

    assert asyncio.run(look()) is False


def test_limits_of_the_same_length_share_their_timers() -> None:
    async def one() -> None:
        with Deadline(120.0):
            await asyncio.sleep(0)

    async def look() -> int:
        await asyncio.gather(*(one() for _ in range(500)))
        return timers()

    assert asyncio.run(look()) <= 2  # a border between two spans may lie in between


def test_limits_that_are_due_together_are_all_kept() -> None:
    async def one() -> str:
        try:
            with Deadline(0.02):
                await forever()
        except TimeoutError:
            return "late"
        return "in time"

    async def look() -> list[str]:
        return await asyncio.gather(*(one() for _ in range(20)))

    assert asyncio.run(look()) == ["late"] * 20


def test_a_cancellation_from_outside_is_no_time_limit() -> None:
    async def limited() -> None:
        with Deadline(3600.0):
            await forever()

    async def look() -> bool:
        task = asyncio.create_task(limited())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert asyncio.run(look()) is True


def test_both_at_once_is_a_cancellation() -> None:
    async def limited(deadline: Deadline) -> None:
        with deadline:
            await forever()

    async def look() -> tuple[bool, bool]:
        deadline = Deadline(3600.0)
        task = asyncio.create_task(limited(deadline))
        await asyncio.sleep(0)
        task.cancel()
        deadline.expire()
        with pytest.raises(asyncio.CancelledError):
            await task
        return deadline.expired, task.cancelled()

    assert asyncio.run(look()) == (True, True)


def test_no_limit_needs_neither_timer_nor_task() -> None:
    async def look() -> int:
        with Deadline(None):
            await asyncio.sleep(0)
        return timers()

    assert asyncio.run(look()) == 0


def test_each_loop_has_its_own() -> None:
    async def look() -> int:
        with Deadline(60.0):
            await asyncio.sleep(0)
            return timers()

    assert [asyncio.run(look()) for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("error", [KeyError("x"), TimeoutError("of its own")])
def test_an_error_in_time_comes_through(error: Exception) -> None:
    async def look() -> None:
        with Deadline(3600.0):
            await asyncio.sleep(0)
            raise error

    with pytest.raises(type(error), match=str(error.args[0])):
        asyncio.run(look())


@pytest.mark.parametrize("limit_s", [float("inf"), 1e300, 1e9])
def test_a_limit_beyond_all_bounds_is_none(limit_s: float) -> None:
    async def look() -> bool:
        with Deadline(limit_s) as deadline:
            await asyncio.sleep(0)
        return deadline.expired

    assert asyncio.run(look()) is False


@pytest.mark.parametrize("limit_s", [5e-324, 1e-300, 0.0, -1.0])
def test_the_shortest_limits_are_over_at_once(limit_s: float) -> None:
    async def look() -> None:
        with pytest.raises(TimeoutError), Deadline(limit_s):
            await forever()

    asyncio.run(look())
