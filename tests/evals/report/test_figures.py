"""Figures are written with their unit, and none is not zero."""

from __future__ import annotations

import pytest

from taoloop.evals.report.figures import (
    UNKNOWN,
    format_difference,
    format_difference_interval,
    format_interval,
    format_p,
    format_value,
    metric_formula,
    metric_label,
)
from taoloop.evals.results import MetricValue


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("task_success", None, UNKNOWN),
        ("task_success", 0.0, "0%"),
        ("task_success", 0.0001, "<0.1%"),
        ("task_success", 0.825, "82.5%"),
        ("task_success", 0.9999, ">99.9%"),
        ("task_success", 1.0, "100%"),
        ("mean_steps", 3.0, "3.00"),
        ("duplicate_effects", 0.0, "0"),
        ("duplicate_effects", 0.0021, "0.002"),
        ("cost_usd", 0.0, "$0"),
        ("cost_usd", 0.00314, "$0.0031"),
        ("cost_usd", 12.5, "$12.50"),
        ("latency_p50_s", 0.0471, "47 ms"),
        ("latency_p50_s", 2.04, "2.0 s"),
        ("latency_p50_s", 600.0, "10.0 min"),
        ("prompt_tokens", 1834.4, "1,834"),
    ],
)
def test_a_value_has_its_unit_and_only_nothing_is_zero(metric: str, value: float | None, text: str) -> None:
    assert format_value(metric, value) == text


def test_a_difference_of_shares_is_in_points_and_has_its_sign() -> None:
    figure = MetricValue(value=0.06, low=-0.012, high=0.132, n=50)
    assert format_difference("task_success", figure.value) == "+6.0 points"
    assert format_difference_interval("task_success", figure) == "−1.2 to +13.2"
    assert format_difference("cost_usd", -0.002) == "−$0.002"
    assert format_difference("cost_usd", None) == UNKNOWN


def test_an_interval_says_what_is_missing_of_it() -> None:
    assert format_interval("task_success", MetricValue(value=0.5, low=0.25, high=0.75)) == "25.0% to 75.0%"
    assert format_interval("cost_per_success", MetricValue(value=2.0, low=1.0)) == "at least $1.00"
    assert format_interval("task_success", MetricValue(value=1.0, notes=("one_case",))) == "one case: no interval"
    assert format_interval("task_success", MetricValue(value=None)) == ""


def test_probabilities_are_never_written_as_zero() -> None:
    assert [format_p(p) for p in (None, 0.0000001, 0.0123, 0.5)] == [UNKNOWN, "<0.001", "0.012", "0.50"]


def test_a_metric_of_another_version_has_its_name() -> None:
    assert (metric_label("new_metric"), metric_formula("new_metric")) == ("new metric", "")
    assert format_value("new_metric", 1.5) == "1.50"
    assert metric_label("task_success", "zh") == "任务成功率"
