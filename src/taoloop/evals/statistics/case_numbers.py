"""How many cases would decide a comparison that is inconclusive."""

from __future__ import annotations

import math
from collections.abc import Sequence

from taoloop.evals.statistics.intervals import NORMAL

POWER = 0.8
"""The probability with which that many cases would decide, if the true difference is the one that was seen."""


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
