"""Scatter plots show which configurations another one beats, and keep the labels apart."""

from __future__ import annotations

from xml.etree.ElementTree import Element, fromstring

from taoloop.evals.report.scatter_plot import ScatterPoint, scatter_plot, scatter_ticks
from taoloop.evals.results import MetricValue


def point(label: str, cost: float | None, success: float | None, *, is_frame: bool = False) -> ScatterPoint:
    x, y = MetricValue(value=cost), MetricValue(value=success)
    return ScatterPoint(label=label, text=f"<{label}>", x=x, y=y, is_frame=is_frame)


def picture(*points: ScatterPoint) -> Element:
    ticks = [(value, f"{value:g}") for value in scatter_ticks([each.x for each in points])]
    return fromstring(scatter_plot(points, title="t", description="d", ticks=ticks))  # noqa: S314  # ours


def dots(*points: ScatterPoint) -> dict[str | None, str | None]:
    groups = picture(*points).findall("g")
    return {group[2].text: group[1].get("class") for group in groups}


def test_a_configuration_that_another_one_beats_is_hollow() -> None:
    points = (point("1", 1.0, 0.9), point("2", 2.0, 0.8), point("3", 0.5, 0.5), point("4", 1.0, 0.9))
    assert dots(*points) == {"1": "dot", "2": "dot hollow", "3": "dot", "4": "dot"}


def test_what_only_frames_the_others_beats_none_of_them() -> None:
    points = (point("1", 1.0, 0.9), point("2", 0.0, 1.0, is_frame=True))
    assert dots(*points) == {"1": "dot", "2": "dot hollow frame"}


def test_a_configuration_without_a_figure_is_not_drawn_at_zero() -> None:
    assert list(dots(point("1", None, 0.9), point("2", 1.0, 0.5))) == ["2"]


def test_labels_of_configurations_at_one_place_do_not_cover_each_other() -> None:
    groups = picture(*(point(str(number), 1.0, 0.5) for number in range(8))).findall("g")
    places = [(float(group[2].get("dx", "")), float(group[2].get("dy", ""))) for group in groups]
    assert all(
        abs(x - other_x) > 12 or abs(y - other_y) > 10
        for index, (x, y) in enumerate(places)
        for other_x, other_y in places[:index]
    )


def test_the_axis_has_room_for_all_intervals() -> None:
    assert scatter_ticks([MetricValue(value=3.0, low=2.0, high=7.3)])[-1] >= 7.3
    assert scatter_ticks([MetricValue(value=0.0)]) == [0.0, 1.0]
