"""The panel in headless Chromium: a browser for the session, a context for each person, and axe.

Not a part of `scripts/test`, since it needs a browser and packages of its own: `scripts/check-panel` brings and runs
them. Every page that a test opens fails it if the policy of the page was violated or a script failed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.serve.panel.panels import ServedPanel, served_panel

from taoloop.journals.sqlite.journal import SqliteJournal

playwright = pytest.importorskip("playwright.sync_api", reason="scripts/check-panel installs Playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="scripts/check-panel installs axe")

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
ARGUMENTS = ("no-sandbox", "disable-gpu", "disable-quic", "disable-background-networking", "disable-component-update")

LANGUAGES = ("en", "zh")
"""Every page is checked in both, each night; themes and widths change under the open page: `assert_every_look`."""

QUICK_LANGUAGES = ("en", pytest.param("zh", marks=pytest.mark.nightly))
"""For pages whose Chinese says nothing more of widths and colours than that of the inbox and of a run."""

WIDTHS = (360, 1280)
"""The narrowest window, and one with room."""

COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""Only the rules of axe that depend on the theme; the others see the same elements in both."""

NOT_CONTRAST = {"rules": {"color-contrast": {"enabled": False}}}
"""All but the rule that takes three quarters of the time: colours are the same in a wide window."""

Open = Callable[..., Any]
"""Opens a page: `open_page("ada", "/runs", language="zh", theme="dark", width=360)`."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, once for all tests."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium (Debian: apt-get install chromium-headless-shell fonts-wqy-microhei)")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=[f"--{name}" for name in ARGUMENTS])
        yield chromium
        chromium.close()


@pytest.fixture
def fill(tmp_path: Path) -> Callable[[Callable[[SqliteJournal], Awaitable[Any]]], Any]:
    """Puts runs into the database of the test: `fill(lambda journal: agent(journal).run("…"))`."""

    def put(work: Callable[[SqliteJournal], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with SqliteJournal(tmp_path / "runs.db", synchronous="NORMAL") as journal:
                return await work(journal)

        with ThreadPoolExecutor() as thread:  # Playwright has a loop in this one
            return thread.submit(asyncio.run, main()).result()

    return put


@pytest.fixture
def panel(tmp_path: Path) -> Iterator[ServedPanel]:
    """A panel over the database of the test, without agents."""
    with served_panel(tmp_path / "runs.db") as served:
        yield served


@pytest.fixture
def open_page(browser: Any, panel: ServedPanel) -> Iterator[Open]:
    """Opens pages of the panel, each in a browser context of its own."""
    opened: list[Any] = []
    problems: list[str] = []

    def open_one(person: str, path: str, *, language: str = "en", theme: str = "light", width: int = 1280) -> Any:
        locale = "zh-CN" if language == "zh" else "en-US"
        context = browser.new_context(
            viewport={"width": width, "height": 900}, locale=locale, color_scheme=theme, timezone_id="UTC"
        )
        opened.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if _is_problem(message) else None)
        page.goto(panel.login_url(person, path))
        return page

    yield open_one
    for context in opened:
        context.close()
    assert problems == []


def _is_problem(message: Any) -> bool:
    return message.type == "error" and "Failed to load resource" not in message.text


def serious_findings(page: Any, options: dict[str, Any] | None = None) -> list[str]:
    """What axe finds on a page and calls serious or critical, with its options for a run."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(axe.Axe().axe_script)
    findings: list[str] = page.evaluate(
        """options => axe.run(options).then(({violations}) => violations
          .filter(({impact}) => impact === "serious" || impact === "critical")
          .map(({id, nodes}) => `${id}: ${nodes[0].html.slice(0, 200)}`))""",
        {"resultTypes": ["violations"], **(options or {})},
    )
    return findings


def assert_fits(page: Any) -> None:
    """Nothing is wider than the window: whatever is long scrolls within itself."""
    width, inner = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert width <= inner, f"the page is {width} px wide in a window of {inner} px"


def assert_every_look(page: Any) -> None:
    """The open page fits, and axe finds nothing serious: narrow in light and dark, wide in dark."""
    looks = ((WIDTHS[0], "light", None), (WIDTHS[0], "dark", COLOURS), (WIDTHS[1], "dark", NOT_CONTRAST))
    for width, theme, options in looks:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=theme)
        assert serious_findings(page, options) == [], (page.url, width, theme)
        assert_fits(page)
