"""What `tao eval --counterfactual` found, on a terminal: how many runs stay the same, and where the others part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TextIO

from taoloop.cli.translation import view_language
from taoloop.cli.ui.event_view import RowWriter, console_for
from taoloop.cli.ui.stdio import one_line
from taoloop.core.views.difference_text import difference_lines
from taoloop.evals.stored_runs.divergences import Counterfactual, DivergenceGroup, RunTrial
from taoloop.translation import mark

_SHOWN_RUNS = 3
_ROW_CHARS = 100
_HEADERS = ("---", "+++", "@@")  # of a unified diff; the colours say enough
_STYLES: Mapping[str, str] = {"-": "red", "+": "green"}


def print_counterfactual(stream: TextIO, result: Counterfactual) -> None:
    """The result of a change that was tried on stored runs."""
    pen = RowWriter(console_for(stream), view_language("en", stream))
    counts = Counter(trial.outcome for trial in result.trials)
    text = mark("runs the same to their end: {same} · diverging: {diverged} · failed: {failed} · left out: {left_out}")
    names = ("same", "diverged", "failed", "left_out")
    pen.line(pen.text(text, **{name: counts[name] for name in names}), "bold")  # type: ignore[index]  # the outcomes
    rate = result.same_rate
    if rate.value is not None:
        text = mark("the same: {value:.1%} (95% interval: {low:.1%} to {high:.1%})")
        pen.line(pen.text(text, value=rate.value, low=rate.low, high=rate.high))
    if result.cost_usd:
        pen.line(pen.text("cost: {usd} USD", usd=f"{result.cost_usd:.6g}"), "dim")
    for group in result.groups:
        pen.gap()
        _show_group(pen, group)
    reasons = Counter((trial.outcome, trial.reason) for trial in result.trials if trial.reason)
    if reasons:
        pen.gap()
    for (outcome, reason), count in reasons.items():
        text = mark("failed: {n} run ({reason})|failed: {n} runs ({reason})")
        if outcome == "left_out":
            text = mark("left out: {n} run ({reason})|left out: {n} runs ({reason})")
        pen.line(pen.text(text, n=count, reason=reason), "dim")


def _show_group(pen: RowWriter, group: DivergenceGroup) -> None:
    marks = [
        pen.text(text, n=group.marks[name])
        for name, text in (("right", mark("{n} marked right")), ("wrong", mark("{n} marked wrong")))
        if group.marks[name]
    ]
    note = f" ({', '.join(marks)})" if marks else ""
    count = pen.text(mark("{n} run|{n} runs"), n=len(group.trials))
    pen.line(f"{count}{pen.text(': ')}{group.text(pen.language)}{note}", "bold yellow")
    for trial in group.trials[:_SHOWN_RUNS]:
        _show_trial(pen, trial)
    if (more := len(group.trials) - _SHOWN_RUNS) > 0:
        pen.line(f"  {pen.text('and {n} more', n=more)}", "dim")


def _show_trial(pen: RowWriter, trial: RunTrial) -> None:
    divergence = trial.divergence
    if divergence is None:
        return
    text = pen.text("{run_id}, step {step} · {task}", run_id=trial.run_id, step=divergence.step, task=trial.task)
    line = "  " + one_line(text)
    pen.line(line if len(line) <= _ROW_CHARS else line[: _ROW_CHARS - 1] + "…")
    names = (pen.text("recorded"), pen.text("now"))
    for line in difference_lines(divergence.difference, names, pen.language, max_chars=2_000):
        if line.startswith(_HEADERS):
            continue
        pen.line(f"    {line}", _STYLES.get(line[:1], "dim"))
