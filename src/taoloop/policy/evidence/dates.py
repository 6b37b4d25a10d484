"""The dates in a text, in the forms in which people and programs write them, in English and Chinese.

`05/06/2024` is the fifth of June or the sixth of May: it is enough that one reading of a date is one of another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from taoloop.core.text import lazy_pattern

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan january januar janvier enero",
            "feb february februar février febrero",
            "mar march märz mars marzo",
            "apr april avril abril",
            "may mai mayo",
            "jun june juni juin junio",
            "jul july juli juillet julio",
            "aug august août agosto",
            "sep sept september septembre septiembre",
            "oct october oktober octobre octubre",
            "nov november novembre noviembre",
            "dec december dezember décembre diciembre",
        ),
        1,
    )
    for name in names.split()
}
_MONTH = "(?:" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")(?![^\W\d_])\.?"
_DAY = r"(?:[12][0-9]|3[01]|0?[1-9])"
_YEAR = r"(?:1[0-9]{3}|2[01][0-9]{2})"
_DATE = lazy_pattern(
    rf"(?i)(?<![0-9A-Za-z_.])(?:(?P<y1>{_YEAR})[-/.](?P<m1>1[0-2]|0?[1-9])[-/.](?P<d1>{_DAY})(?![0-9])"
    rf"|(?P<y2>{_YEAR})\s?年\s?(?P<m2>1[0-2]|0?[1-9])\s?月(?:份|\s?(?P<d2>{_DAY})\s?[日号])?"
    rf"|(?P<m3>1[0-2]|0?[1-9])\s?月\s?(?P<d3>{_DAY})\s?[日号]"
    rf"|(?P<a4>{_DAY})[./-](?P<b4>{_DAY})[./-](?P<y4>{_YEAR})(?![0-9])"
    rf"|(?P<d5>{_DAY})(?:st|nd|rd|th|\.)?\s(?:of\s|de\s)?(?P<m5>{_MONTH})(?:(?:,|\sof|\sde)?\s(?P<y5>{_YEAR})(?![0-9]))?"
    rf"|(?P<m6>{_MONTH})\s(?P<d6>{_DAY})(?:st|nd|rd|th)?(?![0-9:])(?:,?\s(?P<y6>{_YEAR})(?![0-9]))?"
    rf"|(?P<m7>{_MONTH})(?:,|\sof)?\s(?P<y7>{_YEAR})(?![0-9])"
    rf"|(?P<y8>{_YEAR})-(?P<m8>1[0-2]|0[1-9])(?![0-9-]))"
)


class Day(NamedTuple):
    """A date, or what a text says of it; 0: it does not say."""

    year: int
    """The year."""
    month: int
    """The month, 1 to 12."""
    day: int
    """The day of the month."""


class DateText(NamedTuple):
    """A date as it stands in a text."""

    start: int
    """Where it begins."""
    end: int
    """Where it ends."""
    readings: tuple[Day, ...]
    """What it may be."""


def dates_in(text: str) -> Iterator[DateText]:
    """The dates of a text, in order."""
    for match in _DATE.finditer(text):
        if readings := _readings(match):
            yield DateText(match.start(), match.end(), readings)


def agree(first: Day, second: Day) -> bool:
    """Whether two dates may be the same day: they have nothing in which they differ, and the month or the year."""
    pairs = list(zip(first, second, strict=True))
    return all(a == b for a, b in pairs if a and b) and any(a and b for a, b in pairs[:2])


def _readings(match: re.Match[str]) -> tuple[Day, ...]:
    if match["y4"]:
        year, first, second = int(match["y4"]), int(match["a4"]), int(match["b4"])
        pairs = {(first, second), (second, first)}
        return tuple(Day(year, month, day) for month, day in sorted(pairs) if month <= 12)
    form = (match.lastgroup or "m3")[1]  # the last part that a form has
    parts = match.groupdict()
    name = (parts[f"m{form}"] or "").rstrip(".").lower()
    years, days = parts.get(f"y{form}") or 0, parts.get(f"d{form}") or 0
    return (Day(int(years), _MONTHS.get(name) or int(name), int(days)),)
