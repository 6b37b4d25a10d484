"""Plots of results as SVG: figures with their intervals, differences, outcomes, and a map of cases.

Places along the horizontal axis are per cent of the width and all else is in pixels, so letters keep their size at any
width. The plots are cells of a table, and the numbers beside them are their text. There are only classes and
presentation attributes, no styles and no scripts, as the content security policies of the page and the panel demand.
Shapes and patterns tell apart what colours do, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from taoloop.evals.report.markup import inert, tag
from taoloop.evals.report.tallies import CaseBin
from taoloop.evals.results import MetricValue

QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The ticks of an axis of shares."""

_ROW_PX, _AXIS_PX = 26, 16
_MIDDLE = _ROW_PX / 2
_DOT_PX = 5
_END_PX = 4


def share_plot(figure: MetricValue) -> str:
    """A share and its interval on an axis from 0 to 1."""
    parts = [_vertical("grid", tick) for tick in QUARTERS]
    if figure.low is not None and figure.high is not None:
        parts += _span(figure.low, figure.high)
    if figure.value is not None:
        parts.append(_dot("dot", figure.value))
    return _cell(parts)


def share_axis() -> str:
    """The axis above a column of `share_plot`."""
    ticks = (0.0, 0.5, 1.0)
    texts = (tag("text", f"{tick:.0%}", kind="tick", x=percent(tick), y=12, text_anchor="middle") for tick in ticks)
    return _cell(texts, _AXIS_PX)


def difference_plot(figure: MetricValue, verdict: str) -> str:
    """A difference and its interval around zero, which is the middle; each has a scale of its own."""
    ends = [abs(end) for end in (figure.value, figure.low, figure.high) if end is not None]
    extent = 2.2 * max(ends, default=0.0) or 1.0
    parts = [_vertical("zero", 0.5)]
    if figure.low is not None and figure.high is not None:
        parts += _span(0.5 + figure.low / extent, 0.5 + figure.high / extent, f" v-{verdict}")
    if figure.value is not None:
        kind = "dot hollow" if verdict == "inconclusive" else f"dot v-{verdict}"
        parts.append(_dot(kind, 0.5 + figure.value / extent))
    return _cell(parts)


def outcome_plot(counts: Sequence[tuple[str, int, str]]) -> str:
    """The outcomes of trials as parts of one bar: of each the outcome, the number and what a pointer shows."""
    total = sum(count for _, count, _ in counts)
    parts, start = [], 0.0
    for outcome, count, text in counts:
        width = count / total if total else 0.0
        frame: dict[str, Any] = {"x": percent(start), "y": 4, "width": percent(width), "height": _ROW_PX - 8}
        parts.append(tag("rect", tag("title", inert(text)), **_outcome_fill(outcome), **frame))
        start += width
    return _cell(parts)


def outcome_swatch(outcome: str) -> str:
    """A sample of an outcome, for the legend."""
    return _swatch(tag("rect", width=16, height=12, **_outcome_fill(outcome)))


def outcome_patterns() -> str:
    """What the fills of outcomes refer to; once in a page, before the first of them."""
    patterns = (
        tag(
            "pattern",
            tag("rect", width=size, height=size, kind=f"o-{outcome}"),
            lines,
            id=f"outcome-{outcome}",
            width=size,
            height=size,
            patternUnits="userSpaceOnUse",
            patternTransform=f"rotate({turn})",
        )
        for outcome, (size, turn, lines) in _PATTERNS.items()
    )
    return tag("svg", tag("defs", *patterns), kind="defs", width=0, height=0, aria_hidden="true")


def case_map(bins: Sequence[CaseBin], configuration: str, texts: Sequence[str]) -> str:
    """How often each bin of cases was right, from left to right.

    `texts` has what a pointer shows of each bin. Without it there are too many for a pointer, and neighbours that look
    the same are one rectangle.
    """
    steps = [_step(case_bin.share(configuration)) for case_bin in bins]
    parts, start = [], 0
    for index, step in enumerate(steps):
        if not texts and index + 1 < len(steps) and steps[index + 1] == step:
            continue
        x, width = start / len(steps), (index + 1 - start) / len(steps)
        frame = {"x": percent(x), "y": 1, "width": percent(width), "height": _ROW_PX - 2}
        title = [tag("title", inert(texts[index]))] if texts else []
        parts.append(tag("rect", *title, kind=f"step-{step}{' edge' if texts else ''}", **frame))
        start = index + 1
    return _cell(parts)


def step_swatch(share: float | None) -> str:
    """A sample of the colour of a share in `case_map`, for the legend."""
    return _swatch(tag("rect", width=16, height=12, kind=f"step-{_step(share)}"))


def percent(share: float) -> str:
    """A place along the axis as an attribute of SVG."""
    return f"{share * 100:.2f}".rstrip("0").rstrip(".") + "%"


def _step(share: float | None) -> str:
    """The colour of a share: those of `step_swatch`."""
    if share is None:
        return "none"
    return "0" if share == 0 else "4" if share == 1 else "1" if share < 0.5 else "2" if share < 0.9 else "3"


def _vertical(kind: str, share: float) -> str:
    return tag("line", kind=kind, x1=percent(share), x2=percent(share), y1=0, y2=_ROW_PX)


def _span(low: float, high: float, kind: str = "") -> Iterator[str]:
    yield tag("line", kind=f"span{kind}", x1=percent(low), x2=percent(high), y1=_MIDDLE, y2=_MIDDLE)
    for end in (low, high):
        x = percent(end)
        yield tag("line", kind=f"end{kind}", x1=x, x2=x, y1=_MIDDLE - _END_PX, y2=_MIDDLE + _END_PX)


def _dot(kind: str, share: float) -> str:
    return tag("circle", kind=kind, cx=percent(share), cy=_MIDDLE, r=_DOT_PX)


def _outcome_fill(outcome: str) -> dict[str, str]:
    return {"fill": f"url(#outcome-{outcome})"} if outcome in _PATTERNS else {"kind": f"o-{outcome}"}


_STRIPE = tag("rect", kind="ink", width=2, height=6)
_PATTERNS = {
    "tool": (6, 45, _STRIPE),
    "environment": (6, 0, tag("rect", kind="ink", width=2, height=2)),
    "simulator": (6, 0, tag("rect", kind="ink", width=6, height=2)),
    "judge": (6, 135, _STRIPE),
    "unassigned": (6, 0, _STRIPE),
    "invalid": (5, 0, tag("rect", kind="ink", width=5, height=1) + tag("rect", kind="ink", width=1, height=5)),
}
"""The lines of the outcomes that have some: the size of a tile, how it is turned, and what is in it."""


def _cell(parts: Iterable[str], height: int = _ROW_PX) -> str:
    return tag("svg", *parts, kind="cell", width="100%", height=height, aria_hidden="true")


def _swatch(content: str) -> str:
    return tag("svg", content, kind="swatch", width=16, height=12, aria_hidden="true")
