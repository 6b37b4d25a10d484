"""Intervals: known values (of SciPy, which `test_scipy.py` asks itself), edges, and how often they hold the truth."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given, strategies as st
from tests.sizes import examples

from taoloop.evals.statistics.intervals import (
    Counted,
    Interval,
    bca,
    event_interval,
    mean_interval,
    quantile,
    quantile_interval,
    share_difference_interval,
    share_interval,
    t_quantile,
    wilson,
)

COUNTED = st.tuples(st.integers(0, 6), st.integers(1, 6)).map(lambda pair: Counted(min(pair), pair[1]))


def test_wilsons_interval_has_the_values_of_scipy() -> None:
    assert wilson(7 / 9, 9) == pytest.approx((0.4525889691, 0.9367748929))
    assert wilson(0, 10) == pytest.approx((0, 0.2775327999))
    assert wilson(1, 10) == pytest.approx((0.7224672001, 1))


def test_students_quantiles_have_the_values_of_scipy() -> None:
    values = {1: 12.7062047364, 2: 4.3026527299, 7: 2.3646242510, 40: 2.0210753903, 500: 1.9647198375}
    assert {degrees: t_quantile(degrees) for degrees in values} == pytest.approx(values, abs=1e-4)


def test_trials_of_one_case_are_no_independent_observations() -> None:
    independent = share_interval([Counted(right, 1) for right in (1, 1, 0, 1, 0, 1, 1, 1)])
    assert independent == wilson(6 / 8, 8)
    alike = share_interval([Counted(10 * right, 10) for right in (1, 1, 0, 1, 0, 1, 1, 1)])
    assert alike == pytest.approx(independent)


def test_further_trials_make_no_interval_wider() -> None:
    for rights in ((1, 1, 0), (1, 0, 0, 1), (1,) * 9 + (0,)):
        once = share_interval([Counted(right, 1) for right in rights])
        thrice = share_interval([Counted(3 * right, 3) for right in rights])
        assert once.low - 1e-9 <= thrice.low <= thrice.high <= once.high + 1e-9


def test_all_right_and_all_wrong_never_have_an_interval_without_width() -> None:
    all_right, all_wrong = share_interval([Counted(3, 3)] * 4), share_interval([Counted(0, 3)] * 4)
    assert all_right == wilson(1, 4)  # four cases, not twelve trials
    assert all_wrong == wilson(0, 4)
    assert share_interval([Counted(1, 1)]) == wilson(1, 1)  # one case
    assert share_interval([Counted(1, 2)]) == wilson(0.5, 1)


@given(st.lists(COUNTED, min_size=1, max_size=30))
@examples(200)
def test_an_interval_of_a_share_has_the_share_in_it(cases: list[Counted]) -> None:
    value = sum(case.total for case in cases) / sum(case.n for case in cases)
    low, high = share_interval(cases)
    assert 0 <= low <= value <= high <= 1
    assert low < high


def test_a_mean_of_one_case_has_no_interval_and_of_equal_cases_one_without_width() -> None:
    assert mean_interval([Counted(6, 2)]) is None
    assert mean_interval([Counted(6, 2)] * 3) == (3, 3)
    assert mean_interval([Counted(6, 2)] * 20) == (3, 3)
    assert mean_interval([Counted(1, 1), Counted(3, 1)]) == pytest.approx((0, 2 + t_quantile(1)))  # no negative amount


def test_the_bootstrap_is_repeatable_and_follows_the_skewness() -> None:
    cases = [Counted(math.exp(index / 6), 1) for index in range(20)]
    low, high = bca(cases)
    assert (low, high) == bca(cases) == mean_interval(cases)
    middle = sum(case.total for case in cases) / 20
    assert high - middle > middle - low
    assert bca(cases, seed=1) != (low, high)


def test_no_event_is_not_the_certainty_that_there_will_be_none() -> None:
    assert event_interval([Counted(0, 1)] * 100) == pytest.approx((0, 0.0368), abs=1e-3)
    assert event_interval([Counted(0, 5)] * 100) == pytest.approx((0, 0.0368), abs=1e-3)  # the cases count
    low, high = event_interval([Counted(1, 1), *[Counted(0, 1)] * 99]) or Interval(0, 0)
    assert (low, high) == pytest.approx((0.0001, 0.0557), abs=1e-3)  # Poisson: 0.0253 to 5.57 per 100
    clustered = event_interval([Counted(5, 1), *[Counted(0, 1)] * 99]) or Interval(0, 0)
    scattered = event_interval([*[Counted(1, 1)] * 5, *[Counted(0, 1)] * 95]) or Interval(0, 0)
    assert clustered.high > scattered.high
    assert event_interval([Counted(2, 1)]) is None


def test_a_high_quantile_of_few_values_has_no_bound() -> None:
    values = [[float(value)] for value in range(1, 21)]
    assert quantile([value for case in values for value in case], 0.95) == 19
    assert quantile_interval(values, 0.95) == (17, None)  # the greatest of 20 is below it in 36 of 100 samples
    assert quantile_interval(values, 0.5) == (6, 15)  # the exact ranks for 20 values
    many = [[float(value)] for value in range(1, 101)]
    assert quantile_interval(many, 0.95) == (90, 100)
    assert quantile([3.0], 0.5) == 3
    assert quantile_interval([[2.0], [2.0], [2.0]], 0.5) == (None, None)


def test_pairs_that_never_differ_do_not_prove_that_there_is_no_difference() -> None:
    low, high = share_difference_interval([0.0] * 10)
    assert (low, high) == pytest.approx((-0.231, 0.231), abs=1e-3)
    low, high = share_difference_interval([1.0] * 5)
    assert low > 0
    assert high == 1


def _held(shares: int, truth: float, intervals: list[Interval]) -> float:
    return sum(low <= truth <= high for low, high in intervals) / shares


@pytest.mark.parametrize("count", [60, pytest.param(1_500, marks=pytest.mark.nightly)])
def test_the_interval_of_a_share_holds_the_truth_as_often_as_it_says(count: int) -> None:
    """Five trials of each of 20 cases whose own shares differ as a beta distribution does."""
    random, intervals = Random(7), list[Interval]()  # noqa: S311  # draws cases, no secret
    for _ in range(count):
        own = [random.betavariate(3, 1) for _ in range(20)]
        intervals.append(share_interval([Counted(sum(random.random() < p for _ in range(5)), 5) for p in own]))
    assert _held(count, 0.75, intervals) >= 0.93
