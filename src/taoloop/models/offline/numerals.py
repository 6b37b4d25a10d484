"""Number words: Chinese numerals and small English numbers."""

from __future__ import annotations

import re

_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_UNITS = {"十": 10, "百": 100, "千": 1_000}
_BIG = {"万": 10_000, "亿": 100_000_000}
_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
ENGLISH_NUMBERS = {word: value for value, word in enumerate(_WORDS.split())} | {
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
SCALES = {
    "hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000,
    "十": 10, "百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000,
}  # fmt: skip

CHINESE_NUMERAL = re.compile(
    r"(?<![第周期零〇一二两三四五六七八九十百千万亿])(?:[零〇一二两三四五六七八九十百千]{1,12}[万亿]?){1,3}"
    r"(?:点[零〇一二三四五六七八九]{1,10})?"
)
_NO_NUMBERS = re.compile(
    r"[一二三四五六七八九十百千万]?(?:一下|一起|一样|一些|一直|一般|一定|一共|百科|百度|十分|三亚|千万|九江|四川|六安|两者|五金)"
)
_QUANTITY = "加减乘除和与的、，,。；;个天行本次条只元块年月日时分秒米人页件倍是等到 ?？)）"


def chinese_number(text: str) -> str | None:
    """`三点五` is 3.5, `二百` 200, `十二` 12; None if it is no number."""
    whole, _, decimals = text.partition("点")
    if not whole or not all(char in _DIGITS or char in _UNITS or char in _BIG for char in whole):
        return None
    if len(whole) > 1 and all(char in _DIGITS for char in whole):
        value = int("".join(str(_DIGITS[char]) for char in whole))
    else:
        total = section = digit = 0
        for char in whole:
            if char in _DIGITS:
                digit = _DIGITS[char]
            elif char in _UNITS:
                section += (digit or 1) * _UNITS[char]
                digit = 0
            else:
                total += (section + digit or 1) * _BIG[char]
                section = digit = 0
        value = total + section + digit
    return f"{value}.{''.join(str(_DIGITS.get(char, 0)) for char in decimals)}" if decimals else str(value)


def is_quantity(text: str, start: int, end: int) -> bool:
    """True if the numerals at this place stand for a number, and are no part of a word such as 一下."""
    if _NO_NUMBERS.match(text, start) or _NO_NUMBERS.match(text, max(0, start - 1)):
        return False
    after = text[end : end + 1]
    return not after or after in _QUANTITY or "\ue000" <= after <= "\uf8ff"
