"""Tests of pairs: exact values, ties, how often they are wrong, their correction, and how many cases would decide."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given, strategies as st
from tests.sizes import examples

from taoloop.evals.statistics.paired_tests import cases_needed, holm, mcnemar, sign_flip


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


def test_holms_correction_of_an_example_by_hand() -> None:
    corrected = holm([0.01, 0.04, 0.03, 0.005])
    assert corrected == pytest.approx([0.03, 0.06, 0.06, 0.02])  # 3 × 0.01, 0.06 before, 2 × 0.03, 4 × 0.005


def test_what_could_not_be_tested_is_not_counted() -> None:
    assert holm([None, 0.02, None]) == [None, 0.02, None]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=12))
@examples(100)
def test_a_correction_never_makes_a_difference_more_likely_real(p_values: list[float]) -> None:
    corrected = holm(p_values)
    for p, after in zip(p_values, corrected, strict=True):
        assert after is not None
        assert p <= after <= min(1, len(p_values) * p) + 1e-12


def test_no_number_can_be_said_without_a_difference() -> None:
    assert cases_needed([], 0.05) is None
    assert cases_needed([1.0, -1.0, 0.0], 0.05) is None


def test_the_number_is_connors_for_yes_and_no() -> None:
    differences = [1.0] * 6 + [-1.0] * 2 + [0.0] * 12  # 40 % differ, by 0.2
    expected = ((1.959964 * math.sqrt(0.4) + 0.841621 * math.sqrt(0.4 - 0.04)) / 0.2) ** 2
    assert cases_needed(differences, 0.05) == math.ceil(expected)


def test_a_level_that_few_pairs_cannot_reach_needs_enough_of_them() -> None:
    assert cases_needed([1.0, 1.0, 1.0], 0.05) == 6  # 2 / 2**6 is the first below 0.05
    assert cases_needed([1.0, 1.0, 1.0], 0.001) == 11


@pytest.mark.parametrize("runs", [40, pytest.param(1_000, marks=pytest.mark.nightly)])
def test_so_many_cases_decide_four_times_out_of_five(runs: int) -> None:
    random = Random(11)  # noqa: S311  # draws cases, no secret
    needed = cases_needed([1.0] * 5 + [-1.0] * 1 + [0.0] * 14, 0.05)
    assert needed is not None
    decided = 0
    for _ in range(runs):
        draws = [random.random() for _ in range(needed)]
        p = mcnemar(sum(draw < 0.05 for draw in draws), sum(0.05 <= draw < 0.3 for draw in draws))
        decided += p is not None and p <= 0.05
    assert 0.68 <= decided / runs <= 0.92
