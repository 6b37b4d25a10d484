"""The correction of several tests."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from tests.sizes import examples

from taoloop.evals.statistics.corrections import holm


def test_holms_correction_of_an_example_by_hand() -> None:
    corrected = holm([0.01, 0.04, 0.03, 0.005])
    assert corrected == pytest.approx([0.03, 0.06, 0.06, 0.02])  # 3 × 0.01, 0.06 before, 2 × 0.03, 4 × 0.005


def test_what_could_not_be_tested_is_not_counted() -> None:
    assert holm([None, 0.02, None]) == [None, 0.02, None]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=12))
@examples(100)
def test_a_correction_never_makes_a_difference_more_likely_real(p_values: list[float]) -> None:
    corrected = holm(p_values)
    for p, after in zip(p_values, corrected, strict=True):
        assert after is not None
        assert p <= after <= min(1, len(p_values) * p) + 1e-12
