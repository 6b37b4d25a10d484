"""The numbers in a text as values, in every way in which they may be read.

`1,234` is 1234 or 1.234, depending on who wrote it; `1 234,50`, `1'234.50` and `1234.5` are the same number. Numbers
are compared by value: it is enough that one reading of one is a reading of the other. A reading keeps the place of its
last digit as its exponent (`37 million` is 37E+6), from which `source_text.py` knows how far it may be rounded.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from taoloop.core.text import lazy_pattern

_MAX_DIGITS = 40
_NUMBER = lazy_pattern(
    r"(?P<sign>(?<![\w)\]])[-\u2212\u2013+])?"
    r"(?P<digits>[0-9]+(?:(?:[.,'\u2019_]|[ \u00a0\u2009\u202f](?=[0-9]{3}(?![0-9])))[0-9]+)*)"
    r"(?P<exponent>[eE][-+]?[0-9]{1,3}(?![0-9A-Za-z]))?"
    r"(?P<unit>[ \u00a0\u202f]?(?:[%\u2030]|percent\b|per cent\b|(?:thousand|million|billion|trillion|lakh|crore)s?\b"
    r"|(?:[bmt]n|trn|[Mm]io|[Mm]rd)\b"
    r"|[kKMGT](?:i?B|bit|Hz|Wh?|g|m|bps)\b|[mc](?:s|m|g|l)\b|[kKmMbB](?![0-9A-Za-z])|[万百千十]?亿|[百千十]?万|[千百]))?"
)
_SPACES = lazy_pattern("[ \u00a0\u2009\u202f]")
_SCIENTIFIC = lazy_pattern(
    r"(?<=[0-9])\s?[×x*·]\s?10(?:(?:\^|\*\*)\{?(?P<plain>[-\u2212]?[0-9]{1,3})\}?|(?P<raised>⁻?[⁰¹²³⁴-⁹]{1,3}))"
)
_SURE_MAGNITUDES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12, "百": 2, "千": 3}
_SURE_MAGNITUDES |= {"mn": 6, "mio": 6, "bn": 9, "mrd": 9, "tn": 12, "trn": 12, "lakh": 5, "crore": 7}
_SURE_MAGNITUDES |= {
    f"{before}{unit}": places + more
    for unit, places in (("万", 4), ("亿", 8))
    for before, more in (("", 0), ("十", 1), ("百", 2), ("千", 3), ("万", 4))
}
"""Words for powers of ten."""
_POSSIBLE_MAGNITUDES = {"k": 3, "m": 6, "b": 9}  # or a unit, such as metres, unless it is money
_CURRENCY_SIGNS = frozenset("$€£¥")
_PREFIXES = {"k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "m": -3, "c": -2}
"""Prefixes of units: 1.5 km may be there as 1500 m."""


class NumberText(NamedTuple):
    """A number as it stands in a text."""

    start: int
    """Where it begins."""
    end: int
    """Where its digits end; a unit may follow."""
    readings: tuple[tuple[Decimal, ...], ...]
    """What it may be; a reading of several values is a list, a version or an address."""
    is_plain: bool
    """Whether it is only digits: no sign, separator, exponent, percentage or magnitude."""
    scaled: int = 0
    """How many of the readings, the last ones, apply a prefix of the unit: 1.5 km is 1.5, and 1500 of something."""

    @property
    def amounts(self) -> tuple[Decimal, ...]:
        """What it may be in the unit that is written beside it."""
        count = len(self.readings) - self.scaled
        return tuple(values[0] for values in self.readings[:count] if len(values) == 1)


def numbers_in(text: str) -> Iterator[NumberText]:
    """The numbers of a text, in order; what has more than 40 digits is none."""
    for match in _NUMBER.finditer(text):
        if len(match["digits"]) > _MAX_DIGITS:
            continue
        if match["digits"] == match[0]:  # nothing but digits and separators: most numbers
            is_plain = match[0].isdigit()
            readings = [(Decimal(match[0]),)] if is_plain else _readings(match[0], None)
            yield NumberText(match.start(), match.end(), tuple(readings), is_plain)
            continue
        sign = -1 if match["sign"] and match["sign"] != "+" else 1
        exponent = int(match["exponent"][1:]) if match["exponent"] else 0
        unit = (match["unit"] or "").strip()
        is_money = match.start() > 0 and text[match.start() - 1] in _CURRENCY_SIGNS
        is_magnitude = unit == "M" or match["unit"] in ("k", "K") or (is_money and unit.lower() in _POSSIBLE_MAGNITUDES)
        readings = [
            tuple(value.scaleb(exponent) * sign for value in values)
            for values in _readings(match["digits"], match["sign"])
        ]
        end = match.end("exponent") if match["exponent"] else match.end("digits")
        is_plain = match["digits"].isdigit() and not (match["sign"] or match["exponent"] or unit)
        scaled = _with_unit(readings, unit, is_magnitude=is_magnitude)
        yield NumberText(match.start(), end, tuple(scaled), is_plain, len(scaled) - len(readings))


def plain_characters(text: str) -> str:
    """The text in characters of one kind: full width as half width, ¾ as 3/4, and 1.5 × 10⁸ as 1.5e8."""
    if text.isascii() and "10" not in text:
        return text
    text = _SCIENTIFIC.sub(lambda match: "e" + unicodedata.normalize("NFKC", match["plain"] or match["raised"]), text)
    return unicodedata.normalize("NFKC", text).replace("\u2044", "/")


def _with_unit(readings: list[tuple[Decimal, ...]], unit: str, *, is_magnitude: bool) -> list[tuple[Decimal, ...]]:
    """The readings with what a unit makes of them; `is_magnitude`: its one letter is sure to be one."""
    word = unit.lower()
    places = _POSSIBLE_MAGNITUDES.get(word) if is_magnitude else _SURE_MAGNITUDES.get(word.removesuffix("s"))
    if places is not None:
        return [tuple(value.scaleb(places) for value in values) for values in readings]
    if word in ("%", "percent", "per cent"):
        places = -2
    elif word == "\u2030":
        places = -3
    elif len(unit) > 1:
        places = _PREFIXES.get(unit[0])
    else:
        places = _POSSIBLE_MAGNITUDES.get(word)
    if places is not None:
        return [*readings, *(tuple(value.scaleb(places) for value in values) for values in readings)]
    return readings


def _readings(digits: str, sign: str | None) -> list[tuple[Decimal, ...]]:
    parts = _SPACES.split(digits)
    if len(parts) > 1:
        if len(parts[0]) <= 3 and all(len(re.split("[.,]", part)[0]) == 3 for part in parts[1:]):
            return [*_readings("".join(parts), sign), _each(parts)]
        return [_each(parts)]
    for separator in "'\u2019_":
        if separator in digits:
            groups = digits.split(separator)
            is_grouped = len(groups[0]) <= 3 and all(len(re.split("[.,]", group)[0]) == 3 for group in groups[1:])
            return _readings(digits.replace(separator, ""), sign) if is_grouped else [_each(groups)]
    return [(value,) for value in _point_and_comma(digits)] or [_each(re.split("[.,]", digits))]


def _each(parts: list[str]) -> tuple[Decimal, ...]:
    return tuple(Decimal(digits) for part in parts for digits in re.split("[.,'\u2019_]", part) if digits)


def _point_and_comma(digits: str) -> list[Decimal]:
    """What digits with points and commas may be as one number; empty if they are none."""
    points, commas = digits.count("."), digits.count(",")
    if not points and not commas:
        return [Decimal(digits)]
    if points and commas:
        last = max(digits.rfind("."), digits.rfind(","))
        other = "," if digits[last] == "." else "."
        groups = digits[:last].split(other)
        if digits.count(digits[last]) == 1 and _are_thousands(groups):
            return [Decimal(f"{''.join(groups)}.{digits[last + 1 :]}")]
        return []
    groups = re.split("[.,]", digits)
    values = [Decimal(".".join(groups))] if len(groups) == 2 else []
    return values + ([Decimal("".join(groups))] if _are_thousands(groups) and groups[0] != "0" else [])


def _are_thousands(groups: list[str]) -> bool:
    """Whether groups of digits are those of one number; lakh and crore have groups of two."""
    if len(groups) == 1:
        return True
    middle = groups[1:-1]
    return (
        len(groups[0]) <= 3
        and len(groups[-1]) == 3
        and (all(len(group) == 3 for group in middle) or all(len(group) == 2 for group in middle))
    )
