"""The corrected rate is that of Rogan and Gladen, and its interval holds the true rate as often as it says."""

from __future__ import annotations

import random

import pytest

from taoloop.evals.statistics.judge_correction import JudgeCounts, corrected_rate

COUNTS = JudgeCounts(right_as_right=45, right_as_wrong=5, wrong_as_wrong=40, wrong_as_right=10)


def test_the_rate_is_solved_from_what_the_judge_says() -> None:
    corrected = corrected_rate(0.62, 100, COUNTS)
    assert corrected is not None
    assert corrected.value == pytest.approx((0.62 + 0.8 - 1) / (0.9 + 0.8 - 1))
    assert corrected.low < corrected.value < corrected.high
    more_marks = JudgeCounts(right_as_right=450, right_as_wrong=50, wrong_as_wrong=400, wrong_as_right=100)
    narrower = corrected_rate(0.62, 100, more_marks)
    assert narrower is not None
    assert narrower.high - narrower.low < corrected.high - corrected.low


def test_a_perfect_judge_changes_nothing_and_a_guessing_one_says_nothing() -> None:
    perfect = corrected_rate(0.62, 100, JudgeCounts(right_as_right=1000, wrong_as_wrong=1000))
    assert perfect is not None
    assert perfect.value == pytest.approx(0.62)
    assert corrected_rate(0.62, 100, JudgeCounts(right_as_right=5, right_as_wrong=5, wrong_as_right=9)) is None
    assert corrected_rate(0.62, 100, JudgeCounts(right_as_right=5)) is None  # nothing is marked wrong
    assert corrected_rate(0.62, 0, COUNTS) is None
    few = corrected_rate(1.0, 3, JudgeCounts(right_as_right=1, right_as_wrong=1, wrong_as_wrong=1, wrong_as_right=0))
    assert few is not None
    assert (few.low, few.high) == (0.0, 1.0)  # three marks cannot tell a judge from chance


@pytest.mark.parametrize(("rate", "sensitivity", "specificity"), [(0.7, 0.9, 0.85), (0.95, 0.9, 0.9), (0.3, 0.85, 0.9)])
def test_the_interval_holds_the_true_rate_in_95_of_100_samples(
    rate: float, sensitivity: float, specificity: float
) -> None:
    chance = random.Random(20)  # noqa: S311  # a sample, not a secret

    def count(probability: float, n: int) -> int:
        return sum(chance.random() < probability for _ in range(n))

    held, samples = 0, 600
    for _ in range(samples):
        judged = count(rate * sensitivity + (1 - rate) * (1 - specificity), 60)
        right, wrong = count(sensitivity, 25), count(specificity, 25)
        counts = JudgeCounts(
            right_as_right=right, right_as_wrong=25 - right, wrong_as_wrong=wrong, wrong_as_right=25 - wrong
        )
        corrected = corrected_rate(judged / 60, 60, counts)
        held += corrected is not None and corrected.low <= rate <= corrected.high
    assert held / samples >= 0.93
