"""What an observation says, in the forms in which quotations, numbers and names are looked for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from functools import cached_property

from taoloop.core.text import lazy_pattern
from taoloop.policy.evidence.claims import ClaimedValue
from taoloop.policy.evidence.numbers import numbers_in

_SCRIPT = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # written without spaces
_WORD = lazy_pattern(rf"[^\W_{_SCRIPT}]+|[{_SCRIPT}]")
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
_WINDOW = 8  # words between the parts of a name that stands in another order, or with a part between them


class SourceText:
    """Texts in which values are looked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        text = "\n".join(texts)
        if "\\" in text:  # strings of JSON
            text = f"{text}\n{_ESCAPE.sub(_unescaped, text)}"
        self._text = text
        self._folded = _folded(text)

    def contains(self, value: ClaimedValue) -> bool:
        """Whether the texts have the value: a quotation literally, a number by value, a name as words."""
        if value.kind == "number":
            return self._has_number(value.readings)
        if value.kind == "name":
            return self._has_name(value.text)
        return self._has_quote(value.text) or self._has_quoted_number(value.text)

    @cached_property
    def _numbers(self) -> frozenset[Decimal]:
        text = unicodedata.normalize("NFKC", self._text)
        values = {value for number in numbers_in(text) for reading in number.readings for value in reading}
        if "[" in text or "," in text:  # [1,234] may be a list
            values |= {
                Decimal(digits)
                for match in _LIST.finditer(text)
                for digits in match[0].split(",")[:1_000]
                if len(digits) <= 40
            }
        return frozenset(values | {abs(value) for value in values})

    @cached_property
    def _words(self) -> list[str]:
        return _WORD.findall(self._folded)

    @cached_property
    def _phrases(self) -> str:
        return f" {' '.join(self._words)} "

    @cached_property
    def _packed(self) -> str:
        return _PACKED.sub("", self._folded)

    def _has_number(self, readings: tuple[tuple[Decimal, ...], ...]) -> bool:
        return any(reading and self._numbers.issuperset(reading) for reading in readings)

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

    def _has_name(self, name: str) -> bool:
        words = _WORD.findall(_folded(name))
        if not words or f" {' '.join(words)} " in self._phrases:
            return True
        if len(words) == 1 or any(char.isdigit() for char in name) or "_" in name or "@" in name:
            return False
        wanted = set(words)
        for index, word in enumerate(self._words):
            if word == words[0]:
                nearby = self._words[max(0, index - _WINDOW) : index + _WINDOW + 1]
                if wanted.issubset(nearby):
                    return True
        return False


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
