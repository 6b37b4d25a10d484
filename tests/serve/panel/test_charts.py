"""Charts are valid SVG with a title, legible at every width, and say what is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pytest

from taoloop.serve.panel.charts import MOST_SERIES, Chart, Series

SVG = "{http://www.w3.org/2000/svg}"


def chart(*series: Sequence[float | None], names: Sequence[str] = (), **changes: Any) -> Chart:
    count = len(series[0]) if series else 0
    labels = [f"2027-{index // 28 + 1:02}-{index % 28 + 1:02}" for index in range(count)]
    listed = [Series(name=names[index] if names else f"s{index}", values=values) for index, values in enumerate(series)]
    options: dict[str, Any] = {"id": "spend", "title": "Spend", "description": "By day.", "labels": labels}
    return Chart(**{**options, "short_labels": labels, "series": listed, **changes})


def drawn(made: Chart) -> Element:
    return fromstring(made.svg().replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))  # noqa: S314  # ours


def bars(picture: Element) -> list[Element]:
    return [rect for rect in picture.findall(f"{SVG}rect") if rect.get("class") != "hit"]


def share(element: Element, name: str) -> float:
    value = element.get(name) or ""
    assert value.endswith("%")
    return float(value[:-1])


@pytest.mark.parametrize("kind", ["bars", "lines"])
@pytest.mark.parametrize("count", [1, 2, 31, 92, 1_000])
def test_a_picture_of_any_number_of_days_has_a_title_and_stays_in_its_frame(kind: str, count: int) -> None:
    made = chart([float(index % 7) for index in range(count)], [1.0] * count, kind=kind)
    picture = drawn(made)
    assert (picture.get("role"), picture.get("aria-labelledby")) == ("img", "spend-title spend-desc")
    assert picture.find(f"{SVG}title").text == "Spend"  # type: ignore[union-attr]  # it is there
    assert picture.find(f"{SVG}desc").text == "By day."  # type: ignore[union-attr]  # it is there
    assert picture.get("viewBox") is None, "letters keep their size"
    labels = [text for text in picture.findall(f"{SVG}text") if text.get("x") != "-8"]
    assert 1 <= len(labels) <= 6
    for element in picture.iter():
        assert element.get("style") is None
        if (
            element.tag == f"{SVG}rect"
            and element.get("x", "").endswith("%")
            and element.get("class") != "marker marker-2"
        ):
            assert share(element, "x") >= 0
            assert share(element, "x") + share(element, "width") <= 100.01
            assert float(element.get("y", "0")) >= 0
    assert len([rect for rect in picture.findall(f"{SVG}rect") if rect.get("class") == "hit"]) == count


def test_nothing_is_no_picture() -> None:
    assert chart([]).svg() == ""
    assert chart().svg() == ""
    assert list(chart([]).rows()) == []


def test_bars_are_stacked_and_small_ones_can_be_seen() -> None:
    low, high = bars(drawn(chart([1.0], [3.0])))
    assert float(low.get("height", "")) * 3 == pytest.approx(float(high.get("height", "")))
    assert float(low.get("y", "")) == pytest.approx(float(high.get("y", "")) + float(high.get("height", "")))
    assert share(low, "width") < 15, "one day is no wall"
    tiny, _ = bars(drawn(chart([0.001, 1_000.0])))
    assert float(tiny.get("height", "")) >= 1.5
    assert bars(drawn(chart([0.0, 0.0]))) == [], "nothing is nothing"


def test_what_is_not_known_is_a_sign_and_no_zero() -> None:
    made = chart([None, 2.0], unknown="?")
    picture = drawn(made)
    assert [text.text for text in picture.findall(f"{SVG}text")].count("?") == 1
    assert list(made.rows()) == [("2027-01-01", ["?"]), ("2027-01-02", ["2"])]
    lines = drawn(chart([1.0, None, 1.0, 1.0], kind="lines"))
    assert len(lines.findall(f"{SVG}line[@class='line line-1']")) == 1, "a gap is no line"
    assert len(lines.findall(f"{SVG}circle")) == 3


def test_series_differ_by_more_than_their_colour() -> None:
    made = chart(*[[1.0]] * MOST_SERIES)
    fills = [rect.get("fill") or rect.get("class") for rect in bars(drawn(made))]
    assert fills == ["fill-1", *(f"url(#spend-pattern-{index})" for index in range(2, MOST_SERIES + 1))]
    patterns = {pattern.get("id") for pattern in drawn(made).iter(f"{SVG}pattern")}
    assert patterns == {f"spend-pattern-{index}" for index in range(2, MOST_SERIES + 1)}
    assert "url(#spend-pattern-3)" in made.swatch(2), "the legend has the same pattern"
    assert "marker-2" in chart([1.0], [1.0], kind="lines").swatch(1)


def test_the_axis_has_few_round_numbers() -> None:
    def ticks(made: Chart) -> list[str | None]:
        return [text.text for text in drawn(made).findall(f"{SVG}text[@x='-8']")]

    assert ticks(chart([0.37])) == ["0", "0.1", "0.2", "0.3", "0.4"]
    assert ticks(chart([9_000.0, 1_200.0])) == ["0", "2500", "5000", "7500", "10000"]
    assert ticks(chart([1.0], is_whole=True)) == ["0", "1"]
    assert ticks(chart([0.5], kind="lines", top=1.0, number=lambda value: f"{value:.0%}")) == [
        "0%", "25%", "50%", "75%", "100%",
    ]  # fmt: skip
    assert ticks(chart([0.0])) == ["0", "1"]


def test_names_are_texts_whatever_is_in_them() -> None:
    hostile = "</title><script>alert(1)</script>\u202e 客服 \x00"
    made = chart(
        [1.0], [2.0], names=[hostile, "b"], title=hostile, description=hostile, labels=[hostile], short_labels=["x"]
    )
    picture = drawn(made)
    assert picture.findall(f".//{SVG}script") == []
    assert "客服" in (picture.find(f"{SVG}title").text or "")  # type: ignore[union-attr]  # it is there
    assert "\u202e" not in made.svg()
    [hit] = [rect for rect in picture.findall(f"{SVG}rect") if rect.get("class") == "hit"]
    assert (hit[0].text or "").endswith("b: 2")
