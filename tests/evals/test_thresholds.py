"""Thresholds look at the figure or at the end of its interval, and are not met by nothing."""

from __future__ import annotations

from dataclasses import replace

from tests.evals.trial_making import scored, trials

from taoloop.evals.results import Results
from taoloop.evals.thresholds import threshold_outcomes, worse_metrics


def met(results: Results, metric: str, **bounds: float) -> list[bool]:
    return [outcome.is_met for outcome in threshold_outcomes(results, {metric: bounds})]


def test_a_threshold_is_held_against_the_figure_or_surely_against_its_interval() -> None:
    results = scored(trials("x", [True] * 9 + [False]))
    assert met(results, "task_success", at_least=0.9) == [True]
    assert met(results, "task_success", at_least=0.9, at_most=0.89) == [True, False]
    assert met(results, "task_success", surely_at_least=0.9) == [False]
    assert met(results, "task_success", surely_at_least=0.5) == [True]


def test_none_is_not_zero_so_a_figure_that_is_missing_meets_no_threshold() -> None:
    assert met(scored(trials("x", [True])), "citation_precision", at_most=1.0) == [False]


def test_what_only_frames_the_others_is_held_to_no_threshold_unless_there_is_nothing_else() -> None:
    results = scored(trials("m", [True]), trials("o", [False]))
    framed = tuple(
        replace(each, settings={"model": model})
        for each, model in zip(results.configurations, ("x:y", "offline"), strict=True)
    )
    assert met(replace(results, configurations=framed), "task_success", at_least=1.0) == [True]
    assert met(replace(results, configurations=framed[1:]), "task_success", at_least=1.0) == [False]


def test_worse_is_what_matters_task_success_and_the_metrics_of_thresholds() -> None:
    first = trials("a", [True] * 40, steps=1)
    second = trials("b", [False] * 40, steps=3)
    (comparison,) = scored(first, second).comparisons
    assert "mean_steps" in {each.metric for each in comparison.metrics if each.verdict == "worse"}
    assert worse_metrics(comparison, {}) == ("task_success",)
    assert worse_metrics(comparison, {"mean_steps": {"at_most": 9}}) == ("task_success", "mean_steps")
