"""Tests of pairs: exact values, ties, and how often they are wrong."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st
from tests.sizes import examples

from taoloop.evals.statistics.paired_tests import mcnemar, sign_flip


def test_mcnemars_test_is_the_sign_test_of_the_pairs_that_differ() -> None:
    assert mcnemar(2, 7) == mcnemar(7, 2) == pytest.approx(0.1796875)  # twice that of at most 2 of 9
    assert mcnemar(0, 6) == pytest.approx(2 / 64)
    assert mcnemar(5, 5) == 1
    assert mcnemar(4_000, 4_200) == pytest.approx(0.0279724236)


def test_without_a_pair_that_differs_there_is_nothing_to_test() -> None:
    assert mcnemar(0, 0) is None
    assert sign_flip([]) is None
    assert sign_flip([0.0, 0.0]) is None


def test_one_pair_that_differs_never_decides() -> None:
    assert mcnemar(1, 0) == 1
    assert sign_flip([0.0] * 1_000 + [100.0]) == 1


@given(st.integers(0, 7), st.integers(0, 7))
@examples(64)
def test_for_yes_and_no_the_sign_flips_agree_with_mcnemar(worse: int, better: int) -> None:
    assert sign_flip([-1.0] * worse + [1.0] * better) == pytest.approx(mcnemar(worse, better))


def test_few_differences_are_tried_with_all_signs() -> None:
    assert sign_flip([0.5, -0.25, 1, 0.75, 0.1, -0.3, 0.2, 0.9]) == pytest.approx(0.1015625)  # SciPy
    assert sign_flip([0.1, 0.2, 0.3]) == pytest.approx(2 / 8)  # the sum is met, although floats add up to a hair less


def test_many_differences_are_drawn_repeatably_and_never_give_zero() -> None:
    differences = [1.0] * 42 + [-1.0] * 20
    assert sign_flip(differences) == sign_flip(differences) == pytest.approx(mcnemar(20, 42), abs=0.002)
    assert sign_flip([1.0] * 17 + [-1.0]) == pytest.approx(1 / 10_000, abs=3e-4)
    assert 2**-39 < (sign_flip([1.0] * 40) or 0) == pytest.approx(2 * math.exp(-20))  # Hoeffding's bound on 2**-39


def test_very_many_differences_have_the_normal_limit() -> None:
    assert sign_flip([1.0] * 600 + [-1.0] * 500) == pytest.approx(mcnemar(500, 600), abs=0.001)


@pytest.mark.nightly
def test_one_difference_that_outweighs_very_many_others_does_not_decide() -> None:
    p = sign_flip([1.0] * 520 + [-1.0] * 480 + [10_000.0])
    assert p is not None
    assert 0.05 < p < 0.2  # the others decide, and their sum is as high in one of ten cases
