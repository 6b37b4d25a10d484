"""The numbers in a text, and what each of them is: an amount, a date, an account, or the name of a thing.

"Refund order 1003 with 15.5" has two numbers, and only one of them is a quantity. `quantities` leaves out what a text
uses as an identifier: a number after the name of a thing ("invoice no. 4711", "订单1003"), telephone numbers, dates and
times, accounts, and long runs of digits without a currency. Magnitudes scale ("2 million" is 2,000,000 and not 2) or,
where they are not certain ("2 to 3 million"), endorse nothing.

Texts are in their compatibility form (NFKC). Every pattern takes time proportional to the text.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal

from taoloop.core.text import lazy_pattern
from taoloop.policy.intent.vocabulary import words_of

_COMPACT_IBAN = lazy_pattern(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
_IBAN = lazy_pattern(
    r"[A-Z](?<!\w\w)[A-Z][0-9]{2}(?:[A-Z0-9]{11,30}|(?:[ -][A-Z0-9]{4}){2,7}(?:[ -][A-Z0-9]{1,4})?)(?!\w)"
)
_LOOSE_IBAN = lazy_pattern(r"[A-Z](?<!\w\w)[A-Z][ -]?[0-9][ -]?[0-9](?:[ -]?[A-Z0-9]){11,30}(?!\w)", re.IGNORECASE)
_SCRIPT = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # written without spaces
CJK_RUN = lazy_pattern(f"[{_SCRIPT}]+")
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_NUMBER = lazy_pattern(rf"(?<![\w.,])[-+\u2212]?{_DIGITS}(?![\w]|[.,]\w)")
_WHOLE_NUMBER = lazy_pattern(rf"[-+]?(?:{_DIGITS}|\.\d+)")
_MAX_DIGITS = 60  # of a number; anything longer is a text
_SEPARATED_DATE = lazy_pattern(r"\d[-/.]\d{1,2}[-/.]\d")  # every _ISO and _EUROPEAN contains it
_ISO = lazy_pattern(r"(\d(?<!\d\d)\d{3})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_CHINESE_DATE = lazy_pattern(r"(?:(\d(?<!\d\d)\d{3}) ?年 ?)?(\d(?<!\d\d)\d?) ?月 ?(\d{1,2}) ?[日号]")
_SEPARATING_COMMA = lazy_pattern(r"(?<![0-9A-Za-z]),(?=\d)")  # no thousands come before it: 退款，15.5元
_EUROPEAN = lazy_pattern(r"(\d(?<!\d\d)\d?)\.(\d{1,2})\.(\d{4})(?!\d)")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = "|".join(_MONTHS)
_MONTH_TAILS = "|".join(f"(?<={month[0]}){month[1:]}" for month in _MONTHS)
_YEAR = r"(?:,? +(?P<year>\d{4}))?"
_SPOKEN_DATES = (
    lazy_pattern(
        rf"(?P<month>[JFMASONDjfmasond](?<!\w\w)(?i:{_MONTH_TAILS}))"
        rf"(?i:[a-z]*\.? +(?:the +)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?{_YEAR}\b)"
    ),
    lazy_pattern(rf"(?P<day>\d(?<!\w\w)\d?)(?i:(?:st|nd|rd|th)? +(?:of +)?(?P<month>{_MONTH})[a-z]*\.?{_YEAR}\b)"),
)
_CLOCK = lazy_pattern(r"(\d(?<![\d:]\d)\d?)(?::(\d{2})(?::\d{2})? ?([ap])?\.?m?| ?([ap])\.?m)\b", re.IGNORECASE)
DATE_TIME = lazy_pattern(r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}):(\d{2})(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?)?")
_CURRENCIES = {
    "EUR": "€ eur euro euros 欧元",
    "USD": "$ us$ usd dollar dollars 美元 美金",
    "CNY": "cny rmb yuan 元 块 元人民币",
    "GBP": "£ gbp pound pounds 英镑",
    "JPY": "jpy yen 日元 日圆 円",
    "HKD": "hk$ hkd 港元 港币",
    "CHF": "chf franc francs 瑞士法郎",
    "¥": "¥",  # of China or of Japan
}
_CURRENCY_OF = {word: code for code, words in _CURRENCIES.items() for word in words.split()}
_WORDS = "|".join(sorted((word.replace("$", r"\$") for word in _CURRENCY_OF), key=len, reverse=True))
_DIGIT_RUN = lazy_pattern(r"\d[\d,]*(?:\.\d+)?")
_PLAIN_NUMBER = lazy_pattern(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_BEFORE = lazy_pattern(rf"(?:^|[^A-Za-z0-9_.,/=&?%+-])({_WORDS}) ?$", re.IGNORECASE)
_AFTER = lazy_pattern(rf" ?({_WORDS})(?![A-Za-z0-9_])", re.IGNORECASE)
_MAX_WORD_CHARS = 9  # of a currency, with what stands around it
_CURRENCY_FOLLOWS = rf" ?(?:{_WORDS}|%|percent\b)(?![A-Za-z0-9_])"

_ACCOUNT = lazy_pattern(r"(?<![A-Za-z0-9_.,-])\d{4}(?:[ -]\d{4}){2,7}(?:[ -]\d{1,3})?(?![A-Za-z0-9_]|[ .,-]\d)")
_NAMED_ACCOUNT = lazy_pattern(
    r"(?:\b(?:account|acct|a/c|card|phone|tel|mobile|number|no)|账[号户]|帐[号户]|卡号?|电话|手机|号码)(?: is"
    r"|是|为)?[.:# ]{0,3}"
    r"(?P<digits>\d{2,8}(?:[ -]\d{2,8}){1,9})(?![A-Za-z0-9_]|[ .,-]\d)",
    re.IGNORECASE,
)
_GROUPED = lazy_pattern(
    r"(?<![\w.,])[1-9]\d{0,2}(?:[\u00a0\u2007\u2009\u202f]\d{3}){1,19}(?![\w\u00a0\u2007\u2009\u202f]|,\w)"
)
_NO_BREAK_SPACES = lazy_pattern(r"[\u00a0\u2007\u2009\u202f]")
_GROUPS = lazy_pattern(r"\d{2,8}(?:[ -]\d{2,8}){1,9}")
_MIN_ACCOUNT_DIGITS = 6
_MARK = " \u25a1 "  # in place of what is no number

# Magnitudes

_MAGNITUDES = {
    **dict.fromkeys(("dozen",), 12),
    **dict.fromkeys(("hundred",), 10**2),
    **dict.fromkeys(("thousand", "k", "grand", "tsd"), 10**3),
    **dict.fromkeys(("lakh",), 10**5),
    **dict.fromkeys(("million", "mio", "mln", "mn"), 10**6),
    **dict.fromkeys(("crore",), 10**7),
    **dict.fromkeys(("billion", "bn", "mrd"), 10**9),
    **dict.fromkeys(("trillion",), 10**12),
}
_BETWEEN = (
    r"(?:[ \t(-]{0,2}(?:and|or|to|an?|half|quarter|odd|some|[-\u2013~]|\d[\u2044/]\d|\d{1,12}(?:\.\d{1,9})?"
    rf"|[a-z]{{3,9}}\)|{_WORDS}))"
)
_MAGNITUDE = lazy_pattern(
    rf"(?<![\d.,_])(?P<number>\d++(?:,\d{{3}})*+(?:\.\d++)?)(?P<between>{_BETWEEN}{{0,4}})"
    rf"[ \t-]?(?P<unit>{'|'.join(_MAGNITUDES)})s?(?![a-z0-9_'])",
    re.IGNORECASE,
)
_VAGUE_MAGNITUDE = lazy_pattern(
    rf"(?:[$€£¥]|\b(?:{_WORDS})) ?\d[\d.,]* (?:m|mm|b|tn)(?![a-z0-9_'])",
    re.IGNORECASE,  # million, or metre, or month
)
_CHINESE_UNITS = {"百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000}
_CHINESE_NUMBER = lazy_pattern(
    r"(?<![A-Za-z0-9_.,])(?P<from>\d++(?:\.\d++)? ?[到至~、-] ?)?"
    r"(?P<number>\d++(?:\.\d++)?)"
    r" ?(?P<filler>[多来余几数个]?)(?P<units>[百千万亿]++)(?P<rest>[\d零一二两三四五六七八九十]?)"
)

# Identifiers

_NAMED_BY_NUMBER = words_of(
    "order invoice bill receipt ticket issue bug case incident booking reservation confirmation account acct card iban"
    " customer client user member employee staff student patient passenger phone telephone tel mobile cell fax"
    " extension"
    " ext pin code otp passcode password zip postcode id ref reference no nr num number numbered numero serial sku isbn"
    " article product item part model version ver page chapter section paragraph step line row column room suite flat"
    " apartment apt gate seat terminal platform track train bus flight tram route highway exit floor building"
    " house door"
    " locker box shelf slot port channel parcel shipment tracking delivery transaction contract policy claim license"
    " licence passport visa document request task todo pr commit build job pid server host sprint release year week day"
    " season episode group table lot batch quote inv po rma rfc call dial ring"
)
_LABEL = (
    r"(?:[ \t]+(?:no|nr|num|number|id|code|ref|reference))?\.?(?:[ \t]+(?:is|was|has))?[ \t:=#(\"'\u201c\u2116-]{0,4}"
)
_COUNTED = r"order \d{1,3} (?!(?:is|was|has|does|this|its|his|as|us)\b)[a-z]+s\b"  # order 12 bottles
_CODE = r"\d++(?:[./-]\d++)*+"
_IDENTIFIER = lazy_pattern(
    rf"(?:\b(?!{_COUNTED})(?:{'|'.join(sorted(_NAMED_BY_NUMBER, key=len, reverse=True))})s?{_LABEL}"
    rf"|[#\u2116]\s?|\bn\u00b0 ?)"
    rf"{_CODE}(?!{_CURRENCY_FOLLOWS})"
    rf"(?:[ \t]{{0,2}}(?:,|and|or|&|to|-|\u2013)[ \t]{{0,2}}(?:and[ \t])?#?{_CODE}(?!,\d|{_CURRENCY_FOLLOWS}))*",
    re.IGNORECASE,
)
_CHINESE_MEASURE = "[个份张件盒箱包瓶袋次条台位名间晚天只双套本杯斤双]|小时|分钟|公斤|人(?!民)|kg"
_CHINESE_IDENTIFIER = lazy_pattern(
    r"(?:[订工票账运保]单|发票|收据|票据|单据|编号|序号|号码?|单号|流水|合同|案件|员工|客户|会员|用户"
    r"|[账帐][号户]|卡|银行卡|电话|手机|座机"
    r"|传真|分机|微信|QQ|邮编|密码|验证码|口令|房间?|航班|车次|座位|登机口|站台|快递|物流|包裹|型号|版本|身份证"
    r"|护照|车牌|任务|问题"
    r"|项目|编码|代码|ID|批次|预[订约]|会议室|第)(?:的?(?:编号|号码?|单号|ID))?(?:是|为)?[::#\s\"“(]{0,3}"
    rf"{_CODE}(?!{_CURRENCY_FOLLOWS}| ?(?:{_CHINESE_MEASURE}|块|圆))"
    rf"(?:[、,和与及跟]\s?{_CODE}(?!{_CURRENCY_FOLLOWS}| ?(?:{_CHINESE_MEASURE}|块|圆)))*"
    r"|\d++\s?(?:号|室|楼|层|路|弄|栋|期|届|点(?!建|意|钱)|时|年级|[订工票]单|发票)|(?:19|20)\d\d\s?年",
    re.IGNORECASE,
)
_OTHER_CODES = (
    lazy_pattern(r"(?<!\w)(?:\+|\(\d)\d[\d ()/.-]{4,20}\d"),  # a telephone number
    lazy_pattern(r"(?<![\w.,])\d{2,}(?:[ -]\d{2,}){2,}(?![\w.,])"),  # or one in groups
    lazy_pattern(r"(?<![\w.,])\d{2,}-\d{4,}(?![\w.,])"),
    lazy_pattern(r"\d(?<!\d\d)\d*+(?:/\d++)+"),
    lazy_pattern(r"\d(?<![\d:]\d)\d?:\d\d(?::\d\d)?"),
    lazy_pattern(r"\d(?<![\d:.,]\d)\d?(?= ?[ap]\.?m\b| o'clock\b)", re.IGNORECASE),
    lazy_pattern(r"\b(?:in|since|until|till|by|from|during|of|for|fy)[ \t](?:19|20)\d\d(?![\w.,]\w|\w)", re.IGNORECASE),
    lazy_pattern(rf"(?<![\w.,+])\d{{7,}}+(?![.,]\d|\w|{_CURRENCY_FOLLOWS})"),  # too long to be sure
)


def plain_text(raw: str) -> str:
    """A text as its numbers are read: NFKC, without no-break spaces in numbers, and with magnitudes written out."""
    grouped = _GROUPED.sub(lambda match: _NO_BREAK_SPACES.sub("", match.group()), raw)
    text = _SEPARATING_COMMA.sub(" ", unicodedata.normalize("NFKC", grouped))
    if any(unit in text for unit in _CHINESE_UNITS):
        text = _CHINESE_NUMBER.sub(_scaled_chinese, text)
    return _MAGNITUDE.sub(_scaled, _VAGUE_MAGNITUDE.sub(_MARK, text))


def _scaled(match: re.Match[str]) -> str:
    number, factor = number_of(match["number"]), _MAGNITUDES[match["unit"].lower()]
    return _MARK if match["between"] or number is None else f"{number * factor:,f}"


def _scaled_chinese(match: re.Match[str]) -> str:
    """A number with its units; nothing for what has parts, as 3万5, and for about so many."""
    number = number_of(match["number"])
    if match["from"] or match["filler"] not in ("", "个") or match["rest"] or number is None:
        return _MARK
    return f"{number * math.prod(_CHINESE_UNITS[unit] for unit in match['units']):,f}"


def quantities(text: str) -> Iterator[Decimal]:
    """The numbers in a plain text that are amounts of something, and not what a thing is called by."""
    text = _CHINESE_IDENTIFIER.sub(_MARK, _IDENTIFIER.sub(_MARK, _without_codes(text)))
    for pattern in _OTHER_CODES:
        text = pattern.sub(_MARK, text)
    return numbers(text)


def _without_codes(text: str) -> str:
    """The text without its dates and accounts."""
    text = _without_dates(text)
    for pattern in (_IBAN, _ACCOUNT, _NAMED_ACCOUNT):
        text = pattern.sub(_MARK, text)
    return text


def numbers(text: str) -> Iterator[Decimal]:
    """All the numbers in a plain text."""
    yield from (number for number, _ in amounts(text))  # EUR15.50
    for match in _NUMBER.finditer(CJK_RUN.sub(" ", _without_codes(text))):
        if (number := number_of(match.group().replace("\u2212", "-"))) is not None:
            yield number


def number_of(text: str) -> Decimal | None:
    """A number as people write it; None for digits with a leading zero, which are a code."""
    if len(text) > _MAX_DIGITS or not _WHOLE_NUMBER.fullmatch(text):
        return None
    digits = text.lstrip("-+")
    return None if digits[0] == "0" and digits[1:2].isdigit() else Decimal(text.replace(",", ""))


def decimal_of(value: int | float) -> Decimal | None:
    """A number as it is written; None for one that is not finite, or far too large."""
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else None
    return Decimal(value) if value.bit_length() < 200 else None


def _without_dates(text: str) -> str:
    """The text without its dates: a date is no amount."""
    parted = _SEPARATED_DATE.search(text) is not None
    if parted:
        text = _ISO.sub(" ", text)
    if "月" in text:
        text = _CHINESE_DATE.sub(" ", text)
    if parted:
        text = _EUROPEAN.sub(" ", text)
    for pattern in _SPOKEN_DATES:
        text = pattern.sub(" ", text)
    return text


def dates(text: str) -> Iterator[tuple[int | None, int, int]]:
    """The dates in a text as year, month and day; without a year None."""
    yield from ((int(match[1]), int(match[2]), int(match[3])) for match in _ISO.finditer(text))
    for match in _CHINESE_DATE.finditer(text):
        yield int(match[1]) if match[1] else None, int(match[2]), int(match[3])
    yield from ((int(match[3]), int(match[2]), int(match[1])) for match in _EUROPEAN.finditer(text))
    for pattern in _SPOKEN_DATES:
        for match in pattern.finditer(text):
            year = int(match["year"]) if match["year"] else None
            yield year, _MONTHS.index(match["month"][:3].lower()) + 1, int(match["day"])


def times(text: str) -> Iterator[tuple[int, int]]:
    """The times of day in a text as hour and minute."""
    for match in _CLOCK.finditer(text):
        hour = int(match[1])
        meridiem = (match[3] or match[4] or "").lower()
        if meridiem == "p" and hour < 12:
            hour += 12
        yield (0 if meridiem == "a" and hour == 12 else hour), int(match[2] or 0)


def amounts(text: str) -> Iterator[tuple[Decimal, str]]:
    """The amounts in a text (NFKC), each with the code of its currency."""
    return (amount for amount, _ in _amounts_with_places(text))


def amount_of(value: str) -> tuple[Decimal, str] | None:
    """The amount that a value is as a whole; None for any other text."""
    if len(value) > 2 * _MAX_DIGITS:
        return None
    return next((amount for amount, span in _amounts_with_places(value) if span == (0, len(value))), None)


def _amounts_with_places(text: str) -> Iterator[tuple[tuple[Decimal, str], tuple[int, int]]]:
    """Each amount with where it begins and ends."""
    for match in _DIGIT_RUN.finditer(text):
        digits = match.group().rstrip(",")
        start, end = match.start(), match.start() + len(digits)
        is_code = digits[0] == "0" and digits[1:2].isdigit()
        if len(digits) > _MAX_DIGITS or is_code or not _PLAIN_NUMBER.fullmatch(digits):
            continue
        number = Decimal(digits.replace(",", ""))
        before = _BEFORE.search(text[max(0, start - _MAX_WORD_CHARS) : start])
        follows = text[end : end + 2]
        if before is not None and not (follows[:1].isalnum() or follows[:1] == "_" or _continues(follows)):
            shift = max(0, start - _MAX_WORD_CHARS)
            yield (number, _CURRENCY_OF[before[1].lower()]), (shift + before.start(1), end)
        after = _AFTER.match(text, end)
        if after is not None and not _is_joined(text, start):
            yield (number, _CURRENCY_OF[after[1].lower()]), (start, after.end())


def _continues(follows: str) -> bool:
    """Whether a number goes on, as a version or a time does."""
    return follows[:1] in (".", ",", ":") and follows[1:].isdigit()


def _is_joined(text: str, start: int) -> bool:
    """Whether what stands before a number makes it a part of something else: a code, a path, a date, a time."""
    before = text[max(0, start - 2) : start]
    is_letter = before[-1:].isascii() and before[-1:].isalnum()
    return is_letter or before[-1:] in tuple("_.,/=&?%+-") or (before[-1:] == ":" and before[:1].isdigit())


def ibans(text: str) -> Iterator[str]:
    """The IBANs in a text, without spaces and hyphens; in other groups than of four if the check digits are right."""
    for match in _IBAN.finditer(text):
        compact, shorter = _joined(match.group()), _joined(re.split("[ -](?=[^ -]*$)", match.group())[0])
        yield (shorter if is_iban(shorter) and not is_iban(compact) else compact).upper()
    yield from (_joined(text[start:end]).upper() for start, end in _loose_ibans(text))


def _loose_ibans(text: str) -> Iterator[tuple[int, int]]:
    """Where IBANs are whose check digits are right, in whatever groups; the words after one may look like a group."""
    for match in _LOOSE_IBAN.finditer(text):
        ends = [match.end(), *(match.start() + gap.start() for gap in re.finditer("[ -]", match.group()))]
        compacts = ((end, _joined(text[match.start() : end])) for end in sorted(ends, reverse=True))
        yield from (
            (match.start(), end) for end, compact in compacts if len(compact) >= 15 and is_iban(compact.upper())
        )


def iban_of(value: str) -> str | None:
    """A value as an IBAN without spaces and hyphens; None for any other text."""
    compact = _joined(value).upper()
    return compact if len(value) <= 2 * _MAX_DIGITS and _COMPACT_IBAN.fullmatch(compact) else None


def account_numbers(text: str) -> Iterator[str]:
    """The digits of account, card and telephone numbers that are written in groups: of four, or as what they are."""
    rest = _IBAN.sub(_MARK, text)
    yield from (_joined(match.group()) for match in _ACCOUNT.finditer(rest))
    yield from (_joined(match["digits"]) for match in _NAMED_ACCOUNT.finditer(rest))


def account_number_of(value: str) -> str | None:
    """The digits of a value that is an account number, in groups or not; None for any other text."""
    digits = _joined(value)
    is_one = digits.isascii() and digits.isdigit() and _MIN_ACCOUNT_DIGITS <= len(digits) <= _MAX_DIGITS
    return digits if is_one and (digits == value or _GROUPS.fullmatch(value)) else None


def is_iban(compact: str) -> bool:
    """Whether the check digits of an IBAN without spaces are right (ISO 7064, mod 97-10)."""
    rotated = compact[4:] + compact[:4]
    return rotated.isascii() and rotated.isalnum() and int("".join(str(int(char, 36)) for char in rotated)) % 97 == 1


def _joined(text: str) -> str:
    return text.replace(" ", "").replace("-", "")


def code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where a text has IBANs and accounts: a part of one names nothing."""
    yield from _loose_ibans(text)
    for pattern in (_IBAN, _ACCOUNT, _NAMED_ACCOUNT):
        for match in pattern.finditer(text):
            yield match.span("digits" if "digits" in match.re.groupindex else 0)
