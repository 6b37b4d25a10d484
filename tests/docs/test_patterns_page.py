"""The page about patterns says when each of them fits, and what its risk is."""

from __future__ import annotations

import pytest
from tests.docs.fenced import ROOT

ROWS = [
    ("`react` (default)", "short tasks, information seeking, tools with fast feedback", "local greed"),
    ("`plan_execute`", "long tasks with clear steps that may need adjusting", "outdated"),
    ("[`reflect`](#reflection)", "tasks that need review and correction", "hallucinate"),
    ("[graph](graph.md)", "clear states and branches", "design work"),
]


def rows_of(page: str) -> dict[str, list[str]]:
    """The cells of every row of the page's tables, by the first one; of several tables the first counts."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("|")]
    return {row[0].strip("| "): row for row in reversed(rows)}


@pytest.mark.parametrize(("pattern", "use", "risk"), ROWS)
def test_each_pattern_has_its_tasks_and_its_risk(pattern: str, use: str, risk: str) -> None:
    """S2-32, S2-33, S2-34, S2-35: when ReAct, Plan-and-Execute, Reflection and graphs fit, and what they cost."""
    row = rows_of("patterns.md")[pattern]
    assert use in row[2]
    assert risk in row[3]


def test_react_is_offered_for_tasks_of_low_and_medium_complexity() -> None:
    """S4-39."""
    assert "tasks of low and medium complexity" in rows_of("patterns.md")["`react` (default)"][2]
    assert "中低复杂度" in rows_of("patterns.zh.md")["`react`（默认）"][2]


def test_baselines_are_named_after_the_paper_and_nothing_is_claimed_of_other_systems() -> None:
    """S4-40: Act-only and Reason-only are the paper's names; SayCan and WebGPT are not said to do no reasoning."""
    for page in ("patterns.md", "patterns.zh.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        assert "Yao" in text
        assert "SayCan" not in text
        assert "WebGPT" not in text
