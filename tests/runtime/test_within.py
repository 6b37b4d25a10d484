"""A time limit that costs nothing where there is nothing to wait for, and that holds against anybody."""

from __future__ import annotations

import asyncio

import pytest

from taoloop.runtime import within as module
from taoloop.runtime.within import within


class LateError(Exception):
    """What the tests want to be raised, with the limit in seconds."""


async def quick() -> int:
    return 7


def test_a_coroutine_that_does_not_wait_needs_no_timer() -> None:
    async def look() -> tuple[int, int]:
        result = await within(3600.0, quick(), LateError)
        scheduled = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]  # where timers stand
        return result, len(scheduled)

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


def test_too_late_is_told() -> None:
    with pytest.raises(LateError):
        asyncio.run(within(0.01, asyncio.Event().wait(), LateError))


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
        for _ in range(3):
            try:
                async with asyncio.timeout(0.001):
                    await asyncio.Event().wait()
            except TimeoutError:
                continue
        return 7

    assert asyncio.run(within(3600.0, patient(), LateError)) == 7
