"""How metrics, their figures and their differences are written for people, in English and Chinese."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from taoloop.evals.results import MetricValue, translate
from taoloop.translation import mark

Unit = Literal["share", "number", "usd", "seconds", "tokens"]
"""What a metric is counted in. A share is between 0 and 1."""

Direction = Literal["high", "low", ""]
"""Which end is the better one; empty: neither is."""

UNKNOWN = "–"
"""What stands where there is no figure: none is not zero."""


@dataclass(frozen=True, slots=True)
class MetricText:
    """A metric for people."""

    label: str
    """Its name in English; the key of the Chinese one."""
    unit: Unit
    """What its values are counted in."""
    better: Direction
    """Which end is the better one."""


METRIC_TEXTS: dict[str, MetricText] = {
    "task_success": MetricText(mark("Task success"), "share", "high"),
    "pass_at_k": MetricText(mark("pass@k: right at least once in k"), "share", "high"),
    "pass_hat_k": MetricText(mark("pass^k: right k times in k"), "share", "high"),
    "no_answer": MetricText(mark("No answer"), "share", "low"),
    "wrong_answer": MetricText(mark("Wrong answer"), "share", "low"),
    "abstention": MetricText(mark("Abstains where there is no answer"), "share", "high"),
    "mean_steps": MetricText(mark("Steps per trial"), "number", "low"),
    "tool_success": MetricText(mark("Tool calls that succeed"), "share", "high"),
    "tool_selection": MetricText(mark("Right tool chosen"), "share", "high"),
    "argument_accuracy": MetricText(mark("Right arguments"), "share", "high"),
    "repeated_actions": MetricText(mark("Repeated actions"), "share", "low"),
    "citation_precision": MetricText(mark("Citation precision"), "share", "high"),
    "citation_recall": MetricText(mark("Citation recall"), "share", "high"),
    "high_risk_interception": MetricText(mark("Risky actions intercepted"), "share", "high"),
    "false_alarms": MetricText(mark("False alarms"), "share", "low"),
    "questions_per_task": MetricText(mark("Questions per task"), "number", "low"),
    "recovery": MetricText(mark("Recovery after a failed call"), "share", "high"),
    "duplicate_effects": MetricText(mark("Duplicate effects"), "number", "low"),
    "lost_effects": MetricText(mark("Lost effects"), "number", "low"),
    "cost_usd": MetricText(mark("Cost per trial"), "usd", "low"),
    "cost_per_success_usd": MetricText(mark("Cost per right answer"), "usd", "low"),
    "tokens": MetricText(mark("Tokens per trial"), "tokens", "low"),
    "latency_p50_s": MetricText(mark("Latency, median"), "seconds", "low"),
    "latency_p95_s": MetricText(mark("Latency, 95th percentile"), "seconds", "low"),
}
"""Every metric that is shown, in the order in which it is shown."""

_NOTES: dict[str, str] = mark(
    {
        "nothing_counted": "nothing was counted",
        "one_case": "one case only, so there is no interval",
        "no_variation": "all cases are alike, so the interval has no width",
        "few_cases": "too few cases: the interval ends at the greatest value seen",
        "partly_unknown": "trials whose value is unknown are left out",
    }
)

_VERDICTS: dict[str, str] = mark({"better": "better", "worse": "worse", "inconclusive": "inconclusive"})

_FAULTS: dict[str, str] = mark(
    {
        "agent": "agent",
        "tool": "tool",
        "environment": "environment",
        "simulator": "simulator",
        "judge": "judge",
        "invalid": "invalid: counts in no rate",
        "unassigned": "not assigned",
    }
)

_CATEGORIES: dict[str, str] = mark(
    {"normal": "normal", "edge": "edge", "failure": "failure", "safety": "safety", "regression": "regression"}
)


def metric_text(name: str) -> MetricText:
    """What is known of a metric; one of another version has its name as label and no better end."""
    if (text := METRIC_TEXTS.get(name)) is not None:
        return text
    unit: Unit = "seconds" if name.endswith("_s") else "usd" if name.endswith("_usd") else "number"
    return MetricText(name.replace("_", " "), unit, "")


def metric_label(name: str, language: str | None = None) -> str:
    """The name of a metric in `language`; by default that of errors, as in all functions here."""
    return translate(metric_text(name).label, language)


def verdict_text(verdict: str, language: str | None = None) -> str:
    """A verdict in `language`."""
    return translate(_VERDICTS[verdict], language)


def fault_text(fault: str, language: str | None = None) -> str:
    """A fault, `invalid` or `unassigned` in `language`."""
    return translate(_FAULTS.get(fault, fault), language)


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
    match metric_text(metric).unit:
        case "share":
            return format_share(value)
        case "usd":
            return _dollars(value)
        case "seconds":
            return _seconds(value, language)
        case "tokens":
            return f"{value:,.0f}"
        case "number":
            return _number(value)


def format_share(share: float) -> str:
    """A share between 0 and 1 in per cent; only nothing is 0% and only all is 100%."""
    if share in (0, 1):
        return f"{share:.0%}"
    return "<0.1%" if 0 < share < 0.0005 else ">99.9%" if 0.9995 < share < 1 else f"{share:.1%}"


def format_interval(metric: str, figure: MetricValue, language: str | None = None) -> str:
    """The interval of a figure, such as `71.0–90.5%`; "" if there is none."""
    if figure.low is None or figure.high is None:
        return ""
    low, high = format_value(metric, figure.low, language), format_value(metric, figure.high, language)
    return translate("{low} to {high}", language, low=low, high=high)


def format_difference(metric: str, value: float | None, language: str | None = None) -> str:
    """A difference of two values with its sign, such as `+6.0 points`; `–` if there is none."""
    if value is None:
        return UNKNOWN
    sign = "+" if value > 0 else "−" if value < 0 else "±"
    if metric_text(metric).unit == "share":
        return translate("{difference} points", language, difference=f"{sign}{abs(value) * 100:.1f}")
    return f"{sign}{format_value(metric, abs(value), language)}"


def format_difference_interval(metric: str, figure: MetricValue, language: str | None = None) -> str:
    """The interval of a difference; "" if there is none."""
    if figure.low is None or figure.high is None:
        return ""
    if metric_text(metric).unit == "share":
        low, high = (f"{end * 100:+.1f}".replace("-", "−") for end in (figure.low, figure.high))
    else:
        low, high = (format_difference(metric, end, language) for end in (figure.low, figure.high))
    return translate("{low} to {high}", language, low=low, high=high)


def format_p(p: float | None) -> str:
    """A probability; `–` if there is none."""
    return UNKNOWN if p is None else "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def _dollars(value: float) -> str:
    if value == 0:
        return "$0"
    return f"${value:,.2f}" if value >= 1 else f"${value:.2g}" if value >= 1e-4 else f"${value:.1e}"


def _seconds(value: float, language: str | None) -> str:
    if value < 1:
        milliseconds = value * 1000
        return translate("{n} ms", language, n=f"{milliseconds:.0f}" if milliseconds >= 10 else f"{milliseconds:.2g}")
    if value < 100:
        return translate("{n} s", language, n=f"{value:.1f}")
    return translate("{n} min", language, n=f"{value / 60:.1f}")


def _number(value: float) -> str:
    if value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
