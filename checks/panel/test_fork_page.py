"""Forks in a browser: an edited decision runs on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from checks.panel.conftest import QUICK_LANGUAGES, Open, assert_every_look
from checks.panel.refunds import WHOLE, agent_for, run
from tests.serve.panel.panels import ServedPanel, served_panel


@pytest.fixture
def panel(tmp_path: Path) -> Iterator[ServedPanel]:
    """A panel with the agent of the runs."""
    script = (*WHOLE[:2], "Only 10 were refunded.")
    with served_panel(tmp_path / "runs.db", agents=lambda _spec: agent_for(tmp_path / "runs.db", script)) as served:
        yield served


@pytest.mark.parametrize("language", QUICK_LANGUAGES)
def test_the_form_is_accessible_and_fits(fill: Any, open_page: Open, language: str) -> None:
    run_id = fill(lambda journal: run(journal, WHOLE))
    page = open_page("ann", f"/runs/{run_id}/fork?step=1", language=language)
    page.locator("form.fork summary").click()
    assert_every_look(page)


def test_an_edited_decision_is_forked_and_runs_on(fill: Any, open_page: Open) -> None:
    run_id = fill(lambda journal: run(journal, WHOLE))
    page = open_page("ann", f"/runs/{run_id}/fork?step=2")
    page.get_by_label("Decision, as JSON").fill("{")
    page.get_by_role("button", name="Fork and run on").click()
    page.get_by_text("No fork was made.").wait_for()
    assert page.get_by_label("Decision, as JSON").input_value() == "{"
    page.get_by_label("Decision, as JSON").fill('{"tool": "refund", "args": {"order_id": "A-2", "amount": 10}}')
    page.get_by_role("button", name="Fork and run on").click()
    page.wait_for_url(lambda url: "/fork" not in url)
    fork = page.url.rpartition("/")[2]
    page.goto(f"{page.url.partition('/runs/')[0]}/compare?runs={run_id},{fork}")
    page.get_by_text("They first differ in step 2: arguments of refund").wait_for()
