"""Which calls fit the actions of a case."""

from __future__ import annotations

import pytest

from taoloop.evals.action_patterns import count_matches, count_selected, fits_pattern, is_same_value
from taoloop.evals.cases import ActionPattern


def test_a_call_fits_with_the_same_tool_and_the_named_arguments() -> None:
    pattern = ActionPattern(tool="pay", args={"to": "ann", "amount": 5})
    assert fits_pattern(pattern, "pay", {"to": "ann", "amount": 5.0, "note": "rent"})
    assert not fits_pattern(pattern, "pay", {"to": "ann"})
    assert not fits_pattern(pattern, "play", {"to": "ann", "amount": 5})
    assert not fits_pattern(pattern, "pay", ["ann", 5])
    assert fits_pattern(ActionPattern(tool="pay"), "pay", "anything")


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (False, 0, False),
        ([1, {"a": None}], (1.0, {"a": None}), True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1, 2], [2, 1], False),
        ("1", 1, False),
    ],
)
def test_values_are_equal_as_json(first: object, second: object, is_same: bool) -> None:
    assert is_same_value(first, second) is is_same


def test_each_call_counts_for_one_pattern_at_most_whatever_the_order() -> None:
    anywhere, home = ActionPattern(tool="go"), ActionPattern(tool="go", args={"to": "home"})
    trips = [("go", {"to": "home"}), ("go", {"to": "work"})]
    assert count_matches([anywhere, home], trips) == count_matches([home, anywhere], trips[::-1]) == 2
    assert count_matches([home, home], trips) == 1
    assert count_selected([home, home, ActionPattern(tool="stay")], ["go", "go", "go"]) == 2
