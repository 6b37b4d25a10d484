"""Units of measure: their forms in both languages, and the direction of a tool that converts one into another."""

from __future__ import annotations

import re
from decimal import Decimal

from taoloop.core.cards.tool_card import ToolCard
from taoloop.models.offline.extract import MARK, Skeleton
from taoloop.models.offline.words import concepts, name_words

_TABLE = """
celsius: c °c ℃ centigrade 摄氏 摄氏度
fahrenheit: f °f ℉ 华氏 华氏度
kelvin: 开尔文
km: kilometer kilometre kilometers kilometres 公里 千米
mi: mile miles 英里
m: meter metre meters metres 米
cm: centimeter centimetre centimeters centimetres 厘米
mm: millimeter millimetre millimeters millimetres 毫米
ft: foot feet 英尺
in: inch inches 英寸
yd: yard yards 码
kg: kilogram kilograms kilo kilos kgs 公斤 千克
g: gram grams 克
lb: lbs pound pounds 磅
oz: ounce ounces 盎司
l: liter litre liters litres 升
ml: milliliter millilitre milliliters millilitres 毫升
gal: gallon gallons 加仑
h: hour hours hr hrs 小时
min: minute minutes mins 分钟
s: second seconds sec secs 秒
d: day days 天
mph: mph
km/h: kmh kph
kb: kilobyte kilobytes
mb: megabyte megabytes
gb: gigabyte gigabytes
tb: terabyte terabytes
jin: 斤
li: 里
usd: dollar dollars
eur: euro euros
cny: yuan rmb
jpy: yen
gbp:
"""
CANONICAL: dict[str, str] = {}
for _line in _TABLE.strip().splitlines():
    _name, _, _forms = _line.partition(":")
    for _form in (_name, *_forms.split()):
        CANONICAL[_form] = _name
_WORDS = sorted((word for word in CANONICAL if CANONICAL[word] not in ("usd", "eur", "cny", "jpy", "gbp")), key=len)
FORMS = "|".join(re.escape(word) for word in reversed(_WORDS))
_CONVERTS = frozenset({"@convert", "@currency"})
_END = r"(?![A-Za-z/])"
_AMOUNT = re.compile(rf"({MARK})\s*(?:degrees?\s+)?(?!in\s+(?!to\b))({FORMS}){_END}", re.IGNORECASE)
_TARGET = re.compile(
    r"(?:\bto|\binto|\bin|\bhow many|换算成|转换成|换成|转成|换算为|转换为|转为|等于多少|是多少|合多少|成|为|多少|几)"
    rf"\s*(?:degrees?\s+)?({FORMS}){_END}",
    re.IGNORECASE,
)
_PURPOSE = re.compile(
    rf"\b({FORMS})\s+(?:to|into)\s+({FORMS}){_END}|({FORMS})(?:换算|转换|换|转)?(?:成|为|到)({FORMS})", re.IGNORECASE
)


def named(clause: str, skeleton: Skeleton) -> tuple[str, str]:
    """The words for the unit behind a number, and for the unit that is asked for; empty where there is none."""
    amounts = (m[2] for m in _AMOUNT.finditer(clause) if skeleton.atom(m[1]).kind == "number")
    target = _TARGET.search(clause)
    return next(amounts, ""), target[1] if target else ""


_FACTORS: dict[str, tuple[str, str]] = {
    "km": ("length", "1000"), "m": ("length", "1"), "cm": ("length", "0.01"), "mm": ("length", "0.001"),
    "mi": ("length", "1609.344"), "yd": ("length", "0.9144"), "ft": ("length", "0.3048"), "in": ("length", "0.0254"),
    "li": ("length", "500"), "kg": ("weight", "1000"), "g": ("weight", "1"), "jin": ("weight", "500"),
    "lb": ("weight", "453.59237"), "oz": ("weight", "28.349523125"), "l": ("volume", "1"), "ml": ("volume", "0.001"),
    "gal": ("volume", "3.785411784"), "d": ("time", "86400"), "h": ("time", "3600"), "min": ("time", "60"),
    "s": ("time", "1"),
}  # fmt: skip
_STATED = re.compile(rf"\bin\s+({FORMS}){_END}|单位\s*[:：为是]?\s*({FORMS})|[(（]({FORMS})[)）]", re.IGNORECASE)


def unit_of(name: str, text: str) -> str:
    """The unit that an argument is in by its name (`height_cm`) or description ("in grams"); empty if it says none."""
    words = name_words(name)
    own = CANONICAL.get(words[-1], "") if words and (len(words) > 1 or len(words[-1]) > 2) else ""
    if not own and (match := _STATED.search(text)):
        own = CANONICAL[next(group for group in match.groups() if group).lower()]
    return own if own in _FACTORS else ""


def unit_behind(mark: str, clause: str) -> str:
    """The unit of measure behind a number; empty if there is none."""
    match = re.search(rf"{mark}\s*({FORMS}){_END}", clause, re.IGNORECASE)
    unit = CANONICAL[match[1].lower()] if match else ""
    return unit if unit in _FACTORS else ""


def comparable(one: str, other: str) -> bool:
    """True if an amount in one unit can be put in the other."""
    return _FACTORS[one][0] == _FACTORS[other][0]


def converted(number: str, unit: str, wanted: str) -> str:
    """An amount in another unit of its kind, exactly where that is possible: 1.80 m is 180 cm."""
    value = Decimal(number) * Decimal(_FACTORS[unit][1]) / Decimal(_FACTORS[wanted][1])
    plain = f"{value:.12f}".rstrip("0").rstrip(".")
    return plain or "0"


def asked(clause: str, skeleton: Skeleton) -> tuple[str, str]:
    """The unit that an amount of the clause is in, and the unit that it asks for; empty where it names none."""
    own, target = (CANONICAL[unit.lower()] if unit else "" for unit in named(clause, skeleton))
    money = [m.group() for m in re.finditer(MARK, clause) if skeleton.atom(m.group()).kind == "currency"]
    given = [mark for mark in money if amount_beside(mark, clause, skeleton)]
    wanted = [mark for mark in money if mark not in given]
    own = own or (skeleton.atom(given[0]).value.lower() if given else "")
    return own, target or (skeleton.atom(wanted[0]).value.lower() if wanted else "")


def amount_beside(mark: str, clause: str, skeleton: Skeleton) -> str:
    """The mark of the number that stands beside a currency: "250 USD", "$5"."""
    place = clause.find(mark)
    for near in (clause[:place].rstrip()[-1:], clause[place + 1 :].lstrip()[:1]):
        if re.match(MARK, near) and skeleton.atom(near).kind == "number":
            return near
    return ""


def direction(card: ToolCard) -> tuple[str, str] | None:
    """The units that a tool converts from and to, where its name or purpose fixes them: `kg_to_lb`."""
    words = name_words(card.name)
    for place, word in enumerate(words[1:-1], start=1):
        pair = CANONICAL.get(words[place - 1], ""), CANONICAL.get(words[place + 1], "")
        if word in ("to", "into") and all(pair):
            return pair
    match = _PURPOSE.search(card.purpose[:1_000])
    if match is None:
        return None
    source, target = (group for group in match.groups() if group)
    return CANONICAL[source.lower()], CANONICAL[target.lower()]


def goes(card: ToolCard, clause: str, skeleton: Skeleton) -> bool:
    """False if the clause asks for a conversion, and the tool does none, or one in another direction."""
    own, wanted = direction(card), asked(clause, skeleton)
    if own is None:
        return not all(wanted) or wanted[0] == wanted[1] or bool(_CONVERTS & set(concepts(_card_text(card))))
    return all(not unit or unit == has for unit, has in zip(wanted, own, strict=True))


def _card_text(card: ToolCard) -> str:
    return " ".join([*name_words(card.name), *card.parameters, card.purpose, card.use_when]).replace("_", " ")
