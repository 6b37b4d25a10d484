"""The parts of a report as HTML: the page of `tao eval --html` and the panel show the same ones.

Names, answers and reasons are untrusted: all of them are escaped. There are no styles and no scripts in the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from taoloop.core.text import join_sentences
from taoloop.evals.fault_classes import rule_text
from taoloop.evals.metrics import METRICS
from taoloop.evals.report.comparison_part import comparison_part
from taoloop.evals.report.figures import (
    UNKNOWN,
    better_direction,
    category_text,
    format_interval,
    format_tick,
    format_value,
    metric_formula,
    metric_label,
    outcome_text,
)
from taoloop.evals.report.headlines import SUCCESS, figure_notes, headlines
from taoloop.evals.report.labels import ReportLabels
from taoloop.evals.report.markup import disclosure, head, inert, row_head, table, tag
from taoloop.evals.report.plots import (
    case_map,
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
from taoloop.evals.results import NO_FIGURE, ConfigurationResults, MetricValue, Results
from taoloop.evals.trial_records import TrialRecord

RunLink = Callable[[str], str]
"""Makes the HTML that leads to a run, from its id."""

_SCATTERS = ("cost_usd", "mean_steps", "latency_p50_s")
_MOST_BINS, _MOST_NAMED_CASES = 240, 60
_MOST_TRIALS = 40
_ANSWER_CHARS = 300
_ARROWS = {"higher": " ↑", "lower": " ↓", None: ""}


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
        self._labels = ReportLabels(results, language)
        self._say = self._labels.say
        self._has_frames = len({each.is_frame for each in self._configurations}) > 1

    def sections(self) -> list[Section]:
        """The parts that there is something to show for, in their order."""
        parts = (
            Section("verdict", "", self._headlines()),
            Section("success", self._say("Right answers"), self._successes()),
            Section("tradeoffs", self._say("What being right costs"), self._scatters()),
            Section("differences", self._say("Compared in pairs"), comparison_part(self._results, self._labels)),
            Section("outcomes", self._say("What became of the trials"), self._outcomes()),
            Section("categories", self._say("By kind of case"), self._categories()),
            Section("cases", self._say("Map of the cases"), self._case_map()),
            Section("figures", self._say("All figures"), self._figures()),
            Section("failures", self._say("Trials that are not right"), self.failures()),
        )
        return [part for part in parts if part.body]

    def _headlines(self) -> str:
        lines = headlines(self._results, self._language)
        sentences = (
            tag("p", inert(each.text), kind=f"headline t-{each.tone}") for each in lines if each.tone != "warn"
        )
        warnings = [tag("li", inert(each.text)) for each in lines if each.tone == "warn"]
        return outcome_patterns() + "".join(sentences) + (tag("ul", *warnings, kind="warnings") if warnings else "")

    # Success

    def _successes(self) -> str:
        rows = ([self._name_cell(each), *self._share_cells(each.figure(SUCCESS))] for each in self._configurations)
        return self._share_table(self._say("Configuration"), rows, self._say("Right answers"))

    def _share_table(self, what: str, rows: Iterable[Iterable[str]], label: str) -> str:
        heads = (
            head(what),
            head(self._say("right"), "number"),
            tag("td", share_axis(), kind="picture"),
            head(self._say("95% interval"), "interval"),
            head(self._say("trials"), "number"),
        )
        return table(heads, rows, kind="plot", label=label)

    def _share_cells(self, figure: MetricValue) -> Iterator[str]:
        interval = format_interval(SUCCESS, figure, self._language)
        yield tag("td", format_value(SUCCESS, figure.value, self._language), kind="number big")
        yield tag("td", share_plot(figure), kind="picture")
        yield tag("td", inert(interval or UNKNOWN), kind="interval", title=self._labels.notes(figure))
        yield tag("td", f"{figure.n:,}", kind="number")

    def _name_cell(self, configuration: ConfigurationResults) -> str:
        return row_head(self._labels.named(configuration.name))

    # Trade-offs

    def _scatters(self) -> str:
        plots = "".join(map(self._scatter, _SCATTERS))
        if not plots:
            return ""
        plots = tag("div", plots, kind="scatters")
        if len(self._configurations) == 1:
            return plots
        legend = (tag("li", self._labels.named(each.name)) for each in self._configurations)
        note = self._say(
            "The upper left is best; lines are 95% intervals. "
            "Hollow: another configuration is at least as good in both figures and better in one, "
            "which is not a verdict."
        )
        if self._has_frames:
            note = join_sentences(note, self._say("Grey: no language model; it frames the others."))
        return tag("p", inert(note), kind="quiet") + plots + tag("ul", *legend, kind="legend")

    def _scatter(self, metric: str) -> str:
        points = [
            ScatterPoint(
                label=self._labels.number(each.name),
                text="\n".join((each.name, *(self._labels.figure_text(name, each) for name in (SUCCESS, metric)))),
                x=each.figure(metric),
                y=each.figure(SUCCESS),
                is_frame=self._has_frames and each.is_frame,
            )
            for each in self._configurations
        ]
        if not any(point.is_known and point.x.value for point in points):
            return ""  # nothing is known, or nothing is spent
        values = scatter_ticks([point.x for point in points])
        ticks = [(value, format_tick(metric, value, self._language)) for value in values]
        label = metric_label(metric, self._language)
        title = self._say("Task success against {metric}", metric=label)
        description = "; ".join(point.text.replace("\n", ", ") for point in points)
        picture = scatter_plot(points, title=title, description=description, ticks=ticks)
        return tag("figure", tag("figcaption", inert(label)), picture, kind="card")

    # Trials and cases

    def _outcomes(self) -> str:
        counts = outcomes_by_configuration(self._results)
        present = [outcome for outcome in OUTCOMES if any(each[outcome] for each in counts.values())]
        if not present:
            return ""
        names = {outcome: outcome_text(outcome, self._language) for outcome in present}
        heads = (
            head(self._say("Configuration")),
            tag("td", kind="picture"),
            *(head(outcome_swatch(outcome) + inert(f" {names[outcome]}"), "number") for outcome in present),
        )
        rows = []
        for configuration in self._configurations:
            number = counts[configuration.name]
            parts = [(outcome, number[outcome], f"{names[outcome]}: {number[outcome]:,}") for outcome in present]
            cells = (tag("td", f"{number[outcome]:,}", kind="number") for outcome in present)
            rows.append([self._name_cell(configuration), tag("td", outcome_plot(parts), kind="picture"), *cells])
        note = self._say(
            "At fault: who is to blame for a trial that is not right, by the first rule that applies. "
            "An agent and its tools are measured together. "
            "Where the environment, a simulated person or a judge is to blame, the trial is invalid."
        )
        content = table(heads, rows, kind="plot outcomes", label=self._say("What became of the trials"))
        return content + tag("p", inert(note), kind="quiet")

    def _categories(self) -> str:
        categories = list(dict.fromkeys(category for each in self._configurations for category in each.by_category))
        if len(categories) < 2:
            return ""
        label = self._say("By kind of case")
        names = [inert(category_text(category, self._language)) for category in categories]
        if len(self._configurations) == 1:
            figures = self._configurations[0].by_category
            rows = (
                [row_head(name), *self._share_cells(figures[category])]
                for category, name in zip(categories, names, strict=True)
            )
            return self._share_table(self._say("Kind of case"), rows, label)
        cells = (
            [
                self._name_cell(each),
                *(self._category_cell(each.by_category.get(category, NO_FIGURE)) for category in categories),
            ]
            for each in self._configurations
        )
        return table((head(self._say("Configuration")), *map(head, names)), cells, kind="plot categories", label=label)

    def _category_cell(self, figure: MetricValue) -> str:
        text = tag("b", inert(format_value(SUCCESS, figure.value, self._language)))
        interval = format_interval(SUCCESS, figure, self._language)
        return tag("td", text, share_plot(figure), title=interval or None)

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
        note = self._say(
            "Each column is one case; those that were hardest for all are on the left.|"
            "Each column is about {n} cases; those that were hardest for all are on the left.",
            n=size,
        )
        label = self._say("Map of the cases")
        return tag("p", inert(note), kind="quiet") + table((), rows, kind="plot map", label=label) + self._map_legend()

    def _map_legend(self) -> str:
        steps = (
            (1.0, self._say("always right")),
            (0.9, "≥ 90%"),
            (0.5, "≥ 50%"),
            (0.1, "< 50%"),
            (0.0, self._say("never right")),
            (None, self._say("not counted")),
        )
        return tag("ul", *(tag("li", step_swatch(share), inert(f" {text}")) for share, text in steps), kind="legend")

    def _bin_text(self, case_bin: CaseBin, configuration: str) -> str:
        case = case_bin.cases[0]
        counted = case.counted.get(configuration, 0)
        return f"{case.case_id}: {f'{case.right[configuration]}/{counted}' if counted else UNKNOWN}"

    # Figures and failures

    def _figures(self) -> str:
        unlisted = sorted({name for each in self._configurations for name in each.metrics} - METRICS.keys())
        rows, empty = [], []
        for name in (*METRICS, *unlisted):
            figures = [each.metrics[name] for each in self._configurations if name in each.metrics]
            if not figures:
                continue
            label = metric_label(name, self._language)
            if all(figure.value is None for figure in figures):
                empty.append(label)
                continue
            cells = (self._figure_cell(name, each.figure(name)) for each in self._configurations)
            rows.append([self._metric_head(name), *cells])
        heads = ("<td></td>", *(head(self._labels.named(each.name)) for each in self._configurations))
        note = self._say("↑ more is better, ↓ less is better; n is what was counted.")
        rest = self._say("There was nothing to count for: {metrics}.", metrics=self._say(", ").join(empty))
        return (
            tag("p", inert(note), kind="quiet")
            + table(heads, rows, kind="metrics", label=self._say("All figures"))
            + (tag("p", inert(rest), kind="quiet") if empty else "")
            + "".join(tag("p", inert(text), kind="quiet") for text in figure_notes(self._results, self._language))
        )

    def _metric_head(self, name: str) -> str:
        arrow = tag("span", _ARROWS[better_direction(name)], kind="quiet")
        formula = metric_formula(name, self._language) or None
        return tag("th", inert(metric_label(name, self._language)), arrow, scope="row", title=formula)

    def _figure_cell(self, name: str, figure: MetricValue) -> str:
        if figure.value is None:
            return tag("td", UNKNOWN, kind="quiet")
        value = tag("b", inert(format_value(name, figure.value, self._language)))
        interval = tag("small", inert(format_interval(name, figure, self._language)))
        return tag(
            "td", value, tag("span", f" n {figure.n:,}", kind="quiet"), interval, title=self._labels.notes(figure)
        )

    def failures(self) -> str:
        """The trials that are not right, by whose fault it is; the first of many."""
        parts = []
        for outcome, trials in failed_trials(self._results).items():
            text = outcome_text(outcome, self._language)
            summary = f"{outcome_swatch(outcome)} {inert(text)} {tag('b', f'{len(trials):,}')}"
            parts.append(disclosure(summary, self._trial_table(trials, text)))
        return "".join(parts)

    def _trial_table(self, trials: Sequence[TrialRecord], label: str) -> str:
        heads = map(
            head,
            (
                self._say("Case"),
                self._say("Configuration"),
                self._say("What was wrong"),
                self._say("Answer"),
                self._say("Run"),
            ),
        )
        content = table(heads, map(self._trial_cells, trials[:_MOST_TRIALS]), kind="trials", label=label)
        rest = len(trials) - _MOST_TRIALS
        more = self._say("{number} more are in the JSON file and in the panel.", number=f"{rest:,}")
        return content + (tag("p", inert(more), kind="quiet") if rest > 0 else "")

    def _trial_cells(self, trial: TrialRecord) -> Iterator[str]:
        answer = trial.answer or ""
        shortened = answer[:_ANSWER_CHARS] + ("…" if len(answer) > _ANSWER_CHARS else "")
        yield row_head(inert(trial.case_id))
        yield tag("td", self._labels.named(trial.configuration))
        yield tag(
            "td",
            inert(reason_of(trial, self._language)),
            tag("small", inert(rule_text(trial.fault_rule, self._language))),
        )
        yield tag("td", inert(shortened) if answer else tag("i", self._say("no answer")))
        yield tag("td", self._run_link(trial.run_id))
