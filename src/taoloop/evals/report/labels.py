"""What the parts of a report write alike: texts in its language, configurations by number, figures with intervals."""

from __future__ import annotations

from taoloop.evals.report.figures import format_interval, format_value, metric_label, note_texts
from taoloop.evals.report.markup import inert, tag
from taoloop.evals.results import ConfigurationResults, MetricValue, Results, translate


class ReportLabels:
    """Labels of one report.

    Args:
        results: What is reported.
        language: `en` or `zh`.
    """

    def __init__(self, results: Results, language: str) -> None:
        self.language = language
        several = len(results.configurations) > 1
        self._numbers = {each.name: number for number, each in enumerate(results.configurations, 1) if several}

    def say(self, text: str, /, **values: object) -> str:
        """A text in the language of the report."""
        return translate(text, self.language, **values)

    def number(self, name: str) -> str:
        """The number of a configuration, by which plots name it; "" if it is the only one or of another result."""
        return str(self._numbers.get(name, ""))

    def badge(self, name: str) -> str:
        """The number of a configuration as HTML; "" where it has none."""
        number = self.number(name)
        return tag("b", number, kind="badge-number", title=name) if number else ""

    def named(self, name: str, text: str | None = None) -> str:
        """The name of a configuration, or a text about it, after its number; HTML."""
        return tag("span", self.badge(name), inert(name if text is None else text), kind="named")

    def notes(self, figure: MetricValue) -> str | None:
        """What a reader must know of a figure's interval; None if nothing."""
        return "; ".join(note_texts(figure, self.language)) or None

    def figure_text(self, metric: str, configuration: ConfigurationResults) -> str:
        """A metric of a configuration with its interval on one line."""
        figure = configuration.figure(metric)
        interval = format_interval(metric, figure, self.language)
        value = format_value(metric, figure.value, self.language)
        return f"{metric_label(metric, self.language)}: {value}{f' ({interval})' if interval else ''}"
