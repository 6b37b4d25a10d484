"""The units beside numbers: `40 km` is neither `40 m` nor `40 miles`, and `40 EUR` is not `$40`.

Two numbers with units of one kind are compared in its base unit, so 5400 s is 1.5 hours; currencies and temperatures
are not converted. A number beside which no unit of this list stands is compared by its value alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import NamedTuple

from taoloop.core.text import lazy_pattern


class Unit(NamedTuple):
    """A unit of measurement, or a currency."""

    kind: str
    """What it measures; numbers of different kinds are not compared."""
    base: str
    """The unit that it can be converted to. Two units of one kind without a common base are never equal."""
    factor: Decimal
    """How many of the base it is."""


_LISTED = {
    "length": {
        "m metre metres meter meters 米": "1",
        "km kilometre kilometres kilometer kilometers 公里 千米": "1000",
        "cm centimetre centimetres centimeter centimeters 厘米": "0.01",
        "mm millimetre millimetres millimeter millimeters 毫米": "0.001",
        "mile miles 英里": "1609.344",
        "ft foot feet 英尺": "0.3048",
        "inch inches 英寸": "0.0254",
    },
    "mass": {
        "g gram grams 克": "1",
        "kg kilogram kilograms 公斤 千克": "1000",
        "mg milligram milligrams 毫克": "0.001",
        "lb lbs 磅": "453.59237",
        "oz ounce ounces": "28.349523",
        "tonne tonnes 吨": "1000000",
    },
    "time": {
        "s sec secs second seconds 秒": "1",
        "ms millisecond milliseconds 毫秒": "0.001",
        "min mins minute minutes 分钟": "60",
        "h hr hrs hour hours 小时": "3600",
        "day days 天": "86400",
        "week weeks 周": "604800",
    },
    "speed": {"km/h kmh kph": "1", "mph": "1.609344", "m/s": "3.6"},
}
_WITHOUT_CONVERSION = {
    "temperature": {"C": "°c celsius 摄氏度", "F": "°f fahrenheit 华氏度"},
    "money": {
        "EUR": "eur € euro euros 欧元",
        "USD": "usd $ dollar dollars 美元",
        "GBP": "gbp £ 英镑",
        "CNY": "cny rmb yuan 人民币 元",
        "JPY": "jpy yen 日元 円",
        "CHF": "chf",
    },
}
_MAGNITUDE = r"(?:[ \u00a0]?(?:thousand|million|billion|trillion|[mbt]n|mio\.?|mrd\.?|k|[万亿千百十]+)(?![a-z]))?"
_KEY_CHARS = 24
_SIGNS = ("$", "€", "£")


@cache
def _units() -> Mapping[str, Unit]:
    units = {
        name: Unit(kind, kind, Decimal(factor))
        for kind, listed in _LISTED.items()
        for names, factor in listed.items()
        for name in names.split()
    }
    for kind, bases in _WITHOUT_CONVERSION.items():
        units |= {name: Unit(kind, base, Decimal(1)) for base, names in bases.items() for name in names.split()}
    return units


_AFTER = lazy_pattern(
    rf"(?i){_MAGNITUDE}(?P<space>[ \u00a0]?)(?:degrees[ ])?(?P<unit>km/h|m/s|[°]?[a-z]+|[€£$]|[\u4e00-\u9fff]{{1,3}})"
    r"(?![a-z]|/|[ ]per\b)"
)
_FIELD_NAME = lazy_pattern(r"[A-Za-z]+$")
_BETWEEN = " \u00a0'\"-\u2212+"  # what may stand between a sign or a field's name and its number


def unit_beside(text: str, start: int, end: int) -> Unit | None:
    """The unit of the number at this place, behind it, as a sign before it, or as the name of its field (`minutes: 5`).

    `end` is where its digits end. None: no unit stands there, or none that is listed.
    """
    before = text[max(0, start - _KEY_CHARS) : start].rstrip(_BETWEEN)
    if before.endswith(_SIGNS):
        return _units()[before[-1]]
    if (after := _AFTER.match(text, end)) is not None:
        name = after["unit"].lower()
        if name == "s" and not after["space"]:  # the 1990s
            return None
        for length in range(len(name), 0, -1) if not name.isascii() else (len(name),):
            if (unit := _units().get(name[:length])) is not None:
                return unit
    if not before.endswith((":", "=")) or (field := _FIELD_NAME.search(before[:-1].rstrip(_BETWEEN))) is None:
        return None
    return _units().get(field[0].lower())
