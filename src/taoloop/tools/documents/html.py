"""The lines of an HTML file on which passages of its extracted text begin."""

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
_PASSAGE_CHARS = 200  # of a passage
_PHRASE_WORDS = (6, 3, 1)  # lengths of the phrases that are searched, two of each
_WINDOW_CHARS = 200_000  # how far after the previous passage
_MAX_MISSES = 100  # passages in a row without a match: then the source defeats the search
_MIN_WORD_CHARS = 4  # for a phrase of one word


def source_lines(source: str, passages: Iterable[str]) -> list[int]:
    """For each passage the line (from 1) of its first words in the source; 0 if they are not found.

    The passages are in the order of the source. Tags and entities count as spaces.
    """
    visible = _INVISIBLE.sub(lambda offset: " " * len(offset[0]), source)
    starts = line_starts(source)
    lines, search_start, misses = [], 0, 0
    for passage in passages:
        words = _WORD.findall(passage[:_PASSAGE_CHARS]) if misses < _MAX_MISSES else []
        offset = _find_passage(visible, words, search_start)
        misses = 0 if offset >= 0 else misses + 1
        if offset >= 0:
            search_start = offset
        lines.append(bisect_right(starts, offset) if offset >= 0 else 0)
    return lines


def _find_passage(visible: str, words: list[str], search_start: int) -> int:
    for size in _PHRASE_WORDS:
        for first in (0, size):
            phrase_words = words[first : first + size]
            if len(phrase_words) < size or (size == 1 and len(phrase_words[0]) < _MIN_WORD_CHARS):
                continue
            pattern = re.compile(
                r"[\W_]+".join(map(re.escape, phrase_words))
            )  # begins with a literal, so the search is fast
            if (match := pattern.search(visible, search_start, search_start + _WINDOW_CHARS)) is not None:
                return match.start()
    return -1
