"""The pages of evaluations in a browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from checks.panel.conftest import QUICK_LANGUAGES, WIDTHS, Open, assert_every_look
from tests.evals.trial_making import scored, trials

from taoloop.evals.result_files import keep_results
from taoloop.evals.trial_records import CheckOutcome

HOSTILE = "</title><img src=x onerror=alert(1)>\u202e" + "x" * 200
NAME = "runs.db.orders-20010909T014640Z"


@pytest.fixture(autouse=True)
def _kept(tmp_path: Path, fill: Any) -> None:
    """Results of three configurations beside the database of the test."""

    async def nothing(_journal: object) -> None:
        """The database alone."""

    fill(nothing)
    checks = (CheckOutcome(kind="exact", passed=False, detail=HOSTILE),)
    failing: dict[str, Any] = {"checks": checks, "fault": "tool", "answer": HOSTILE, "cost_usd": 0.02, "steps": 4}
    own = (
        trials("first", [False, True] * 6, **failing),
        trials(HOSTILE, [[True, index % 3 > 0] for index in range(12)], category="safety", cost_usd=0.01, steps=2),
        trials("third", [True] * 12, cost_usd=0.04, latency_s=3.0, steps=6),
    )
    results = replace(scored(*own), suite="orders", created_at=1e9, database=str(tmp_path / "runs.db"))
    keep_results(results, tmp_path / "runs.db")


@pytest.mark.parametrize("language", QUICK_LANGUAGES)
@pytest.mark.parametrize("path", ["/evals", f"/evals/{NAME}", f"/evals/{NAME}/trials"])
def test_the_pages_are_accessible_and_fit(open_page: Open, language: str, path: str) -> None:
    page = open_page("bob", path, language=language)
    assert page.locator("img[src=x]").count() == 0
    assert_every_look(page)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        boxes = page.locator("svg.scatter text").evaluate_all(
            "texts => texts.map(text => [text.getBoundingClientRect().left, text.getBoundingClientRect().right])"
        )
        assert all(left >= 0 and right <= width for left, right in boxes), "labels are in the window"


def test_an_earlier_evaluation_is_chosen_as_the_baseline_and_the_results_are_downloaded(
    tmp_path: Path, open_page: Open
) -> None:
    earlier = replace(scored(trials("first", [True] * 12)), suite="orders", created_at=0.0)
    keep_results(earlier, tmp_path / "runs.db")
    page = open_page("bob", f"/evals/{NAME}")
    page.get_by_label("Compare with").select_option(label="1970-01-01 00:00:00 UTC · 12 trials")
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("Compared with the baseline:").first.wait_for()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as JSON").click()
    assert download.value.suggested_filename == f"{NAME}.json"


def test_a_failed_trial_leads_to_its_run(open_page: Open) -> None:
    page = open_page("bob", "/evals")
    page.get_by_role("link", name="orders").click()
    page.get_by_role("link", name="Trials and their runs").click()
    page.get_by_label("Outcome").select_option("failed")
    page.get_by_role("button", name="Search").click()
    assert page.locator("table.trials tbody tr").count() == 10
    assert page.locator("table.trials tbody a[href='/runs/r']").count() == 10
