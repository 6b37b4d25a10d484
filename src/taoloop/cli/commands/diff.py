"""`tao diff`: two runs side by side, and where they first differ."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass
from difflib import unified_diff
from typing import Any

import click
import pydantic_core

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.database import database, load_run
from taoloop.cli.dotenv import load_environment
from taoloop.cli.translation import view_language
from taoloop.cli.ui.event_view import RowWriter, console_for
from taoloop.cli.ui.stdio import capture_stdout, one_line
from taoloop.core.trace import Trace
from taoloop.core.views.run_diff import Comparison, Difference, compare
from taoloop.translation import mark

_PARTS = mark(
    {
        "task": "task",
        "history": "conversation before the task",
        "tool": "card of the tool {name}",
        "prompt": "prompt text {name}",
        "unreadable replies": "unreadable replies",
        "thought": "thought",
        "answer of a person to": "answer of a person to {name}",
        "answer": "answer",
        "decision": "decision",
        "arguments of": "arguments of {name}",
        "call": "call {name}",
        "verdict on": "verdict on {name}",
        "observation of": "observation of {name}",
        "step": "step",
        "end": "end",
        "instructions": "instructions",
        "language": "language",
        "dialect": "dialect",
        "strategy": "strategy",
        "output_schema": "schema of the answer",
        "model": "model",
        "limits": "limits",
        "policy": "policy",
        "approved_tiers": "tiers approved in advance",
        "closing_turn": "closing turn",
        "repair_turns": "turns to repair an unreadable reply",
        "temperature": "temperature",
        "top_p": "nucleus sampling (top_p)",
        "max_output_tokens": "longest reply in tokens",
        "context_tokens": "context window in tokens",
        "model_timeout_s": "time for one reply in seconds",
        "early_reads": "early reads",
        "keep_thinking": "storing the model's thinking",
        "takes_cut_answers": "acceptance of cut answers",
    }
)
"""What may differ, by the first words of `Difference.what`, which `--json` shows."""

_ROW_CHARS, _LONG_CHARS, _CONTEXT_LINES = 100, 72, 2


@click.command("diff")
@click.argument("a", metavar="RUN_A")
@click.argument("b", metavar="RUN_B")
@options.db_option
@options.json_option("The comparison as one JSON object.")
@click.option("--decisions", is_flag=True, help="Compare only what was decided, and how the runs ended.")
@click.option("--thoughts", is_flag=True, help="Also compare the thoughts.")
@click.option("--all", "every", is_flag=True, help="Show every difference with both sides, not only the first.")
def diff_command(a: str, b: str, db: str | None, as_json: bool, decisions: bool, thoughts: bool, every: bool) -> int:
    """Compare two runs step by step, and show where they first differ and in what.

    The comparison covers the prompt (task, instructions, tools), decisions, verdicts, observations and the end. It
    ignores what must differ (ids, times, latency, cost), and thoughts unless --thoughts is given. A different model
    or different limits are reported but do not count as a difference. Exit code 1 if the runs differ, 0 if they are
    the same.

      tao diff RUN_A RUN_B
      tao diff RUN_A RUN_B --decisions      only what was decided and how the runs ended
      tao diff RUN_A RUN_B --json | jq .first
    """
    path = database(db, load_environment())
    left, right = load_run(path, a), load_run(path, b)
    comparison = compare(left, right, decisions_only=decisions, thoughts=thoughts)
    with capture_stdout() as stream:
        if as_json:
            stream.write(pydantic_core.to_json(_record(left, right, comparison), fallback=str).decode() + "\n")
        else:
            pen = RowWriter(console_for(stream), view_language(left.agent.language, stream))
            _show(pen, left, right, comparison, every)
    return exits.OK if comparison.same else exits.FOUND


def _record(a: Trace, b: Trace, comparison: Comparison) -> dict[str, Any]:
    runs = {"a": a.run_id, "b": b.run_id, "same": comparison.same}
    first = None if comparison.first is None else asdict(comparison.first)
    return {**runs, "first": first, **asdict(comparison)}


def _show(pen: RowWriter, a: Trace, b: Trace, comparison: Comparison, every: bool) -> None:
    for name, trace in (("a", a), ("b", b)):
        parts = (name, trace.run_id, trace.status, trace.agent.model, trace.task)
        pen.line(_short(" · ".join(parts)), "dim")
    for fork, original, text in (
        (b, a, mark("b is a fork of a at step {step}")),
        (a, b, mark("a is a fork of b at step {step}")),
    ):
        if fork.started is not None and fork.started.forked_from == original.run_id:
            pen.line(pen.text(text, step=fork.started.forked_at), "dim")
    for setting in comparison.settings:
        values = {"a": _short(_plain(pen, setting.a)), "b": _short(_plain(pen, setting.b))}
        values["field"] = _part(pen, setting.what)
        pen.line(pen.text("not compared: {field} is {a} in a, {b} in b", **values), "dim")
    pen.gap()
    _rows(pen, comparison)
    pen.gap()
    if comparison.first is None:
        pen.line(pen.text("the same in all {n} steps", n=len(comparison.steps)), "bold green")
        return
    pen.line(_headline(pen, comparison.first), "bold yellow")
    _sides(pen, comparison.first)
    for difference in comparison.differences[1:] if every else ():
        step = "" if not difference.step else f"{difference.step} "
        pen.line(step + _part(pen, difference.what), "yellow")
        _sides(pen, difference)


def _rows(pen: RowWriter, comparison: Comparison) -> None:
    """Every step: one line where both decided the same, else one for each run."""
    for pair in comparison.steps:
        if pair.a == pair.b:
            mark, style = ("=", "dim") if pair.same else ("≠", "bold red")
            pen.line(_short(f"{pair.number:>3} {mark} {pair.a}"), style)
            continue
        for name, line, style in (("a", pair.a, "red"), ("b", pair.b, "green")):
            number = f"{pair.number:>3} ≠" if name == "a" else "     "
            pen.line(_short(f"{number} {name}: {line if line is not None else '–'}"), style)


def _headline(pen: RowWriter, first: Difference) -> str:
    if first.step is None:
        return pen.text("They first differ in how they end")
    if first.part == "step":
        run = "a" if first.b is None else "b"
        return pen.text("They first differ in step {step}: only {run} has it", step=first.step, run=run)
    if first.step:
        return pen.text("They first differ in step {step}: {part}", step=first.step, part=_part(pen, first.what))
    return pen.text("They first differ before step 1: {part}", part=_part(pen, first.what))


def _part(pen: RowWriter, what: str) -> str:
    """What differs, in words."""
    code = next((code for code in _PARTS if f"{what} ".startswith(f"{code} ")), None)
    return what if code is None else pen.text(_PARTS[code], name=what.removeprefix(code).strip()).strip()


def _sides(pen: RowWriter, difference: Difference) -> None:
    """Both sides: short ones in a line each, long ones as a unified diff."""
    left, right = _plain(pen, difference.a), _plain(pen, difference.b)
    if left == right:
        pen.line("  " + pen.text("the complete output, beyond what is shown"), "dim")
    if max(len(left), len(right)) <= _LONG_CHARS and "\n" not in left + right:
        pen.line(f"  - a: {left}", "red")
        pen.line(f"  + b: {right}", "green")
        return
    sides = _lines(difference.a, left), _lines(difference.b, right)
    for line in unified_diff(*sides, "a", "b", lineterm="", n=_CONTEXT_LINES):
        style = {"-": "red", "+": "green", "@": "cyan"}.get(line[:1], "")
        pen.line(f"  {line}", style)


def _plain(pen: RowWriter, value: Any) -> str:
    if value is None:
        return pen.text("(nothing)")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_data)


def _lines(value: Any, plain: str) -> list[str]:
    """A value in the lines that a unified diff compares."""
    if value is None or isinstance(value, str):
        return plain.splitlines() or [""]
    return json.dumps(value, ensure_ascii=False, default=_data, indent=2).splitlines()


def _data(value: Any) -> Any:
    """What JSON does not know: a dataclass as its fields, anything else as a text."""
    if not is_dataclass(value) or isinstance(value, type):
        return str(value)
    return {name: item for name, item in asdict(value).items() if item is not None}


def _short(text: str) -> str:
    line = one_line(text) if not text.startswith(" ") else text[: len(text) - len(text.lstrip())] + one_line(text)
    return line if len(line) <= _ROW_CHARS else line[: _ROW_CHARS - 1] + "…"
