"""Costs and health: what was spent and how the runs went, over time and by agent, model or key; the same as CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from aiohttp import web
from markupsafe import Markup

from taoloop.core.text import join_sentences
from taoloop.errors import ConfigError
from taoloop.journals.costs import totals, unpriced_models
from taoloop.journals.usage import GROUP, UsageRow
from taoloop.journals.usage_report import (
    Unit,
    UsageSelection,
    days_before,
    end_of,
    is_day,
    over_time,
    today,
    total,
    unit_for,
    usage_csv,
)
from taoloop.serve.panel.charts import MOST_SERIES, Chart, Series
from taoloop.serve.panel.context import PanelContext, Route
from taoloop.serve.panel.rendering import usd
from taoloop.translation import mark

By = Literal["agent", "model", "key"]
"""What the rows of the table are."""

GROUPS: Final[Mapping[By, str]] = mark({"agent": "Agent", "model": "Model", "key": "API key"})  # type: ignore[assignment]  # the same keys

PERIODS: Final = mark({"7": "7 days", "30": "30 days", "90": "90 days", "365": "1 year", "all": "All"})
"""The periods that can be chosen by a link, by what the address says of them."""

DEFAULT_PERIOD: Final = "30"

_UNITS: Final = mark({"day": "by day", "week": "by week", "month": "by month"})
_TITLES: Final = mark({"agent": "By agent", "model": "By model", "key": "By API key"})
_LONG_DAYS = 400
_MOST_CHOICES = 200
_BYTE_ORDER_MARK = "\ufeff"  # by which spreadsheets know UTF-8


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFilter:
    """What the address says about what to show."""

    period: str
    """A key of `PERIODS`; "" where days are given."""

    by: By
    """What the rows of the table are."""

    selection: UsageSelection
    """Which rows of the journal."""

    @classmethod
    def of(cls, context: PanelContext) -> CostFilter:
        """The filter in the address of a request.

        Raises:
            ConfigError: a day is none, or the period ends before it begins.
        """
        since, until = (_day(context.query(name)) for name in ("since", "until"))
        if since is not None and until is not None and until < since:
            raise ConfigError("The period ends before it begins.", hint="Exchange the two days.")
        period = context.query("days", DEFAULT_PERIOD) if since is None and until is None else ""
        period = period if period in PERIODS else "" if since or until else DEFAULT_PERIOD
        if period not in ("", "all"):
            since = days_before(today(context.panel.clock.now()), int(period) - 1)
        names = {name: context.query(name) or None for name in ("agent", "model", "key")}
        by = context.query("by")
        selection = UsageSelection(since=since, until=until, **names)
        return cls(
            period=period, by="model" if by == "model" else "key" if by == "key" else "agent", selection=selection
        )

    def span(self, rows: Sequence[UsageRow], now: str) -> tuple[str, str] | None:
        """The first and the last day of the time line; None: nothing is to be shown."""
        days = [row.day for row in rows]
        newest = max([now, *days])
        last = min(self.selection.until or newest, newest)
        first = self.selection.since
        if first is None or (days and first < days_before(last, _LONG_DAYS)):
            first = max(first or "", min(days)) if days else first
        return None if not days or first is None else (first, max(first, last))


async def costs_page(context: PanelContext) -> web.StreamResponse:
    """`GET /costs`: the figures, the charts and the table."""
    chosen, rows, choices = await _selected(context)
    span = chosen.span(rows, today(context.panel.clock.now()))
    unit = unit_for(span or ())
    line = over_time(rows, unit, (chosen.by,), span=span)
    return context.page(
        "costs.html",
        filter=chosen,
        periods=PERIODS,
        groups=GROUPS,
        table_title=context.say(_TITLES[chosen.by]),
        choices=choices,
        total=total(rows),
        unpriced=unpriced_models(rows),
        unit=context.say(_UNITS[unit]),
        charts=[] if span is None else charts_of(context, line, chosen.by, unit),
        rows=sorted(totals(rows, (chosen.by,)), key=lambda row: (-row.cost_usd, -row.runs, getattr(row, chosen.by))),
        runs_of=partial(_runs_path, context, chosen),
        runs_in=partial(_period_path, context, chosen, unit),
        percent=_percent,
    )


async def costs_csv(context: PanelContext) -> web.StreamResponse:
    """`GET /costs.csv`: what the page shows, by day, key, agent and model, for a spreadsheet."""
    _, rows, _ = await _selected(context)
    return context.text(_BYTE_ORDER_MARK + usage_csv(rows, GROUP), "text/csv", filename="taoloop-costs.csv")


ROUTES: Final = (Route("GET", "/costs", costs_page), Route("GET", "/costs.csv", costs_csv))


async def _selected(context: PanelContext) -> tuple[CostFilter, list[UsageRow], dict[By, list[str]]]:
    """The filter, the rows that fit it, and the names that there are in its period."""
    chosen = CostFilter.of(context)
    selection = chosen.selection
    in_period = UsageSelection(since=selection.since, until=selection.until)
    rows = in_period.select(await context.queries.usage(selection.since))
    choices: dict[By, list[str]] = {
        name: sorted({getattr(row, name) for row in rows} - {""})[:_MOST_CHOICES] for name in GROUPS
    }
    return chosen, selection.select(rows), choices


def charts_of(
    context: PanelContext, line: Mapping[str, Sequence[UsageRow]], by: By, unit: Unit
) -> list[dict[str, Any]]:
    """The charts of a time line whose rows are added up by `by`: each with its picture, and its table."""
    labels, sums = list(line), [total(rows) for rows in line.values()]
    money = partial(usd, language=context.language)
    builder = _ChartBuilder(context, labels, unit)

    def counted(name: str, value: Callable[[UsageRow], float | None]) -> Series:
        return Series(name=context.say(name), values=[value(row) for row in sums])

    ended = [
        counted(mark("completed"), lambda row: row.completed),
        counted(mark("ended otherwise"), lambda row: row.ended - row.completed),
    ]
    rates = [
        counted(mark("Completed runs"), lambda row: row.success_rate),
        counted(mark("Failed tool calls"), lambda row: row.failure_rate),
    ]
    steps = [counted(mark("Steps per run"), lambda row: row.steps_per_run)]
    answers = [counted(mark("Interventions"), lambda row: row.interventions)]
    whole: dict[str, Any] = {"number": "{:g}".format, "is_whole": True}
    charts = [
        builder.bars("spend", mark("Spend"), _spend(context, line, by), number=money, total=money(_sum_of(sums))),
        builder.bars("ended", mark("How runs ended"), ended, **whole),
        builder.lines("rates", mark("Success and tool failures"), rates, number=_percent, top=1.0),
        builder.lines("steps", mark("Steps per run"), steps, number="{:.3g}".format),
        builder.bars("interventions", mark("Interventions of people"), answers, **whole),
    ]
    return [
        {
            "chart": chart,
            "svg": Markup(chart.svg()),  # noqa: S704  # it escapes all names
            "swatches": [Markup(chart.swatch(index)) for index in range(len(chart.series))],  # noqa: S704  # as above
        }
        for chart in charts
    ]


class _ChartBuilder:
    """Makes charts over the same labels, with texts in the language of a person."""

    def __init__(self, context: PanelContext, labels: Sequence[str], unit: Unit) -> None:
        self._context, self._labels = context, labels
        self._short = _SHORT[unit](labels)

    def bars(self, chart_id: str, title: str, series: Sequence[Series], *, total: str = "", **options: Any) -> Chart:
        return self._chart(chart_id, title, series, "bars", total, options)

    def lines(self, chart_id: str, title: str, series: Sequence[Series], **options: Any) -> Chart:
        return self._chart(chart_id, title, series, "lines", "", options)

    def _chart(
        self, chart_id: str, title: str, series: Sequence[Series], kind: Any, total: str, options: dict[str, Any]
    ) -> Chart:
        say, number = self._context.say, options["number"]
        most, where = _highest(self._labels, series, is_stacked=kind == "bars")
        texts = [say("{first} to {last}.", first=self._labels[0], last=self._labels[-1])]
        texts += [] if most is None else [say("Highest: {value} ({label}).", value=number(most), label=where)]
        texts += [say("In all: {value}.", value=total)] if total else []
        return Chart(
            id=chart_id,
            title=say(title),
            description=join_sentences(*texts),
            labels=self._labels,
            short_labels=self._short,
            series=series,
            kind=kind,
            unknown=say("unknown"),
            **options,
        )


_SHORT: Final[Mapping[Unit, Callable[[Sequence[str]], list[str]]]] = {
    "day": lambda labels: [label[5:] for label in labels],
    "week": lambda labels: [label[2:] for label in labels],
    "month": lambda labels: [label[:7] for label in labels],
}
"""How the axis writes the first days of days, weeks and months."""


def _highest(labels: Sequence[str], series: Sequence[Series], *, is_stacked: bool) -> tuple[float | None, str]:
    """The highest value, of a stack or of a single series, and its label."""
    most, where = None, ""
    for index, label in enumerate(labels):
        known = [value for each in series if (value := each.values[index]) is not None]
        value = (sum(known) if is_stacked else max(known)) if known else None
        if value is not None and (most is None or value > most):
            most, where = value, label
    return most, where


def _spend(context: PanelContext, line: Mapping[str, Sequence[UsageRow]], by: By) -> list[Series]:
    """The cost of each group over time, the largest first; what is beyond the number of series is one."""
    sums = totals((row for rows in line.values() for row in rows), (by,))
    names = [getattr(row, by) for row in sorted(sums, key=lambda row: -row.cost_usd)]
    selected = names if len(names) <= MOST_SERIES else names[: MOST_SERIES - 1]
    series = []
    for name in selected:
        values = [_sum_of(row for row in rows if getattr(row, by) == name) for rows in line.values()]
        series.append(Series(name=name or _nameless(context, by), values=values))
    if rest := set(names) - set(selected):
        values = [_sum_of(row for row in rows if getattr(row, by) in rest) for rows in line.values()]
        series.append(Series(name=context.say("{n} others", n=len(rest)), values=values))
    return series


def _sum_of(rows: Iterable[UsageRow]) -> float | None:
    """The cost of rows; None where there are calls and no price of one is known."""
    return total(rows).known_cost_usd


def _nameless(context: PanelContext, by: By) -> str:
    return context.say("without a key") if by == "key" else context.say("without a name")


def _runs_path(context: PanelContext, chosen: CostFilter, row: UsageRow) -> str:
    """The list of the runs of a row, in the same period; "" where the list has no such filter."""
    name = getattr(row, chosen.by)
    if not name or not row.runs:  # a model that only replied is the model of no agent
        return ""
    selection = chosen.selection
    filters = {"agent": selection.agent, "model": selection.model, "key": selection.key, chosen.by: name}
    return context.path("/runs", since=selection.since, until=selection.until, inner=1, **filters)


def _period_path(context: PanelContext, chosen: CostFilter, unit: Unit, begin: str) -> str:
    """The list of the runs that began in a day, week or month of the charts, as far as the period has it."""
    selection = chosen.selection
    since, until = max(begin, selection.since or begin), min(end_of(begin, unit), selection.until or "9999-12-31")
    filters = {"agent": selection.agent, "model": selection.model, "key": selection.key}
    return context.path("/runs", since=since, until=until, inner=1, **filters)


def _percent(rate: float) -> str:
    return f"{rate * 100:.3g}%" if 0 < rate < 1 else f"{rate:.0%}"


def _day(text: str) -> str | None:
    """A day in the address; None: there is none.

    Raises:
        ConfigError: it is no day.
    """
    text = text.strip()
    if text and not is_day(text):
        raise ConfigError(f"{text[:40]!r} is not a day of the calendar.", hint="Write it as 2026-01-31.")
    return text or None
