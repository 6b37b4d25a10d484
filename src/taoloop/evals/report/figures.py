"""How metrics, their figures and their differences are written for people, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

from taoloop.evals.metrics import METRICS, Direction, Unit
from taoloop.evals.results import MetricValue, translate
from taoloop.translation import mark

UNKNOWN = "–"
"""What stands where there is no figure: none is not zero."""

_NOTES: Mapping[str, str] = mark(
    {
        "nothing_counted": "nothing was counted",
        "one_case": "one case: no interval",
        "no_variation": "all cases are alike, so the interval has no width",
        "few_cases": "too few cases for an interval",
        "unbounded": "the interval has no upper end",
        "partly_unknown": "trials whose value is unknown are left out",
    }
)

_VERDICTS: Mapping[str, str] = mark({"better": "better", "worse": "worse", "inconclusive": "inconclusive"})

_OUTCOMES: Mapping[str, str] = mark(
    {
        "right": "right",
        "agent": "agent at fault",
        "tool": "tool at fault",
        "environment": "environment at fault",
        "simulator": "simulator at fault",
        "judge": "judge at fault",
        "invalid": "invalid",
        "unassigned": "not assigned",
    }
)

_CATEGORIES: Mapping[str, str] = mark(
    {"normal": "normal", "edge": "edge", "failure": "failure", "safety": "safety", "regression": "regression"}
)


def metric_label(name: str, language: str | None = None) -> str:
    """The name of a metric in `language`; by default that of errors, as in all functions here.

    A metric of another version has its name in results as label.
    """
    return translate(METRICS[name].label, language) if name in METRICS else name.replace("_", " ")


def metric_formula(name: str, language: str | None = None) -> str:
    """The formula of a metric in words; "" for a metric of another version."""
    return translate(METRICS[name].formula, language) if name in METRICS else ""


def better_direction(name: str) -> Direction | None:
    """Which figures of a metric are better; None for a metric of another version."""
    return METRICS[name].better if name in METRICS else None


def verdict_text(verdict: str, language: str | None = None) -> str:
    """A verdict in `language`."""
    return translate(_VERDICTS[verdict], language)


def outcome_text(outcome: str, language: str | None = None) -> str:
    """An outcome of a trial in `language`: `right`, a fault, `unassigned` or `invalid`."""
    return translate(_OUTCOMES.get(outcome, outcome), language)


def category_text(category: str, language: str | None = None) -> str:
    """A category of cases in `language`."""
    return translate(_CATEGORIES.get(category, category), language)


def note_texts(figure: MetricValue, language: str | None = None) -> list[str]:
    """What a reader must know of a figure's interval."""
    return [translate(_NOTES.get(note, note), language) for note in figure.notes]


def format_value(metric: str, value: float | None, language: str | None = None) -> str:
    """A value of a metric with its unit, such as `82.0%` or `$0.0031`; `–` if there is none."""
    if value is None:
        return UNKNOWN
    match _unit(metric):
        case "share":
            return format_share(value)
        case "usd":
            return _dollars(value)
        case "s":
            return _seconds(value, language)
        case "tokens":
            return f"{value:,.0f}"
        case "count":
            return _number(value)


def format_tick(metric: str, value: float, language: str | None = None) -> str:
    """A value on an axis: without more digits than it needs."""
    return f"{value:g}" if _unit(metric) == "count" else format_value(metric, value, language)


def format_share(share: float) -> str:
    """A share between 0 and 1 in per cent; only nothing is 0% and only all is 100%."""
    if share in (0, 1):
        return f"{share:.0%}"
    return "<0.1%" if 0 < share < 0.0005 else ">99.9%" if 0.9995 < share < 1 else f"{share:.1%}"


def format_interval(metric: str, figure: MetricValue, language: str | None = None) -> str:
    """The interval of a figure, such as `71.0–90.5%`, or why there is none; "" without a figure."""
    if figure.low is None:
        return _missing_interval(figure, language)
    if figure.high is None:
        return translate("at least {low}", language, low=format_value(metric, figure.low, language))
    low, high = format_value(metric, figure.low, language), format_value(metric, figure.high, language)
    return translate("{low} to {high}", language, low=low, high=high)


def format_difference(metric: str, value: float | None, language: str | None = None) -> str:
    """A difference of two values with its sign, such as `+6.0 points`; `–` if there is none."""
    if value is None:
        return UNKNOWN
    sign = "+" if value > 0 else "−" if value < 0 else "±"
    if _unit(metric) == "share":
        return translate("{difference} points", language, difference=f"{sign}{abs(value) * 100:.1f}")
    return f"{sign}{format_value(metric, abs(value), language)}"


def format_difference_interval(metric: str, figure: MetricValue, language: str | None = None) -> str:
    """The interval of a difference, or why there is none; "" without a difference."""
    if figure.low is None or figure.high is None:
        return _missing_interval(figure, language)
    if _unit(metric) == "share":
        low, high = (f"{end * 100:+.1f}".replace("-", "−") for end in (figure.low, figure.high))
    else:
        low, high = (format_difference(metric, end, language) for end in (figure.low, figure.high))
    return translate("{low} to {high}", language, low=low, high=high)


def _missing_interval(figure: MetricValue, language: str | None) -> str:
    return "" if figure.value is None else note_texts(figure, language)[-1]


def format_p(p: float | None) -> str:
    """A probability; `–` if there is none."""
    return UNKNOWN if p is None else "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def _unit(metric: str) -> Unit:
    return METRICS[metric].unit if metric in METRICS else "count"


def _dollars(value: float) -> str:
    if value == 0:
        return "$0"
    return f"${value:,.2f}" if value >= 1 else f"${value:.2g}" if value >= 1e-4 else f"${value:.1e}"


def _seconds(value: float, language: str | None) -> str:
    if 0 < value < 1:
        milliseconds = value * 1000
        return translate("{n} ms", language, n=f"{milliseconds:.0f}" if milliseconds >= 10 else f"{milliseconds:.2g}")
    if value < 100:
        return translate("{n} s", language, n=f"{value:.1f}" if value else "0")
    return translate("{n} min", language, n=f"{value / 60:.1f}")


def _number(value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2f}" if abs(value) >= 0.01 else f"{value:.1g}"
