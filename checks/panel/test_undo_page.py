"""Undo in a browser: the plan, agreed to once, and two people at it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from checks.panel.conftest import QUICK_LANGUAGES, Open, assert_every_look
from checks.panel.refunds import BROKEN, WHOLE, agent_for, run
from tests.serve.panel.panels import ServedPanel, served_panel


@pytest.fixture
def panel(tmp_path: Path) -> Iterator[ServedPanel]:
    """A panel with the agent of the runs."""
    with served_panel(tmp_path / "runs.db", agents=lambda _spec: agent_for(tmp_path / "runs.db", ["x"])) as served:
        yield served


@pytest.mark.parametrize("language", QUICK_LANGUAGES)
def test_the_plan_is_accessible_and_fits(fill: Any, open_page: Open, language: str) -> None:
    run_id = fill(lambda journal: run(journal, WHOLE))
    page = open_page("ada", f"/runs/{run_id}/undo", language=language)
    assert page.locator("ol.plan > li").count() == 2
    assert page.locator("main img").count() == 0
    assert_every_look(page)


def test_of_two_people_with_the_same_plan_one_undoes_and_the_other_is_told(fill: Any, open_page: Open) -> None:
    run_id = fill(lambda journal: run(journal, WHOLE))
    first, second = (open_page("ada", f"/runs/{run_id}/undo") for _ in range(2))
    for page in (first, second):
        page.get_by_label("I have read the calls that will be made.").check()
    first.get_by_role("button", name="Make this call").click()
    first.get_by_role("heading", name="Undone before").wait_for()  # the page follows by itself
    second.get_by_role("button", name="Make this call").click()
    second.get_by_text("The run has changed since you saw this plan").wait_for()


def test_a_call_is_left_alone_and_steps_are_kept(fill: Any, open_page: Open) -> None:
    run_id = fill(lambda journal: run(journal, WHOLE))
    page = open_page("ada", f"/runs/{run_id}/undo")
    undone = page.get_by_role("heading", name="Will be undone, in this order")
    page.get_by_role("link", name="Leave this call alone").click()
    page.get_by_role("heading", name="Left alone").wait_for()
    assert undone.count() == 0
    page.get_by_role("link", name="Undo it after all").click()
    undone.wait_for()
    page.get_by_label("Keep the steps up to").fill("2")
    page.get_by_role("button", name="Show this plan").click()
    page.wait_for_url("**/undo?to=2")
    page.get_by_role("heading", name="Cannot be undone").wait_for()
    assert undone.count() == 0
    page.get_by_role("link", name="Undo everything").click()
    undone.wait_for()


def test_a_compensation_that_broke_off_is_tried_again(
    fill: Any, open_page: Open, request: pytest.FixtureRequest
) -> None:
    run_id = fill(lambda journal: run(journal, WHOLE))
    BROKEN.add("R-A-2")
    request.addfinalizer(BROKEN.clear)
    page = open_page("ada", f"/runs/{run_id}/undo")
    for is_again in (False, True):
        if is_again:
            BROKEN.clear()
            page.get_by_role("link", name="It is not undone: try its compensation again").click()
        page.get_by_label("I have read the calls that will be made.").check()
        page.get_by_role("button", name="Make this call").click()
        title = "Undone before" if is_again else "May or may not have happened: check by hand"
        page.get_by_role("heading", name=title).wait_for()  # the page follows by itself
