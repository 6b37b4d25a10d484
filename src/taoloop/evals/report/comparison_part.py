"""Comparisons as HTML: the verdict on each metric, its difference with the interval, and what would decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from taoloop.evals.report.figures import (
    format_difference,
    format_difference_interval,
    format_p,
    metric_label,
    verdict_text,
)
from taoloop.evals.report.headlines import SUCCESS, split_comparisons
from taoloop.evals.report.labels import ReportLabels
from taoloop.evals.report.markup import disclosure, head, inert, row_head, table, tag
from taoloop.evals.report.plots import difference_plot
from taoloop.evals.results import MetricComparison, PairedComparison, Results
from taoloop.translation import mark

_MOST_OPEN = 2
_MOST_NAMED = 8
_SIGNS = {"better": "▲", "worse": "▼", "inconclusive": "·"}


def comparison_part(results: Results, labels: ReportLabels) -> str:
    """The part of the report about all comparisons; "" if there is none.

    Of more than two there are tables of the verdicts first, of those with a baseline in one of their own, and each
    comparison opens when it is clicked.
    """
    comparisons = results.comparisons
    if len(comparisons) <= _MOST_OPEN:
        return "".join(tag("h3", _title(each, labels)) + _comparison(each, labels) for each in comparisons)
    details = (disclosure(_title(each, labels), _comparison(each, labels)) for each in comparisons)
    tables = (_verdict_table(group, labels) for group in split_comparisons(results) if group)
    return "".join(tables) + "".join(details)


def _title(comparison: PairedComparison, labels: ReportLabels) -> str:
    return labels.named(comparison.second, _title_text(comparison, labels))


def _title_text(comparison: PairedComparison, labels: ReportLabels) -> str:
    return labels.say("{second} compared with {first}", first=comparison.first, second=comparison.second)


def _verdict_table(comparisons: Sequence[PairedComparison], labels: ReportLabels) -> str:
    """The verdicts of all comparisons, but for metrics on which none has one."""
    verdicts = [{each.metric: each.verdict for each in comparison.metrics} for comparison in comparisons]
    names = dict.fromkeys(each.metric for comparison in comparisons for each in comparison.metrics)
    decided = [name for name in names if name == SUCCESS or any(of.get(name) in ("better", "worse") for of in verdicts)]
    heads = (
        "<td></td>",
        *(
            tag("th", labels.badge(each.second) or inert(each.second), scope="col", title=_title_text(each, labels))
            for each in comparisons
        ),
    )
    rows = (
        [row_head(inert(metric_label(name, labels.language))), *(_sign_cell(of.get(name), labels) for of in verdicts)]
        for name in decided
    )
    firsts = labels.say(", ").join(dict.fromkeys(comparison.first for comparison in comparisons))
    note = labels.say(
        "Compared with {first}: ▲ better, ▼ worse, · inconclusive. Metrics without any verdict are left out.",
        first=firsts,
    )
    return tag("p", inert(note), kind="quiet") + table(
        heads, rows, kind="verdicts", label=labels.say("Verdicts of all comparisons")
    )


def _sign_cell(verdict: str | None, labels: ReportLabels) -> str:
    if verdict is None:
        return "<td></td>"
    text = verdict_text(verdict, labels.language)
    return tag("td", tag("span", _SIGNS[verdict], kind=f"sign v-{verdict}", title=text, role="img", aria_label=text))


def _comparison(comparison: PairedComparison, labels: ReportLabels) -> str:
    counted = [each for each in comparison.metrics if each.difference.value is not None]
    decided = [each for each in counted if each.verdict != "inconclusive" or each.metric == SUCCESS]
    rest = [each for each in counted if each not in decided]
    content = _difference_table(decided, comparison, labels)
    if rest:
        summary = labels.say("{n} more metric is inconclusive|{n} more metrics are inconclusive", n=len(rest))
        content += disclosure(inert(summary), _difference_table(rest, comparison, labels))
    return content + _left_out(comparison, labels)


def _difference_table(metrics: Iterable[MetricComparison], comparison: PairedComparison, labels: ReportLabels) -> str:
    heads = (
        head(labels.say("Metric")),
        head(labels.say("Verdict")),
        head(labels.say("Difference"), "number"),
        head(labels.say("Its 95% interval, around zero"), "picture"),
        head("", "interval"),
        head(labels.say("p, corrected"), "number"),
        head(labels.say("Cases needed"), "number"),
    )
    rows = (_difference_cells(each, labels) for each in metrics)
    return table(heads, rows, kind="plot differences", label=_title_text(comparison, labels))


def _difference_cells(each: MetricComparison, labels: ReportLabels) -> Iterator[str]:
    metric, figure, language = each.metric, each.difference, labels.language
    yield row_head(inert(metric_label(metric, language)))
    yield tag("td", tag("span", inert(verdict_text(each.verdict, language)), kind=f"verdict v-{each.verdict}"))
    yield tag("td", inert(format_difference(metric, figure.value, language)), kind="number big")
    yield tag("td", difference_plot(figure, each.verdict), kind="picture")
    interval = format_difference_interval(metric, figure, language)
    yield tag("td", inert(interval), kind="interval", title=labels.notes(figure))
    yield tag("td", inert(format_p(each.p_corrected)), kind="number", title=each.test)
    yield tag("td", "" if each.cases_needed is None else f"{each.cases_needed:,}", kind="number")


def _left_out(comparison: PairedComparison, labels: ReportLabels) -> str:
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
        tag("p", inert(f"{labels.say(text, n=len(cases))} {_listed(cases, labels)}"), kind="quiet")
        for text, cases in groups
        if cases
    )


def _listed(names: Sequence[str], labels: ReportLabels) -> str:
    text = labels.say(", ").join(names[:_MOST_NAMED])
    return f"{text}…" if len(names) > _MOST_NAMED else text
