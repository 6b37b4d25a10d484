"""Names in an observation: in any case, with or without accents, in another order, as an abbreviation.

A name in another script or language than the observation cannot be compared without a model: `Munich` for München.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property

from taoloop.core.text import lazy_pattern

_SCRIPT = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # written without spaces
_WORD = lazy_pattern(rf"[^\W_{_SCRIPT}]+|[{_SCRIPT}]")
_OTHER_SCRIPT = lazy_pattern(rf"[{_SCRIPT}\u0370-\u06ff\u0900-\u0dff\u0e00-\u0e7f]")
_LATIN = lazy_pattern(r"[a-z\u00c0-\u024f]")
_KEY = lazy_pattern(r"'[\w -]{1,40}'\s*:")  # of JSON, which is English in any language
_OTHER_LANGUAGE = lazy_pattern(
    r"(?<!\w)(?:der|das|und|ist|nicht|eine[nrms]?|mit|für|im|von|les?|des|une?|est|dans|pour|los|las|una|del|está|para"
    r"|della|sono|il|gli|een|het|och|är|jest|na|w)(?!\w)"
)
_ENGLISH = lazy_pattern(r"(?<!\w)(?:the|and|is|of|in|was|are|to|for|with|has|from)(?!\w)")
_MIN_FOREIGN_WORDS = 2
_WINDOW = 8  # words between the parts of a name that stands in another order, or with a part between them
_MIN_STEM, _MOST_ENDING = 5, 3
_SKIPPED = frozenset({"of", "the", "and", "for", "de", "du", "des", "la"})


def is_identifier(name: str) -> bool:
    """Whether a name has one form only, in any language: digits, an underscore, an address, a path or a file name."""
    return any(char.isdigit() or char in "_@./" for char in name)


class SourceNames:
    """The words of an observation, in which names are looked for."""

    def __init__(self, folded: str) -> None:
        self._folded = folded

    def contain(self, name: str) -> bool:
        """Whether a name or an identifier is among the words: as they stand, abbreviated, or with another ending."""
        words = _WORD.findall(_fold_accents(name.casefold()))
        if not words or f" {' '.join(words)} " in self._phrases:
            return True
        if is_identifier(name):
            return False
        if len(words) == 1:
            return self._has_form(words[0]) or (name.isupper() and self._has_initials(words[0]))
        return self._has_near(words) or "".join(word[0] for word in words if word not in _SKIPPED) in self._known

    @cached_property
    def are_translated(self) -> bool:
        """Whether the observation is in another language than English, so that its names may be other ones there."""
        text = _KEY.sub("", self._folded)
        if _OTHER_SCRIPT.search(text) is not None:
            return True
        return len(set(_OTHER_LANGUAGE.findall(text))) >= _MIN_FOREIGN_WORDS and not _ENGLISH.search(text)

    def lack_script_of(self, quoted: str) -> bool:
        """Whether a quotation is in a script in which nothing is written here, so that it can only be a translation."""
        text = _KEY.sub("", self._folded)
        if _OTHER_SCRIPT.search(quoted.casefold()):
            return _OTHER_SCRIPT.search(text) is None and _LATIN.search(text) is not None
        return _LATIN.search(quoted.casefold()) is not None and _LATIN.search(text) is None and bool(text.strip())

    @cached_property
    def _words(self) -> list[str]:
        return _WORD.findall(_fold_accents(self._folded))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self._words)

    @cached_property
    def _phrases(self) -> str:
        return f" {' '.join(self._words)} "

    @cached_property
    def _initials(self) -> str:
        return "".join(word[0] for word in self._words if word not in _SKIPPED)

    def _has_form(self, word: str) -> bool:
        """Whether the word is there with another ending: a plural, or `German` for Germany."""
        if word.removesuffix("s") in self._known or f"{word}s" in self._known:
            return True
        return any(
            min(len(word), len(other)) >= _MIN_STEM
            and abs(len(word) - len(other)) <= _MOST_ENDING
            and (word.startswith(other) or other.startswith(word))
            for other in self._known
        )

    def _has_initials(self, word: str) -> bool:
        return len(word) > 1 and word in self._initials

    def _has_near(self, words: list[str]) -> bool:
        wanted = set(words)
        for index, word in enumerate(self._words):
            if word == words[0]:
                nearby = self._words[max(0, index - _WINDOW) : index + _WINDOW + 1]
                if wanted.issubset(nearby):
                    return True
        return False


def _fold_accents(text: str) -> str:
    """Without accents: Zürich is Zurich."""
    if text.isascii():
        return text
    return re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFKD", text))
