"""Numbers in words as digits, in English and Chinese: `thirty-seven`, `三十七`, `一万二千`, `百分之三十五`."""

from __future__ import annotations

import re

from taoloop.core.text import lazy_pattern

_TO_TEN = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_TEENS = ("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_SMALL = {word: number for number, word in enumerate((*_TO_TEN, *_TEENS))}
_TENS = {
    word: 10 * number
    for number, word in enumerate(("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), 2)
}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_WORD = "|".join((*_SMALL, *_TENS, *_SCALES, "hundred"))
_ENGLISH = lazy_pattern(rf"(?i)(?<![\w-])(?:{'|'.join((*_SMALL, *_TENS))})(?:(?:[ -]|[ ]and[ ])(?:{_WORD}))*(?![\w-])")
_DIGITS = {char: number for number, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_UNITS = {"十": 10, "百": 100, "千": 1_000}
_CHINESE = lazy_pattern(
    "(百分之)?(?<![万亿千百十零〇一二两三四五六七八九第])((?:[一二两三四五六七八九十][零〇一二两三四五六七八九十百千万亿]*)|〇)(?:点([零〇一二三四五六七八九]+))?"
    "(?!分(?!之)|[些样般起旦直定切])"
)
_FORMAL = str.maketrans("壹贰叁肆伍陆柒捌玖拾佰仟", "一二三四五六七八九十百千")
_FORMAL_NUMERAL = lazy_pattern("(?=[零壹贰叁肆伍陆柒捌玖万亿]*[拾佰仟])[零壹贰叁肆伍陆柒捌玖拾佰仟万亿]{2,}")
_TWENTY = lazy_pattern("廿(?=[一二三四五六七八九]?[日号])")
_FRACTION = lazy_pattern("([一二三四五六七八九十]{1,3})分之([一二三四五六七八九十]{1,3})(?![百千万亿])")
_TENTHS = lazy_pattern("([一二两三四五六七八九1-9])成(半|[一二三四五六七八九])?(?![为了立员功本熟果年长就])")
_DATE_PART = lazy_pattern("(?<![零〇一二三四五六七八九十百千])([零〇一二三四五六七八九十]{1,4})(?=年|月|[日号])")
_MAX_WORDS = 24
_MIXED = lazy_pattern(r"(?<![0-9.,])(?:([0-9]{1,4})亿)?([0-9]{1,4})万([0-9]{4}(?![0-9]))?")
"""Digits with units between them, such as 1亿2451万6650."""


def digits_for_words(text: str, *, least: int = 0) -> str:
    """The text with its numbers in words as digits, those from `least` on: the others are often no numbers at all."""
    if not text.isascii():
        text = _with_shares(text)
    if "万" in text:
        text = _MIXED.sub(_mixed, text)
    if any(char in text for char in "一二两三四五六七八九十"):
        text = _CHINESE.sub(lambda match: _chinese(match, least), text)
    if not text.isascii() and not any(char.isascii() and char.isalpha() for char in text):
        return text
    return _ENGLISH.sub(lambda match: _english(match, least), text)


def dates_in_digits(text: str) -> str:
    """The text with Chinese dates in digits: 二〇二四年五月廿一日 is 2024年5月21日."""
    if not any(char in text for char in "年月日号"):
        return text
    return _DATE_PART.sub(lambda match: str(_chinese_value(match[1])), _TWENTY.sub("二十", text))


def _with_shares(text: str) -> str:
    """Shares and formal numerals as digits: 三成五 is 35%, 三分之一 is 1/3, 叁拾捌 is 三十八."""
    if "分之" in text:
        text = _FRACTION.sub(lambda match: f"{_chinese_value(match[2])}/{_chinese_value(match[1])}", text)
    if "成" in text:
        text = _TENTHS.sub(_tenths, text)
    if any(char in text for char in "拾佰仟"):
        text = _FORMAL_NUMERAL.sub(lambda match: match[0].translate(_FORMAL), text)
    return text


def _tenths(match: re.Match[str]) -> str:
    tens, ones = match[1], match[2]
    share = 10 * (int(tens) if tens.isdigit() else _DIGITS[tens])
    return f"{share + (0 if ones is None else 5 if ones == '半' else _DIGITS[ones])}%"


def _mixed(match: re.Match[str]) -> str:
    if not match[1] and not match[3]:
        return match[0]  # 37万, which keeps its precision
    return str(int(match[1] or 0) * 10**8 + int(match[2]) * 10**4 + int(match[3] or 0))


def _english(match: re.Match[str], least: int) -> str:
    total = current = 0
    words = match[0].lower().replace("-", " ").split()
    if len(words) > _MAX_WORDS:
        return match[0]
    for word in words:
        if word in _SMALL or word in _TENS:
            value = _SMALL.get(word, _TENS.get(word, 0))
            if current % 100 and not (current % 100 >= 20 and current % 10 == 0 and 0 < value < 10):
                return match[0]  # "one two three" is no number
            current += value
        elif word == "hundred":
            current *= 100
        elif word in _SCALES:
            total, current = total + current * _SCALES[word], 0
    value = total + current
    return str(value) if value >= least else match[0]


def _chinese(match: re.Match[str], least: int) -> str:
    value = _chinese_value(match[2])
    if value is None or (value < least and not match[1]):
        return match[0]
    decimals = "" if not match[3] else "." + "".join(str(_DIGITS[char]) for char in match[3])
    return f"{value}{decimals}{'%' if match[1] else ''}"


def _chinese_value(numeral: str) -> int | None:
    if len(numeral) > _MAX_WORDS:
        return None
    if len(numeral) > 1 and all(char in _DIGITS for char in numeral):
        return int("".join(str(_DIGITS[char]) for char in numeral))  # digit by digit, such as 二〇二四
    total = section = digit = 0
    last = 1
    for char in numeral:
        if char in _DIGITS:
            if digit:
                return None
            digit = _DIGITS[char]
            last = 1 if digit == 0 else last
        elif char in _UNITS:
            section += (digit or 1) * _UNITS[char]
            digit, last = 0, _UNITS[char]
        elif char == "万":
            total, section, digit, last = total + (section + digit) * 10**4, 0, 0, 10**4
        else:
            total, section, digit, last = (total + section + digit) * 10**8, 0, 0, 10**8
    return total + section + digit * (last // 10 if last > 10 else 1)  # 一万二 is 12,000
