"""A policy tried on a run in a browser."""

from __future__ import annotations

from typing import Any

import pytest
from checks.panel.conftest import QUICK_LANGUAGES, Open, assert_every_look
from checks.panel.refunds import WHOLE, run


@pytest.mark.parametrize("language", QUICK_LANGUAGES)
def test_changed_verdicts_are_accessible_and_fit(fill: Any, open_page: Open, language: str) -> None:
    run_id = fill(lambda journal: run(journal, WHOLE))
    page = open_page("bob", f"/runs/{run_id}/policy?profile=locked", language=language)
    assert page.locator("article.c-newly_denied").count() == 3
    assert page.locator("main img").count() == 0
    assert_every_look(page)


def test_what_people_approved_is_tried_with_a_click(fill: Any, open_page: Open) -> None:
    run_id = fill(lambda journal: run(journal, WHOLE))
    page = open_page("bob", f"/runs/{run_id}/policy")
    page.get_by_role("button", name="Try this policy").click()
    page.locator("article.c-question_vanishes").first.wait_for()
