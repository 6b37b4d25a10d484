"""Finding the lines of an HTML file on which passages of its extracted text begin."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from taoloop.tools.documents.chunking import line_starts

_INVISIBLE = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|template|head)\b.*?(?:</\1\s*>|\Z)|<[^<>]{0,5000}>|&#?\w{1,32};?",
    re.DOTALL | re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_LOOKED_AT_CHARS = 200  # of a passage
_SIZES = (6, 3, 1)  # how many of its words are looked for, twice each
_WINDOW_CHARS = 200_000  # how far behind the passage before it
_MISSED = 100  # passages in a row that are not found: the source is written so that none will be
_LONE_CHARS = 4  # a word that is looked for alone is at least as long


def source_lines(source: str, passages: Iterable[str]) -> list[int]:
    """For each passage the line (from 1) where its first words stand in the source, 0 where they are not found.

    The passages come in the order of the source. Marks and entities count as spaces.
    """
    seen = _INVISIBLE.sub(lambda found: " " * len(found[0]), source)
    starts = line_starts(source)
    lines, place, missed = [], 0, 0
    for passage in passages:
        words = _WORD.findall(passage[:_LOOKED_AT_CHARS]) if missed < _MISSED else []
        found = _find(seen, words, place)
        missed = 0 if found >= 0 else missed + 1
        if found >= 0:
            place = found
        lines.append(bisect_right(starts, found) if found >= 0 else 0)
    return lines


def _find(seen: str, words: list[str], place: int) -> int:
    for size in _SIZES:
        for first in (0, size):
            some = words[first : first + size]
            if len(some) < size or (size == 1 and len(some[0]) < _LONE_CHARS):
                continue
            pattern = re.compile(r"[\W_]+".join(map(re.escape, some)))  # begins with a literal: quick to look for
            if (found := pattern.search(seen, place, place + _WINDOW_CHARS)) is not None:
                return found.start()
    return -1
