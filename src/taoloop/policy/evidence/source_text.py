"""What an observation says, in the forms in which quotations, numbers, dates and names are looked for."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cached_property

from taoloop.core.text import lazy_pattern
from taoloop.policy.evidence.claims import Bound, ClaimedValue
from taoloop.policy.evidence.dates import Day, agree, dates_in
from taoloop.policy.evidence.names import SourceNames
from taoloop.policy.evidence.number_words import digits_for_words
from taoloop.policy.evidence.numbers import numbers_in

_ESCAPE = lazy_pattern(r"\\(?:u([0-9a-fA-F]{4})|([nrtbf])|([\"\\/]))")
_ELLIPSIS = lazy_pattern(r"\s*[\[(]?(?:…+|\.{3,})[\])]?\s*")
_LIST = lazy_pattern(r"[0-9]+(?:,[0-9]+)+")
_SIMILAR = str.maketrans(
    dict.fromkeys('\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f"', "'")
    | dict.fromkeys("\u2018\u2019\u201a\u2039\u203a`", "'")
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
)
_PACKED = lazy_pattern(r"[\s\"'\\*]+")
_EDGES = " \t\n.,;:!?。，、；：！？…\"'*_"
_MIN_PACKED_CHARS = 8
_MOST_ABOUT = Decimal("0.1")  # how far off "about" may be


class SourceText:
    """Texts in which values are looked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        text = "\n".join(texts)
        if "\\" in text:  # strings of JSON
            text = f"{text}\n{_ESCAPE.sub(_unescaped, text)}"
        self._text = text
        self._folded = _folded(text)

    def contains(self, value: ClaimedValue) -> bool:
        """Whether the texts have the value."""
        return self.verdict(value) is True

    def verdict(self, value: ClaimedValue) -> bool | None:
        """Whether the texts have the value; None: it cannot be compared with them.

        That is so for names and quotations in another script or language, and for a count of what the texts do not
        count themselves.
        """
        match value.kind:
            case "number":
                return self._has_number(value.readings) or self._has_rounded(value)
            case "count":
                return self._counts(value)
            case "date":
                return self._has_date(value.days)
            case "name":
                return True if self._names.contain(value.text) else None if self._names.are_translated else False
        if self._has_quote(value.text) or self._has_quoted_number(value.text):
            return True
        return None if self._names.lack_script_of(value.text) else False

    def numbers_of(self, value: ClaimedValue) -> Iterator[Decimal]:
        """The readings of a number that the texts have, for what is computed from it."""
        for reading in value.readings:
            if len(reading) == 1 and (self._has_number((reading,)) or self._has_rounded(value)):
                yield reading[0]

    @cached_property
    def _plain(self) -> str:
        """The text in plain characters, with digits for numbers in words."""
        return digits_for_words(unicodedata.normalize("NFKC", self._text))

    @cached_property
    def _numbers(self) -> frozenset[Decimal]:
        text = unicodedata.normalize("NFKC", self._text)
        texts = (text,) if self._plain == text else (text, self._plain)
        values = {
            value for each in texts for number in numbers_in(each) for reading in number.readings for value in reading
        }
        if "[" in text or "," in text:  # [1,234] may be a list
            values |= {
                Decimal(digits)
                for match in _LIST.finditer(text)
                for digits in match[0].split(",")[:1_000]
                if len(digits) <= 40
            }
        return frozenset(values | {abs(value) for value in values})

    @cached_property
    def _sorted_numbers(self) -> list[Decimal]:
        return sorted(self._numbers)

    @cached_property
    def _days(self) -> frozenset[Day]:
        text = unicodedata.normalize("NFKC", self._text)
        return frozenset(day for date in dates_in(text) for day in date.readings)

    @cached_property
    def _names(self) -> SourceNames:
        return SourceNames(self._folded)

    @cached_property
    def _packed(self) -> str:
        return _PACKED.sub("", self._folded)

    def _has_number(self, readings: tuple[tuple[Decimal, ...], ...]) -> bool:
        return any(reading and self._numbers.issuperset(reading) for reading in readings)

    def _has_rounded(self, value: ClaimedValue) -> bool:
        """Whether a number of the texts is this one before it was rounded, to as many digits as a reader would expect.

        A number with decimals, a percentage or a magnitude may be rounded to two digits, a plain one to three; beside a
        word such as `about`, to one.
        """
        for number in (reading[0] for reading in value.readings if len(reading) == 1):
            low, high = _range(number, value.bound)
            if low is not None and high is not None:
                index = bisect_left(self._sorted_numbers, low)
                if index < len(self._sorted_numbers) and self._sorted_numbers[index] <= high:
                    return True
        return False

    def _counts(self, value: ClaimedValue) -> bool | None:
        if self._has_number(value.readings):
            return True
        stem = re.escape(value.counted if not value.counted.isascii() else value.counted.removesuffix("s"))
        before = re.findall(rf"(?i)(?<![\w.])([0-9]{{1,6}})\s?{stem}", self._plain)
        after = re.findall(rf"(?i)(?<!\w){re.escape(value.counted)}[\"']?\s*[:=]\s*([0-9]{{1,6}})", self._plain)
        numbers = [int(digits) for digits in (*before, *after)]
        if not numbers:
            return None  # they may have so many entries
        return int(value.text) in (sum(numbers), len(numbers))

    def _has_date(self, days: tuple[Day, ...]) -> bool:
        if self._days:
            return any(agree(day, other) for day in days for other in self._days)
        # its parts may stand in fields of their own
        return any(self._numbers.issuperset(Decimal(part) for part in day if part) for day in days)

    def _has_quoted_number(self, quoted: str) -> bool:
        numbers = list(numbers_in(unicodedata.normalize("NFKC", quoted)))
        if len(numbers) != 1 or any(char.isalpha() for char in quoted):
            return False
        return self._has_number(numbers[0].readings)

    def _has_quote(self, quoted: str) -> bool:
        at = 0
        for part in _ELLIPSIS.split(quoted):
            piece = _folded(part).strip(_EDGES)
            if not piece:
                continue
            start = _find(self._folded, piece, at)
            if start < 0:
                packed = _PACKED.sub("", piece)
                if len(packed) < _MIN_PACKED_CHARS or _find(self._packed, packed, 0) < 0:
                    return False
            else:
                at = start + len(piece)
        return True


def _range(number: Decimal, bound: Bound) -> tuple[Decimal | None, Decimal | None]:
    """What a number may stand for once it was rounded; (None, None): only for itself."""
    if not number.is_finite() or number == 0:
        return None, None
    if bound:
        number = number.normalize()
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or abs(exponent) > 60:
        return None, None
    unit = Decimal(1).scaleb(exponent)
    if bound == "over":
        return number, number + unit
    if bound == "under":
        return number - unit, number
    if bound == "about":
        half = min(unit / 2, abs(number) * _MOST_ABOUT)
    elif len(digits) >= (2 if exponent else 3):
        half = unit / 2
    else:
        return None, None
    return number - half, number + half


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text.translate(_SIMILAR)).casefold().split())


def _unescaped(match: re.Match[str]) -> str:
    code, space, char = match.groups()
    return chr(int(code, 16)) if code else " " if space else char


def _find(text: str, piece: str, start: int) -> int:
    """Where a piece stands in a text, not as a part of a longer word or number; -1 if nowhere."""
    at = text.find(piece, start)
    while at >= 0:
        end = at + len(piece)
        begins = at == 0 or not (_is_word_char(piece[0]) and _is_word_char(text[at - 1]))
        ends = end == len(text) or not (_is_word_char(piece[-1]) and _is_word_char(text[end]))
        if begins and ends:
            return at
        at = text.find(piece, at + 1)
    return -1


def _is_word_char(char: str) -> bool:
    return char.isascii() and char.isalnum()
