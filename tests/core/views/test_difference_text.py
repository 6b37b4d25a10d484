"""A difference in words and lines."""

from __future__ import annotations

from typing import Any

import pytest

from taoloop.core.agent_spec import Limits
from taoloop.core.views.difference_text import (
    decision_text,
    difference_headline,
    difference_lines,
    difference_name,
    value_text,
)
from taoloop.core.views.run_diff import Difference, Part


def differing(part: Part, what: str, *steps: int | None, a: Any = "x", b: Any = "y", run: int = 1) -> Difference:
    return Difference(run=run, step=steps[0], other_step=steps[1], part=part, what=what, a=a, b=b)


@pytest.mark.parametrize(
    ("what", "english", "chinese"),
    [
        ("arguments of buy 2", "arguments of buy 2", "buy 2 的参数"),
        ("call", "call", "调用"),
        ("output_schema", "schema of the answer", "答案的 Schema"),
        ("something else", "something else", "something else"),
    ],
)
def test_what_differs_has_a_name(what: str, english: str, chinese: str) -> None:
    assert difference_name(what, "en") == english
    assert difference_name(what, "zh") == chinese


@pytest.mark.parametrize(
    ("difference", "headline"),
    [
        (differing("end", "end", None, None), "They first differ in how they end"),
        (differing("prompt", "task", 0, 0), "They first differ before step 1: task"),
        (differing("decision", "answer", 3, 3), "They first differ in step 3: answer"),
        (differing("decision", "answer", 3, 4), "They first differ in step 3 (in B step 4): answer"),
        (differing("step", "step", None, 2), "They first differ in step 2: only B has it"),
        (differing("step", "step", 2, None, run=2), "They first differ in step 2: only A has it"),
    ],
)
def test_the_first_difference_is_a_sentence(difference: Difference, headline: str) -> None:
    assert difference_headline(difference, "ABC", "en") == headline


def test_short_sides_are_in_a_line_each_and_long_ones_a_unified_diff() -> None:
    assert difference_lines(differing("decision", "answer", 1, 1, b=None), "ab", "zh") == ["- a: x", "+ b: （无）"]
    text = "\n".join(f"line {number}" for number in range(9))
    lines = difference_lines(differing("decision", "answer", 1, 1, a=text, b=text.replace("line 4", "new")), "ab", "en")
    assert "-line 4" in lines
    assert "+new" in lines
    assert " line 8" not in lines


def test_what_differs_beyond_the_preview_is_said() -> None:
    assert difference_lines(differing("observation", "observation of look", 1, 1, b="x"), "ab", "en") == [
        " the complete output, beyond what is shown"
    ]


def test_sides_can_be_cut_and_the_rest_is_counted() -> None:
    lines = difference_lines(differing("end", "end", None, None, a="a" * 9_000, b="b\nc"), "ab", "en", max_chars=1_000)
    assert f"-{'a' * 1_000}" in lines
    assert "-[the rest is not shown: 8,000 characters]" in lines
    assert "+c" in lines


def test_values_are_json_and_only_our_own_words_are_translated() -> None:
    assert '"max_steps": 3' in value_text(Limits(max_steps=3), "en")
    assert decision_text("answer 42", "zh") == "答案 42"
    assert decision_text("search answer", "zh") == "search answer"
    assert decision_text(None, "en") == "–"
