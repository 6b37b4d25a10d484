r"""Whether a value appears in a text that a person wrote: by typed equality, never by resemblance.

An address equals an address, a number a number, a date a date; any other text must appear as a whole phrase. Texts are
compared in their compatibility form (Unicode NFKC), ignoring case; a value with invisible characters equals nothing.
Chinese, Japanese and Korean have no spaces, so a phrase needs two characters there, and an address or a number may
directly follow them. Every pattern here takes time proportional to the text, whoever wrote it; one that begins with a
digit or a capital looks at the preceding character only then (`\d(?<!\d\d)`), because `re` skips from one such
character to the next.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import islice
from typing import Any

from taoloop.core.text import lazy_pattern

MAIL = lazy_pattern(r"(?<![\w.+%-])[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")
URL = lazy_pattern(
    r"(?:https?://|www\.)[^\s<>\"'，。；、）》」]+|(?<![\w@./\\-])[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,10}(?:/[^\s<>\"'，。；、）》」]*)?",
    re.IGNORECASE,
)
_IBAN = lazy_pattern(r"[A-Z](?<!\w\w)[A-Z][0-9]{2}(?:[A-Z0-9]{11,30}|(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,4})?)(?!\w)")
_SPACED_IBAN = lazy_pattern(r"[A-Z][A-Z][0-9]{2} [A-Z0-9]{4} ")  # the beginning of one with spaces
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_NUMBER = lazy_pattern(rf"(?<![\w.,])[-+\u2212]?{_DIGITS}(?![\w]|[.,]\w)")
_WHOLE_NUMBER = lazy_pattern(rf"[-+]?(?:{_DIGITS}|\.\d+)")
_CHINESE_AMOUNT = lazy_pattern(r"(?<![A-Za-z0-9_.,])(\d+(?:\.\d+)?) ?([百千万亿]+)")
_CHINESE_UNITS = {"百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000}
_MAX_DIGITS = 60  # of a number; anything longer is a text
_DIGIT = lazy_pattern(r"\d")
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
_DATE_TIME = lazy_pattern(r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}):(\d{2})(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?)?")
_SCRIPT = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # written without spaces
_CJK = lazy_pattern(f"[{_SCRIPT}]")
_CJK_RUN = lazy_pattern(f"[{_SCRIPT}]+")
_TRAILING_PUNCTUATION = ".,;:!?)]}'\"»”’"
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and any are as at be been but by can do does for from get has have he her him his i if in into is it its"
        " me my no not of off on or our out she so some that the their them then they this to up us was we were what"
        " when which who will with would you your 的 了 是 在 和 我 你 他 把 给",
    )
)
_MAX_VALUE_CHARS = 20_000
_INDEX_THRESHOLD = 32  # texts that are searched as they are; more are indexed by their words
_JOINING_CHARS = ".-@/_\\"
_CONTROL = lazy_pattern(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_INVISIBLE_CATEGORIES = frozenset({"Cf", "Cc", "Co", "Cn", "Cs"})


def normalise_text(text: str) -> str:
    """The form in which texts are compared: NFKC, case folded, each run of white space one space."""
    return " ".join(unicodedata.normalize("NFKC", text).split()).casefold()


def has_invisible(text: str) -> bool:
    """Whether a text has invisible characters, or ones that cannot be compared. Line breaks are visible."""
    if text.isascii():
        return _CONTROL.search(text) is not None
    return any(unicodedata.category(char) in _INVISIBLE_CATEGORIES and char not in "\t\n\r" for char in text)


def strip_invisible(text: str) -> str:
    """The text without its invisible characters."""
    return "".join(char for char in text if char in "\t\n\r" or unicodedata.category(char) not in _INVISIBLE_CATEGORIES)


_CHINESE_COMMA = lazy_pattern(r"(?<=\d{4})，(?=\d)|(?<=\d)，(?=\d)(?!\d{3}(?!\d))")
"""A comma between two numbers ("订单1003，15.5元"), which in normal form would look like one inside a number."""


class _Text:
    """A text in its compatibility form, with what is derived from it on demand."""

    def __init__(self, text: str) -> None:
        self.raw = text
        self.whole = unicodedata.normalize("NFKC", _CHINESE_COMMA.sub("， ", text))

    @cached_property
    def marked(self) -> str:
        """The parts of the text that are not mere words."""
        return _nonword_pieces(self.whole)


class TrustedText:
    """The content of trusted texts, ready to be compared with values.

    A kind of value is extracted from a text only when something of that kind is compared, and then once.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: list[_Text] = []
        # of each kind, and in how many texts it was looked for
        self._values_by_kind: dict[str, tuple[set[Any], int]] = {}
        self._normalised: list[str] = []
        self._word_texts: dict[str, list[int]] = {}  # of each word, the texts that have it
        self._indexed_count = 0  # how many of the texts are in there
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Add one more trusted text."""
        self._texts.append(_Text(text))

    @property
    def urls(self) -> set[str]:
        """The addresses of web pages."""
        return self._values("url")

    def _values(self, kind: str) -> set[Any]:
        values, count = self._values_by_kind.get(kind) or (set(), 0)
        if count < len(self._texts):
            for text in self._texts[count:]:
                values.update(_EXTRACTORS[kind](text))
            self._values_by_kind[kind] = values, len(self._texts)
        return values

    def has(self, value: Any, role: str = "value") -> bool:
        """Whether `value` appears here; for a list or an object, whether all of it does. An empty value always does."""
        if value is None or value in ("", [], {}):
            return True
        if isinstance(value, bool):
            return role.partition(":")[0] in ("minor", "value")
        if isinstance(value, int | float):
            return not role.startswith("ref:") and decimal_of(value) in self._values("number")
        if isinstance(value, str):
            return self._has_text(value, role)
        parts = value.values() if isinstance(value, Mapping) else value
        return isinstance(value, Mapping | list | tuple) and all(self.has(part, role) for part in parts)

    def has_address(self, value: Any) -> bool:
        """Whether the address of a web page appears here, exactly."""
        return (
            isinstance(value, str)
            and not has_invisible(value)
            and _url(unicodedata.normalize("NFKC", value).strip()) in self.urls
        )

    def _has_text(self, value: str, role: str) -> bool:
        if len(value) > _MAX_VALUE_CHARS or has_invisible(value):
            return False
        text = unicodedata.normalize("NFKC", value).strip()
        if MAIL.fullmatch(text):
            return text.lower() in self._values("mail")
        if URL.fullmatch(text) and ("/" in text or text.lower().startswith("www.")):
            return _url(text) in self.urls
        if _IBAN.fullmatch(text):
            return _compact(text) in self._values("iban")
        if role.startswith("ref:"):  # a number in the task may be anything; it never names a thing by its id
            return any(char.isalpha() for char in text) and self.has_phrase(text)
        if match := _DATE_TIME.fullmatch(text):
            return self._has_date_time(match)
        account = account_number_of(text)
        if account is not None and account in self._values("account"):
            return True
        if (number := _number(text)) is not None:
            return number in self._values("number")
        if (amount := amount_of(text)) is not None and amount in self._values("amount"):
            return True
        if _IBAN.fullmatch(text.upper()) and _compact(text) in self._values("iban"):
            return True
        if URL.fullmatch(text) and _url(text) in self.urls:
            return True
        return self.has_phrase(text)

    def _has_date_time(self, match: re.Match[str]) -> bool:
        day = date_of(match[1])
        if day is None or not ({(day.year, day.month, day.day), (None, day.month, day.day)} & self._values("date")):
            return False
        if match[2] is None or (match[2], match[3]) == ("00", "00"):  # a day, and no time of it
            return True
        return (int(match[2]), int(match[3])) in self._values("time")

    def has_phrase(self, value: str) -> bool:
        """Whether a text appears here as it is, from the start of a word to the end of one."""
        phrase = normalise_text(value).strip(" \"'“”‘’`")
        if len(phrase) < 2 or phrase in STOP_WORDS or not any(char.isalnum() for char in phrase):
            return False
        return any(_has_phrase(phrase, text) for text in self._texts_with(phrase))

    def _texts_with(self, phrase: str) -> Iterable[str]:
        """The texts, normalised, that may contain a phrase: of many, those that contain its rarest word."""
        for index in range(len(self._normalised), len(self._texts)):
            self._normalised.append(normalise_text(self._texts[index].whole))
        if len(self._normalised) <= _INDEX_THRESHOLD:
            return self._normalised
        for index in range(self._indexed_count, len(self._normalised)):
            text = self._normalised[index]
            for word in set((_ASCII_WORD if text.isascii() else _WORD).findall(text)):
                self._word_texts.setdefault(word, []).append(index)
        self._indexed_count = len(self._normalised)
        words = (match.group() for match in islice(_WORD.finditer(phrase), _INDEX_THRESHOLD))
        rarest = min((self._word_texts.get(word, ()) for word in words), key=len)
        return (self._normalised[index] for index in rarest)


def _has_phrase(phrase: str, text: str) -> bool:
    start = text.find(phrase)
    while start >= 0:
        if _is_border(text, start - 1, -1, phrase[0]) and _is_border(text, start + len(phrase), 1, phrase[-1]):
            return True
        start = text.find(phrase, start + 1)
    return False


def _is_border(text: str, index: int, step: int, inner: str) -> bool:
    """Whether a phrase may begin or end at the character at this index: no word, file name or path continues there."""
    outer = text[index] if 0 <= index < len(text) else ""
    if not outer or _CJK.match(outer) or _CJK.match(inner):
        return True
    if _is_word_char(inner) and _is_word_char(outer):
        return False
    if outer not in _JOINING_CHARS:
        return _is_word_char(inner) or inner not in _JOINING_CHARS or not _is_word_char(outer)
    if not _is_word_char(inner) and inner not in _JOINING_CHARS:
        return True
    if step < 0 and outer in "./\\":  # .env is not env, and /tmp not tmp
        return False
    while 0 <= index < len(text) and text[index] in _JOINING_CHARS:
        index += step  # a dot or a hyphen may continue: a.b, file.txt, 1.5
    return not (0 <= index < len(text)) or not _is_word_char(text[index])


def _is_word_char(char: str) -> bool:
    return char.isalnum() or char == "_" or (not char.isascii() and unicodedata.category(char).startswith("M"))


def atoms(text: str) -> list[str]:
    """The words of a text, and its addresses as a whole: what an index of untrusted text is made of."""
    folded = normalise_text(text)
    word = _ASCII_WORD if folded.isascii() else _WORD_OR_PAIR
    words, begin = list[str](), 0
    while (at := folded.find("@", begin)) >= 0:  # only what contains an @, up to the next spaces, is more than words
        start = folded.rfind(" ", begin, at) + 1 or begin
        end = folded.find(" ", at)
        end = len(folded) if end < 0 else end
        words += word.findall(folded, begin, start)
        words += _ATOM.findall(folded, start, end)
        begin = end
    return words + word.findall(folded, begin)


_ASCII_WORD = lazy_pattern(r"\w+")
_WORD = lazy_pattern(rf"[^\W{_SCRIPT}]+|[{_SCRIPT}]")
_WORD_OR_PAIR = lazy_pattern(rf"[^\W{_SCRIPT}]+|[{_SCRIPT}]{{1,2}}")
_ATOM = lazy_pattern(rf"(?<![\w.+%-])[\w.+%-]+@[\w.-]+\w|{_WORD_OR_PAIR.pattern}")
_AUTHORITY = lazy_pattern(r"[a-zA-Z][a-zA-Z0-9+.-]*://([^/?#]*)")
_PARTIAL_SCHEME = lazy_pattern(r"(?:https?|ftp|wss?):", re.IGNORECASE)
_BARE_HOST = lazy_pattern(r"((?:[\w-]+\.)+[a-zA-Z]{2,}\.?)(?::\d*)?(?:[/?#]\S*)?")
_HOST = lazy_pattern(r"((?:[\w-]+\.)*[\w-]+|\[[0-9a-fA-F:.]+\])\.?(?::\d*)?")


def host_of(value: str) -> str | None:
    """The host of an address, in lower case and its ASCII form; None for a text that is no address.

    Empty for an address that programs understand differently: with a user name, a backslash, an escape or a break in
    the host, or half a scheme.
    """
    text = unicodedata.normalize("NFKC", value).replace("\u3002", ".").strip()
    if " " in text:
        return None  # a text
    if match := _AUTHORITY.match(text):
        authority = _HOST.fullmatch(match[1])
        return ascii_host(authority[1]) if authority else ""
    if _PARTIAL_SCHEME.match(text):
        return ""
    bare = _BARE_HOST.fullmatch(text)
    return None if bare is None else ascii_host(bare[1])


def is_written_address(value: str) -> bool:
    """Whether a text is written as the address of a page: with a scheme, or as a host with a path or a query."""
    text = unicodedata.normalize("NFKC", strip_invisible(value)).strip()
    if _AUTHORITY.match(text) or _PARTIAL_SCHEME.match(text) or text[:2] in ("//", "\\\\"):
        return True
    bare = _BARE_HOST.match(text)
    return bare is not None and (text[bare.end(1) : bare.end(1) + 1] in ("/", "?", "#", ":") or text.startswith("www."))


def ascii_host(host: str) -> str:
    """The name of a host, or a pattern of names, in the form that is looked up; empty if that is disputed."""
    lower = host.lower().removesuffix(".")
    if lower.isascii():
        return lower
    if lower.casefold() != lower:  # ß is ss for one program and a letter for the next
        return ""
    try:
        return ".".join(
            label if label.isascii() else label.encode("idna").decode("ascii") for label in lower.split(".")
        )
    except UnicodeError:
        return ""


def links_in(text: str) -> set[str]:
    """The addresses of web pages in a text."""
    return {_url(trim_punctuation(match.group())) for match in URL.finditer(unicodedata.normalize("NFKC", text))}


def date_of(text: str) -> date | None:
    """A date as `YYYY-MM-DD`; None for any other text."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def value_key(value: Any) -> tuple[str, Any]:
    """What two plain values have in common that are the same by typed equality: kind and content."""
    if isinstance(value, bool) or value is None:
        return "constant", value
    if isinstance(value, int | float):
        number = decimal_of(value)
        return ("text", repr(value)) if number is None else ("number", number)
    text = str(value)
    if has_invisible(text):
        return "text", text
    plain = unicodedata.normalize("NFKC", text).strip()
    if MAIL.fullmatch(plain):
        return "mail", plain.lower()
    return ("iban", _compact(plain)) if _IBAN.fullmatch(plain) else ("text", plain)


def trim_punctuation(text: str) -> str:
    """An address without what may be punctuation of the text around it."""
    return text.rstrip(_TRAILING_PUNCTUATION)


def _url(text: str) -> str:
    """An address as it is: without `https://` and one slash at its end, its host in lower case.

    Nothing else is left out: `a.txt/..` is not `a.txt`.
    """
    scheme, separator, rest = text.partition("://")
    rest = rest if separator else scheme
    host, slash, path = rest.partition("/")
    bare = f"{host.lower()}{slash}{path}".removesuffix("/")
    return f"{scheme.lower()}://{bare}" if separator and scheme.lower() != "https" else bare


def _url_forms(text: str) -> set[str]:
    """The addresses that an address in a text stands for: without `https` it may mean either scheme."""
    url = _url(trim_punctuation(text))
    if text.lower().startswith("https://"):
        return {url}
    bare = url.removeprefix("http://")
    return {bare, f"http://{bare}"}


def _iban(text: str) -> str:
    """An IBAN without its spaces, and without a word in capitals after it that looked like its last group."""
    whole, shorter = _compact(text), _compact(text.rpartition(" ")[0])
    return shorter if is_iban(shorter) and not is_iban(whole) else whole


def _compact(text: str) -> str:
    return text.replace(" ", "").upper()


def _number(text: str) -> Decimal | None:
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


def _numbers(text: _Text) -> Iterator[Decimal]:
    if not _DIGIT.search(text.whole):
        return
    yield from grouped_numbers(text.raw)
    yield from (number for number, _ in amounts(_SEPARATING_COMMA.sub(" ", text.whole)))  # EUR15.50
    rest = _without_dates(text.whole)  # a date is no amount
    if any(unit in rest for unit in _CHINESE_UNITS):
        for match in _CHINESE_AMOUNT.finditer(rest):
            if (number := _number(match[1])) is not None:
                yield number * math.prod(_CHINESE_UNITS[unit] for unit in match[2])
        rest = _CHINESE_AMOUNT.sub(" ", rest)
    if not rest.isascii():
        rest = _CJK_RUN.sub(" ", _SEPARATING_COMMA.sub(" ", rest))
    if not _SPACED_IBAN.search(rest):  # what remains to be found has no space in it
        rest = text.marked if rest == text.whole else _nonword_pieces(rest)
    for pattern in (MAIL, URL, _IBAN):
        rest = pattern.sub(" ", rest)
    for match in _NUMBER.finditer(rest):
        if (number := _number(match.group().replace("\u2212", "-"))) is not None:
            yield number


def _without_dates(text: str) -> str:
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


def _dates(text: _Text) -> Iterator[tuple[int | None, int, int]]:
    yield from ((int(match[1]), int(match[2]), int(match[3])) for match in _ISO.finditer(text.whole))
    for match in _CHINESE_DATE.finditer(text.whole):
        yield int(match[1]) if match[1] else None, int(match[2]), int(match[3])
    yield from ((int(match[3]), int(match[2]), int(match[1])) for match in _EUROPEAN.finditer(text.whole))
    for pattern in _SPOKEN_DATES:
        for match in pattern.finditer(text.whole):
            year = int(match["year"]) if match["year"] else None
            yield year, _MONTHS.index(match["month"][:3].lower()) + 1, int(match["day"])


def _times(text: _Text) -> Iterator[tuple[int, int]]:
    for match in _CLOCK.finditer(text.whole):
        hour = int(match[1])
        meridiem = (match[3] or match[4] or "").lower()
        if meridiem == "p" and hour < 12:
            hour += 12
        yield (0 if meridiem == "a" and hour == 12 else hour), int(match[2] or 0)


def _nonword_pieces(text: str) -> str:
    """The parts of a text between its white space that are not mere words or codes, each on a line.

    Every address or number without a space in it, with whatever directly precedes and follows it, is among them.
    """
    return "\n".join(piece for piece in text.split() if not (piece.isidentifier() and piece.isascii()))


def _find_all(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    """What a pattern finds in a text, and in the text without its Chinese: no space separates an address from that."""
    for variant in dict.fromkeys((text, _CJK_RUN.sub(" ", text))):
        yield from (match.group() for match in pattern.finditer(variant))


# Amounts with a currency, and numbers in groups. Groups with plain spaces between them may be several numbers ("order
# 12 500 EUR"): they are one with no-break spaces, or as an account number of at least twelve digits.
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
_ACCOUNT = lazy_pattern(r"(?<![A-Za-z0-9_.,-])\d{4}(?:[ -]\d{4}){2,7}(?:[ -]\d{1,3})?(?![A-Za-z0-9_]|[ .,-]\d)")
_GROUPED = lazy_pattern(
    r"(?<![\w.,])\d{1,3}(?:[\u00a0\u2007\u2009\u202f]\d{3})+(?:\.\d+)?(?![\w\u00a0\u2007\u2009\u202f]|[.,]\w)"
)
_NO_BREAK_SPACES = lazy_pattern(r"[\u00a0\u2007\u2009\u202f]")
_MIN_ACCOUNT_DIGITS = 12


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


def account_numbers(text: str) -> Iterator[str]:
    """The digits of account and card numbers that are written in groups of four."""
    return (_joined(match.group()) for match in _ACCOUNT.finditer(text))


def account_number_of(value: str) -> str | None:
    """The digits of a value that is an account number, in groups or not; None for any other text."""
    digits = _joined(value)
    is_one = digits.isascii() and digits.isdigit() and _MIN_ACCOUNT_DIGITS <= len(digits) <= _MAX_DIGITS
    return digits if is_one and (digits == value or _ACCOUNT.fullmatch(value)) else None


def grouped_numbers(text: str) -> Iterator[Decimal]:
    """The numbers in a text, as it was written, whose thousands are separated by no-break spaces."""
    for match in _GROUPED.finditer(text):
        if len(match.group()) <= _MAX_DIGITS and match.group()[0] != "0":
            yield Decimal(_NO_BREAK_SPACES.sub("", match.group()))


def is_iban(compact: str) -> bool:
    """Whether the check digits of an IBAN without spaces are right (ISO 7064, mod 97-10)."""
    rotated = compact[4:] + compact[:4]
    return rotated.isascii() and rotated.isalnum() and int("".join(str(int(char, 36)) for char in rotated)) % 97 == 1


def _joined(text: str) -> str:
    return text.replace(" ", "").replace("-", "")


_EXTRACTORS: dict[str, Callable[[_Text], Iterable[Any]]] = {
    "mail": lambda text: (mail.lower().rstrip(".") for mail in _find_all(MAIL, text.marked)),
    "url": lambda text: (url for address in _find_all(URL, text.marked) for url in _url_forms(address)),
    "iban": lambda text: map(_iban, _find_all(_IBAN, text.whole)),
    "amount": lambda text: amounts(_SEPARATING_COMMA.sub(" ", text.whole)),
    "account": lambda text: account_numbers(_IBAN.sub(" ", text.whole)),
    "number": _numbers,
    "date": _dates,
    "time": _times,
}
