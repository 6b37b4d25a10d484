"""Charts as SVG, drawn on the server: stacked bars and lines over time.

The problem: a picture that is scaled to the width of a window has letters of a size that nobody can read at 360 px,
and one that is not scaled needs a script that draws it anew.

The idea: nothing is scaled. Places along the axis of time are per cent of the width, all else is in pixels, so the
letters keep their size at every width. A style sheet hides every second label where there is no room.

A chart is one picture for a screen reader, with a title and a description; the page puts the same numbers into a table
beside it. Series differ by their pattern and not by colour alone. There are only classes and presentation attributes,
no styles, as the content security policy of the panel demands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Literal

ChartKind = Literal["bars", "lines"]

Number = Callable[[float], str]
"""Writes a value of a chart."""

MOST_SERIES = 7
"""How many series a chart has patterns for; the caller adds the others up."""

_HEIGHT = 180
_TOP, _BOTTOM = 12, 28
_MOST_TICKS = 4
_MOST_LABELS = 6
_MOST_MARKERS = 45
_FEWEST_SLOTS = 8  # so that a single day is no wall
_LEAST_BAR = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The values of one thing over time."""

    name: str
    """What it is; any text."""

    values: Sequence[float | None]
    """A value for each label of the chart, 0 or more; None: it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart to be drawn. Of nothing (no labels) there is no picture; the page says so."""

    id: str
    """The id of the picture in its page: a word of ASCII letters and hyphens."""

    title: str
    """What it shows."""

    description: str
    """The same in a sentence with its main figures, for who cannot see it."""

    labels: Sequence[str]
    """The names of the places in time, such as `2027-01-31`."""

    short_labels: Sequence[str]
    """The same for the axis, where there is room for few signs."""

    series: Sequence[Series]
    """At most `MOST_SERIES`. Bars are stacked, the first one at the bottom."""

    kind: ChartKind = "bars"
    """How it is drawn."""

    number: Number = "{:g}".format
    """Writes a value, on the axis and in the texts."""

    unknown: str = "?"
    """What stands in texts for a value that is not known; in the picture it is a question mark."""

    is_whole: bool = False
    """Whether all values are whole numbers, and so is the axis."""

    top: float | None = None
    """The end of the axis; None: by the values."""

    def rows(self) -> Iterator[tuple[str, list[str]]]:
        """The table beside the picture: each label with the value of each series."""
        for index, label in enumerate(self.labels):
            yield label, [self._written(series.values[index]) for series in self.series]

    def svg(self) -> str:
        """The picture; "" where there is nothing to show."""
        if not self.labels or not self.series:
            return ""
        scale = _Scale.of(self)
        draw = self._bars if self.kind == "bars" else self._lines
        height = _TOP + _HEIGHT + _BOTTOM
        names = f'aria-labelledby="{self.id}-title {self.id}-desc"'
        parts = [
            f'<svg class="chart" id="{self.id}" width="100%" height="{height}" role="img" {names}>',
            f'<title id="{self.id}-title">{_text(self.title)}</title>',
            f'<desc id="{self.id}-desc">{_text(self.description)}</desc>',
            *(self._patterns() if self.kind == "bars" else ()),
            *self._axes(scale),
            *draw(scale),
            *self._hits(),
            "</svg>",
        ]
        return "".join(parts)

    def swatch(self, index: int) -> str:
        """A sample of a series, for the legend."""
        content = f'<rect width="16" height="12" {self._fill(index)}/>'
        if self.kind == "lines":
            content = f'<line x1="0" y1="6" x2="16" y2="6" class="line line-{index + 1}"/>' + _marker("8", 6, index)
        return f'<svg class="swatch" width="16" height="12" aria-hidden="true">{content}</svg>'

    def _written(self, value: float | None) -> str:
        return self.unknown if value is None else self.number(value)

    def _fill(self, index: int) -> str:
        return f'class="fill-{index + 1}"' if index == 0 else f'fill="url(#{self.id}-pattern-{index + 1})"'

    def _patterns(self) -> Iterator[str]:
        """The first series is plain; each other one has its colour and lines of its own."""
        yield "<defs>"
        for index in range(1, len(self.series)):
            size, lines, turn = _PATTERNS[index % len(_PATTERNS)]
            yield (
                f'<pattern id="{self.id}-pattern-{index + 1}" width="{size}" height="{size}" '
                f'patternUnits="userSpaceOnUse" patternTransform="rotate({turn})">'
                f'<rect width="{size}" height="{size}" class="fill-{index + 1}"/>{lines}</pattern>'
            )
        yield "</defs>"

    def _axes(self, scale: _Scale) -> Iterator[str]:
        for tick in scale.ticks:
            y = _px(scale.y(tick))
            yield f'<line class="grid" x1="0" y1="{y}" x2="100%" y2="{y}"/>'
            yield f'<text class="tick" x="-8" y="{y}" dy="0.32em" text-anchor="end">{_text(self.number(tick))}</text>'
        bottom = _TOP + _HEIGHT + 18
        count = len(self.labels)
        for number, index in enumerate(_label_places(count)):
            x, classes = (index + 0.5) / _slots(count), "tick tick-minor" if number % 2 else "tick"
            anchor = "start" if x < 0.04 else "end" if x > 0.96 else "middle"  # near an edge
            text = _text(self.short_labels[index])
            yield f'<text class="{classes}" x="{_percent(x)}" y="{bottom}" text-anchor="{anchor}">{text}</text>'

    def _bars(self, scale: _Scale) -> Iterator[str]:
        slot = 1 / _slots(len(self.labels))
        width = slot * (0.8 if len(self.labels) <= _MOST_MARKERS else 1.0)
        for index in range(len(self.labels)):
            x, base = index * slot + (slot - width) / 2, scale.y(0)
            for number, series in enumerate(self.series):
                value = series.values[index]
                if value is None:
                    continue
                height = max(scale.height(value), _LEAST_BAR) if value > 0 else 0
                if height:
                    base -= height
                    geometry = f'x="{_percent(x)}" y="{_px(base)}" width="{_percent(width)}" height="{_px(height)}"'
                    yield f"<rect {geometry} {self._fill(number)}/>"
            values = [series.values[index] for series in self.series]
            if None in values and not any(values) and slot * _MOST_MARKERS >= 1:
                centre = _percent(x + width / 2)
                y = _TOP + _HEIGHT - 6
                yield f'<text class="tick" x="{centre}" y="{y}" text-anchor="middle">?</text>'

    def _lines(self, scale: _Scale) -> Iterator[str]:
        count = len(self.labels)
        for number, series in enumerate(self.series):
            points = [
                (_percent((index + 0.5) / _slots(count)), scale.y(value)) if value is not None else None
                for index, value in enumerate(series.values)
            ]
            for before, after in pairwise(points):
                if before is not None and after is not None:
                    ends = f'x1="{before[0]}" y1="{_px(before[1])}" x2="{after[0]}" y2="{_px(after[1])}"'
                    yield f'<line class="line line-{number + 1}" {ends}/>'
            for index, point in enumerate(points):
                is_alone = (index == 0 or points[index - 1] is None) and (
                    index + 1 == count or points[index + 1] is None
                )
                if point is not None and (count <= _MOST_MARKERS or is_alone):
                    yield _marker(point[0], point[1], number)

    def _hits(self) -> Iterator[str]:
        """What a pointer shows of each place in time: all its values."""
        slot = 1 / _slots(len(self.labels))
        for index, (label, values) in enumerate(self.rows()):
            lines = [
                f"{series.name}: {value}"
                for series, value in zip(self.series, values, strict=True)
                if series.values[index] != 0 or len(self.series) == 1
            ]
            text = _text("\n".join((label, *lines)))
            geometry = f'x="{_percent(index * slot)}" y="{_TOP}" width="{_percent(slot)}" height="{_HEIGHT}"'
            yield f'<rect class="hit" {geometry}><title>{text}</title></rect>'


@dataclass(frozen=True, slots=True)
class _Scale:
    """The axis of values, from 0 to the last tick."""

    ticks: tuple[float, ...]

    @classmethod
    def of(cls, chart: Chart) -> _Scale:
        most = chart.top
        if most is None:
            columns = list(zip(*(series.values for series in chart.series), strict=True))
            known = [[value for value in column if value is not None] for column in columns]
            add = sum if chart.kind == "bars" else max
            most = max((add(column) for column in known if column), default=0)
        if most <= 0:
            return cls((0.0, 1.0))
        step = _nice(most / _MOST_TICKS)
        step = max(1.0, math.ceil(step)) if chart.is_whole else step
        return cls(tuple(step * number for number in range(math.ceil(most / step - 1e-9) + 1)))

    def height(self, value: float) -> float:
        """How many pixels a value is high."""
        return value / self.ticks[-1] * _HEIGHT

    def y(self, value: float) -> float:
        """Where a value is, in pixels from the top."""
        return _TOP + _HEIGHT - self.height(value)


_PATTERNS = (
    (6, "", 0),
    (6, '<rect class="ink" width="2" height="6"/>', 45),
    (6, '<rect class="ink" width="2" height="2"/>', 0),
    (6, '<rect class="ink" width="6" height="2"/>', 0),
    (6, '<rect class="ink" width="2" height="6"/>', 135),
    (6, '<rect class="ink" width="2" height="6"/>', 0),
    (5, '<rect class="ink" width="5" height="1"/><rect class="ink" width="1" height="5"/>', 0),
)
"""The lines of the pattern of each series: the size of its tile, what is in it, and how it is turned."""


def _marker(x: str, y: float, index: int) -> str:
    if index == 0:
        return f'<circle class="marker marker-1" cx="{x}" cy="{_px(y)}" r="3"/>'
    # A square: `x` is a share of the width, so half of its own is taken off by a transformation.
    geometry = f'x="{x}" y="{_px(y - 3)}" width="6" height="6" transform="translate(-3)"'
    return f'<rect class="marker marker-{index + 1}" {geometry}/>'


def _slots(count: int) -> int:
    return max(count, _FEWEST_SLOTS)


def _label_places(count: int) -> range:
    """The places that have a label: evenly spread, and few enough for a wide window."""
    return range(0, count, max(1, math.ceil(count / _MOST_LABELS)))


def _nice(step: float) -> float:
    """The smallest of 1, 2, 2.5 and 5 times a power of ten that is no smaller."""
    power = 10.0 ** math.floor(math.log10(step))
    return next((part * power for part in (1, 2, 2.5, 5) if part * power >= step * (1 - 1e-9)), 10 * power)


def _percent(share: float) -> str:
    return f"{share * 100:.3f}".rstrip("0").rstrip(".") + "%"


def _px(pixels: float) -> str:
    return f"{pixels:.2f}".rstrip("0").rstrip(".")


def _text(text: str) -> str:
    return escape("".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in text))
