"""Two sequences of actions side by side, so that equal actions meet although others were added or left out. Pure.

The problem: a step that one run has in addition moves all that follow, and a comparison by number then finds nothing
equal. An optimal alignment takes quadratic time, which 10,000 steps do not allow. The idea is that of patience diff
(Bram Cohen): an equal beginning and end are matched as they are, then actions that both sides have exactly once are
anchors, of which the most that are in the same order count. The short gaps between them get an optimal alignment
(Needleman and Wunsch 1970) that prefers equal actions to equal tools, and equal tools to a mere pair. The invariants:
each index of both sides appears exactly once, in its order; the time is O(n log n) and the cells of `MAX_CELLS`.
Tested in tests/core/views/test_action_alignment.py.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

MAX_CELLS = 300_000
"""How many pairs of actions are tried at most, in all gaps together: about 0.1 s."""

_EQUAL, _SAME_TOOLS, _PAIR = 8, 3, 1  # what a pair is worth; an action without a counterpart is worth nothing
_BOTH, _ONLY_FIRST, _ONLY_SECOND = 0, 1, 2  # what an optimal alignment begins with


class StepAction(NamedTuple):
    """What a step did, as far as it is compared."""

    key: str
    """Equal for equal actions: the same tools with the same arguments."""

    tools: str
    """Equal for the same tools, whatever their arguments."""


Pair = tuple[int | None, int | None]
"""Two indexes that belong together; None where a side has no counterpart."""


class Alignment(NamedTuple):
    """Two sequences side by side."""

    pairs: list[Pair]
    """Every index of both, in order."""

    is_complete: bool
    """False where a gap was too long to be searched: its actions are paired in their order."""


def align_actions(first: Sequence[StepAction], second: Sequence[StepAction]) -> Alignment:
    """Put two sequences of actions side by side."""
    aligner = _Aligner(first, second)
    start, stops = _trim(first, second, (0, len(first)), (0, len(second)))
    aligner.pairs += [(index, index) for index in range(start)]
    at_first = at_second = start
    for index, other in (*_anchors(first, second, start, stops), stops):
        aligner.fill((at_first, index), (at_second, other))
        at_first, at_second = index, other
    aligner.pairs += zip(range(stops[0], len(first)), range(stops[1], len(second)), strict=True)
    return Alignment(aligner.pairs, aligner.is_complete)


Range = tuple[int, int]


def _trim(
    first: Sequence[StepAction], second: Sequence[StepAction], ours: Range, theirs: Range
) -> tuple[int, tuple[int, int]]:
    """How long both ranges begin alike, and where their equal ends begin."""
    length = 0
    most = min(ours[1] - ours[0], theirs[1] - theirs[0])
    while length < most and first[ours[0] + length].key == second[theirs[0] + length].key:
        length += 1
    stop, other_stop = ours[1], theirs[1]
    while stop > ours[0] + length and other_stop > theirs[0] + length:
        if first[stop - 1].key != second[other_stop - 1].key:
            break
        stop, other_stop = stop - 1, other_stop - 1
    return length, (stop, other_stop)


def _anchors(
    first: Sequence[StepAction], second: Sequence[StepAction], start: int, stops: tuple[int, int]
) -> list[tuple[int, int]]:
    """The most actions that both sides have once, in the same order: a longest increasing subsequence."""
    ours = Counter(action.key for action in first[start : stops[0]])
    theirs = Counter(action.key for action in second[start : stops[1]])
    places = {second[index].key: index for index in range(start, stops[1])}
    lowest: list[int] = []  # for each length, the lowest last place of a subsequence of that length
    ends: list[int] = []  # the index of the action with that place
    before: dict[int, int | None] = {}
    for index in range(start, stops[0]):
        key = first[index].key
        if ours[key] != 1 or theirs[key] != 1:
            continue
        length = bisect_left(lowest, places[key])
        lowest[length : length + 1], ends[length : length + 1] = [places[key]], [index]
        before[index] = ends[length - 1] if length else None
    anchors = list[tuple[int, int]]()
    last = ends[-1] if ends else None
    while last is not None:
        anchors.append((last, places[first[last].key]))
        last = before[last]
    return anchors[::-1]


class _Aligner:
    """Collects the pairs of one alignment, and counts what it costs."""

    def __init__(self, first: Sequence[StepAction], second: Sequence[StepAction]) -> None:
        self.pairs: list[Pair] = []
        self.is_complete = True
        self._first, self._second = first, second
        self._cells_left = MAX_CELLS

    def fill(self, ours: Range, theirs: Range) -> None:
        """Add the pairs of a gap."""
        length, stops = _trim(self._first, self._second, ours, theirs)
        self.pairs += zip(range(ours[0], ours[0] + length), range(theirs[0], theirs[0] + length), strict=True)
        self._search((ours[0] + length, stops[0]), (theirs[0] + length, stops[1]))
        self.pairs += zip(range(stops[0], ours[1]), range(stops[1], theirs[1]), strict=True)

    def _search(self, ours: Range, theirs: Range) -> None:
        rows, columns = ours[1] - ours[0], theirs[1] - theirs[0]
        cells = rows * columns
        if not cells or cells > self._cells_left:
            self.is_complete &= not cells
            paired = min(rows, columns)
            self.pairs += [(ours[0] + offset, theirs[0] + offset) for offset in range(paired)]
            self.pairs += [(index, None) for index in range(ours[0] + paired, ours[1])]
            self.pairs += [(None, index) for index in range(theirs[0] + paired, theirs[1])]
            return
        self._cells_left -= cells
        steps = self._best_steps(ours, theirs)
        index, other = ours[0], theirs[0]
        while index < ours[1] or other < theirs[1]:
            step = _ONLY_SECOND if index == ours[1] else _ONLY_FIRST if other == theirs[1] else None
            if step is None:
                step = steps[(index - ours[0]) * columns + other - theirs[0]]
            self.pairs.append((None if step == _ONLY_SECOND else index, None if step == _ONLY_FIRST else other))
            index, other = index + (step != _ONLY_SECOND), other + (step != _ONLY_FIRST)

    def _best_steps(self, ours: Range, theirs: Range) -> bytearray:
        """For each pair of indexes, row by row, what an optimal alignment of the two rests begins with."""
        others = self._second[theirs[0] : theirs[1]]
        columns = len(others)
        steps = bytearray((ours[1] - ours[0]) * columns)
        below = [0] * (columns + 1)
        for index in range(ours[1] - 1, ours[0] - 1, -1):
            key, tools = self._first[index]
            worth = [0] * (columns + 1)
            row, right = (index - ours[0]) * columns, 0
            for column in range(columns - 1, -1, -1):
                other_key, other_tools = others[column]
                value = _EQUAL if key == other_key else _SAME_TOOLS if tools == other_tools else _PAIR
                best, step = below[column + 1] + value, _BOTH
                if below[column] > best:
                    best, step = below[column], _ONLY_FIRST
                if right > best:
                    best, step = right, _ONLY_SECOND
                worth[column] = right = best
                steps[row + column] = step
            below = worth
        return steps
