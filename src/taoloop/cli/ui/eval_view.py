"""Evaluations on a terminal: a bar while the trials run, and the results as tables and sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Self, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from taoloop.cli.translation import translate
from taoloop.cli.ui.event_view import console_for
from taoloop.cli.ui.stdio import one_line, truncate
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
    verdict_text,
)
from taoloop.evals.report.headlines import SUCCESS, figure_notes, headlines
from taoloop.evals.report.tallies import failed_trials, reason_of
from taoloop.evals.results import ConfigurationResults, MetricValue, PairedComparison, Results
from taoloop.evals.suite import Suite
from taoloop.evals.thresholds import ThresholdOutcome
from taoloop.evals.trial_records import TrialRecord
from taoloop.evals.trials.suite_run import SuiteProgress
from taoloop.translation import mark

_TONES: Final = {"good": "green", "bad": "red", "warn": "yellow", "plain": "bold"}
_VERDICT_STYLES: Final = {"better": "green", "worse": "red", "inconclusive": "dim"}
_OVERVIEW: Final[Mapping[str, str]] = mark(
    {"mean_steps": "steps", "cost_usd": "cost", "latency_p50_s": "latency (median)"}
)
_DIGITS = "0123456789.,<>"
_UNITS_OF_MODELS = ("usd", "tokens")
"""The units of what models cost: where they cost nothing, there is nothing to say."""
_FAULTS: Final[Mapping[str, str]] = mark(
    {
        "agent": "fault of the agent",
        "tool": "of a tool",
        "unassigned": "not assigned",
        "environment, invalid": "invalid: environment",
        "simulator, invalid": "invalid: simulator",
        "judge, invalid": "invalid: judge",
        "unassigned, invalid": "invalid: not assigned",
    }
)
"""Whose fault it is that a trial is not right, and whether it counts, in the order in which it is said."""
_REASON_CHARS = 160
_MARKS = r"[\u3000-\u303f\uff00-\uffef]*"
_UNBROKEN = re.compile(rf"[\u2e80-\uffef]{_MARKS}|[^\s\u2e80-\uffef]+{_MARKS}\s*|\s+")
"""What stays on one line: a Chinese character or a word, with the punctuation after it."""
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


def print_suites(stream: TextIO, suites: Sequence[Suite]) -> None:
    """Print the names of suites with what they measure, folded to the width of a terminal."""
    console = console_for(stream)
    width = max(map(cell_len, (suite.name for suite in suites)), default=0) + _COLUMN_GAP
    for suite in suites:
        name = Text(suite.name.ljust(width), "bold")
        lines = (
            _folded(one_line(suite.description), console.width - width) if console.is_terminal else [suite.description]
        )
        for number, line in enumerate(lines):
            console.print(Text.assemble(" " * width if number else name, line), soft_wrap=True)


def _folded(text: str, width: int) -> Iterator[str]:
    """The lines of a text: as wide as they may be, and broken at a space or beside a Chinese character."""
    line = ""
    for part in _UNBROKEN.findall(text):
        if line and cell_len(line + part.rstrip()) > width:
            yield line.rstrip()
            line = ""
        line += part
    yield line


def _counts(progress: SuiteProgress) -> str:
    texts = [translate("{n} right", n=progress.passed), translate("{n} not right", n=progress.failed)]
    if progress.invalid:
        texts.append(translate("{n} invalid", n=progress.invalid))
    if progress.cost_usd:
        texts.append(f"${progress.cost_usd:.4g}")
    return "  ".join(texts)


def print_results(stream: TextIO, results: Results, outcomes: Sequence[ThresholdOutcome] = ()) -> None:
    """Print the results for people: figures, comparisons, what failed, and what came of the thresholds.

    What did not happen at all, and what is the same in all configurations, has a line and no row: a usual suite fits
    on a screen.
    """
    console = console_for(stream)
    if len(results.configurations) > _MOST_BESIDE:
        console.print(_overview(results), soft_wrap=True)
        _line(console, translate("--out and --html have all figures of so many configurations."), "dim")
        console.print()
    elif _counted(results):  # else the headlines say that there are no figures
        _print_figures(console, results)
        console.print()
    for headline in headlines(results):
        _line(console, headline.text, _TONES[headline.tone])
    for comparison in results.comparisons:
        _print_comparison(console, comparison)
    _print_failures(console, results)
    if outcomes:
        _print_thresholds(console, outcomes, has_names=len(results.configurations) > 1)


def _print_figures(console: Console, results: Results) -> None:
    """The tables of figures, and below them what has no row, and what a reader must know of the intervals."""
    counted = _counted(results)
    absent = [name for name in counted if _is_absent(results, name)]
    alike = [name for name in counted if name not in absent and _is_alike(results, name)]
    names = [name for name in counted if name not in absent and name not in alike]
    for number, table in enumerate(_figure_tables(results, names, console)):
        if number:
            console.print()
        console.print(table, soft_wrap=True)
    absent = [name for name in absent if METRICS[name].unit not in _UNITS_OF_MODELS]
    if absent:
        _line(console, translate("0 for: {metrics}.", metrics=_absent_labels(results, absent)), "dim")
    if alike:
        first = results.configurations[0]
        listed = translate(", ").join(f"{metric_label(name)} {_value(first, name)}" for name in alike)
        _line(console, translate("The same in all: {metrics}.", metrics=listed), "dim")
    if listed := _labels(_uncounted(results)):
        _line(console, translate("There was nothing to count for: {metrics}.", metrics=listed), "dim")
    shown = [
        replace(each, metrics={name: each.metrics[name] for name in names if name in each.metrics})
        for each in results.configurations
    ]
    for note in figure_notes(replace(results, configurations=tuple(shown))):
        _line(console, note, "dim")


def _labels(names: Iterable[str]) -> str:
    return translate(", ").join(map(metric_label, names))


def _absent_labels(results: Results, names: Sequence[str]) -> str:
    """The labels of metrics without an occurrence; for one configuration with their intervals."""
    if len(results.configurations) > 1:
        return _labels(names)
    figures = {name: results.configurations[0].figure(name) for name in names}
    groups: dict[str, list[str]] = {}
    for name, figure in figures.items():
        groups.setdefault(format_interval(name, figure), []).append(name)
    parts = (f"{_labels(alike)} ({interval})" if interval else _labels(alike) for interval, alike in groups.items())
    return translate("; ").join(parts)


def _is_absent(results: Results, metric: str) -> bool:
    """Whether nothing of what is better if there is less of it has happened anywhere."""
    values = {each.figure(metric).value for each in results.configurations}
    return METRICS[metric].better == "lower" and values == {0}


def _is_alike(results: Results, metric: str) -> bool:
    """Whether several configurations have the same figure; what comes first is shown in any case."""
    values = {_value(each, metric) for each in results.configurations}
    is_fixed = metric != SUCCESS and METRICS[metric].unit != "s"
    return is_fixed and len(results.configurations) > 1 and len(values) == 1


def _line(console: Console, text: str, style: str = "") -> None:
    """Print a text, folded to the width of a terminal."""
    lines = _folded(one_line(text), console.width) if console.is_terminal else [one_line(text)]
    for line in lines:
        console.print(Text(line, style), soft_wrap=True)


def _overview(results: Results) -> Table:
    """A row for each of so many configurations that no table follows: its success, and the rest of what matters."""
    table = _table("")
    table.add_column(translate("right"), justify="right")
    table.add_column(translate("95% interval"), no_wrap=True)
    for heading in _OVERVIEW.values():
        table.add_column(translate(heading))
    for each in results.configurations:
        success = each.figure(SUCCESS)
        table.add_row(
            one_line(each.name),
            Text(format_value(SUCCESS, success.value), "bold"),
            Text(format_interval(SUCCESS, success), "dim"),
            *(_cell(each.figure(name), name) for name in _OVERVIEW),
        )
    return table


def _value(configuration: ConfigurationResults, metric: str) -> str:
    return format_value(metric, configuration.figure(metric).value)


def _figure_tables(results: Results, names: Sequence[str], console: Console) -> Iterator[Table]:
    """The metrics of one configuration, with what they were counted over; or of as many as are beside each other."""
    if len(results.configurations) == 1:
        yield _single_table(results, names)
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
    """A figure and its interval in little space, such as `50.0% (26.8–73.2)`: the unit once where it is the same."""
    value, interval = format_value(metric, figure.value), format_interval(metric, figure)
    if figure.low is None or figure.high is None:
        return f"{value} ({interval})" if interval else value
    ends = [format_value(metric, end) for end in (figure.low, figure.high)]
    units = {text.lstrip(_DIGITS) for text in (value, *ends)}
    if len(units) == 1 and value not in units:
        ends = [end.removesuffix(*units) for end in ends]
    return f"{value} ({ends[0]}–{ends[1]})"


def _single_table(results: Results, names: Sequence[str]) -> Table:
    (configuration,) = results.configurations
    model = str(configuration.settings.get("model") or "")
    table = _table(" · ".join(filter(None, (results.suite, configuration.name, model))))
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


def _uncounted(results: Results) -> list[str]:
    return [
        name
        for name in METRICS
        if any(name in each.metrics for each in results.configurations)
        and all(_value(each, name) == UNKNOWN for each in results.configurations)
    ]


def _print_comparison(console: Console, comparison: PairedComparison) -> None:
    """The metrics with a verdict, and with them the success; the headlines say where nothing is decided."""
    if all(each.verdict == "inconclusive" for each in comparison.metrics):
        return
    metrics = [each for each in comparison.metrics if each.verdict != "inconclusive" or each.metric == SUCCESS]
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
    """How many trials are not right and whose fault that is, and the first of them with the commands that show them."""
    counts = _fault_counts(results)
    present = [name for name in _FAULTS if any(count[name] for count in counts.values())]
    if not present:
        return
    console.print()
    has_names = len(counts) > 1
    if has_names:
        _print_fault_table(console, counts, present)
    else:
        (count,) = counts.values()
        parts = (f"{translate(_FAULTS[name])} {count[name]:,}" for name in present)
        text = translate("Trials that are not right: {parts}.", parts=translate(", ").join(parts))
        _line(console, text, "bold")
    failures = [trial for trials in failed_trials(results).values() for trial in trials]
    for trial in failures[:_MOST_FAILURES]:
        reason = reason_of(trial) or rule_text(trial.fault_rule) or trial.status
        name = f"{trial.case_id} · {trial.configuration}" if has_names else trial.case_id
        preview, omitted = truncate(one_line(f"{name}: {reason}"), _REASON_CHARS, 1)
        _line(console, f"{preview}…" if omitted else preview)
        command = f"  tao show {one_line(trial.run_id)} --db {one_line(results.database)}"
        console.print(Text(command, "cyan"), soft_wrap=True)  # whole, so that it can be copied
    if (rest := len(failures) - _MOST_FAILURES) > 0:
        _line(console, translate("… and {n} more: --out and --html have all of them.", n=f"{rest:,}"), "dim")


def _fault_counts(results: Results) -> dict[str, Counter[str]]:
    """The trials of each configuration that are not right, by whose fault it is (`_FAULTS`)."""
    counts: dict[str, Counter[str]] = {each.name: Counter() for each in results.configurations}
    for trial in results.trials:
        if not trial.passed and trial.configuration in counts:
            fault = trial.fault or "unassigned"
            counts[trial.configuration][f"{fault}, invalid" if trial.passed is None else fault] += 1
    return counts


def _print_fault_table(console: Console, counts: Mapping[str, Counter[str]], present: Sequence[str]) -> None:
    table = _table(translate("Trials that are not right"))
    for name in present:
        table.add_column(translate(_FAULTS[name]), justify="right")
    for configuration, count in counts.items():
        if count:
            table.add_row(one_line(configuration), *(f"{count[name]:,}" if count[name] else "" for name in present))
    console.print(table, soft_wrap=True)


def _print_thresholds(console: Console, outcomes: Sequence[ThresholdOutcome], *, has_names: bool) -> None:
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
        label = metric_label(each.metric)
        name = f"{one_line(each.configuration)} · {label}" if has_names else label
        table.add_row(name, bound, format_value(each.metric, each.figure.value), interval, verdict)
    console.print(table, soft_wrap=True)
