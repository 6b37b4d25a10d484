"""The page of a report needs nothing else, takes no markup from a run, and has a part for all there is to show."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest
from tests.evals.trial_making import scored, trials

from taoloop.evals.report.page import page, write_page
from taoloop.evals.results import Results
from taoloop.evals.trial_records import CheckOutcome, TrialRecord

HOSTILE = '</title><img src=x onerror=alert(1)>"\u202e'


def some_results(cases: int = 6, *, hostile: bool = False) -> Results:
    """Two configurations whose second one is right more often."""
    name = HOSTILE if hostile else "second"
    checks = (CheckOutcome(kind="exact", passed=False, detail=f"expected {HOSTILE if hostile else '42'}"),)
    failing: dict[str, object] = {"checks": checks, "fault": "agent", "steps": 3, "calls": 2}
    first = trials("first", [[False, index % 3 == 0] for index in range(cases)], answer=name, **failing)
    second = trials(name, [[True, index % 5 != 0] for index in range(cases)], category="safety", cost_usd=0.01, steps=2)
    return replace(scored(first, second), suite=name, database="evals.db", notes=(name,))


def section_ids(text: str) -> list[str]:
    return re.findall(r'<section id="([a-z]+)">', text)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_loads_and_runs_nothing(language: str) -> None:
    text = page(some_results(), language)
    style = text[text.index("<style>") + 7 : text.index("</style>")]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in text
    assert not re.search(r"<script|<link|<img|src=|https?://| style=| on\w+=", text)
    assert not re.findall(r'href="(?!#)', text)
    body = text[text.index("<body>") : text.index("</html>")]
    fromstring(body)  # noqa: S314  # every element is closed


def test_there_is_a_part_for_everything_that_there_is_to_show() -> None:
    parts = ["verdict", "success", "tradeoffs", "differences", "outcomes", "categories", "cases", "figures", "failures"]
    assert section_ids(page(some_results())) == parts
    plain = page(scored(trials("only", [True, True])))
    assert section_ids(plain) == ["verdict", "success", "outcomes", "cases", "figures"]


def test_nothing_of_a_run_becomes_markup() -> None:
    text = page(some_results(hostile=True))
    assert "<img" not in text
    assert "\u202e" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;&quot;\\u202e" in text


def test_the_page_stays_small_with_many_cases() -> None:
    size = len(page(some_results(60)))
    assert len(page(some_results(600))) < size + 20_000


def test_a_run_is_named_with_the_command_that_shows_it(tmp_path: Path) -> None:
    write_page(some_results(), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<code>tao show RUN --db evals.db</code>" in text
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_results_without_any_valid_trial_say_so() -> None:
    broken: list[TrialRecord] = [replace(each, passed=None, fault="environment") for each in trials("x", [True])]
    text = page(scored(broken))
    assert "No trial is valid, so there are no figures." in text
    assert "1 trial is invalid and counts in no rate." in text
