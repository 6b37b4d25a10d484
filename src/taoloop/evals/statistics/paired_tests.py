"""Whether two configurations differ on the same cases, corrected over all tests, and how many cases would decide.

McNemar's exact test is for yes and no, sign flips are for everything else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import getitem
from random import Random

from taoloop.evals.statistics.intervals import NORMAL

MAX_EXACT = 14
"""Up to so many differences that are not 0 all ways to flip their signs are tried."""

MAX_DRAWN = 1_000
"""Up to so many, ways to flip them are drawn; beyond it the sum is normal, unless one difference outweighs the others.
"""

DRAWS = 9_999
"""How many ways are drawn."""

POWER = 0.8
"""The probability with which that many cases would decide, if the true difference is the one that was seen."""

_OUTWEIGHS = 0.01  # of the sum of squares: below it the normal distribution is exact to about 0.001
_BLOCK = 8  # differences whose sums for all of their signs are tabulated


def mcnemar(only_first: int, only_second: int) -> float | None:
    """The exact two-sided p of McNemar's test (1947): cases that only one of two configurations has right.

    None without such a case: then there is nothing to test.
    """
    differing = only_first + only_second
    if not differing:
        return None
    ways = term = 1
    for index in range(min(only_first, only_second)):
        term = term * (differing - index) // (index + 1)
        ways += term
    return min(1.0, 2 * ways / (1 << differing))


def sign_flip(differences: Sequence[float], *, seed: int = 0) -> float | None:
    """The two-sided p of Fisher's sign-flip test (1935): how often random signs give a sum as far from 0.

    `differences` has one per case. All signs are tried for at most 14 that are not 0. For more they are drawn, and the
    sum itself counts as one draw, so that p is never too small; the same seed gives the same p. If no draw is as far
    from 0, p is at most Hoeffding's bound (1963), which corrections over many tests need. For more than 1,000 the sum
    of random signs has its normal limit, if no square is over 1 % of their sum. None if all are 0.
    """
    largest = max(map(abs, differences), default=0.0)
    if not largest:
        return None
    sizes = [abs(value) / largest for value in differences if value]
    total = abs(math.fsum(differences)) / largest
    squares = math.fsum(size * size for size in sizes)
    if len(sizes) > MAX_DRAWN and squares * _OUTWEIGHS >= 1:
        return math.erfc(total / math.sqrt(2 * squares))
    distance = total - 1e-9 * math.fsum(sizes)  # equal sums may differ in their last digit
    if len(sizes) <= MAX_EXACT:
        sums = _signed_sums(sizes)
        return sum(abs(flipped) >= distance for flipped in sums) / len(sums)
    exceeding = sum(abs(flipped) >= distance for flipped in _draw_sums(sizes, seed))
    p = (1 + exceeding) / (DRAWS + 1)
    return p if exceeding else min(p, 2 * math.exp(-total * total / (2 * squares)))


def _signed_sums(sizes: Sequence[float]) -> list[float]:
    """The sums for all signs."""
    sums = [0.0]
    for size in sizes:
        sums = [total + size for total in sums] + [total - size for total in sums]
    return sums


def _draw_sums(sizes: Sequence[float], seed: int) -> Iterable[float]:
    """Sums for signs that are drawn: one random byte is the signs of eight differences."""
    random = Random(seed)  # noqa: S311  # a permutation test, no secret
    padded = [*sizes, *[0.0] * (-len(sizes) % _BLOCK)]
    tables = [_signed_sums(padded[start : start + _BLOCK]) for start in range(0, len(padded), _BLOCK)]
    return (sum(map(getitem, tables, random.randbytes(len(tables)))) for _ in range(DRAWS))


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


def cases_needed(differences: Sequence[float], alpha: float) -> int | None:
    """How many cases would decide at the level `alpha`, with a probability of 80 %; None if no number can be said.

    It supposes that further cases differ as those seen do: `n = ((z(1 - alpha/2) s0 + z(0.8) s1) / d)²` with the mean
    difference `d`, its spread around 0 `s0` and around `d` `s1`; for differences of -1, 0 and 1 this is Connor's
    (1987) number for McNemar's test. At least so many that the exact test can reach `alpha` at all. A difference that
    was seen by chance makes the number too small: it is a guide for planning.
    """
    count = len(differences)
    mean = math.fsum(differences) / count if count else 0.0
    if not mean:
        return None
    around_zero = math.fsum(value * value for value in differences) / count
    around_mean = max(0.0, around_zero - mean * mean)
    reach = NORMAL.inv_cdf(1 - alpha / 2) * math.sqrt(around_zero) + NORMAL.inv_cdf(POWER) * math.sqrt(around_mean)
    differing = sum(value != 0 for value in differences) / count
    least = (1 - math.log2(alpha)) / differing  # so many signs that all equal ones have a probability of alpha
    return max(count + 1, math.ceil((reach / mean) ** 2), math.ceil(least))
