"""How many cases would decide."""

from __future__ import annotations

import math
from random import Random

import pytest

from taoloop.evals.statistics.case_numbers import cases_needed
from taoloop.evals.statistics.paired_tests import mcnemar


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
