"""What was used and how it went, as a reader wants it: a selection, over time, and as CSV for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from taoloop.core.text import lazy_pattern
from taoloop.journals.costs import add_up, totals
from taoloop.journals.usage import COUNTS, GROUP, UsageRow

Unit = Literal["day", "week", "month"]
"""What a time line counts by; a week begins on Monday."""

_MOST_DAYS, _MOST_WEEKS = 92, 92

RATES = ("success_rate", "steps_per_run", "failure_rate")
"""The properties of a row that are made from its counts."""

_FORMULA = lazy_pattern(r"(^|[;,|\t\r\n\"])([ \t\r\n]*)(?=[-=+@＝＋－＠])")
"""Where a spreadsheet may take a text for a formula (OWASP, CSV Injection): at the beginning of a cell, and of what is
one in countries where another sign separates them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSelection:
    """Which rows: those that fit every field that is given."""

    since: str | None = None
    """From this day on: `2026-01-31`."""

    until: str | None = None
    """Up to this day, which is included."""

    agent: str | None = None
    """The name of the agent."""

    model: str | None = None
    """The model."""

    key: str | None = None
    """The name of the API key; "" for runs without one."""

    def select(self, rows: Iterable[UsageRow]) -> list[UsageRow]:
        """The rows that fit."""
        return [
            row
            for row in rows
            if (self.since is None or row.day >= self.since)
            and (self.until is None or row.day <= self.until)
            and all(getattr(self, name) in (None, getattr(row, name)) for name in ("agent", "model", "key"))
        ]


def total(rows: Iterable[UsageRow]) -> UsageRow:
    """All rows as one."""
    return next(iter(totals(rows, ())), UsageRow(day="", key="", agent="", model=""))


def unit_for(days: Sequence[str]) -> Unit:
    """What a time line of these days counts by, so that it stays legible: about three months of days at most."""
    if not days:
        return "day"
    span = (date.fromisoformat(max(days)) - date.fromisoformat(min(days))).days + 1
    return "day" if span <= _MOST_DAYS else "week" if span <= 7 * _MOST_WEEKS else "month"


def begin_of(day: str, unit: Unit) -> str:
    """The first day of the day, week or month that a day is in."""
    if unit == "month":
        return f"{day[:7]}-01"
    if unit == "week":
        begin = date.fromisoformat(day)
        return (begin - timedelta(days=begin.weekday())).isoformat()
    return day


def over_time(
    rows: Iterable[UsageRow], unit: Unit, by: Collection[str] = (), *, span: tuple[str, str] | None = None
) -> dict[str, list[UsageRow]]:
    """The rows of each day, week or month by its first day, without a gap, added up by what `by` names beside it.

    `span` are the first and the last day; by default those of the rows.
    """
    begins: dict[str, str] = {}

    def group_of(row: UsageRow) -> tuple[str, ...]:
        if row.day not in begins:
            begins[row.day] = begin_of(row.day, unit)
        return (begins[row.day], *(getattr(row, name) if name in by else "" for name in GROUP[1:]))

    in_units = add_up(rows, group_of)
    if not in_units and span is None:
        return {}
    ends = span or (in_units[0].day, in_units[-1].day)
    line: dict[str, list[UsageRow]] = {}
    begin, last = begin_of(ends[0], unit), begin_of(ends[1], unit)
    while begin <= last:
        line[begin] = []
        begin = _next(begin, unit)
    for row in in_units:
        line.setdefault(row.day, []).append(row)
    return line


def usage_csv(rows: Iterable[UsageRow], by: Sequence[str]) -> str:
    """The rows, which are added up by `by`, as CSV (RFC 4180) with a header; what is not known is empty.

    A name that a spreadsheet would take for a formula gets an apostrophe in front of it, because names come from
    files, models and requests.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    counts = [name for name in COUNTS if name != "cost_usd"]
    writer.writerow([*by, *counts, "cost_usd", *RATES])
    for row in rows:
        numbers = [getattr(row, name) for name in counts]
        rates = [_number(getattr(row, name)) for name in ("known_cost_usd", *RATES)]
        writer.writerow([*(_as_text(getattr(row, name)) for name in by), *numbers, *rates])
    return text.getvalue()


def today(now: float) -> str:
    """The day in UTC of a time in seconds since the epoch."""
    return datetime.fromtimestamp(now, UTC).date().isoformat()


def is_day(text: str) -> bool:
    """Whether a text is a day as rows have it: `2026-01-31`."""
    try:
        return len(text) == len("2026-01-31") and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def end_of(begin: str, unit: Unit) -> str:
    """The last day of the day, week or month that begins so."""
    return days_before(_next(begin, unit), 1)


def days_before(day: str, count: int) -> str:
    """The day that is so many days before another one."""
    return (date.fromisoformat(day) - timedelta(days=count)).isoformat()


def _next(begin: str, unit: Unit) -> str:
    day = date.fromisoformat(begin)
    if unit == "month":
        return (day.replace(day=28) + timedelta(days=4)).replace(day=1).isoformat()
    return (day + timedelta(days=7 if unit == "week" else 1)).isoformat()


def _as_text(name: str) -> str:
    return _FORMULA.sub(r"\1\2'", name)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}".rstrip("0").rstrip(".")
