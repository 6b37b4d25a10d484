"""Evaluation: suites of cases, trials, metrics with intervals, comparisons in pairs, and what they are shown in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.evals.cases import ActionPattern as ActionPattern, Case as Case, Check as Check
    from taoloop.evals.report.figures import format_interval as format_interval, format_value as format_value
    from taoloop.evals.report.page import write_page as write_page
    from taoloop.evals.results import (
        ConfigurationResults as ConfigurationResults,
        MetricComparison as MetricComparison,
        MetricValue as MetricValue,
        PairedComparison as PairedComparison,
        Results as Results,
        read_results as read_results,
        write_results as write_results,
    )
    from taoloop.evals.scoring import compare_results as compare_results, score as score
    from taoloop.evals.trial_records import (
        CheckOutcome as CheckOutcome,
        TrialCounts as TrialCounts,
        TrialRecord as TrialRecord,
    )
    from taoloop.evals.worlds import World as World, current_world as current_world

__getattr__, __dir__, __all__ = lazy_exports(
    globals(),
    {
        "taoloop.evals.cases": "ActionPattern Case Check",
        "taoloop.evals.report.figures": "format_interval format_value",
        "taoloop.evals.report.page": "write_page",
        "taoloop.evals.results": (
            "ConfigurationResults MetricComparison MetricValue PairedComparison Results read_results write_results"
        ),
        "taoloop.evals.scoring": "compare_results score",
        "taoloop.evals.trial_records": "CheckOutcome TrialCounts TrialRecord",
        "taoloop.evals.worlds": "World current_world",
    },
)
