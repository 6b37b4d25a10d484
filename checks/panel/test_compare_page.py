"""Runs side by side in a browser."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from checks.panel.conftest import QUICK_LANGUAGES, Open, assert_every_look, serious_findings
from checks.panel.refunds import HALF, WHOLE, run


@pytest.mark.parametrize("language", QUICK_LANGUAGES)
def test_the_comparison_is_accessible_and_fits(fill: Any, open_page: Open, language: str) -> None:
    first, second, third = (fill(partial(run, script=script)) for script in (WHOLE, HALF, WHOLE))
    page = open_page("bob", f"/compare?runs={first},{second},{third}", language=language)
    assert page.locator("table.steps-beside tbody tr").count() == 5
    for details in page.locator("main details").all():
        details.locator("summary").click()
    assert page.locator("main img").count() == 0
    assert_every_look(page)


def test_runs_are_picked_by_keyboard(fill: Any, open_page: Open) -> None:
    first, second = (fill(partial(run, script=script)) for script in (WHOLE, HALF))
    page = open_page("bob", f"/compare?runs={first}")
    assert serious_findings(page) == []
    page.locator(f'input[value="{second}"]').focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/compare?runs={first}%2C{second}")
    assert page.locator("h3", has_text="A, B").count() == 1
