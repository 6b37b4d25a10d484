"""`tao diff`: two runs side by side, up to where they first part and beyond."""

from __future__ import annotations

import json
from dataclasses import asdict
from difflib import unified_diff
from typing import Any

import click
import pydantic_core

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.database import database, load_run
from taoloop.cli.dotenv import load_environment
from taoloop.cli.ui.event_view import RowWriter, console_for
from taoloop.cli.ui.stdio import capture_stdout, terminal_language
from taoloop.cli.ui.terminal_text import one_line
from taoloop.core.trace import Trace
from taoloop.core.views.run_diff import Comparison, Difference, compare

_HELP = """Compare two runs step by step, and say where they first differ and in what.

Compared are the prompt (task, instructions, tools), decisions, verdicts, observations and the end. What must differ
(ids, times, latency, cost) is left out, and so are thoughts unless --thoughts is given. Another model or other limits
are told, but are no difference by themselves. Exit code 1 if the runs differ, 0 if they are the same.

\b
  tao diff RUN_A RUN_B
  tao diff RUN_A RUN_B --decisions      what was decided and how it ended, and nothing else
  tao diff RUN_A RUN_B --json | jq .first
"""

_ROW_CHARS, _LONG_CHARS, _CONTEXT_LINES = 100, 72, 2

_EN = {
    "forked": "b is a fork of a at step {at}|a is a fork of b at step {at}",
    "setting": "not compared: {what} is {a} in a, {b} in b",
    "same": "the same in all {n} steps",
    "before": "They first differ before step 1: {what}",
    "step": "They first differ in step {n}: {what}",
    "missing": "They first differ in step {n}: only {side} has it",
    "end": "They first differ in how they end",
    "nothing": "(nothing)",
    "whole": "the whole output, beyond what is shown",
}
_ZH = {
    "forked": "b 是 a 在第 {at} 步的分支|a 是 b 在第 {at} 步的分支",
    "setting": "不比较：{what} 在 a 中为 {a}，在 b 中为 {b}",
    "same": "全部 {n} 步都相同",
    "before": "在第 1 步之前就不同：{what}",
    "step": "从第 {n} 步开始不同：{what}",
    "missing": "从第 {n} 步开始不同：只有 {side} 有这一步",
    "end": "只有结束方式不同",
    "nothing": "（无）",
    "whole": "完整的输出，超出所显示的部分",
}


@click.command("diff", help=_HELP)
@click.argument("a", metavar="RUN_A")
@click.argument("b", metavar="RUN_B")
@options.db_option
@options.json_option("The comparison as one JSON object.")
@click.option("--decisions", is_flag=True, help="Compare only what was decided, and how the runs ended.")
@click.option("--thoughts", is_flag=True, help="Compare the thoughts, too.")
@click.option("--all", "every", is_flag=True, help="Show every difference with both sides, and not only the first.")
def command(a: str, b: str, db: str | None, as_json: bool, decisions: bool, thoughts: bool, every: bool) -> int:
    """Compare the runs and print what differs."""
    path = database(db, load_environment())
    first, right = load_run(path, a), load_run(path, b)
    comparison = compare(first, right, decisions_only=decisions, thoughts=thoughts)
    with capture_stdout() as stream:
        if as_json:
            stream.write(pydantic_core.to_json(_record(first, right, comparison), fallback=str).decode() + "\n")
        else:
            _show(
                RowWriter(console_for(stream), terminal_language(first.agent.language, stream)),
                first,
                right,
                comparison,
                every,
            )
    return exits.OK if comparison.same else exits.FOUND


def _record(a: Trace, b: Trace, comparison: Comparison) -> dict[str, Any]:
    runs = {"a": a.run_id, "b": b.run_id, "same": comparison.same}
    first = None if comparison.first is None else asdict(comparison.first)
    return {**runs, "first": first, **asdict(comparison)}


def _show(pen: RowWriter, a: Trace, b: Trace, comparison: Comparison, every: bool) -> None:
    for name, trace in (("a", a), ("b", b)):
        parts = (name, trace.run_id, trace.status, trace.agent.model, trace.task)
        pen.line(_short(" · ".join(parts)), "dim")
    for link, side in enumerate(((b, a), (a, b))):
        started = side[0].started
        if started is not None and started.forked_from == side[1].run_id:
            pen.line(_text(pen, "forked").split("|")[link].format(at=started.forked_at), "dim")
    for setting in comparison.settings:
        values = {"a": _short(_plain(pen, setting.a)), "b": _short(_plain(pen, setting.b))}
        pen.line(_text(pen, "setting").format(what=setting.what, **values), "dim")
    pen.gap()
    _rows(pen, comparison)
    pen.gap()
    if comparison.first is None:
        pen.line(_text(pen, "same").format(n=len(comparison.steps)), "bold green")
        return
    pen.line(_headline(pen, comparison.first), "bold yellow")
    _sides(pen, comparison.first)
    for difference in comparison.differences[1:] if every else ():
        step = "" if not difference.step else f"{difference.step} "
        pen.line(f"{step}{difference.what}", "yellow")
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
        return _text(pen, "end")
    if first.part == "step":
        return _text(pen, "missing").format(n=first.step, side="a" if first.b is None else "b")
    return _text(pen, "step" if first.step else "before").format(n=first.step, what=first.what)


def _sides(pen: RowWriter, difference: Difference) -> None:
    """Both sides: short ones in a line each, long ones as a unified diff."""
    first, right = _plain(pen, difference.a), _plain(pen, difference.b)
    if first == right:
        pen.line(f"  {_text(pen, 'whole')}", "dim")
    if max(len(first), len(right)) <= _LONG_CHARS and "\n" not in first + right:
        pen.line(f"  - a: {first}", "red")
        pen.line(f"  + b: {right}", "green")
        return
    sides = _lines(difference.a, first), _lines(difference.b, right)
    for line in unified_diff(*sides, "a", "b", lineterm="", n=_CONTEXT_LINES):
        style = {"-": "red", "+": "green", "@": "cyan"}.get(line[:1], "")
        pen.line(f"  {line}", style)


def _plain(pen: RowWriter, value: Any) -> str:
    if value is None:
        return _text(pen, "nothing")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_data)


def _lines(value: Any, plain: str) -> list[str]:
    """A value in the lines that a unified diff compares."""
    if value is None or isinstance(value, str):
        return plain.splitlines() or [""]
    return json.dumps(value, ensure_ascii=False, default=_data, indent=2).splitlines()


def _data(value: Any) -> Any:
    """What JSON does not know: a value of ours as its fields, anything else as a text."""
    return (
        {name: item for name, item in asdict(value).items() if item is not None} if _has_fields(value) else str(value)
    )


def _has_fields(value: Any) -> bool:
    return hasattr(value, "__dataclass_fields__")


def _short(text: str) -> str:
    line = one_line(text) if not text.startswith(" ") else text[: len(text) - len(text.lstrip())] + one_line(text)
    return line if len(line) <= _ROW_CHARS else line[: _ROW_CHARS - 1] + "…"


def _text(pen: RowWriter, name: str) -> str:
    return (_ZH if pen.language == "zh" else _EN)[name]
