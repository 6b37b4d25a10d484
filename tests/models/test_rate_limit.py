"""No span of 60 seconds has more calls or tokens than agreed; who comes first goes first; nobody waits for ever.

A sliding window stays small however often it is used.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.models.asking import HANG, Told, asking, used

from taoloop.core.effects import ModelRequest
from taoloop.core.message import Message, ModelReply
from taoloop.errors import (
    ConfigError,
    ModelContentRefused,
    ModelRateLimited,
    ModelRequestRefused,
    ModelUnavailable,
)
from taoloop.models.rate_limit import (
    EXPECTED_OUTPUT_TOKENS,
    MINUTE_S,
    RateLimited,
    RateWindow,
    SlidingWindow,
    estimated_tokens,
)
from taoloop.models.retry import Retrying
from taoloop.models.settings import Rate
from taoloop.testing import FakePace


class Timed(Told):
    """Notes when it is asked; takes `takes_s` seconds."""

    def __init__(self, pace: FakePace, *answers: Any, takes_s: float = 0.0) -> None:
        super().__init__(*(answers or ("ok",)))
        self._pace, self._begin, self._takes_s = pace, pace.tick(), takes_s
        self.at: list[float] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.at.append(round(self._pace.tick() - self._begin, 3))
        if self._takes_s:
            await self._pace.sleep(self._takes_s)
        return await super().complete(request)


def times(
    rate: Rate, calls: int, *answers: Any, tokens: int = 1, one_by_one: bool = False, takes_s: float = 0.0
) -> list[float]:
    """When calls made at once (or one after the other) reach the model, in seconds."""
    pace = FakePace()
    model = Timed(pace, *answers, takes_s=takes_s)
    limited = RateLimited(model, rate, pace=pace)
    request = asking(max_output_tokens=tokens)

    async def run() -> None:
        if one_by_one:
            for _ in range(calls):
                await limited.complete(request)
        else:
            await asyncio.gather(*(limited.complete(request) for _ in range(calls)))

    asyncio.run(run())
    return model.at


def test_calls_beyond_the_rate_wait_for_their_minute() -> None:
    assert times(Rate(requests_per_minute=2), 5) == [0, 0, 60, 60, 120]


def test_below_the_rate_nothing_waits() -> None:
    assert times(Rate(requests_per_minute=5, tokens_per_minute=10_000), 5) == [0] * 5


def test_tokens_are_reserved_before_they_are_known() -> None:
    each = estimated_tokens(asking(max_output_tokens=90))
    assert times(Rate(tokens_per_minute=each * 2), 3, tokens=90) == [0, 0, 60]


def test_what_was_reserved_too_much_is_given_to_those_who_wait() -> None:
    each = estimated_tokens(asking(max_output_tokens=90))
    looks_again_s = 1
    began = times(Rate(tokens_per_minute=each * 3), 5, used(10), tokens=90, takes_s=0.5)
    assert began == [0, 0, 0, looks_again_s, looks_again_s]


def test_what_was_reserved_too_little_holds_the_next_ones_back() -> None:
    assert times(Rate(tokens_per_minute=100), 2, used(5_000), one_by_one=True) == [0, 60]


def test_a_provider_that_reports_no_tokens_leaves_the_estimate() -> None:
    each = estimated_tokens(asking(max_output_tokens=90))
    assert times(Rate(tokens_per_minute=each), 2, "ok", tokens=90, one_by_one=True) == [0, 60]


def test_a_call_larger_than_the_rate_goes_alone_and_not_never() -> None:
    assert times(Rate(tokens_per_minute=10), 2, tokens=1_000) == [0, 60]


def test_the_estimate_counts_the_prompt_and_the_output() -> None:
    long = asking(messages=(Message(role="user", content="word " * 800),))
    assert 1_000 <= estimated_tokens(long) - EXPECTED_OUTPUT_TOKENS <= 1_100


def test_a_wait_beyond_the_time_of_the_request_is_told_at_once() -> None:
    async def run() -> ModelRateLimited:
        limited = RateLimited(Told("ok"), Rate(requests_per_minute=1), pace=FakePace())
        await limited.complete(asking())
        with pytest.raises(ModelRateLimited) as raised:
            await limited.complete(asking(timeout_s=20.0))
        return raised.value

    error = asyncio.run(run())
    assert error.message == (
        "told was not asked: the agent's own rate of 1 requests per minute allows the next call in 60 s, "
        "and 20 s are left."
    )
    assert error.retry_after_s == pytest.approx(60)
    assert "model_timeout_s" in error.hint


def test_the_time_waited_is_part_of_the_time_of_the_request() -> None:
    pace = FakePace()
    model = Timed(pace)

    async def run() -> None:
        limited = RateLimited(model, Rate(requests_per_minute=1), pace=pace)
        await limited.complete(asking())
        await limited.complete(asking(timeout_s=100.0))

    asyncio.run(run())
    assert model.requests[1].timeout_s == pytest.approx(40)


def test_who_gives_up_leaves_the_place_to_the_next() -> None:
    pace = FakePace()
    model = Timed(pace)

    async def run() -> None:
        limited = RateLimited(model, Rate(requests_per_minute=1), pace=pace)
        await limited.complete(asking())
        waiting = [asyncio.create_task(limited.complete(asking())) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(run())
    assert model.at == [0, 60]


def test_every_attempt_counts() -> None:
    pace = FakePace(part=0.0)
    model = Timed(pace, ModelUnavailable("down"), "ok")
    retrying = Retrying(RateLimited(model, Rate(requests_per_minute=1), pace=pace), pace=pace)
    asyncio.run(retrying.complete(asking()))
    assert model.at == [0, 60]


def test_one_limit_holds_for_all_threads_and_loops() -> None:
    """An agent used with `run_sync` from several threads has a loop in each of them."""
    limited = RateLimited(Told("ok"), Rate(requests_per_minute=3))
    refused: list[str] = []

    def ask() -> None:
        try:
            asyncio.run(limited.complete(asking(timeout_s=1.0)))
        except ModelRateLimited as error:
            refused.append(error.message)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 2


def test_a_call_under_way_keeps_its_place_when_it_is_cancelled() -> None:
    """The provider has counted it."""
    pace = FakePace()

    async def run() -> None:
        model = Told(HANG)
        limited = RateLimited(model, Rate(requests_per_minute=1), pace=pace)
        task = asyncio.create_task(limited.complete(asking()))
        await model.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ModelRateLimited):
            await limited.complete(asking(timeout_s=5.0))

    asyncio.run(run())


calls = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60), st.integers(0, 60)), max_size=40)


@given(calls, st.integers(1, 5), st.integers(1, 100))
def test_no_span_of_a_minute_holds_more_than_the_rate(
    asked: list[tuple[int, int, int]], requests: int, tokens: int
) -> None:
    """Whatever is asked when (seconds later, tokens reserved, tokens used), and in the order in which it was asked."""
    window = RateWindow(Rate(requests_per_minute=requests, tokens_per_minute=tokens))
    now, begun = 0.0, list[tuple[float, int]]()
    for later, reserved, really in asked:
        now += later
        place = window.reserve(reserved, now)
        while wait_s := window.start(place, now):
            now += wait_s
        begun.append((now, min(reserved, really)))
        window.settle(place, min(reserved, really), now)
    for number, (start, size) in enumerate(begun):
        span = [(at, used) for at, used in begun[: number + 1] if at > start - MINUTE_S]
        assert len(span) <= requests
        assert sum(used for _, used in span) <= tokens or len([used for _, used in span if used]) == 1 or size == 0


@given(st.lists(st.integers(1, 100), min_size=1, max_size=30), st.integers(1, 4))
def test_who_asks_first_goes_first(sizes: list[int], requests: int) -> None:
    window = RateWindow(Rate(requests_per_minute=requests, tokens_per_minute=100))
    starts = [window.reserve(size, 0.0).start for size in sizes]
    assert starts == sorted(starts)
    assert starts[-1] <= MINUTE_S * len(sizes)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "60"])
def test_rates_that_mean_nothing_are_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match="tokens_per_minute"):
        Rate(tokens_per_minute=value)


def test_a_call_that_the_provider_refused_used_no_tokens() -> None:
    each = estimated_tokens(asking(max_output_tokens=90))
    pace = FakePace()
    model = Timed(pace, ModelRequestRefused("no"), ModelRateLimited("slow down"), ModelContentRefused("never"), "ok")
    limited = RateLimited(model, Rate(tokens_per_minute=each), pace=pace)

    async def run() -> None:
        for kind in (ModelRequestRefused, ModelRateLimited, ModelContentRefused):
            with pytest.raises(kind):
                await limited.complete(asking(max_output_tokens=90))
        await limited.complete(asking(max_output_tokens=90))

    asyncio.run(run())
    assert model.at == [0, 0, 0, 60]  # the third had been read, and may have been begun


def test_a_call_that_begins_late_holds_those_behind_it_back_as_long() -> None:
    window = RateWindow(Rate(requests_per_minute=1))
    first, second, third = (window.reserve(0, 0.0) for _ in range(3))
    assert window.start(first, 0.0) == 0
    assert window.start(second, 65.0) == 0  # its loop was busy when its turn came
    assert window.start(third, 120.0) == pytest.approx(5.0)


def test_amounts_leave_the_window_one_span_later() -> None:
    window = SlidingWindow()
    window.add(3, 0.0)
    window.add(4, 30.0)
    assert [window.total(now) for now in (30.0, 59.9, 60.0, 89.9, 90.0)] == [7, 7, 4, 4, 0]


def test_the_earliest_time_with_room_is_that_at_which_enough_has_left() -> None:
    window = SlidingWindow()
    for now, amount in ((0.0, 5), (10.0, 3), (20.0, 2)):
        window.add(amount, now)
    assert window.free_at(11, 20.0) == 20.0
    assert window.free_at(10, 20.0) == 60.0
    assert window.free_at(10, 20.0, 8) == 70.0
    assert window.free_at(10, 20.0, 9) == 80.0


def test_an_amount_above_the_limit_fits_once_the_window_is_empty() -> None:
    window = SlidingWindow()
    assert window.free_at(10, 5.0, 1_000) == 5.0
    window.add(1, 5.0)
    assert window.free_at(10, 6.0, 1_000) == 65.0


def test_an_estimate_is_corrected_while_it_is_in_the_window() -> None:
    window = SlidingWindow()
    entry = window.add(100, 0.0)
    window.correct(entry, 30, 10.0)
    assert window.total(10.0) == 30
    window.correct(entry, 500, 60.0)  # it has left
    assert window.total(60.0) == 0


def test_a_copy_plans_ahead_and_changes_nothing() -> None:
    window = SlidingWindow(grain_s=1.0)
    window.add(1, 0.0)
    plan = window.copy()
    plan.add(5, 0.5)
    assert plan.total(61.0) == 0
    assert (window.total(0.5), len(window)) == (1, 1)


def test_a_window_with_a_grain_stays_small_however_often_something_is_added() -> None:
    window = SlidingWindow(grain_s=1.0)
    for number in range(10_000):
        window.add(3, number * 0.01)
    assert window.total(99.99) == pytest.approx(18_000, rel=0.03)
    assert len(window) <= 62


@given(
    st.lists(st.tuples(st.floats(0, 40), st.integers(1, 9)), max_size=60),
    st.integers(1, 20),
    st.sampled_from([0.0, 1.0, 5.0]),
)
def test_no_span_holds_more_than_the_limit(uses: list[tuple[float, int]], limit: int, grain_s: float) -> None:
    window, now, taken = SlidingWindow(grain_s=grain_s), 0.0, list[tuple[float, int]]()
    for later, amount in uses:
        now = window.free_at(limit, now + later, amount)
        window.add(amount, now)
        taken.append((now, amount))
    for number, (end, last) in enumerate(taken):
        span = [amount for start, amount in taken[: number + 1] if start + MINUTE_S > end]
        assert sum(span) <= limit or span == [last]
