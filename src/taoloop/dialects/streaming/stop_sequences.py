"""A text cut before the first of some stop sequences, as a provider cuts what it generates."""

from __future__ import annotations

from collections.abc import Sequence


def cut_at(text: str, stops: Sequence[str]) -> str:
    """`text` up to the sequence that is complete first; where two end at the same character, up to the longer one."""
    starts = [(text.find(stop), stop) for stop in stops if stop]
    ends = [(start + len(stop), start) for start, stop in starts if start >= 0]
    return text[: min(ends)[1]] if ends else text


class StopCutter:
    """The same for a text that comes in pieces: what may be the beginning of a sequence waits until that is clear.

    The work for a character does not grow with the text.

    Attributes:
        hit: A sequence was complete; every further piece is empty.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.hit = False
        self._stops = [(stop, _borders(stop)) for stop in dict.fromkeys(stops) if stop]
        self._matched = [0] * len(self._stops)  # how much of each sequence the text ends with
        self._pending = ""

    def feed(self, text: str) -> str:
        """The next piece that is before any sequence."""
        if self.hit:
            return ""
        if not self._stops:
            return text
        for index, char in enumerate(text):
            if complete := self._advance(char):
                self.hit = True
                before = self._pending + text[: index + 1]
                self._pending = ""
                return before[:-complete]
        text = self._pending + text
        certain = len(text) - max(self._matched)
        self._pending = text[certain:]
        return text[:certain]

    def flush(self) -> str:
        """What still waited, now that the text is at its end."""
        rest, self._pending = self._pending, ""
        self._matched = [0] * len(self._stops)
        return rest

    def _advance(self, char: str) -> int:
        """Take in one character; the length of the longest sequence that it completes, or 0."""
        complete = 0
        for index, (stop, borders) in enumerate(self._stops):
            matched = self._matched[index]
            while matched and stop[matched] != char:
                matched = borders[matched - 1]
            matched += stop[matched] == char
            if matched == len(stop):
                complete, matched = max(complete, matched), borders[-1]
            self._matched[index] = matched
        return complete


def _borders(stop: str) -> list[int]:
    """For each beginning of `stop`: how long its longest end is that is also a beginning (Knuth, Morris, Pratt)."""
    borders = [0] * len(stop)
    for end in range(1, len(stop)):
        size = borders[end - 1]
        while size and stop[size] != stop[end]:
            size = borders[size - 1]
        borders[end] = size + (stop[size] == stop[end])
    return borders
