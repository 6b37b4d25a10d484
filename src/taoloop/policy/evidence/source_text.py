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
from taoloop.policy.evidence.names import SourceNames, is_identifier
from taoloop.policy.evidence.number_words import dates_in_digits, digits_for_words
from taoloop.policy.evidence.numbers import NumberText, numbers_in, plain_characters
from taoloop.policy.evidence.units import Unit, unit_beside

_ESCAPE = lazy_pattern(r"\\(?:u([0-9a-fA-F]{4})|([nrtbf])|([\"\\/]))")
_ELLIPSIS = lazy_pattern(r"\s*[\[(]?(?:…+|\.{3,})[\])]?\s*")
_LIST = lazy_pattern(r"[0-9]+(?:,[0-9]+)+")
_SIMILAR = str.maketrans(
    dict.fromkeys('\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f"', "'")
    | dict.fromkeys("\u2018\u2019\u201a\u2039\u203a`", "'")
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
)
_PACKED_DATE = lazy_pattern(
    r"(?<![0-9A-Za-z.])((?:19|20)[0-9]{2})(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])(?![0-9A-Za-z])"
)
_DENIES_NEXT = lazy_pattern(r"(?:\b(?:not|never)|n't)\s+['(]?$|[不未没無无非]['(]?$")
_PHONE = lazy_pattern(r"\+[0-9](?:[ ()/.-]{0,2}[0-9]){5,18}")
_NOISY_DIGITS, _SURE_DIGITS = 15, 12  # of a binary fraction, such as 0.30000000000000004
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
                return self._has_amount(value)
            case "count":
                return self._counts(value)
            case "date":
                return self._has_date(value.days)
            case "name":
                if self._names.contain(value.text):
                    return True
                return None if self._names.are_translated and not is_identifier(value.text) else False
        if (
            self._has_quote(value.text, also_denied=value.is_denied)
            or self._has_quoted_number(value.text)
            or self._has_phone(value.text)
        ):
            return True
        return None if self._names.lack_script_of(value.text) else False

    def numbers_of(self, value: ClaimedValue) -> Iterator[Decimal]:
        """The readings of a number that the texts have, for what is computed from it."""
        for reading in value.readings:
            if len(reading) == 1 and self._has_amount(value._replace(readings=(reading,))):
                yield reading[0]

    @cached_property
    def _as_written(self) -> str:
        """The text in plain characters."""
        return plain_characters(self._text)

    @cached_property
    def _plain(self) -> str:
        """The same with digits for numbers in words."""
        return digits_for_words(self._as_written)

    @cached_property
    def _number_texts(self) -> list[tuple[str, NumberText]]:
        """The numbers as they are written and, where some are in words, as digits; each with its text."""
        texts = dict.fromkeys((self._as_written, self._plain))
        return [(text, number) for text in texts for number in numbers_in(text)]

    @cached_property
    def _numbers(self) -> _Numbers:
        return _Numbers(self._values())

    def _values(self, without: str = "") -> frozenset[Decimal]:
        """The numbers; `without` those beside which a unit of this kind stands."""
        text = self._as_written
        others = {id(number) for number, unit in self._measures if unit.kind == without} if without else ()
        values = {
            value
            for _, number in self._number_texts
            if id(number) not in others
            for reading in number.readings
            for value in reading
        }
        if "[" in text or "," in text:  # [1,234] may be a list
            values |= {
                Decimal(digits)
                for match in _LIST.finditer(text)
                for digits in match[0].split(",")[:1_000]
                if len(digits) <= 40
            }
        values |= {_without_noise(value) for value in values if len(value.as_tuple().digits) >= _NOISY_DIGITS}
        return frozenset(values | {abs(value) for value in values})

    @cached_property
    def _measures(self) -> list[tuple[NumberText, Unit]]:
        """The numbers with a known unit beside them."""
        units = ((number, unit_beside(text, number.start, number.end)) for text, number in self._number_texts)
        return [(number, unit) for number, unit in units if unit is not None]

    @cached_property
    def _days(self) -> frozenset[Day]:
        text = dates_in_digits(self._as_written)
        packed = (Day(*map(int, match.groups())) for match in _PACKED_DATE.finditer(text))
        return frozenset((*(day for date in dates_in(text) for day in date.readings), *packed))

    @cached_property
    def _names(self) -> SourceNames:
        return SourceNames(self._folded)

    @cached_property
    def _packed(self) -> str:
        return _PACKED.sub("", self._folded)

    def _has_number(self, readings: tuple[tuple[Decimal, ...], ...]) -> bool:
        return self._numbers.have(readings)

    def _has_amount(self, value: ClaimedValue) -> bool:
        """Whether the texts have a number, exact or rounded, and with no other unit of its kind beside it."""
        if value.unit is None or not any(unit.kind == value.unit.kind for _, unit in self._measures):
            return self._numbers.have(value.readings) or self._numbers.have_rounded(value)
        if self._has_measure(value, value.unit):
            return True
        others = _Numbers(self._values(without=value.unit.kind))
        return others.have(value.readings) or others.have_rounded(value)

    def _has_measure(self, claimed: ClaimedValue, wanted: Unit) -> bool:
        """Whether the texts have this much in the unit of a number, or in one that can be converted to it."""
        amounts = [
            value * unit.factor / wanted.factor
            for number, unit in self._measures
            if (unit.kind, unit.base) == (wanted.kind, wanted.base)
            for amount in number.amounts
            for value in (amount, abs(amount))
        ]
        for number in claimed.amounts:
            low, high = _range(number, claimed.bound)
            if number in amounts or (low is not None and high is not None and any(low <= a <= high for a in amounts)):
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
        return any(self._numbers.values.issuperset(Decimal(part) for part in day if part) for day in days)

    def _has_quoted_number(self, quoted: str) -> bool:
        numbers = list(numbers_in(plain_characters(quoted)))
        if len(numbers) != 1 or any(char.isalpha() for char in quoted):
            return False
        return self._has_number(numbers[0].readings)

    def _has_phone(self, quoted: str) -> bool:
        """Whether a telephone number with a country code is there, however its digits are grouped."""
        if _PHONE.fullmatch(quoted) is None:
            return False
        wanted = [char for char in quoted if char.isdigit()]
        return any(wanted == [char for char in match[0] if char.isdigit()] for match in _PHONE.finditer(self._folded))

    def _has_quote(self, quoted: str, *, also_denied: bool) -> bool:
        """Whether the texts have a quotation; one that only follows a `not` there is what they deny."""
        at = 0
        for part in _ELLIPSIS.split(quoted):
            piece = _folded(part).strip(_EDGES)
            if not piece:
                continue
            start = _find(self._folded, piece, at)
            while start > 0 and not also_denied and _DENIES_NEXT.search(self._folded[max(0, start - 8) : start]):
                if (start := _find(self._folded, piece, start + 1)) < 0:
                    return False
            if start < 0:
                packed = _PACKED.sub("", piece)
                if len(packed) < _MIN_PACKED_CHARS or _find(self._packed, packed, 0) < 0:
                    return False
            else:
                at = start + len(piece)
        return True


class _Numbers:
    """Numbers in which others are looked for."""

    def __init__(self, values: frozenset[Decimal]) -> None:
        self.values = values

    def have(self, readings: tuple[tuple[Decimal, ...], ...]) -> bool:
        """Whether all values of one of the readings are among them."""
        return any(reading and self.values.issuperset(reading) for reading in readings)

    def have_rounded(self, value: ClaimedValue) -> bool:
        """Whether one of them is this one before it was rounded, to as many digits as a reader would expect.

        A number with decimals, a percentage or a magnitude may be rounded to two digits, a plain one to three; beside a
        word such as `about`, to one.
        """
        for number in (reading[0] for reading in value.readings if len(reading) == 1):
            low, high = _range(number, value.bound)
            if low is not None and high is not None:
                index = bisect_left(self._sorted, low)
                if index < len(self._sorted) and self._sorted[index] <= high:
                    return True
        return False

    @cached_property
    def _sorted(self) -> list[Decimal]:
        return sorted(self.values)


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


def _without_noise(number: Decimal) -> Decimal:
    """A number without the error of a binary fraction in its last digits."""
    return number if number.is_zero() else round(number, _SURE_DIGITS - 1 - number.adjusted())


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
