"""The parts of a report as HTML: the page of `tao eval --html` and the panel show the same ones.

Names, answers and reasons are untrusted: all of them are escaped. There are no styles and no scripts in the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from taoloop.evals.report.figures import (
    METRIC_TEXTS,
    UNKNOWN,
    category_text,
    fault_text,
    format_difference,
    format_difference_interval,
    format_interval,
    format_p,
    format_value,
    metric_label,
    metric_text,
    note_texts,
    verdict_text,
)
from taoloop.evals.report.headlines import SUCCESS, headlines
from taoloop.evals.report.markup import disclosure, head, inert, row_head, table, tag
from taoloop.evals.report.plots import (
    case_map,
    difference_plot,
    outcome_patterns,
    outcome_plot,
    outcome_swatch,
    share_axis,
    share_plot,
    step_swatch,
)
from taoloop.evals.report.scatter_plot import ScatterPoint, scatter_plot, scatter_ticks
from taoloop.evals.report.tallies import (
    OUTCOMES,
    CaseBin,
    bin_cases,
    failed_trials,
    outcomes_by_configuration,
    reason_of,
    tally_cases,
)
from taoloop.evals.results import Comparison, ConfigurationResults, MetricComparison, MetricValue, Results, translate
from taoloop.evals.trial_records import TrialRecord
from taoloop.translation import mark

RunLink = Callable[[str], str]
"""Makes the HTML that leads to a run, from its id."""

_SCATTERS = ("cost_usd", "mean_steps", "latency_p50_s")
_MOST_BINS, _MOST_NAMED_CASES = 240, 60
_MOST_TRIALS, _MOST_NAMED = 40, 8
_ANSWER_CHARS = 300
_NO_FIGURE = MetricValue(value=None)
_ARROWS = {"high": " ↑", "low": " ↓", "": ""}


class Section(NamedTuple):
    """A part of a report."""

    id: str
    """The anchor."""
    title: str
    """The heading; empty for the part at the top."""
    body: str
    """HTML."""


class ReportSections:
    """Makes the parts of the report on some results.

    Args:
        results: What is reported.
        language: `en` or `zh`.
        run_link: Leads from a trial to its run.
    """

    def __init__(self, results: Results, language: str, run_link: RunLink) -> None:
        self._results, self._language, self._run_link = results, language, run_link
        self._configurations = results.configurations
        self._numbers = {each.name: number for number, each in enumerate(results.configurations, 1)}

    def sections(self) -> list[Section]:
        """The parts that there is something to show for, in their order."""
        comparisons = "".join(map(self._comparison, self._results.comparisons))
        parts = (
            Section("verdict", "", self._headlines()),
            Section("success", self.say("Right answers"), self._successes()),
            Section("tradeoffs", self.say("What being right costs"), self._scatters()),
            Section("differences", self.say("Compared in pairs"), comparisons),
            Section("outcomes", self.say("What became of the trials"), self._outcomes()),
            Section("categories", self.say("By kind of case"), self._categories()),
            Section("cases", self.say("Map of the cases"), self._case_map()),
            Section("figures", self.say("All figures"), self._figures()),
            Section("failures", self.say("Trials that are not right"), self.failures()),
        )
        return [part for part in parts if part.body]

    def say(self, text: str, /, **values: object) -> str:
        """A text in the language of the report."""
        return translate(text, self._language, **values)

    def _headlines(self) -> str:
        lines = headlines(self._results, self._language)
        return outcome_patterns() + "".join(
            tag("p", inert(line.text), kind=f"headline t-{line.tone}") for line in lines
        )

    # Success

    def _successes(self) -> str:
        rows = (
            [self._name_cell(each), *self._share_cells(each.metrics.get(SUCCESS, _NO_FIGURE))]
            for each in self._configurations
        )
        return self._share_table(self.say("Configuration"), rows, self.say("Right answers"))

    def _share_table(self, what: str, rows: Iterable[Iterable[str]], label: str) -> str:
        heads = (
            head(what),
            head(self.say("right"), "number"),
            tag("td", share_axis(), kind="picture"),
            head(self.say("95% interval"), "interval"),
            head(self.say("trials"), "number"),
        )
        return table(heads, rows, kind="plot", label=label)

    def _share_cells(self, figure: MetricValue) -> Iterator[str]:
        interval = format_interval(SUCCESS, figure, self._language)
        yield tag("td", format_value(SUCCESS, figure.value, self._language), kind="number big")
        yield tag("td", share_plot(figure), kind="picture")
        yield tag("td", inert(interval or UNKNOWN), kind="interval", title=self._notes(figure))
        yield tag("td", f"{figure.n:,}", kind="number")

    def _notes(self, figure: MetricValue) -> str | None:
        return "; ".join(note_texts(figure, self._language)) or None

    def _name_cell(self, configuration: ConfigurationResults) -> str:
        return row_head(self._named(configuration.name))

    def _named(self, name: str, text: str | None = None) -> str:
        """The name of a configuration, or a text about it, after its number."""
        return tag("span", self._badge(name), inert(name if text is None else text), kind="named")

    def _badge(self, name: str) -> str:
        if len(self._configurations) == 1 or name not in self._numbers:
            return ""
        return tag("b", str(self._numbers[name]), kind="badge-number", title=name)

    # Trade-offs

    def _scatters(self) -> str:
        plots = "".join(map(self._scatter, _SCATTERS))
        if not plots:
            return ""
        plots = tag("div", plots, kind="scatters")
        if len(self._configurations) == 1:
            return plots
        legend = (tag("li", self._named(each.name)) for each in self._configurations)
        note = self.say("The upper left is best. Hollow: another one is at least as good in both, and better in one.")
        return tag("p", inert(note), kind="quiet") + plots + tag("ul", *legend, kind="legend")

    def _scatter(self, metric: str) -> str:
        points = [
            ScatterPoint(
                label=str(self._numbers[each.name]) if len(self._configurations) > 1 else "",
                text=f"{each.name}\n{self._figure_text(SUCCESS, each)}\n{self._figure_text(metric, each)}",
                x=each.metrics.get(metric, _NO_FIGURE),
                y=each.metrics.get(SUCCESS, _NO_FIGURE),
            )
            for each in self._configurations
        ]
        if not any(point.is_known for point in points):
            return ""
        values = scatter_ticks([point.x for point in points])
        ticks = [(value, format_value(metric, value, self._language)) for value in values]
        label = metric_label(metric, self._language)
        title = self.say("Task success against {metric}", metric=label)
        description = "; ".join(point.text.replace("\n", ", ") for point in points)
        picture = scatter_plot(points, title=title, description=description, ticks=ticks)
        return tag("figure", tag("figcaption", inert(label)), picture, kind="card")

    def _figure_text(self, metric: str, configuration: ConfigurationResults) -> str:
        figure = configuration.metrics.get(metric, _NO_FIGURE)
        interval = format_interval(metric, figure, self._language)
        value = format_value(metric, figure.value, self._language)
        return f"{metric_label(metric, self._language)}: {value}{f' ({interval})' if interval else ''}"

    # Comparisons

    def _comparison(self, comparison: Comparison) -> str:
        title = self.say("{second} compared with {first}", first=comparison.first, second=comparison.second)
        heads = (
            head(self.say("Metric")),
            head(self.say("Verdict")),
            head(self.say("Difference"), "number"),
            head(self.say("Its 95% interval, around zero"), "picture"),
            head("", "interval"),
            head(self.say("p, corrected"), "number"),
            head(self.say("Cases that would decide"), "number"),
        )
        rows = (self._difference_cells(each) for each in comparison.metrics if each.difference.value is not None)
        heading = tag("h3", self._named(comparison.second, title))
        return heading + table(heads, rows, kind="plot differences", label=title) + self._left_out(comparison)

    def _left_out(self, comparison: Comparison) -> str:
        groups = (
            (mark("{n} case is only in the first:|{n} cases are only in the first:"), comparison.only_first),
            (mark("{n} case is only in the second:|{n} cases are only in the second:"), comparison.only_second),
            (
                mark("{n} case was changed and is not compared:|{n} cases were changed and are not compared:"),
                comparison.changed,
            ),
            (mark("{n} flaky case is not compared:|{n} flaky cases are not compared:"), comparison.quarantined),
        )
        return "".join(
            tag("p", inert(f"{self.say(text, n=len(cases))} {self._listed(cases)}"), kind="quiet")
            for text, cases in groups
            if cases
        )

    def _listed(self, names: Sequence[str]) -> str:
        text = self.say(", ").join(names[:_MOST_NAMED])
        return f"{text}…" if len(names) > _MOST_NAMED else text

    def _difference_cells(self, each: MetricComparison) -> Iterator[str]:
        metric, figure = each.metric, each.difference
        yield row_head(inert(metric_label(metric, self._language)))
        yield tag("td", tag("span", verdict_text(each.verdict, self._language), kind=f"verdict v-{each.verdict}"))
        yield tag("td", inert(format_difference(metric, figure.value, self._language)), kind="number big")
        yield tag("td", difference_plot(figure, each.verdict), kind="picture")
        interval = format_difference_interval(metric, figure, self._language)
        yield tag("td", inert(interval), kind="interval", title=self._notes(figure))
        yield tag("td", inert(format_p(each.p_corrected)), kind="number", title=each.test)
        yield tag("td", "" if each.cases_needed is None else f"{each.cases_needed:,}", kind="number")

    # Trials and cases

    def _outcomes(self) -> str:
        counts = outcomes_by_configuration(self._results)
        present = [outcome for outcome in OUTCOMES if any(each[outcome] for each in counts.values())]
        if not present:
            return ""
        names = {outcome: self._outcome_text(outcome) for outcome in present}
        heads = (
            head(self.say("Configuration")),
            tag("td", kind="picture"),
            *(head(outcome_swatch(outcome) + inert(f" {names[outcome]}"), "number") for outcome in present),
        )
        rows = []
        for configuration in self._configurations:
            number = counts[configuration.name]
            parts = [(outcome, number[outcome], f"{names[outcome]}: {number[outcome]:,}") for outcome in present]
            cells = (tag("td", f"{number[outcome]:,}", kind="number") for outcome in present)
            rows.append([self._name_cell(configuration), tag("td", outcome_plot(parts), kind="picture"), *cells])
        return table(heads, rows, kind="plot outcomes", label=self.say("What became of the trials"))

    def _outcome_text(self, outcome: str) -> str:
        return self.say("right") if outcome == "right" else fault_text(outcome, self._language)

    def _categories(self) -> str:
        if len({category for each in self._configurations for category in each.by_category}) < 2:
            return ""
        tables = []
        for each in self._configurations:
            rows = (
                [row_head(inert(category_text(category, self._language))), *self._share_cells(figure)]
                for category, figure in each.by_category.items()
            )
            content = self._share_table(self.say("Kind of case"), rows, each.name)
            tables.append(content if len(self._configurations) == 1 else disclosure(self._named(each.name), content))
        return "".join(tables)

    def _case_map(self) -> str:
        tallies = tally_cases(self._results.trials)
        if not tallies:
            return ""
        bins = bin_cases(tallies, _MOST_BINS)
        is_named = len(tallies) <= _MOST_NAMED_CASES
        rows = []
        for each in self._configurations:
            texts = [self._bin_text(case_bin, each.name) for case_bin in bins] if is_named else []
            rows.append([self._name_cell(each), tag("td", case_map(bins, each.name, texts), kind="picture")])
        size = round(len(tallies) / len(bins))
        note = self.say(
            "Each column is one case; those that were hardest for all are on the left.|"
            "Each column is about {n} cases; those that were hardest for all are on the left.",
            n=size,
        )
        label = self.say("Map of the cases")
        return tag("p", inert(note), kind="quiet") + table((), rows, kind="plot map", label=label) + self._map_legend()

    def _map_legend(self) -> str:
        steps = (
            (1.0, self.say("always right")),
            (0.9, "≥ 90%"),
            (0.5, "≥ 50%"),
            (0.1, "< 50%"),
            (0.0, self.say("never right")),
            (None, self.say("not counted")),
        )
        return tag("ul", *(tag("li", step_swatch(share), inert(f" {text}")) for share, text in steps), kind="legend")

    def _bin_text(self, case_bin: CaseBin, configuration: str) -> str:
        case = case_bin.cases[0]
        counted = case.counted.get(configuration, 0)
        return f"{case.case_id}: {f'{case.right[configuration]}/{counted}' if counted else UNKNOWN}"

    # Figures and failures

    def _figures(self) -> str:
        unlisted = sorted({name for each in self._configurations for name in each.metrics} - METRIC_TEXTS.keys())
        rows, empty = [], []
        for name in (*METRIC_TEXTS, *unlisted):
            figures = [each.metrics[name] for each in self._configurations if name in each.metrics]
            if not figures:
                continue
            label = metric_label(name, self._language)
            if all(figure.value is None for figure in figures):
                empty.append(label)
                continue
            cells = (self._figure_cell(name, each.metrics.get(name, _NO_FIGURE)) for each in self._configurations)
            rows.append([row_head(inert(label) + tag("span", _ARROWS[metric_text(name).better], kind="quiet")), *cells])
        heads = ("<td></td>", *(head(self._named(each.name)) for each in self._configurations))
        note = self.say("↑ more is better, ↓ less is better; n is what was counted.")
        rest = self.say("There was nothing to count for: {metrics}.", metrics=self.say(", ").join(empty))
        return (
            tag("p", inert(note), kind="quiet")
            + table(heads, rows, kind="figures", label=self.say("All figures"))
            + (tag("p", inert(rest), kind="quiet") if empty else "")
        )

    def _figure_cell(self, name: str, figure: MetricValue) -> str:
        if figure.value is None:
            return tag("td", UNKNOWN, kind="quiet")
        interval = format_interval(name, figure, self._language)
        small = tag("small", tag("span", inert(interval)), " ", tag("span", f"n {figure.n:,}"))
        return tag(
            "td", tag("b", inert(format_value(name, figure.value, self._language))), small, title=self._notes(figure)
        )

    def failures(self) -> str:
        """The trials that are not right, by whose fault it is; the first of many."""
        return "".join(
            disclosure(
                f"{outcome_swatch(outcome)} {inert(self._outcome_text(outcome))} {tag('b', f'{len(trials):,}')}",
                self._trial_table(trials, self._outcome_text(outcome)),
            )
            for outcome, trials in failed_trials(self._results).items()
        )

    def _trial_table(self, trials: Sequence[TrialRecord], label: str) -> str:
        heads = map(
            head,
            (
                self.say("Case"),
                self.say("Configuration"),
                self.say("What was wrong"),
                self.say("Answer"),
                self.say("Run"),
            ),
        )
        content = table(heads, map(self._trial_cells, trials[:_MOST_TRIALS]), kind="trials", label=label)
        rest = len(trials) - _MOST_TRIALS
        more = self.say("{number} more are in the JSON file and in the panel.", number=f"{rest:,}")
        return content + (tag("p", inert(more), kind="quiet") if rest > 0 else "")

    def _trial_cells(self, trial: TrialRecord) -> Iterator[str]:
        answer = trial.answer or ""
        shortened = answer[:_ANSWER_CHARS] + ("…" if len(answer) > _ANSWER_CHARS else "")
        yield row_head(inert(trial.case_id))
        yield tag("td", self._badge(trial.configuration) or inert(trial.configuration))
        yield tag("td", inert(reason_of(trial) or trial.fault_rule), tag("small", inert(trial.status)))
        yield tag("td", inert(shortened) if answer else tag("i", self.say("no answer")))
        yield tag("td", self._run_link(trial.run_id))
