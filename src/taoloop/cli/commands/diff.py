"""`tao diff`: where runs part."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import permutations
from string import ascii_lowercase
from typing import Any

import click
import pydantic_core

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.completion import complete_run_ids
from taoloop.cli.database import database, load_environment, load_run
from taoloop.cli.translation import translate, view_language
from taoloop.cli.ui.event_view import RowWriter, console_for
from taoloop.cli.ui.stdio import capture_stdout, one_line, print_stderr
from taoloop.core.trace import Trace
from taoloop.core.views.difference_text import (
    decision_text,
    difference_headline,
    difference_lines,
    difference_name,
    value_text,
)
from taoloop.core.views.run_diff import Comparison, Difference, compare
from taoloop.core.views.run_figures import RunFigures
from taoloop.errors import ConfigError
from taoloop.translation import mark

_ROW_CHARS = 100
_NAMES = ascii_lowercase
"""How the runs are called, in the order in which they are given."""

_MOST_RUNS = 8


@click.command("diff")
@click.argument("runs", metavar="RUN_A RUN_B [RUN...]", nargs=-1, required=True, shell_complete=complete_run_ids)
@options.db_option
@options.json_option("The comparison as one JSON object.")
@click.option("--decisions", is_flag=True, help="Compare only what was decided, and how the runs ended.")
@click.option("--thoughts", is_flag=True, help="Also compare the thoughts.")
@click.option("--all", "every", is_flag=True, help="Show every difference with both sides, not only the first.")
def diff_command(
    runs: tuple[str, ...], db: str | None, as_json: bool, decisions: bool, thoughts: bool, every: bool
) -> int:
    """Compare two or more runs with the first one, and show where they first differ and in what.

    Steps are put side by side by what they did: a step that only one run has does not make those after it different.
    The comparison covers the prompt (task, instructions, tools), decisions, verdicts, observations and the end. It
    ignores what must differ (ids, times, latency, cost), and thoughts unless --thoughts is given. A different model
    or different limits are reported but do not count as a difference. Exit code 1 if the runs differ, 0 if they are
    the same.

      tao diff RUN_A RUN_B
      tao diff RUN_A RUN_B RUN_C
      tao diff RUN_A RUN_B --decisions      only what was decided and how the runs ended
      tao diff RUN_A RUN_B --json | jq .first
    """
    if not 2 <= len(runs) <= _MOST_RUNS:
        message = translate("{n} run cannot be compared.|{n} runs cannot be compared.", n=len(runs))
        raise ConfigError(message, hint=translate("Give 2 to {most} runs.", most=_MOST_RUNS))
    path = database(db, load_environment())
    first, second, *more = traces = [load_run(path, run) for run in runs]
    comparison = compare(first, second, *more, decisions_only=decisions, thoughts=thoughts)
    with capture_stdout() as stream:
        if as_json:
            ids = {name: trace.run_id for name, trace in zip(_NAMES, traces, strict=False)}
            stream.write(pydantic_core.to_json({**ids, **comparison.as_data()}, fallback=str).decode() + "\n")
        else:
            pen = RowWriter(console_for(stream), view_language(first.agent.language, stream))
            _show(pen, traces, comparison, every)
    if not comparison.is_aligned:
        text = mark("Warning: long parts of the runs have nothing in common; their steps are paired by their order.")
        print_stderr(translate(text))
    return exits.OK if comparison.same else exits.FOUND


def _show(pen: RowWriter, traces: Sequence[Trace], comparison: Comparison, every: bool) -> None:
    for name, trace in zip(_NAMES, traces, strict=False):
        parts = (name, trace.run_id, trace.status, trace.agent.model, trace.task)
        pen.line(_short(" · ".join(parts)), "dim")
    for (original, trace), (name, fork) in permutations(zip(_NAMES, traces, strict=False), 2):
        if fork.started is not None and fork.started.forked_from == trace.run_id:
            text = mark("{fork} is a fork of {original} at step {step}")
            pen.line(pen.text(text, fork=name, original=original, step=fork.started.forked_at), "dim")
    for setting in comparison.settings:
        values = {"a": _short(value_text(setting.a, pen.language)), "b": _short(value_text(setting.b, pen.language))}
        values |= {"field": difference_name(setting.what, pen.language), "run": _NAMES[setting.run]}
        pen.line(pen.text("not compared: {field} is {a} in a, {b} in {run}", **values), "dim")
    pen.gap()
    _figures(pen, comparison.runs)
    pen.gap()
    _rows(pen, comparison)
    pen.gap()
    if comparison.first is None:
        pen.line(pen.text("the same in all {n} steps", n=len(comparison.rows)), "bold green")
        return
    firsts = [first for run in range(1, len(traces)) if (first := comparison.first_of(run)) is not None]
    for first in firsts:
        runs = f"a, {_NAMES[first.run]}{pen.text(': ')}" if len(traces) > 2 else ""
        pen.line(runs + difference_headline(first, _NAMES, pen.language), "bold yellow")
        _sides(pen, first)
    for difference in comparison.differences if every else ():
        if difference not in firsts:
            _name(pen, difference, len(traces) > 2)
            _sides(pen, difference)


def _figures(pen: RowWriter, runs: Sequence[RunFigures]) -> None:
    """What each run took, and how much more or less than the first."""
    for name, run in zip(_NAMES, runs, strict=False):
        compared = partial(_compared, run, runs[0])
        parts = [
            pen.text("{steps} step|{steps} steps", n=run.steps, steps=compared("steps")),
            pen.text("{calls} call|{calls} calls", n=run.tool_calls, calls=compared("tool_calls")),
            pen.text("{tokens} tokens", tokens=compared("tokens", ",")),
            pen.text("cost unknown")
            if run.cost_usd is None
            else pen.text("{usd} USD", usd=compared("cost_usd", ".6g")),
            pen.text("{s} s at work", s=compared("active_s", ".1f")),
            pen.text("{s} s with waiting", s=compared("elapsed_s", ".1f")),
        ]
        pen.line(f"{name}{pen.text(': ')}{' · '.join(parts)}", "dim")


def _compared(run: RunFigures, first: RunFigures, name: str, form: str = "") -> str:
    """A figure, and how much it is above or below that of the first run."""
    value, base = getattr(run, name), getattr(first, name)
    text = f"{value:{form}}"
    if base is None or text == f"{base:{form}}":
        return text
    return f"{text} ({value - base:+{form}})"


def _rows(pen: RowWriter, comparison: Comparison) -> None:
    """Every step: one line where all decided the same, else one for each run."""
    for row in comparison.rows:
        first = row.cells[0]
        if first is not None and row.decided_alike:
            sign, style = ("=", "dim") if row.same else ("≠", "bold red")
            pen.line(_short(f"{first.number:>3} {sign} {decision_text(first.text, pen.language)}"), style)
            continue
        for name, cell in zip(_NAMES, row.cells, strict=False):
            number, text = ("", None) if cell is None else (cell.number, cell.text)
            sign, style = ("≠", "red") if name == "a" else ("·", "green")
            pen.line(_short(f"{number:>3} {sign} {name}: {decision_text(text, pen.language)}"), style)


def _name(pen: RowWriter, difference: Difference, with_run: bool) -> None:
    number = difference.step or difference.other_step
    parts = [
        _NAMES[difference.run] if with_run else "",
        str(number or ""),
        difference_name(difference.what, pen.language),
    ]
    pen.line(" ".join(part for part in parts if part), "yellow")


def _sides(pen: RowWriter, difference: Difference) -> None:
    styles: dict[str, Any] = {"-": "red", "+": "green", "@": "cyan"}
    for line in difference_lines(difference, _NAMES, pen.language):
        pen.line(f"  {line}", styles.get(line[:1], "dim"))


def _short(text: str) -> str:
    line = one_line(text) if not text.startswith(" ") else text[: len(text) - len(text.lstrip())] + one_line(text)
    return line if len(line) <= _ROW_CHARS else line[: _ROW_CHARS - 1] + "…"
