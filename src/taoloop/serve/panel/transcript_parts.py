"""How the transcript of a run is cut into parts: those that a page has at once, and those that load when looked at.

Around the events that matter a few are in the page, their neighbours load in sections, and what is far away in chapters
that become sections. So the first screen of a run of 10,000 steps is as small as that of one of ten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

SECTION: Final = 100
"""How many events load together."""

CHAPTER: Final = 10 * SECTION
"""How many events far away have one place in the page, which becomes sections once it is looked at."""

SHOWN: Final = 24
"""How many events are in the page at once around one that matters: more than a screen has."""

_SMALL = 50  # a section with so few events is not cut
_BEFORE = 4  # of the shown events


class TranscriptPart(NamedTuple):
    """Some events of a run that have one place in its page."""

    first: int
    """The seq of the first one."""
    last: int
    """The seq of the last one."""
    is_shown: bool = False
    """Whether they are in the page at once."""

    @property
    def is_chapter(self) -> bool:
        """Whether it becomes sections before its events are loaded."""
        return self.last - self.first >= SECTION

    @property
    def tens(self) -> int:
        """How many tens of events it has at most, for the height of its place."""
        return (self.last - self.first) // 10 + 1


def cut_transcript(first: int, last: int, shown: Collection[int]) -> list[TranscriptPart]:
    """The parts from one event to another, in order; those with the events `shown` are there at once."""
    parts: list[TranscriptPart] = []
    for start, end in _pieces(first, last, CHAPTER):
        if not any(start <= seq <= end for seq in shown):
            parts.append(TranscriptPart(start, end))
            continue
        parts += cut_chapter(start, end, shown)
    return parts


def cut_chapter(first: int, last: int, shown: Collection[int]) -> list[TranscriptPart]:
    """The same of a chapter that is looked at: all of it in sections."""
    parts: list[TranscriptPart] = []
    for start, end in _pieces(first, last, SECTION):
        parts += _cut_section(start, end, sorted(seq for seq in shown if start <= seq <= end))
    return parts


def _pieces(first: int, last: int, size: int) -> Iterator[tuple[int, int]]:
    """The first and last events of the pieces, whose places are multiples of their size."""
    for start in range(first - first % size, last + 1, size):
        yield max(first, start), min(last, start + size - 1)


def _cut_section(first: int, last: int, shown: list[int]) -> Iterator[TranscriptPart]:
    if shown and last - first < _SMALL:
        yield TranscriptPart(first, last, is_shown=True)
        return
    at = first
    for seq in shown:
        if seq < at:  # it is among those around the one before
            continue
        begin = max(at, min(seq - _BEFORE, last - SHOWN + 1))
        end = min(last, begin + SHOWN - 1)
        if at < begin:
            yield TranscriptPart(at, begin - 1)
        yield TranscriptPart(begin, end, is_shown=True)
        at = end + 1
    if at <= last:
        yield TranscriptPart(at, last)
