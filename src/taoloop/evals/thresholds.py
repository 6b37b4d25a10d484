"""Thresholds: what the metrics of a suite must be for an evaluation to end well."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from taoloop.evals.results import ConfigurationResults, MetricValue, PairedComparison, Results

Bound = Literal["at_least", "at_most", "surely_at_least", "surely_at_most"]
"""How a figure is held to a threshold. `at_least` and `at_most` look at the figure; those with `surely` at the end of
its 95 % interval that is nearer to the threshold, so that chance alone seldom meets them."""

BOUNDS: Final[tuple[Bound, ...]] = get_args(Bound)

_HELD: Final[Mapping[Bound, tuple[Callable[[MetricValue], float | None], Callable[[float, float], bool]]]] = {
    "at_least": (lambda figure: figure.value, operator.ge),
    "at_most": (lambda figure: figure.value, operator.le),
    "surely_at_least": (lambda figure: figure.low, operator.ge),
    "surely_at_most": (lambda figure: figure.high, operator.le),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdOutcome:
    """A threshold and what came of it in one configuration."""

    configuration: str
    """The configuration."""
    metric: str
    """The metric."""
    bound: Bound
    """How the figure is held to it."""
    limit: float
    """The threshold."""
    figure: MetricValue
    """The figure."""
    is_met: bool
    """Whether the threshold is met. It is not where there is no figure, for none is not zero."""


def threshold_outcomes(results: Results, thresholds: Mapping[str, Mapping[str, float]]) -> tuple[ThresholdOutcome, ...]:
    """What came of each threshold in each configuration.

    Configurations without a language model are not held to thresholds where there are others: they only frame them.
    """
    configurations = [each for each in results.configurations if not each.is_frame] or results.configurations
    return tuple(outcome for configuration in configurations for outcome in _outcomes(configuration, thresholds))


def worse_metrics(comparison: PairedComparison, thresholds: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
    """The metrics that matter and in which the second configuration is worse: task success, and those of thresholds."""
    return tuple(
        each.metric
        for each in comparison.metrics
        if each.verdict == "worse" and (each.metric == "task_success" or each.metric in thresholds)
    )


def _outcomes(
    configuration: ConfigurationResults, thresholds: Mapping[str, Mapping[str, float]]
) -> Iterator[ThresholdOutcome]:
    for metric, limits in thresholds.items():
        figure = configuration.figure(metric)
        for bound in BOUNDS:
            if bound in limits:
                end, is_within = _HELD[bound]
                value = end(figure)
                yield ThresholdOutcome(
                    configuration=configuration.name,
                    metric=metric,
                    bound=bound,
                    limit=limits[bound],
                    figure=figure,
                    is_met=value is not None and is_within(value, limits[bound]),
                )
