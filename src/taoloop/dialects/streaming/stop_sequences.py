"""A text cut before the first of some stop sequences, as a provider cuts what it generates."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def cut_at(text: str, stops: Sequence[str]) -> str:
    """`text` up to the sequence that is complete first; where two end at the same sign, up to the longer one."""
    found = [(text.find(stop), stop) for stop in stops if stop]
    ends = [(start + len(stop), start) for start, stop in found if start >= 0]
    return text[: min(ends)[1]] if ends else text


class StopCutter:
    """The same for a text that comes in pieces: the beginning of a sequence is held back until it is clear.

    `hit`: a sequence was found, and nothing more is given. The work for a sign does not grow with the text.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.hit = False
        self._stops = [(stop, _borders(stop)) for stop in dict.fromkeys(stops) if stop]
        self._matched = [0] * len(self._stops)  # how much of each sequence the text ends with
        self._held = ""

    def feed(self, text: str) -> str:
        """The next piece that is before any sequence."""
        if self.hit:
            return ""
        if not self._stops:
            return text
        for number, sign in enumerate(text):
            complete = self._see(sign)
            if complete:
                self.hit = True
                given = self._held + text[: number + 1]
                self._held = ""
                return given[:-complete]
        given = self._held + text
        held = max(self._matched)
        self._held = given[len(given) - held :]
        return given[: len(given) - held]

    def flush(self) -> str:
        """What was held back, now that the text is at its end."""
        held, self._held = self._held, ""
        self._matched = [0] * len(self._stops)
        return held

    def _see(self, sign: str) -> int:
        """Go on by one sign; the length of the longest sequence that it completes, or 0."""
        complete = 0
        for at, (stop, borders) in enumerate(self._stops):
            matched = self._matched[at]
            while matched and stop[matched] != sign:
                matched = borders[matched - 1]
            matched += stop[matched] == sign
            if matched == len(stop):
                complete, matched = max(complete, matched), borders[-1]
            self._matched[at] = matched
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
