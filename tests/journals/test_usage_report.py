"""What was used, as a reader wants it: selected, over time, what is not known as such, safe in a spreadsheet."""

from __future__ import annotations

import csv
import io

import pytest

from taoloop.journals.costs import totals, unpriced_models
from taoloop.journals.usage import UsageRow
from taoloop.journals.usage_report import (
    UsageSelection,
    begin_of,
    days_before,
    over_time,
    today,
    total,
    unit_for,
    usage_csv,
)


def row(
    day: str = "2027-01-15", agent: str = "clerk", *, model: str = "big", key: str = "", **counts: float
) -> UsageRow:
    return UsageRow(day=day, key=key, agent=agent, model=model, **counts)  # type: ignore[arg-type]  # whole where it is


def test_what_is_not_known_is_none_and_not_zero() -> None:
    idle, unpriced = row(), row(model_calls=2, unpriced_calls=2)
    assert (idle.success_rate, idle.steps_per_run, idle.failure_rate, idle.known_cost_usd) == (None, None, None, 0.0)
    assert unpriced.known_cost_usd is None
    assert row(model_calls=2, unpriced_calls=1, cost_usd=0.5).known_cost_usd == 0.5
    assert row(ended=4, completed=3).success_rate == 0.75
    assert row(runs=2, steps=7).steps_per_run == 3.5
    assert row(tool_calls=8, failed_calls=2).failure_rate == 0.25


def test_the_models_without_a_price_are_named() -> None:
    rows = [
        row(model="new", model_calls=1, unpriced_calls=1),
        row(model="own", model_calls=9, unpriced_calls=4),
        row(model="big", model_calls=5),
        row("2027-01-16", model="own", model_calls=1, unpriced_calls=1),
    ]
    assert unpriced_models(rows) == {"own": 5, "new": 1}
    assert list(unpriced_models(rows)) == ["own", "new"], "most first"


def test_rows_are_selected_and_added_up() -> None:
    rows = [
        row("2027-01-14", runs=1, cost_usd=1),
        row("2027-01-15", "desk", runs=2, cost_usd=2),
        row("2027-01-16", key="shop", runs=4, cost_usd=4),
        row("2027-01-17", model="small", runs=8, cost_usd=8),
    ]
    assert total(UsageSelection(since="2027-01-15", until="2027-01-16").select(rows)).runs == 6
    assert total(UsageSelection(agent="desk").select(rows)).runs == 2
    assert total(UsageSelection(key="").select(rows)).runs == 11, "those without a key"
    assert total(UsageSelection(model="small", key="shop").select(rows)) == UsageRow(day="", key="", agent="", model="")
    by_agent = totals(rows, ("agent",))
    assert [(each.agent, each.day, each.runs, each.cost_usd) for each in by_agent] == [
        ("clerk", "", 13, 13), ("desk", "", 2, 2),
    ]  # fmt: skip


def test_a_time_line_has_no_gaps_and_stays_legible() -> None:
    rows = [row("2026-12-31", runs=1), row("2027-01-02", "desk", runs=2), row("2027-01-02", runs=4)]
    line = over_time(rows, "day", ("agent",))
    assert {day: [(each.agent, each.runs) for each in of_day] for day, of_day in line.items()} == {
        "2026-12-31": [("clerk", 1)], "2027-01-01": [], "2027-01-02": [("clerk", 4), ("desk", 2)],
    }  # fmt: skip
    assert {day: total(of_day).runs for day, of_day in over_time(rows, "week").items()} == {"2026-12-28": 7}
    assert list(over_time(rows, "month")) == ["2026-12-01", "2027-01-01"]
    assert list(over_time([], "day", span=("2027-02-27", "2027-03-01"))) == ["2027-02-27", "2027-02-28", "2027-03-01"]
    assert over_time([], "day") == {}
    assert [unit_for(["2027-01-01", days_before("2027-01-01", -days)]) for days in (0, 91, 92, 643, 644, 1_000)] == [
        "day", "day", "week", "week", "month", "month",
    ]  # fmt: skip
    assert unit_for([]) == "day"
    assert begin_of("2027-01-03", "week") == "2026-12-28", "a Sunday"
    assert today(1_800_000_000) == "2027-01-15"


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ('=HYPERLINK("http://evil.example","x")', '\'=HYPERLINK("http://evil.example","x")'),
        ("+1", "'+1"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "\t'=1"),
        ("＝1", "'＝1"),
        ("a;=1", "a;'=1"),
        ("客服, 中文", "客服, 中文"),
        ("gpt-4o", "gpt-4o"),
        ("a=b", "a=b"),
    ],
)
def test_no_name_is_a_formula_in_a_spreadsheet(name: str, cell: str) -> None:
    text = usage_csv([row(agent=name, runs=1)], ["agent"])
    header, line = list(csv.reader(io.StringIO(text)))
    assert line[0] == cell
    assert (header[0], header[1], line[1]) == ("agent", "runs", "1")
    assert text.endswith("\r\n"), "as RFC 4180 has it"


def test_the_csv_leaves_open_what_is_not_known() -> None:
    rows = [row(runs=2, steps=3, model_calls=3, unpriced_calls=3), row(runs=1, ended=1, completed=1, cost_usd=0.25)]
    first, second = csv.DictReader(io.StringIO(usage_csv(rows, ["day", "model"])))
    assert (first["cost_usd"], first["success_rate"], first["steps_per_run"]) == ("", "", "1.5")
    assert (second["cost_usd"], second["success_rate"], second["day"], second["model"]) == (
        "0.25",
        "1",
        "2027-01-15",
        "big",
    )
