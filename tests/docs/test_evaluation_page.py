"""The page on evaluation has every metric with its formula, and every rule of faults."""

from __future__ import annotations

import pytest
from tests.docs.fenced import ROOT

from taoloop.evals.fault_classes import FAULT_RULES, rule_text
from taoloop.evals.metrics import METRICS
from taoloop.evals.report.figures import metric_formula, metric_label, outcome_text
from taoloop.evals.suites.catalog import suite_names
from taoloop.evals.thresholds import BOUNDS

PAGES = {"en": "docs/evaluation.md", "zh": "docs/evaluation.zh.md"}


@pytest.mark.parametrize("language", PAGES)
def test_the_tables_are_those_of_the_code(language: str) -> None:
    text = (ROOT / PAGES[language]).read_text(encoding="utf-8")
    rows = [
        *(f"| {metric_label(name, language)} | `{name}` | {metric_formula(name, language)} |" for name in METRICS),
        *(
            f"| `{rule.name}` | {outcome_text(rule.fault, language)} | {rule_text(rule.name, language)} |"
            for rule in FAULT_RULES
        ),
    ]
    assert [row for row in rows if row not in text] == []
    names = [*BOUNDS, *suite_names()]
    assert [name for name in names if f"`{name}`" not in text] == []
