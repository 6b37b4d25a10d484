"""Texts as bags of concepts: English words (stemmed) and Chinese words (longest match, else pairs of characters)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from taoloop.models.offline.lexicon import CHINESE, ENGLISH, STOP_CHINESE, STOP_ENGLISH

_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_RUN = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*|[\u3400-\u9fff\uf900-\ufaff]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST_CHINESE = max(map(len, CHINESE))
_AREAL = re.compile(r"\bsquare\s+(?=(?:k|c|m)?m\b|kilomet|met|mile|f[eo][eo]t\b|inch|yard)", re.IGNORECASE)
_STOP_CHINESE = frozenset(STOP_CHINESE)
_NOUN_OF_NUMBER = "数"
"""Behind a word that the lexicon does not know it is that word's end (公约数), not the verb."""
MOST_CHARS = 4_000


def is_chinese(text: str) -> bool:
    """True if the text holds a Chinese character."""
    return _CJK.search(text) is not None


@lru_cache(maxsize=4096)
def concepts(text: str) -> tuple[str, ...]:
    """What a text is about, each once, in order: `@concept` where the lexicon knows a word, else the word's stem."""
    found: dict[str, None] = {}
    last = ""
    for match in _RUN.finditer(_AREAL.sub("area ", text[:MOST_CHARS])):
        run = match.group()
        if run[0].isascii():
            word = run.lower()
            found.update(dict.fromkeys(ENGLISH.get(f"{last} {word}", ())))
            found.update(dict.fromkeys(_english(word)))
            last = word
        else:
            found.update(dict.fromkeys(_chinese(run)))
            last = ""
    return tuple(found)


@lru_cache(maxsize=4096)
def name_words(name: str) -> tuple[str, ...]:
    """The lower-case words in an identifier: `fromCurrency`, `from_currency` and `from-currency` give the same."""
    return tuple(word.lower() for word in re.findall(r"[A-Za-z]+|[^\W\d_A-Za-z]+", _CAMEL.sub("_", name[:200])))


@lru_cache(maxsize=4096)
def name_concepts(name: str) -> tuple[str, ...]:
    """What an identifier is about."""
    return concepts(" ".join(name_words(name)))


def stem(word: str) -> str:
    """A light stem: `books`, `searching` and `converted` lose their endings."""
    for ending, least in (("ies", 5), ("ing", 6), ("ed", 5), ("es", 6), ("s", 4)):
        if word.endswith(ending) and len(word) >= least and not word.endswith("ss"):
            cut = word[: -len(ending)]
            if ending == "ies":
                return cut + "y"
            if ending in ("ing", "ed") and len(cut) > 3 and cut[-1] == cut[-2] and cut[-1] not in "ls":
                return cut[:-1]
            return cut
    return word


def _english(word: str) -> tuple[str, ...]:
    if word in STOP_ENGLISH and word not in ENGLISH:
        return ()
    base = stem(word)
    for form in (word, base, base + "e", word.removesuffix("s")):
        if form in ENGLISH:
            return ENGLISH[form]
    return () if len(base) < 2 or base in STOP_ENGLISH else (base.rstrip("e") or base,)


def _chinese(run: str) -> list[str]:
    found: list[str] = []
    rest, place = "", 0
    while place < len(run):
        size = _longest(run, place)
        if size == 0 or (rest and run[place : place + size] == _NOUN_OF_NUMBER):
            rest += run[place]
            place += 1
            continue
        found += _pairs(rest)
        rest = ""
        found += CHINESE.get(run[place : place + size], ())
        place += size
    return found + _pairs(rest)


def _longest(run: str, place: int) -> int:
    for size in range(min(_LONGEST_CHINESE, len(run) - place), 0, -1):
        piece = run[place : place + size]
        if piece in CHINESE or piece in _STOP_CHINESE:
            return size
    return 0


def _pairs(rest: str) -> list[str]:
    return [rest[i : i + 2] for i in range(len(rest) - 1)]


class Segment(NamedTuple):
    """A word in its place: `idle` if it says nothing by itself."""

    start: int
    end: int
    about: tuple[str, ...]
    idle: bool


def segments(text: str) -> list[Segment]:
    """The words of a text in order; Chinese that the lexicon does not know stays in one piece."""
    found: list[Segment] = []
    for match in _RUN.finditer(text[:MOST_CHARS]):
        run, base = match.group(), match.start()
        if run[0].isascii():
            about = _english(run.lower())
            found.append(Segment(base, match.end(), about, not about))
            continue
        place = begun = 0
        while place < len(run):
            size = _longest(run, place)
            if size:
                if begun < place:
                    found.append(Segment(base + begun, base + place, (), False))
                word = run[place : place + size]
                about = CHINESE.get(word, ())
                found.append(Segment(base + place, base + place + size, about, not about))
                begun = place + size
            place += size or 1
        if begun < len(run):
            found.append(Segment(base + begun, base + len(run), (), False))
    return _without_second_units(found)


def _without_second_units(found: list[Segment]) -> list[Segment]:
    """Behind one unit there is no other: in "150 克米饭" the second begins a word that the lexicon does not know."""
    kept: list[Segment] = []
    for place, word in enumerate(found):
        before = kept[-1] if kept else None
        if before is not None and "@unit" in word.about and word.end - word.start == 1 and place + 1 < len(found):
            after = found[place + 1]
            if "@unit" in before.about and before.end == word.start and after.start == word.end and not after.about:
                kept.append(Segment(word.start, word.end, (), False))
                continue
        begun = before is not None and not (before.about or before.idle) and before.end == word.start
        if before is not None and begun and not (word.about or word.idle):
            kept[-1] = Segment(before.start, word.end, (), False)
            continue
        kept.append(word)
    return kept
