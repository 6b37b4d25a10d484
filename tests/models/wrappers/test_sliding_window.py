"""No span of a window's length holds more than its limit, and a window stays small however often it is used."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from taoloop.models.wrappers.sliding_window import MINUTE_S, SlidingWindow


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
