"""Numbers that follow from other numbers by one operation: the rule for what a model may compute itself.

A sum, difference, product, quotient, percentage or percent change of two numbers, or the sum or mean of all of them,
rounded as it is written. The operands must stand beside it, so that a reader can check it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal, DecimalException, localcontext
from itertools import permutations

_MAX_OPERANDS = 12
_MIN_ROUNDED_DIGITS = 2


def is_computed(number: Decimal, operands: Sequence[Decimal]) -> bool:
    """Whether a number is one operation away from the operands; of more than 12 the first ones count."""
    values = list(dict.fromkeys(operands))[:_MAX_OPERANDS]
    if len(operands) < 2 or not number.is_finite():
        return False
    with localcontext() as context:
        context.prec = 50
        tolerance = _tolerance(number)
        return any(abs(value - number) <= tolerance for value in _results(values, operands))


def _tolerance(number: Decimal) -> Decimal:
    """Half of its last digit; nothing for a number of one digit."""
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or len(digits) < _MIN_ROUNDED_DIGITS:
        return Decimal(0)
    return Decimal(5).scaleb(exponent - 1)


def _results(values: Sequence[Decimal], operands: Sequence[Decimal]) -> Iterator[Decimal]:
    first = operands[:_MAX_OPERANDS]
    if len(first) > 2:
        yield sum(first, Decimal(0))
        yield sum(first, Decimal(0)) / len(first)
    for a, b in permutations(values, 2) if len(values) > 1 else ((first[0], first[1]),):
        yield from (a + b, a - b, a * b, (a + b) / 2)
        try:
            quotient = a / b
        except DecimalException:  # by zero
            continue
        yield from (quotient, quotient - 1, 1 - quotient)
