"""The page that asks to log in, and the one that says what is wrong, in a browser."""

from __future__ import annotations

from typing import Any

import pytest
from checks.panel.conftest import LANGUAGES, Open, assert_every_look


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_login_and_the_errors_are_accessible_and_fit(open_page: Open, panel: Any, language: str) -> None:
    page = open_page("bob", "/nothing", language=language)
    assert page.locator("[role=alert]:visible").count() == 1
    assert_every_look(page)
    page.locator("details.menu summary").click()
    page.locator("form[action$='/logout'] button").click()
    page.locator("#credential").fill("wrong")
    page.keyboard.press("Enter")
    page.locator("[role=alert]:visible").wait_for()
    assert page.url.startswith(f"{panel.url}/login")
    assert_every_look(page)
