"""Evaluations on a terminal: a bar while the trials run, and the results as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Self, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from taoloop.cli.translation import translate
from taoloop.cli.ui.event_view import console_for
from taoloop.cli.ui.stdio import one_line
from taoloop.evals.fault_classes import rule_text
from taoloop.evals.metrics import METRICS
from taoloop.evals.report.figures import (
    UNKNOWN,
    format_difference,
    format_difference_interval,
    format_interval,
    format_p,
    format_value,
    metric_label,
    outcome_text,
    verdict_text,
)
from taoloop.evals.report.headlines import SUCCESS, figure_notes, headlines
from taoloop.evals.report.tallies import OUTCOMES, failed_trials, outcomes_by_configuration, reason_of
from taoloop.evals.results import ConfigurationResults, MetricValue, PairedComparison, Results
from taoloop.evals.thresholds import ThresholdOutcome
from taoloop.evals.trial_records import TrialRecord
from taoloop.evals.trials.suite_run import SuiteProgress
from taoloop.translation import mark

_TONES: Final = {"good": "green", "bad": "red", "warn": "yellow", "plain": "bold"}
_VERDICT_STYLES: Final = {"better": "green", "worse": "red", "inconclusive": "dim"}
_OVERVIEW: Final[Mapping[str, str]] = mark(
    {"mean_steps": "steps", "cost_usd": "cost", "latency_p50_s": "latency (median)"}
)
_MOST_FAILURES = 5
_MOST_BESIDE = 4
_COLUMN_GAP = 2
_LEAST_NAME = 12  # so that a name is folded and not cut to pieces
_REPORT_STEPS = 10  # how often a progress that is not on a terminal is said
_BOUNDS: Final[Mapping[str, str]] = mark(
    {
        "at_least": "at least {limit}",
        "at_most": "at most {limit}",
        "surely_at_least": "surely at least {limit}",
        "surely_at_most": "surely at most {limit}",
    }
)


class EvalProgressView:
    """The progress of an evaluation on standard error: a bar on a terminal, else ten lines.

    It is called as `SuiteRun` calls it: once at the beginning, and with each trial that has ended.
    """

    def __init__(self, stream: TextIO) -> None:
        self._console = console_for(stream)
        self._bar: Progress | None = None
        self._tenth = 0
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            columns = (
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                TextColumn("{task.fields[counts]}"),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=self._console, transient=True, expand=True, redirect_stdout=False)
            self._task = self._bar.add_task("", total=None, counts="")

    def __call__(self, progress: SuiteProgress, _record: TrialRecord | None) -> None:
        """Show how far it is."""
        if self._bar is not None:
            self._bar.update(self._task, completed=progress.ended, total=progress.total, counts=_counts(progress))
            return
        tenth = progress.ended * _REPORT_STEPS // max(1, progress.total)
        if tenth > self._tenth:
            self._tenth = tenth
            self._console.print(f"{progress.ended}/{progress.total}  {_counts(progress)}")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def _counts(progress: SuiteProgress) -> str:
    texts = [translate("{n} right", n=progress.passed), translate("{n} not right", n=progress.failed)]
    if progress.invalid:
        texts.append(translate("{n} invalid", n=progress.invalid))
    if progress.cost_usd:
        texts.append(f"${progress.cost_usd:.4g}")
    return "  ".join(texts)


def print_results(stream: TextIO, results: Results, outcomes: Sequence[ThresholdOutcome] = ()) -> None:
    """Print the results for people: figures, comparisons, what failed, and what came of the thresholds."""
    console = console_for(stream)
    if len(results.configurations) > 1:
        console.print(_overview(results), soft_wrap=True)
        console.print()
    if len(results.configurations) <= _MOST_BESIDE:
        for number, table in enumerate(_figure_tables(results, console)):
            if number:
                console.print()
            console.print(table, soft_wrap=True)
    else:
        _line(console, translate("--out and --html have all figures of so many configurations."), "dim")
    if empty := _uncounted(results):
        _line(console, translate("There was nothing to count for: {metrics}.", metrics=empty), "dim")
    for note in figure_notes(results):
        _line(console, note, "dim")
    console.print()
    for headline in headlines(results):
        _line(console, headline.text, _TONES[headline.tone])
    for comparison in results.comparisons:
        _print_comparison(console, comparison)
    _print_failures(console, results)
    if outcomes:
        _print_thresholds(console, outcomes)


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(one_line(text), style), soft_wrap=not console.is_terminal)


def _overview(results: Results) -> Table:
    """A row for each configuration: its success, and the rest of what matters if no table follows with all of it."""
    table = _table("")
    table.add_column(translate("right"), justify="right")
    table.add_column(translate("95% interval"), no_wrap=True)
    headings = _OVERVIEW if len(results.configurations) > _MOST_BESIDE else {}
    for heading in headings.values():
        table.add_column(translate(heading))
    for each in results.configurations:
        success = each.figure(SUCCESS)
        table.add_row(
            one_line(each.name),
            Text(format_value(SUCCESS, success.value), "bold"),
            Text(format_interval(SUCCESS, success), "dim"),
            *(_cell(each.figure(name), name) for name in headings),
        )
    return table


def _value(configuration: ConfigurationResults, metric: str) -> str:
    return format_value(metric, configuration.figure(metric).value)


def _figure_tables(results: Results, console: Console) -> Iterator[Table]:
    """All metrics of one configuration, with what they were counted over; or of as many as are beside each other."""
    names = _counted(results)
    if len(results.configurations) == 1:
        yield _single_table(results.configurations[0], names)
        return
    cells = {each.name: {name: _cell(each.figure(name), name) for name in names} for each in results.configurations}
    labels = max((cell_len(metric_label(name)) for name in names), default=0) + _COLUMN_GAP
    room = console.width - labels
    columns: dict[str, int] = {}
    for name, column in cells.items():
        width = max((cell_len(text) for text in column.values()), default=0)
        if columns and room < width + _COLUMN_GAP:
            yield _side_by_side(columns, cells, names, labels)
            columns, room = {}, console.width - labels
        columns[name] = width
        room -= width + _COLUMN_GAP
    yield _side_by_side(columns, cells, names, labels)


def _counted(results: Results) -> list[str]:
    """The metrics that some configuration has a figure of; with one trial of each case, pass@k is the task success."""
    has_trials = any(each.k > 1 for each in results.configurations)
    return [
        name
        for name, metric in METRICS.items()
        if any(_value(each, name) != UNKNOWN for each in results.configurations)
        and (has_trials or metric.kind != "at_k")
    ]


def _side_by_side(
    columns: Mapping[str, int], cells: Mapping[str, Mapping[str, str]], names: Sequence[str], labels: int
) -> Table:
    """The metrics of some configurations; their names are folded to the width of their figures."""
    table = _table("", min_width=labels - _COLUMN_GAP)
    for column, width in columns.items():
        table.add_column(one_line(column), min_width=width, max_width=max(width, _LEAST_NAME))
    for name in names:
        table.add_row(metric_label(name), *(cells[column][name] for column in columns))
    return table


def _cell(figure: MetricValue, metric: str) -> str:
    interval = format_interval(metric, figure)
    return f"{format_value(metric, figure.value)} ({interval})" if interval else format_value(metric, figure.value)


def _single_table(configuration: ConfigurationResults, names: Sequence[str]) -> Table:
    table = _table(configuration.name)
    table.add_column("", justify="right")
    table.add_column(translate("95% interval"))
    table.add_column("n", justify="right")
    for name in names:
        figure = configuration.figure(name)
        interval = Text(format_interval(name, figure), "dim")
        style = "bold" if name == SUCCESS else ""
        table.add_row(metric_label(name), Text(format_value(name, figure.value), style), interval, f"{figure.n:,}")
    return table


def _table(title: str, min_width: int | None = None) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, _COLUMN_GAP, 0, 0))
    table.add_column(one_line(title), min_width=min_width)
    return table


def _uncounted(results: Results) -> str:
    names = [
        name
        for name in METRICS
        if any(name in each.metrics for each in results.configurations)
        and all(_value(each, name) == UNKNOWN for each in results.configurations)
    ]
    return translate(", ").join(map(metric_label, names))


def _print_comparison(console: Console, comparison: PairedComparison) -> None:
    """The metrics with a verdict, and the success in any case."""
    metrics = [each for each in comparison.metrics if each.verdict != "inconclusive" or each.metric == SUCCESS]
    if not metrics:
        return
    console.print()
    _line(console, translate("{second} compared with {first}", first=comparison.first, second=comparison.second))
    table = _table("")
    table.add_column("", justify="right")
    table.add_column(translate("95% interval"))
    table.add_column(translate("corrected p"), justify="right")
    table.add_column("")
    for each in metrics:
        table.add_row(
            metric_label(each.metric),
            format_difference(each.metric, each.difference.value),
            Text(format_difference_interval(each.metric, each.difference), "dim"),
            format_p(each.p_corrected),
            Text(verdict_text(each.verdict), _VERDICT_STYLES[each.verdict]),
        )
    console.print(table, soft_wrap=True)


def _print_failures(console: Console, results: Results) -> None:
    """How many trials are not right by whose fault it is, and the first of them with the commands that show them."""
    counts = outcomes_by_configuration(results)
    present = [name for name in OUTCOMES if name != "right" and any(count[name] for count in counts.values())]
    if not present:
        return
    console.print()
    table = _table(translate("Trials that are not right"))
    for name in present:
        table.add_column(outcome_text(name), justify="right")
    for configuration, count in counts.items():
        table.add_row(one_line(configuration), *(f"{count[name]:,}" for name in present))
    console.print(table, soft_wrap=True)
    failures = [trial for trials in failed_trials(results).values() for trial in trials]
    for trial in failures[:_MOST_FAILURES]:
        reason = reason_of(trial) or rule_text(trial.fault_rule) or trial.status
        _line(console, f"{trial.case_id} · {trial.configuration}: {reason}")
        console.print(Text(f"  tao show {one_line(trial.run_id)} --db {one_line(results.database)}", "cyan"))
    if (rest := len(failures) - _MOST_FAILURES) > 0:
        _line(console, translate("… and {n} more: --out and --html have all of them.", n=f"{rest:,}"), "dim")


def _print_thresholds(console: Console, outcomes: Sequence[ThresholdOutcome]) -> None:
    console.print()
    table = _table(translate("Thresholds"))
    table.add_column("")
    table.add_column("", justify="right")
    table.add_column(translate("95% interval"))
    table.add_column("")
    for each in outcomes:
        bound = translate(_BOUNDS[each.bound], limit=format_value(each.metric, each.limit))
        verdict = Text(translate("met"), "green") if each.is_met else Text(translate("not met"), "red")
        interval = Text(format_interval(each.metric, each.figure), "dim")
        name = f"{one_line(each.configuration)} · {metric_label(each.metric)}"
        table.add_row(name, bound, format_value(each.metric, each.figure.value), interval, verdict)
    console.print(table, soft_wrap=True)
