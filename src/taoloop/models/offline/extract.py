"""Typed values in a task, found in one pass per kind and replaced by one-character marks.

What is left, the skeleton, can be split and searched without cutting a quotation, a path or a number in two.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from taoloop.models.offline.numerals import CHINESE_NUMERAL, ENGLISH_NUMBERS, SCALES, chinese_number, is_quantity
from taoloop.models.offline.places import PLACES, REGIONS
from taoloop.models.offline.tokens import NAMELIKE, WORLD_FILE, is_identifier, is_path, without_lead

Kind = Literal["quoted", "url", "email", "date", "clock", "path", "zone", "key", "id", "place", "currency", "number"]

_FIRST, _MOST = 0xE000, 1_500
_HEAD, _TAIL = 6_000, 2_000
MARK = r"[\ue000-\uf8ff]"
_MARKS = re.compile(MARK)


@dataclass(frozen=True, slots=True)
class Atom:
    """A value of the task. `value` is its normal form, `source` the words it stood in.

    `weak`: it may be an ordinary word ("one"); `percent`: a number followed by %.
    """

    kind: Kind
    value: str
    source: str
    weak: bool = False
    percent: bool = False
    zone: str = ""


@dataclass(slots=True)
class Skeleton:
    """A task with its values replaced by marks."""

    text: str = ""
    atoms: list[Atom] = field(default_factory=list)

    def mark(self, atom: Atom) -> str:
        """The mark for a new value; the words themselves where a task has more values than can be told apart."""
        if len(self.atoms) >= _MOST:
            return " "
        self.atoms.append(atom)
        return chr(_FIRST + len(self.atoms) - 1)

    def atom(self, mark: str) -> Atom:
        """The value behind a mark."""
        return self.atoms[ord(mark) - _FIRST]

    def within(self, text: str) -> list[Atom]:
        """The values in a part of the skeleton, in order."""
        return [self.atom(mark) for mark in _MARKS.findall(text)]

    def restore(self, text: str) -> str:
        """A part of the skeleton in the task's own words."""
        while _MARKS.search(text):
            text = _MARKS.sub(lambda found: self.atom(found.group()).source, text)
        return text


_QUOTED = re.compile(
    r'```(?:\w*\n)?(?P<f>[^`]*)```|`(?P<a>[^`\n]+)`|"(?P<b>[^"]*)"|“(?P<c>[^“”]*)”|「(?P<d>[^「」]*)」|『(?P<e>[^『』]*)』'
    r"|《(?P<g>[^《》\n]*)》|‘(?P<h>[^‘’\n]*)’|(?<![A-Za-z0-9])'(?P<i>[^'\n]+)'(?![A-Za-z0-9])"
)
_URL = re.compile(r"https?://[^\s\"'<>，。；、）)\]]{1,2000}")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,5}", re.ASCII)
_DATE = re.compile(r"(?<!\d)(\d{4})(?:-(\d\d?)-(\d\d?)(?!\d)|/(\d\d?)/(\d\d?)(?!\d)|年(\d\d?)月(\d\d?)[日号])")
_CLOCK = re.compile(r"(?<![\d:])\d{1,2}:\d{2}(?::\d{2})?(?![\d:])")
_ZONE = re.compile(
    rf"\b(?:{'|'.join(REGIONS)})/[A-Za-z0-9_+\-]{{1,40}}(?:/[A-Za-z_]{{1,40}})?|\b(?:UTC|GMT)\b", re.ASCII
)
_NUMBER = re.compile(
    r"(?P<symbol>[$€£¥])?(?<![A-Za-z0-9_.])(?P<sign>(?:(?<=[\s(:=,，：（])|^)[-−])?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?![\d])(?:\.\d{1,20})?|\d{1,40}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,3}(?![A-Za-z]))?)"
    r"(?!\d|st\b|nd\b|rd\b|th\b)(?P<scale>\s?(?:thousand|million|billion)\b|[万亿千百](?![科度]))?"
    r"(?P<percent>\s?(?:%|％|percent\b|per cent\b))?"
)
_ENGLISH_NUMBER = re.compile(
    rf"\b(?P<tens>{'|'.join(ENGLISH_NUMBERS)})(?:-(?P<ones>one|two|three|four|five|six|seven|eight|nine))?"
    r"(?:\s(?P<scale>hundred|thousand|million))?(?P<percent>\s(?:percent|per cent))?\b",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"\b(?:" + "|".join(sorted((re.escape(n) for n in PLACES if n.isascii()), key=len, reverse=True)) + r")\b"
    r"|" + "|".join(sorted((re.escape(n) for n in PLACES if not n.isascii()), key=len, reverse=True)),
    re.IGNORECASE,
)
_ANY_CASE = {"lima", "perth", "florence", "cologne", "portland", "austin", "uk", "milan", "phoenix", "lyon", "china"}
_CURRENCIES = {
    "USD": "dollars? dollar usd 美元 美金", "EUR": "euros? eur 欧元", "GBP": "british_pounds? gbp 英镑",
    "JPY": "japanese_yen yen jpy 日元 日圆", "CNY": "chinese_yuan yuan rmb renminbi cny 人民币", "KRW": "krw 韩元",
    "HKD": "hkd 港币 港元", "INR": "rupees? inr 卢比", "CHF": "francs? chf 瑞士法郎", "RUB": "rubles? rub 卢布",
    "AUD": "australian_dollars? aud 澳元", "CAD": "canadian_dollars? cad 加元",
    "SGD": "singapore_dollars? sgd 新加坡元 新币",
    "TWD": "twd 新台币 台币", "THB": "baht thb 泰铢", "BTC": "bitcoins? btc 比特币", "NZD": "nzd 纽元",
    "MXN": "pesos? mxn",
    "SEK": "sek", "NOK": "nok", "BRL": "brl", "ETH": "ethereum",
}  # fmt: skip
_CURRENCY_WORDS = sorted(
    ((word.replace("_", " "), code) for code, words in _CURRENCIES.items() for word in words.split()),
    key=lambda pair: -len(pair[0]),
)
_CURRENCY = re.compile(
    r"(?<![A-Za-z])(?:us\s)?(?:" + "|".join(word for word, _ in _CURRENCY_WORDS if word[0].isascii()) + r")(?![A-Za-z])"
    r"|" + "|".join(word for word, _ in _CURRENCY_WORDS if not word[0].isascii()),
    re.IGNORECASE,
)
SYMBOLS = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "CNY"}


def extract(task: str) -> Skeleton:
    """The task's values and what stands around them. Linear; of a very long task only head and tail are read."""
    found = Skeleton()
    text = re.sub(MARK, " ", task)
    rules: tuple[tuple[re.Pattern[str], Callable[[Skeleton, re.Match[str]], str]], ...] = (
        (_QUOTED, _quoted), (_URL, _plain("url")), (_EMAIL, _plain("email")),
    )  # fmt: skip
    for pattern, make in rules:
        text = pattern.sub(_bound(make, found), text)
    if len(text) > _HEAD + _TAIL:
        text = f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    rules = (
        (_DATE, _date), (_CLOCK, _plain("clock")), (_ZONE, _zone), (WORLD_FILE, _world_file), (NAMELIKE, _namelike),
        (_CURRENCY, _currency), (_PLACE, _place), (_NUMBER, _number), (_ENGLISH_NUMBER, _english_number),
        (CHINESE_NUMERAL, _chinese_number),
    )  # fmt: skip
    for pattern, make in rules:
        text = pattern.sub(_bound(make, found), text)
    found.text = text
    return found


def _bound(make: Callable[[Skeleton, re.Match[str]], str], found: Skeleton) -> Callable[[re.Match[str]], str]:
    return lambda match: make(found, match)


def _plain(kind: Kind) -> Callable[[Skeleton, re.Match[str]], str]:
    def make(found: Skeleton, match: re.Match[str]) -> str:
        text = match.group().rstrip(".,;:!?")
        return found.mark(Atom(kind, text, text)) + match.group()[len(text) :]

    return make


def _quoted(found: Skeleton, match: re.Match[str]) -> str:
    inner = next((group for group in match.groups() if group is not None), "")
    return found.mark(Atom("quoted", inner, match.group())) if inner.strip() else match.group()


def _date(found: Skeleton, match: re.Match[str]) -> str:
    year, *rest = (group for group in match.groups() if group)
    month, day = (int(part) for part in rest)
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return match.group()
    return found.mark(Atom("date", f"{year}-{month:02}-{day:02}", match.group()))


def _zone(found: Skeleton, match: re.Match[str]) -> str:
    return found.mark(Atom("zone", match.group(), match.group(), zone=match.group()))


def _world_file(found: Skeleton, match: re.Match[str]) -> str:
    text, before = match.group(), match.string[match.start() - 1 : match.start()]
    name = without_lead(text, parted=before.isspace())
    return text[: len(text) - len(name)] + found.mark(Atom("path", name, name))


def _namelike(found: Skeleton, match: re.Match[str]) -> str:
    text = match.group().rstrip(".-~")
    rest = match.group()[len(text) :]
    kind = _kind(text)
    return found.mark(Atom(kind, text, text)) + rest if kind else match.group()


def _kind(text: str) -> Kind | None:
    if is_path(text) and re.search(r"[A-Za-z]", text):
        return "path"
    if re.fullmatch(r"[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)+", text):
        return "key"
    if is_identifier(text):
        return "id"
    if not re.search(r"[A-Za-z]", text):
        return None
    if "/" in text or "\\" in text:
        parts = re.split(r"[/\\]", text)
        return "path" if text.lower() not in _NO_PATHS and all(len(part) > 2 for part in parts) else None
    return "key" if "_" in text and re.fullmatch(r"[A-Za-z_][\w.-]*[A-Za-z0-9]", text) else None


_NO_PATHS = ("and/or", "he/she", "his/her", "km/h", "m/s")


def _currency(found: Skeleton, match: re.Match[str]) -> str:
    text = match.group()
    code = next(code for word, code in _CURRENCY_WORDS if re.fullmatch(rf"(?:us\s)?{word}", text, re.IGNORECASE))
    return found.mark(Atom("currency", code, text))


def _place(found: Skeleton, match: re.Match[str]) -> str:
    text = match.group()
    if text.lower() in _ANY_CASE and text.islower():
        return text  # an ordinary word
    place = PLACES[text.lower() if text.isascii() else text]
    return found.mark(Atom("place", place.name, text, zone=place.zone))


def _number(found: Skeleton, match: re.Match[str]) -> str:
    digits = match["digits"].replace(",", "")
    if match["scale"]:
        digits = scaled(digits, SCALES[match["scale"].strip()])
    value = ("-" if match["sign"] else "") + digits
    currency = ""
    if match["symbol"]:
        currency = found.mark(Atom("currency", SYMBOLS[match["symbol"]], match["symbol"]))
    source = match.group()[len(match["symbol"] or "") :]
    return currency + found.mark(Atom("number", value, source, percent=bool(match["percent"])))


def _english_number(found: Skeleton, match: re.Match[str]) -> str:
    value = ENGLISH_NUMBERS[match["tens"].lower()] + ENGLISH_NUMBERS.get((match["ones"] or "zero").lower(), 0)
    value *= SCALES.get((match["scale"] or "").lower(), 1)
    return found.mark(Atom("number", str(value), match.group(), weak=True, percent=bool(match["percent"])))


def _chinese_number(found: Skeleton, match: re.Match[str]) -> str:
    value = chinese_number(match.group())
    if value is None or not is_quantity(match.string, match.start(), match.end()):
        return match.group()
    return found.mark(Atom("number", value, match.group(), weak=True))


def scaled(digits: str, factor: int) -> str:
    """The number times a power of ten, as a plain decimal: 1.2 million is 1200000."""
    whole, _, decimals = digits.partition(".")
    zeros = len(str(factor)) - 1
    moved = whole + decimals.ljust(zeros, "0")[:zeros]
    rest = decimals[zeros:].rstrip("0")
    return (moved.lstrip("0") or "0") + (f".{rest}" if rest else "")
