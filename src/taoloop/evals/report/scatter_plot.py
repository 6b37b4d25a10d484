"""Success over cost, steps or latency as SVG: a point with both intervals for each configuration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from taoloop.evals.report.markup import inert, tag
from taoloop.evals.report.plots import QUARTERS, percent
from taoloop.evals.results import MetricValue

_TOP_PX, _BASE_PX, _HEIGHT_PX = 8, 250, 280
_NOMINAL_WIDTH_PX = 330  # keeps labels apart; the plot itself has any width
_LABEL_WIDTH_PX, _LABEL_HEIGHT_PX = 15, 13
_RADII_PX = (13, 29, 45)
_SLANT_PX = 14
_MOST_TICKS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterPoint:
    """A configuration in a scatter plot."""

    label: str
    """A short label, such as its number; empty for none."""
    text: str
    """What a pointer shows."""
    x: MetricValue
    """What success is drawn over: cost, steps or latency."""
    y: MetricValue
    """Its success."""
    is_frame: bool = False
    """Whether it only frames the others, as a script does: it dominates none of them."""

    @property
    def position(self) -> tuple[float, float]:
        """Both figures; 0 where there is none, so look at `is_known` first."""
        return self.x.value or 0.0, self.y.value or 0.0

    @property
    def is_known(self) -> bool:
        """Whether there are both figures."""
        return self.x.value is not None and self.y.value is not None

    def dominates(self, other: ScatterPoint) -> bool:
        """Whether this point is at least as good as the other one in both figures, and better in one."""
        if self.is_frame:
            return False
        (x, y), (other_x, other_y) = self.position, other.position
        return x <= other_x and y >= other_y and (x, y) != (other_x, other_y)


def scatter_ticks(values: Sequence[MetricValue]) -> list[float]:
    """The ticks of an axis from 0 that has room for the figures and their intervals."""
    most = max((end for value in values for end in (value.value, value.high) if end is not None), default=0.0)
    if most <= 0:
        return [0.0, 1.0]
    step = _nice(most / _MOST_TICKS)
    return [step * number for number in range(math.ceil(most / step - 1e-9) + 1)]


def scatter_plot(
    points: Sequence[ScatterPoint], *, title: str, description: str, ticks: Sequence[tuple[float, str]]
) -> str:
    """The picture; a point without both figures is not in it.

    A point that another one dominates is hollow, and so is a frame. `ticks` are those of
    `scatter_ticks` with their texts.
    """
    end = ticks[-1][0]
    known = [point for point in points if point.is_known]
    parts = [tag("title", inert(title)), tag("desc", inert(description)), *_axes(ticks, end)]
    for point in known:
        parts += _whiskers(point, end)
    for point, (dx, dy) in zip(known, _label_offsets(known, end), strict=True):
        is_hollow = point.is_frame or any(other.dominates(point) for other in known)
        kind = f"dot{' hollow' if is_hollow else ''}{' frame' if point.is_frame else ''}"
        x, y = percent(point.position[0] / end), _y(point.position[1])
        dot = tag("circle", kind=kind, cx=x, cy=y, r=5)
        label = tag("text", inert(point.label), kind="label", x=x, y=y, dx=dx, dy=dy + 4, text_anchor="middle")
        parts.append(tag("g", tag("title", inert(point.text)), dot, label))
    return tag("svg", *parts, kind="scatter", width="100%", height=_HEIGHT_PX, role="img")


def _axes(ticks: Sequence[tuple[float, str]], end: float) -> Iterator[str]:
    for share in QUARTERS:
        y = _y(share)
        yield tag("line", kind="grid", x1=0, x2="100%", y1=y, y2=y)
        yield tag("text", f"{share:.0%}", kind="tick", x=-6, y=y, dy="0.32em", text_anchor="end")
    for value, text in ticks:
        x = percent(value / end)
        yield tag("line", kind="grid", x1=x, x2=x, y1=_TOP_PX, y2=_BASE_PX)
        yield tag("text", inert(text), kind="tick", x=x, y=_BASE_PX + 18, text_anchor="middle")


def _whiskers(point: ScatterPoint, end: float) -> Iterator[str]:
    x, y = percent(point.position[0] / end), _y(point.position[1])
    if point.x.low is not None and point.x.high is not None:
        yield tag("line", kind="whisker", x1=percent(point.x.low / end), x2=percent(point.x.high / end), y1=y, y2=y)
    if point.y.low is not None and point.y.high is not None:
        yield tag("line", kind="whisker", x1=x, x2=x, y1=_y(point.y.low), y2=_y(point.y.high))


def _label_offsets(points: Sequence[ScatterPoint], end: float) -> Iterator[tuple[int, int]]:
    """Where the label of each point is, seen from it: the first direction in which no point and no label is yet."""
    centres = [(point.position[0] / end * _NOMINAL_WIDTH_PX, float(_y(point.position[1]))) for point in points]
    occupied = list(centres)
    for x, y in centres:
        choices = [
            (dx * radius, dy * (radius if dx == 0 else _SLANT_PX))
            for radius in _RADII_PX
            for dx, dy in ((1, 0), (-1, 0), (1, -1), (-1, -1), (1, 1), (-1, 1), (0, -1), (0, 1))
        ]
        other_centres = [centre for centre in occupied if centre != (x, y)]
        dx, dy = next(
            (choice for choice in choices if _is_free(x + choice[0], y + choice[1], other_centres)), choices[0]
        )
        occupied.append((x + dx, y + dy))
        yield dx, dy


def _is_free(x: float, y: float, centres: Sequence[tuple[float, float]]) -> bool:
    return _TOP_PX <= y < _BASE_PX and all(
        abs(x - other_x) > _LABEL_WIDTH_PX or abs(y - other_y) > _LABEL_HEIGHT_PX for other_x, other_y in centres
    )


def _y(share: float) -> str:
    return f"{_TOP_PX + (_BASE_PX - _TOP_PX) * (1 - share):.1f}"


def _nice(step: float) -> float:
    """The smallest of 1, 2, 2.5 and 5 times a power of ten that is no smaller."""
    power = 10.0 ** math.floor(math.log10(step))
    return next((part * power for part in (1, 2, 2.5, 5) if part * power >= step * (1 - 1e-9)), 10 * power)
