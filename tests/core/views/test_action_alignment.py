"""Two sequences of actions side by side: everything once and in order, and as much as possible beside its equal."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.growth import assert_linear
from tests.sizes import examples

from taoloop.core.views import action_alignment
from taoloop.core.views.action_alignment import Alignment, Pair, StepAction, align_actions

WORDS = st.lists(st.sampled_from("abcdXYZ"), max_size=9).map("".join)


def actions(text: str) -> list[StepAction]:
    """One action per letter; those of one case use the same tool."""
    return [StepAction(letter, "upper" if letter.isupper() else "lower") for letter in text]


def align(first: str, second: str) -> Alignment:
    return align_actions(actions(first), actions(second))


def worth(first: str, second: str) -> int:
    """An equal action counts most, then the same tool; a pair is still better than two without a counterpart."""
    return 8 if first == second else 3 if first.isupper() == second.isupper() else 1


@cache
def most(first: str, second: str) -> int:
    """The worth of the best alignment."""
    if not first or not second:
        return 0
    paired = most(first[1:], second[1:]) + worth(first[0], second[0])
    return max(paired, most(first[1:], second), most(first, second[1:]))


@pytest.mark.parametrize(
    ("first", "second", "pairs"),
    [
        ("", "", []),
        ("abc", "abc", [(0, 0), (1, 1), (2, 2)]),
        ("abc", "aXbc", [(0, 0), (None, 1), (1, 2), (2, 3)]),
        ("abc", "", [(0, None), (1, None), (2, None)]),
        ("aXb", "aYb", [(0, 0), (1, 1), (2, 2)]),
        ("abXc", "aYcd", [(0, 0), (1, None), (2, 1), (3, 2), (None, 3)]),  # the same tool belongs together
        ("aaab", "aab", [(0, 0), (1, 1), (2, None), (3, 2)]),
    ],
)
def test_equal_actions_meet(first: str, second: str, pairs: list[Pair]) -> None:
    assert align(first, second) == (pairs, True)


@given(WORDS, WORDS)
@examples(300)
def test_every_action_appears_once_in_its_order(first: str, second: str) -> None:
    pairs = align(first, second).pairs
    assert [index for index, _ in pairs if index is not None] == list(range(len(first)))
    assert [index for _, index in pairs if index is not None] == list(range(len(second)))
    assert (None, None) not in pairs


@given(WORDS, WORDS)
@examples(200)
def test_without_anchors_no_alignment_is_better(first: str, second: str) -> None:
    first, second = first + first, second + second  # so that nothing occurs once
    pairs = align(first, second).pairs
    paired = sum(worth(first[one], second[two]) for one, two in pairs if one is not None and two is not None)
    assert paired == most(first, second)


def test_a_gap_that_is_too_long_is_paired_in_order_and_this_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(action_alignment, "MAX_CELLS", 3)
    assert align("aXXb", "aYYb") == ([(0, 0), (1, 1), (2, 2), (3, 3)], False)
    assert align("aXXb", "aYb") == ([(0, 0), (1, 1), (2, None), (3, 2)], True)


def _unlike(count: int) -> tuple[list[StepAction], list[StepAction]]:
    first = [StepAction(str(number), "tool") for number in range(count)]
    second = [StepAction(str(number if number % 10 else -number), "tool") for number in range(count) if number % 7]
    return first, second


def test_long_runs_take_time_in_proportion() -> None:
    def work(count: int) -> Any:
        return align_actions(*_unlike(count))

    assert_linear(work, 20_000)
    pairs, is_complete = align_actions(*_unlike(10_000))
    assert is_complete
    assert sum(one is not None and two is not None for one, two in pairs) > 7_000
