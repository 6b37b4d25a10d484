"""The correction of several tests that are read together."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The corrected p of each test (Holm 1979): at most as often as p says is any of them small by chance.

    None stays None and is not counted: without a pair that differs no outcome could have been significant, and such
    tests need no correction (Tarone 1990).
    """
    order = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    greatest = 0.0
    for rank, (p, index) in enumerate(order):
        greatest = max(greatest, min(1.0, (len(order) - rank) * p))
        corrected[index] = greatest
    return corrected
