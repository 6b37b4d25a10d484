"""Intervals (95 %) for shares, means, quantiles and paired differences, where the case is the unit that was drawn.

Trials of one case resemble each other, so they are no independent observations: every interval is made of one
numerator and one denominator per case, and says less than as many trials of different cases would.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from random import Random
from statistics import NormalDist
from typing import NamedTuple

NORMAL = NormalDist()
"""The standard normal distribution."""

LEVEL = 0.95
"""The probability that an interval is made for."""

Z = NORMAL.inv_cdf(0.5 + LEVEL / 2)
"""How many standard deviations an interval reaches to each side."""

MIN_BOOTSTRAP_CASES, MAX_BOOTSTRAP_CASES = 10, 100
"""Where the bootstrap is used: with fewer cases it is too narrow, with more it agrees with the t interval."""

RESAMPLES = 2_000
"""How many samples the bootstrap draws."""


class Interval(NamedTuple):
    """Two ends."""

    low: float
    """The lower end."""
    high: float
    """The upper end."""


class Counted(NamedTuple):
    """What was counted in one case, over all of its trials."""

    total: float
    """The numerator: how many, or how much."""
    n: float
    """The denominator: of how many. Their sum must be above 0."""


def wilson(share: float, n: float, z: float = Z) -> Interval:
    """The interval of a share of `n` independent observations (Wilson 1927); `n` need not be a whole number."""
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(max(0.0, share * (1 - share) / n + z * z / (4 * n * n)))
    return Interval(
        0.0 if share == 0 else max(0.0, min(share, centre - half)),
        1.0 if share == 1 else min(1.0, max(share, centre + half)),
    )


def ratio(cases: Sequence[Counted]) -> float:
    """The quotient of the sums."""
    return math.fsum(case.total for case in cases) / math.fsum(case.n for case in cases)


def ratio_error(cases: Sequence[Counted]) -> float:
    """The standard error of the quotient of sums, with cases as clusters (Cochran 1977, 6.8); at least two cases."""
    value, count = ratio(cases), len(cases)
    squares = math.fsum((case.total - value * case.n) ** 2 for case in cases)
    return math.sqrt(squares * count / (count - 1)) / math.fsum(case.n for case in cases)


def share_interval(cases: Sequence[Counted]) -> Interval:
    """The interval of a share: Wilson's, on the effective number of observations (Korn and Graubard 1998).

    With one observation per case it is Wilson's own. Otherwise observations count for less the more alike those of a
    case are, but never for less than if all of a case were the same: further trials make no interval wider. Where
    nothing shows how alike they are (all right, all wrong, one case) each case counts as one.
    """
    return wilson(ratio(cases), effective_number(cases))


def effective_number(cases: Sequence[Counted]) -> float:
    """How many independent observations say as much about a share as these do, which are clustered in cases."""
    observations, share, count = math.fsum(case.n for case in cases), ratio(cases), len(cases)
    if all(case.n == 1 for case in cases):
        return observations
    if count < 2 or share in (0, 1):
        return count
    error = ratio_error(cases)
    independent = min(observations, share * (1 - share) / error**2) if error else observations
    all_alike = observations**2 / math.fsum(case.n**2 for case in cases)  # Kish 1965: no correlation is above 1
    return max(all_alike, float(independent * (Z / t_quantile(count - 1)) ** 2))


def mean_interval(cases: Sequence[Counted]) -> Interval | None:
    """The interval of an amount per observation; None for fewer than two cases.

    The bias-corrected and accelerated bootstrap over cases (BCa, Efron 1987) from 10 to 100 cases; otherwise the
    standard error of the clustered quotient and Student's t. It has no width where all cases are alike.
    """
    if len(cases) < 2:
        return None
    if MIN_BOOTSTRAP_CASES <= len(cases) <= MAX_BOOTSTRAP_CASES:
        return bca(cases)
    value, half = ratio(cases), t_quantile(len(cases) - 1) * ratio_error(cases)
    low = value - half
    return Interval(max(0.0, low) if all(case.total >= 0 for case in cases) else low, value + half)


def event_interval(cases: Sequence[Counted]) -> Interval | None:
    """The interval of events per observation, such as questions per task; None for one case with events.

    For fewer than ten events that of a Poisson count (Byar's approximation, Breslow and Day 1987), wider by as much as
    the cases differ more than such counts do; without any event it ends at 3.7 per number of cases.
    """
    events, n, count = math.fsum(case.total for case in cases), math.fsum(case.n for case in cases), len(cases)
    if not events:
        return Interval(0.0, _poisson_interval(0.0).high / count)
    if count < 2 or events >= _FEW_EVENTS:
        return mean_interval(cases)
    dispersion = max(1.0, (ratio_error(cases) * n) ** 2 / events)
    low, high = _poisson_interval(events / dispersion)
    return Interval(low * dispersion / n, high * dispersion / n)


_FEW_EVENTS = 10


def _poisson_interval(events: float) -> Interval:
    after = events + 1
    low = events * max(0.0, 1 - 1 / (9 * events) - Z / (3 * math.sqrt(events))) ** 3 if events else 0.0
    return Interval(low, after * (1 - 1 / (9 * after) + Z / (3 * math.sqrt(after))) ** 3)


def bca(cases: Sequence[Counted], *, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """The BCa bootstrap interval (Efron 1987) of a quotient of sums over cases; the same seed gives the same interval.

    Where all cases have the same quotient the interval has no width.
    """
    value, random = ratio(cases), Random(seed)  # noqa: S311  # resampling, no secret
    if all(case.total * cases[0].n == cases[0].total * case.n for case in cases):
        return Interval(value, value)
    draws = sorted(_quick_ratio(random.choices(cases, k=len(cases))) for _ in range(resamples))
    below = (bisect_left(draws, value) + sum(draw == value for draw in draws) / 2) / resamples
    bias = NORMAL.inv_cdf(min(max(below, 0.5 / resamples), 1 - 0.5 / resamples))
    acceleration = _acceleration(cases)

    def percentile(z: float) -> float:
        shifted = NORMAL.cdf(bias + (bias + z) / (1 - acceleration * (bias + z)))
        return _interpolate(draws, shifted * (resamples - 1))

    return Interval(min(value, percentile(-Z)), max(value, percentile(Z)))


def _quick_ratio(cases: Sequence[Counted]) -> float:
    totals, counts = zip(*cases, strict=True)
    return sum(totals) / n if (n := sum(counts)) else math.inf


def _acceleration(cases: Sequence[Counted]) -> float:
    """The skewness of the quotient without each case in turn (the jackknife), over 6."""
    total, n = math.fsum(case.total for case in cases), math.fsum(case.n for case in cases)
    if any(case.n == n for case in cases):
        return 0.0  # without this case there is no quotient
    values = [(total - case.total) / (n - case.n) for case in cases]
    mean = math.fsum(values) / len(values)
    spread = math.fsum((mean - value) ** 2 for value in values)
    return math.fsum((mean - value) ** 3 for value in values) / (6 * spread**1.5) if spread > 0 else 0.0


def _interpolate(values: Sequence[float], position: float) -> float:
    index = min(int(position), len(values) - 2)
    return values[index] + (values[index + 1] - values[index]) * (position - index)


def quantile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of the values do not exceed (the inverse of their distribution)."""
    ordered = sorted(values)
    return ordered[_rank(len(ordered), part)]


def quantile_interval(cases: Sequence[Sequence[float]], part: float) -> tuple[float | None, float | None]:
    """The ends of the interval of a quantile of all values of all cases; None for an end that they cannot bound.

    Its ends are the values whose ranks a binomial number of values below the quantile lies between (Thompson 1936), for
    the effective number of values (Woodruff 1952). Few values cannot bound a high quantile: of three the greatest is
    below the 95th percentile in 86 of 100 samples, so it is no upper end.
    """
    ordered = sorted(value for values in cases for value in values)
    middle, count = quantile(ordered, part), len(ordered)
    below = [Counted(sum(value <= middle for value in values), len(values)) for values in cases]
    effective = max(1, int(effective_number(below)))
    first, last = _binomial_ranks(effective, part)
    low = min(middle, ordered[max(0, first * count // effective - 1)]) if first > 0 else None
    high = max(middle, ordered[math.ceil(last * count / effective) - 1]) if last <= effective else None
    return low, high


def _binomial_ranks(count: int, part: float) -> tuple[int, int]:
    """The ranks from 1 to `count` between which a quantile lies; 0 and `count + 1`: no value bounds it."""
    first, last, below = 0, count + 1, 0.0
    for successes in range(count):
        logarithm = math.lgamma(count + 1) - math.lgamma(successes + 1) - math.lgamma(count - successes + 1)
        below += math.exp(logarithm + successes * math.log(part) + (count - successes) * math.log(1 - part))
        if below <= 0.5 - LEVEL / 2:
            first = successes + 1
        if below >= 0.5 + LEVEL / 2:
            last = successes + 1
            break
    return first, last


def _rank(count: int, part: float) -> int:
    return min(count - 1, max(0, math.ceil(round(part * count, 9)) - 1))


def share_difference_interval(differences: Sequence[float]) -> Interval:
    """The interval of the mean of paired differences of shares, each between -1 and 1.

    Two cases are added, one that differs fully in each direction (Bonett and Price 2012, who have differences of -1, 0
    and 1 only): so pairs that never differ have an interval with a width.
    """
    count = len(differences) + 2
    mean = math.fsum(differences) / count
    error = math.sqrt(((math.fsum(value * value for value in differences) + 2) / count - mean**2) / count)
    value = math.fsum(differences) / len(differences)
    return Interval(max(-1.0, min(value, mean - Z * error)), min(1.0, max(value, mean + Z * error)))


def t_quantile(degrees: int, probability: float = 0.5 + LEVEL / 2) -> float:
    """The quantile of Student's t for a probability above 0.5: bisection on `t_cdf`."""
    low, high = 0.0, 2.0
    while t_cdf(high, degrees) < probability:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if t_cdf(middle, degrees) < probability else (low, middle)
    return (low + high) / 2


_EXACT_DEGREES = 200  # above it Student's t differs from the approximation by less than 1e-4


def t_cdf(value: float, degrees: int) -> float:
    """The distribution function of Student's t for a value of at least 0.

    The finite series for a whole number of degrees of freedom (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4); above
    200 the normal distribution with the correction of 26.7.8.
    """
    if degrees > _EXACT_DEGREES:
        return NORMAL.cdf(value * (1 - 1 / (4 * degrees)) / math.sqrt(1 + value * value / (2 * degrees)))
    angle, odd = math.atan(value / math.sqrt(degrees)), degrees % 2
    term, series = 1.0, 1.0 if degrees > 1 else 0.0
    for index in range(2 + odd, degrees - 1, 2):
        term *= (index - 1) / index * math.cos(angle) ** 2
        series += term
    total = math.sin(angle) * series
    return 0.5 + ((angle + total * math.cos(angle)) / math.pi if odd else total / 2)
