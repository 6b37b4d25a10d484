"""Comparisons in pairs: verdicts that are earned, cases that are not compared, and one noisy trial."""

from __future__ import annotations

import pytest
from tests.evals.trial_making import trial, trials

from taoloop.evals.comparison import ALPHA, compare_sides, compared_side, find_flaky_cases
from taoloop.evals.metrics import METRICS
from taoloop.evals.results import MetricComparison, PairedComparison
from taoloop.evals.statistics.paired_tests import mcnemar, sign_flip
from taoloop.evals.trial_records import TrialRecord

SAME = [True] * 10 + [False] * 10


def compare(first: list[TrialRecord], second: list[TrialRecord], k: int = 1) -> PairedComparison:
    return compare_sides([(compared_side("first", first), compared_side("second", second))], k)[0]


def metric(comparison: PairedComparison, name: str = "task_success") -> MetricComparison:
    return next(each for each in comparison.metrics if each.metric == name)


def test_a_clear_difference_is_a_verdict_by_the_corrected_p() -> None:
    comparison = compare(trials("x", SAME), trials("y", [True] * 20))
    success = metric(comparison)
    assert (success.difference.value, success.difference.n, success.test) == (0.5, 20, "mcnemar")
    assert success.p == mcnemar(0, 10)
    assert success.p is not None
    assert success.p_corrected == pytest.approx(success.p)  # no other metric has a pair that differs
    assert (success.verdict, success.cases_needed) == ("better", None)
    back = metric(compare(trials("y", [True] * 20), trials("x", SAME)))
    assert (back.difference.value, back.verdict) == (-0.5, "worse")


def test_lower_is_better_where_the_metric_says_so() -> None:
    comparison = compare(trials("x", SAME, steps=4), trials("y", SAME, steps=2))
    steps = metric(comparison, "mean_steps")
    assert (steps.difference.value, steps.verdict, steps.test) == (-2, "better", "sign_flip")
    assert steps.difference.notes == ("no_variation",)


def test_a_verdict_is_never_given_without_the_correction_over_all_that_is_compared() -> None:
    """Six pairs that differ decide alone (p = 0.03), but not as one of several metrics or configurations."""
    first, second = trials("x", [False] * 6 + [True] * 6), trials("y", [True] * 12)
    assert metric(compare(first, second)).verdict == "better"
    slower = [*trials("y", [True] * 11, steps=1), trial("c11", configuration="y", steps=2)]
    several = metric(compare([*trials("x", [False] * 6 + [True] * 6, steps=1)], slower))
    assert several.p == mcnemar(0, 6)
    assert several.p_corrected == 2 * mcnemar(0, 6)  # type: ignore[operator]  # there are pairs that differ
    assert several.verdict == "inconclusive"
    assert several.cases_needed is not None
    assert several.cases_needed > 12
    side = compared_side("x", first)
    pairs = [(side, compared_side("y", second)), (side, compared_side("z", second))]
    assert [metric(comparison).verdict for comparison in compare_sides(pairs)] == ["inconclusive", "inconclusive"]


def test_every_verdict_follows_from_its_corrected_p() -> None:
    comparison = compare(
        trials("x", SAME * 3, steps=5, calls=4, calls_ended=4, calls_succeeded=2, cost_usd=0.2),
        trials("y", [True] * 60, steps=3, calls=4, calls_ended=4, calls_succeeded=4, cost_usd=0.1),
    )
    assert {each.metric for each in comparison.metrics if each.verdict == "better"} == {
        *("task_success", "mean_steps", "tool_success", "cost_usd"),
    }
    for each in comparison.metrics:
        is_decided = each.p_corrected is not None and each.p_corrected <= ALPHA
        assert (each.verdict != "inconclusive") == is_decided
        assert (each.p_corrected is None) == (each.p is None)
        assert METRICS[each.metric].is_compared


def test_several_trials_of_a_case_are_one_pair() -> None:
    first = trials("x", [[False, False, True]] * 6)
    second = trials("y", [[True, True, True]] * 5 + [[True, False, True]])
    success = metric(compare(first, second, k=3))
    assert success.test == "sign_flip"
    assert success.difference.n == 6
    assert success.difference.value == pytest.approx((5 * 2 / 3 + 1 / 3) / 6)
    assert success.p == sign_flip([2 / 3] * 5 + [1 / 3])
    consistency = metric(compare(first, second, k=3), "pass_hat_k")
    assert consistency.difference.value == pytest.approx(5 / 6)


def test_pass_hat_k_is_not_compared_for_one_trial() -> None:
    assert "pass_hat_k" not in {each.metric for each in compare(trials("x", SAME), trials("y", SAME)).metrics}


@pytest.mark.parametrize("trial_count", [1, 3])
def test_one_noisy_trial_is_never_a_verdict(trial_count: int) -> None:
    before = trials("x", [[True] * trial_count] * 40, steps=3)
    noisy = trial("c0", passed=False, number=0, configuration="y", steps=99, answer=None)
    comparison = compare(before, [noisy, *trials("y", [[True] * trial_count] * 40, steps=3)[1:]], k=trial_count)
    assert {each.verdict for each in comparison.metrics} == {"inconclusive"}


def test_only_what_both_have_is_compared_and_the_rest_is_said() -> None:
    first = [*trials("x", [True] * 3), trial("old"), trial("edited", case_digest="1"), trial("broken", passed=None)]
    second = [*trials("y", [True] * 2), trial("new"), trial("edited", case_digest="2"), trial("broken")]
    comparison = compare(first, second)
    assert (comparison.only_first, comparison.only_second) == (("c2", "old"), ("new", "broken"))
    assert comparison.changed == ("edited",)
    assert metric(comparison).difference.n == 2


def test_nothing_in_common_decides_nothing() -> None:
    comparison = compare([trial("a")], [trial("b", passed=False)])
    assert all(each.p is None and each.difference.value is None for each in comparison.metrics)
    assert metric(compare([], [])).verdict == "inconclusive"


def test_a_metric_that_one_side_does_not_count_is_not_compared_in_that_case() -> None:
    first = [trial("a", cost_usd=1.0), trial("b", cost_usd=1.0)]
    second = [trial("a", cost_usd=2.0), trial("b")]
    assert metric(compare(first, second), "cost_usd").difference.n == 1
    assert metric(compare(first, second), "cost_usd").difference.notes == ("one_case",)


def test_cases_whose_trials_disagree_are_flaky_only_where_nothing_is_random() -> None:
    records = trials("x", [[True, False], [True, True]])
    for model in ("offline", "oracle", "script:lazy", "scripted:a.yaml"):
        assert find_flaky_cases(records, {"model": model}) == ("c0",)
    assert find_flaky_cases(records, {"model": "openai:gpt-5"}) == ()
    assert find_flaky_cases(records, {}) == ()
    assert find_flaky_cases([trial(passed=None), trial(number=1)], {"model": "oracle"}) == ()


def test_flaky_cases_are_in_quarantine() -> None:
    first, second = trials("x", [[True, True]] * 3), trials("y", [[False, True], [True, True], [True, True]])
    pair = compared_side("x", first), compared_side("y", second, flaky=("c0",))
    comparison = compare_sides([pair], 2)[0]
    assert comparison.quarantined == ("c0",)
    assert metric(comparison).difference.n == 2
