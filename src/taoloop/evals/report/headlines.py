"""Results in a few sentences: who was right how often, what the comparisons say, and what a reader must beware of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from taoloop.core.text import join_sentences
from taoloop.evals.metrics import METRICS
from taoloop.evals.report.figures import (
    format_difference,
    format_difference_interval,
    format_interval,
    format_p,
    format_share,
    metric_label,
    note_texts,
)
from taoloop.evals.results import MetricComparison, MetricValue, PairedComparison, Results, Verdict, translate
from taoloop.translation import mark

Tone = Literal["good", "bad", "warn", "plain"]

SUCCESS = "task_success"
"""The metric that comes first."""

_MOST_NAMED = 5
_MOST_COMPARISONS = 2


@dataclass(frozen=True, slots=True)
class Headline:
    """A sentence or two, and how it is meant."""

    text: str
    """The sentences."""
    tone: Tone
    """`good` and `bad` are the verdicts of comparisons, `warn` is what a reader must beware of."""


def headlines(results: Results, language: str | None = None) -> list[Headline]:
    """The sentences, the most important first."""
    return [
        *_successes(results, language),
        *_verdicts(results, language),
        *_judges(results, language),
        *warnings(results, language),
    ]


def _successes(results: Results, language: str | None) -> Iterator[Headline]:
    framed = [configuration for configuration in results.configurations if not configuration.is_frame]
    rated = [
        (configuration.metrics[SUCCESS], configuration.name)
        for configuration in framed or results.configurations
        if SUCCESS in configuration.metrics and configuration.metrics[SUCCESS].value is not None
    ]
    if not rated:
        yield Headline(translate("No trial is valid, so there are no figures.", language), "warn")
        return
    rated.sort(key=lambda pair: -(pair[0].value or 0.0))
    if len(rated) <= 2:
        texts = [_rate_text([pair], language) for pair in rated]
        yield Headline(join_sentences(*texts), "plain")
        return
    most, least = ([pair for pair in rated if pair[0].value == end[0].value] for end in (rated[0], rated[-1]))
    if most == least:
        text = join_sentences(translate("Equally often right:", language), _rate_text(most, language))
    else:
        text = join_sentences(
            translate("Most often right:", language),
            _rate_text(most, language),
            translate("Least often:", language),
            _rate_text(least, language),
        )
    yield Headline(text, "plain")


def _rate_text(rated: Sequence[tuple[MetricValue, str]], language: str | None) -> str:
    """How often configurations are right that are right equally often; their interval, if it is that of all."""
    figure, name = rated[0][0], _listed([name for _, name in rated], language)
    share, interval = format_share(figure.value or 0.0), format_interval(SUCCESS, figure, language)
    if not interval or any((other.low, other.high) != (figure.low, figure.high) for other, _ in rated):
        return translate("{name}: {share} right.", language, name=name, share=share)
    text = mark("{name}: {share} right (95% interval {interval}).")
    return translate(text, language, name=name, share=share, interval=interval)


def _verdicts(results: Results, language: str | None) -> Iterator[Headline]:
    """What the comparisons say, one by one or, if there are many, by their verdict on success."""
    if len(results.comparisons) <= _MOST_COMPARISONS:
        yield from (comparison_headline(comparison, language) for comparison in results.comparisons)
        return
    with_each_other, with_baseline = split_comparisons(results)
    if with_each_other:
        yield Headline(_verdict_sentences(with_each_other, language), "plain")
    if with_baseline:
        text = translate("Compared with the baseline:", language)
        yield Headline(join_sentences(text, _verdict_sentences(with_baseline, language)), "plain")


def split_comparisons(results: Results) -> tuple[list[PairedComparison], list[PairedComparison]]:
    """The comparisons of these configurations with each other, and those with configurations of a baseline."""
    names = {configuration.name for configuration in results.configurations}
    with_each_other = [each for each in results.comparisons if each.first in names]
    return with_each_other, [each for each in results.comparisons if each.first not in names]


def _verdict_sentences(comparisons: list[PairedComparison], language: str | None) -> str:
    """The second configurations of comparisons, by their verdict on success."""
    groups: dict[str, list[str]] = {"better": [], "worse": [], "inconclusive": []}
    for comparison in comparisons:
        if (success := _success_of(comparison)) is not None:
            groups[success.verdict].append(comparison.second)
    texts = {
        "better": translate("Right more often than what they are compared with:", language),
        "worse": translate("Right less often:", language),
        "inconclusive": translate("Not decided:", language),
    }
    parts = (
        f"{join_sentences(texts[verdict], _listed(names, language))}{_stop(language)}"
        for verdict, names in groups.items()
        if names
    )
    return join_sentences(*parts)


def comparison_headline(comparison: PairedComparison, language: str | None = None) -> Headline:
    """What a comparison says of success, and in which other metrics the second configuration is better or worse."""
    success = _success_of(comparison)
    other_metrics = [each for each in comparison.metrics if each is not success]
    texts = [] if success is None else [_success_text(comparison, success, language)]
    for verdict, text in (
        ("better", translate("Better:", language)),
        ("worse", translate("Worse:", language)),
    ):
        labels = [metric_label(each.metric, language) for each in other_metrics if each.verdict == verdict]
        if labels:
            texts.append(f"{join_sentences(text, _listed(labels, language))}{_stop(language)}")
    verdicts = {each.verdict for each in comparison.metrics}
    return Headline(join_sentences(*texts), _tone(success.verdict if success else "inconclusive", verdicts))


def _success_of(comparison: PairedComparison) -> MetricComparison | None:
    return next((each for each in comparison.metrics if each.metric == SUCCESS), None)


def _success_text(comparison: PairedComparison, success: MetricComparison, language: str | None) -> str:
    names = {"first": comparison.first, "second": comparison.second}
    if success.verdict == "better":
        text = translate("{second} is right more often than {first}:", language, **names)
    elif success.verdict == "worse":
        text = translate("{second} is right less often than {first}:", language, **names)
    else:
        text = translate("Whether {second} or {first} is right more often is not decided:", language, **names)
    figure = success.difference
    interval = format_difference_interval(SUCCESS, figure, language)
    difference = format_difference(SUCCESS, figure.value, language)
    numbers = translate(
        "{difference} (95% interval {interval}), corrected p {p}, {n} pairs.",
        language,
        difference=difference,
        interval=interval or "–",
        p=format_p(success.p_corrected),
        n=figure.n,
    )
    needed = ""
    if success.verdict == "inconclusive" and success.cases_needed is not None:
        needed_text = mark(
            "If the true difference is this large, about {n} case would decide."
            "|If the true difference is this large, about {n} cases would decide."
        )
        needed = translate(needed_text, language, n=success.cases_needed)
    return join_sentences(text, numbers, needed)


def _tone(success: Verdict, verdicts: set[Verdict]) -> Tone:
    if success == "worse" or (success == "inconclusive" and "worse" in verdicts):
        return "bad"
    return "good" if success == "better" or "better" in verdicts else "plain"


def _judges(results: Results, language: str | None) -> Iterator[Headline]:
    """How far each calibrated judge can be believed, and the rates behind those that it measured."""
    for name, judge in results.judges.items():
        if not judge.get("calibrated"):
            continue
        figures = {part: _share_text(judge[part], language) for part in ("sensitivity", "specificity")}
        texts = [
            translate(
                "Judge {name}: agrees with people on {sensitivity} of what they marked right "
                "and on {specificity} of what they marked wrong.",
                language,
                name=name,
                **figures,
            )
        ]
        for configuration, rates in judge["rates"].items():
            values = {"name": configuration, "measured": _share_text(rates["measured"], language)}
            if rates["corrected"] is None:
                text = mark("{name}: the judge calls {measured} right; the true rate cannot be estimated.")
            else:
                text = mark(
                    "{name}: the judge calls {measured} right; "
                    "corrected for its errors, {corrected} (Rogan and Gladen 1978)."
                )
                values["corrected"] = _share_text(rates["corrected"], language)
            texts.append(translate(text, language, **values))
        yield Headline(join_sentences(*texts), "plain")


def _share_text(record: Mapping[str, Any], language: str | None) -> str:
    """A share with its interval; `record` has the fields of a `MetricValue`."""
    figure = MetricValue(**{**record, "notes": tuple(record.get("notes", ()))})
    share, interval = format_share(figure.value or 0.0), format_interval(SUCCESS, figure, language)
    return translate("{share} ({interval})", language, share=share, interval=interval)


def warnings(results: Results, language: str | None = None) -> Iterator[Headline]:
    """What a reader must beware of: notes, trials that do not count, flaky cases, judges that nobody has calibrated."""
    for note in results.notes:
        yield Headline(note, "warn")
    if invalid := sum(configuration.invalid for configuration in results.configurations):
        text = mark("{n} trial is invalid and counts in no rate.|{n} trials are invalid and count in no rate.")
        yield Headline(join_sentences(translate(text, language, n=invalid), _waiting(results, language)), "warn")
    flaky = list(dict.fromkeys(case for configuration in results.configurations for case in configuration.flaky))
    if flaky:
        text = translate(
            "{n} case is flaky and in quarantine:|{n} cases are flaky and in quarantine:", language, n=len(flaky)
        )
        yield Headline(f"{join_sentences(text, _listed(flaky, language))}{_stop(language)}", "warn")
    for name, judge in results.judges.items():
        if not judge.get("calibrated"):
            text = mark(
                "The judge {name} is not calibrated: how often it is wrong is unknown, "
                "and so is how far the figures that rest on it can be trusted. "
                "Mark some runs as right and some as wrong, with `tao mark` or in the panel."
            )
            yield Headline(translate(text, language, name=name), "warn")


def _waiting(results: Results, language: str | None) -> str:
    """In what invalid trials count all the same that wait for a person; "" without one."""
    waiting = sum(trial.awaits_nobody for trial in results.trials)
    if not waiting:
        return ""
    labels = [metric_label(name, language) for name, metric in METRICS.items() if metric.is_of_policy]
    text = mark(
        "{n} of them waits for a person whom the suite does not have, and shows what the policy did: "
        "it counts in {metrics}."
        "|{n} of them wait for a person whom the suite does not have, and show what the policy did: "
        "they count in {metrics}."
    )
    return translate(text, language, n=waiting, metrics=translate(", ", language).join(labels))


def figure_notes(results: Results, language: str | None = None) -> Iterator[str]:
    """What a reader must know of the intervals, each with the metrics that it is about."""
    metrics: dict[str, dict[str, None]] = {}
    for configuration in results.configurations:
        for name, figure in configuration.metrics.items():
            for note in note_texts(figure, language) if figure.low is not None else ():
                metrics.setdefault(note, {})[metric_label(name, language)] = None
    for note, labels in metrics.items():
        yield translate("{metrics}: {note}.", language, metrics=translate(", ", language).join(labels), note=note)
    if (k := max((configuration.k for configuration in results.configurations), default=1)) > 1:
        yield translate("pass@k and pass^k are for k = {k}.", language, k=k)


def _listed(names: list[str], language: str | None) -> str:
    separator = translate(", ", language)
    text = separator.join(names[:_MOST_NAMED])
    rest = len(names) - _MOST_NAMED
    return text if rest <= 0 else translate("{names} and {n} more", language, names=text, n=rest)


def _stop(language: str | None) -> str:
    return translate(".", language)
