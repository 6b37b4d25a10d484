"""What a rate measured by an imperfect judge says about the true rate (Rogan and Gladen 1978).

A judge with sensitivity `Se` (of what is right, the part it calls right) and specificity `Sp` (of what is wrong, the
part it calls wrong) calls `p = t·Se + (1 − t)·(1 − Sp)` right where `t` is right. Hence
`t = (p + Sp − 1)/(Se + Sp − 1)`. The interval takes in that `Se` and `Sp` are estimated, too, from few marks: Lang and
Reiczigel 2014 (Preventive Veterinary Medicine 113). Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from taoloop.evals.statistics.intervals import Z


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCounts:
    """How often a judge and people agree."""

    right_as_right: int = 0
    """What people marked right and the judge called right."""
    right_as_wrong: int = 0
    """What people marked right and the judge called wrong."""
    wrong_as_wrong: int = 0
    """What people marked wrong and the judge called wrong."""
    wrong_as_right: int = 0
    """What people marked wrong and the judge called right."""

    @property
    def right(self) -> int:
        """What people marked right."""
        return self.right_as_right + self.right_as_wrong

    @property
    def wrong(self) -> int:
        """What people marked wrong."""
        return self.wrong_as_wrong + self.wrong_as_right

    @property
    def sensitivity(self) -> float | None:
        """Of what is right, the part that the judge calls right; None without a mark of this kind."""
        return self.right_as_right / self.right if self.right else None

    @property
    def specificity(self) -> float | None:
        """Of what is wrong, the part that the judge calls wrong; None without a mark of this kind."""
        return self.wrong_as_wrong / self.wrong if self.wrong else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRate:
    """An estimate of the true rate with its interval (95 %)."""

    value: float
    """The rate, between 0 and 1."""
    low: float
    """The lower end."""
    high: float
    """The upper end."""


def corrected_rate(rate: float, n: int, counts: JudgeCounts) -> CorrectedRate | None:
    """The true rate behind a rate that a judge measured on `n` cases.

    None where it cannot be said: there are no cases, marks of one kind are missing, or the judge is no better than
    chance (`Se + Sp ≤ 1`), so that its verdicts say nothing. Where cases have several trials, `rate` is the mean over
    the cases, and the interval is rather too wide. Marks count as independent: several marked trials of one case make
    it too narrow.
    """
    sensitivity, specificity = counts.sensitivity, counts.specificity
    if n <= 0 or sensitivity is None or specificity is None or sensitivity + specificity <= 1:
        return None
    value = _clip((rate + specificity - 1) / (sensitivity + specificity - 1))
    size, right, wrong = n + Z * Z, counts.right + 2, counts.wrong + 2
    observed = (n * rate + Z * Z / 2) / size
    se, sp = (counts.right_as_right + 1) / right, (counts.wrong_as_wrong + 1) / wrong
    if se + sp <= 1:  # too few marks to tell the judge from chance
        return CorrectedRate(value=value, low=0.0, high=1.0)
    centre = (observed + sp - 1) / (se + sp - 1)
    of_right, of_wrong = se * (1 - se) / right, sp * (1 - sp) / wrong
    shift = 2 * Z * Z * (centre * of_right - (1 - centre) * of_wrong)
    variance = observed * (1 - observed) / size + centre**2 * of_right + (1 - centre) ** 2 * of_wrong
    margin = Z * math.sqrt(variance) / (se + sp - 1)
    low, high = _clip(centre + shift - margin), _clip(centre + shift + margin)
    return CorrectedRate(value=value, low=min(low, value), high=max(high, value))


def _clip(rate: float) -> float:
    return min(1.0, max(0.0, rate))
